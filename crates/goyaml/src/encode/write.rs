//! The pen: columns, indentation and the five ways to write a scalar, as yaml.v3's emitter has them.

use super::analyze::{Shape, analyze, is_break, is_printable};
use crate::resolve::stays_string;

/// A key longer than this, in bytes, is written with `?`.
const LONGEST_KEY: usize = 128;

/// Where a value stands; it decides how far its content is indented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    Document,
    List,
    Map,
}

#[derive(Debug)]
pub(super) struct Writer {
    out: String,
    /// The width of a level.
    step: usize,
    /// The current level; none before the root is open.
    indent: Option<usize>,
    column: usize,
    /// The last thing written was white space.
    whitespace: bool,
    /// Only indentation and indicators stand on this line so far.
    indention: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

impl Writer {
    pub(super) fn new(step: usize) -> Writer {
        Writer {
            out: String::with_capacity(128),
            // yaml.v3 falls back to 2 outside this range.
            step: if (2..=9).contains(&step) { step } else { 2 },
            indent: None,
            column: 0,
            whitespace: true,
            indention: true,
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.indent = None;
        self.next_line();
        self.out
    }

    /// Opens a list or a map; the old level comes back for [`Writer::leave`].
    pub(super) fn enter(&mut self, parent: Parent) -> Option<usize> {
        let outer = self.indent;
        self.indent = Some(match outer {
            None => 0,
            Some(indent) => self.deeper(indent, parent),
        });
        outer
    }

    pub(super) fn leave(&mut self, outer: Option<usize>) {
        self.indent = outer;
    }

    fn deeper(&self, indent: usize, parent: Parent) -> usize {
        match parent {
            // Content of an item begins right behind its dash.
            Parent::List => indent + 2,
            _ => self.step * ((indent + self.step) / self.step),
        }
    }

    /// Goes to the current level, on a new line unless only indentation is on this one.
    pub(super) fn next_line(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
    }

    pub(super) fn dash(&mut self) {
        self.indicator("-", true, true);
    }

    /// An empty list or map.
    pub(super) fn empty(&mut self, brackets: &str) {
        self.indicator(brackets, true, false);
    }

    /// The colon behind a key; a key with `?` has it on a line of its own.
    pub(super) fn colon(&mut self, simple: bool) {
        if simple {
            self.indicator(":", false, false);
        } else {
            self.next_line();
            self.indicator(":", true, true);
        }
    }

    pub(super) fn plain(&mut self, text: &str) {
        if !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        // Only whether the column is beyond the indentation matters behind a scalar, so bytes will do.
        self.column += text.len();
        self.whitespace = false;
        self.indention = false;
    }

    pub(super) fn plain_key(&mut self, text: &str) -> bool {
        self.plain(text);
        true
    }

    pub(super) fn string(&mut self, text: &str, parent: Parent) {
        let style = choose(text, analyze(text));
        self.scalar(text, style, parent);
    }

    /// A key; false when it was written with `?`.
    pub(super) fn string_key(&mut self, text: &str) -> bool {
        let shape = analyze(text);
        let simple = !shape.multiline && text.len() <= LONGEST_KEY;
        if !simple {
            self.indicator("?", true, true);
        }
        self.scalar(text, choose(text, shape), Parent::Map);
        simple
    }

    fn scalar(&mut self, text: &str, style: Style, parent: Parent) {
        let outer = self.indent;
        self.indent = Some(match outer {
            None => self.step,
            Some(indent) => self.deeper(indent, parent),
        });
        match style {
            Style::Plain => self.plain(text),
            Style::SingleQuoted => self.single_quoted(text),
            Style::DoubleQuoted => self.double_quoted(text),
            Style::Literal => self.literal(text),
        }
        self.indent = outer;
    }

    fn single_quoted(&mut self, text: &str) {
        self.indicator("'", true, false);
        let mut breaks = false;
        for char in text.chars() {
            if is_break(char) {
                if !breaks && char == '\n' {
                    self.line_break();
                }
                self.write_break(char);
                breaks = true;
                continue;
            }
            if char != ' ' {
                if breaks {
                    self.next_line();
                }
                if char == '\'' {
                    self.put('\'');
                }
                self.indention = false;
                breaks = false;
            }
            self.put(char);
        }
        self.indicator("'", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, text: &str) {
        self.indicator("\"", true, false);
        // yaml.v3 looks for a byte order mark at the start of the text, whichever character it is at.
        let escape_all = text.starts_with('\u{FEFF}');
        for char in text.chars() {
            if escape_all || !is_printable(char) || is_break(char) || matches!(char, '"' | '\\') {
                self.escape(char);
            } else {
                self.put(char);
            }
        }
        self.indicator("\"", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn escape(&mut self, char: char) {
        let code = u32::from(char);
        let short = match char {
            '\0' => '0',
            '\x07' => 'a',
            '\x08' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\x0B' => 'v',
            '\x0C' => 'f',
            '\r' => 'r',
            '\x1B' => 'e',
            '"' => '"',
            '\\' => '\\',
            '\u{85}' => 'N',
            '\u{A0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let escaped = match code {
                    0..=0xFF => format!("\\x{code:02X}"),
                    0x100..=0xFFFF => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                self.out.push_str(&escaped);
                self.column += escaped.len();
                return;
            }
        };
        self.put('\\');
        self.put(short);
    }

    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false);
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            // Always the width of a level, even where the text is indented otherwise.
            let hint = self.step.to_string();
            self.indicator(&hint, false, false);
        }
        let mut last = text.chars().rev();
        match (last.next().map(is_break), last.next().map(is_break)) {
            (Some(true), Some(true) | None) => self.indicator("+", false, false),
            (Some(true), Some(false)) => {}
            _ => self.indicator("-", false, false),
        }
        self.whitespace = true;
        let mut breaks = true;
        for char in text.chars() {
            if is_break(char) {
                self.write_break(char);
                breaks = true;
            } else {
                if breaks {
                    self.next_line();
                }
                self.put(char);
                self.indention = false;
                breaks = false;
            }
        }
    }

    fn indicator(&mut self, text: &str, needs_space: bool, keeps_indention: bool) {
        if needs_space && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.whitespace = false;
        self.indention &= keeps_indention;
    }

    fn put(&mut self, char: char) {
        self.out.push(char);
        self.column += 1;
    }

    fn write_break(&mut self, char: char) {
        if char == '\n' {
            self.line_break();
        } else {
            self.out.push(char);
            self.column = 0;
            self.indention = true;
        }
    }

    fn line_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.indention = true;
    }
}

/// An empty string never stays plain: it would be null.
fn choose(text: &str, shape: Shape) -> Style {
    if text.contains('\n') {
        return if shape.literal { Style::Literal } else { Style::DoubleQuoted };
    }
    if !stays_string(text) {
        Style::DoubleQuoted
    } else if shape.plain {
        Style::Plain
    } else if shape.single_quoted {
        Style::SingleQuoted
    } else {
        Style::DoubleQuoted
    }
}
