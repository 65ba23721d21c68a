//! The texts of scalars: plain, quoted, and the two block styles.

use super::{Kind, Mark, Scanner, Token};
use crate::error::ParseError;
use crate::node::Style;

/// White space between two words of a flow scalar, which folds into a space or into newlines.
#[derive(Default)]
struct Gap {
    blanks: String,
    first_break: String,
    more_breaks: String,
    /// A line break was seen.
    broken: bool,
}

impl Gap {
    fn is_empty(&self) -> bool {
        !self.broken && self.blanks.is_empty()
    }

    fn fold_into(&mut self, text: &mut String) {
        if !self.broken {
            text.push_str(&self.blanks);
        } else if self.first_break.starts_with('\n') {
            if self.more_breaks.is_empty() {
                text.push(' ');
            }
            text.push_str(&self.more_breaks);
        } else {
            text.push_str(&self.first_break);
            text.push_str(&self.more_breaks);
        }
        self.clear();
    }

    fn clear(&mut self) {
        self.blanks.clear();
        self.first_break.clear();
        self.more_breaks.clear();
        self.broken = false;
    }
}

impl Scanner<'_> {
    pub(super) fn scan_plain(&mut self) -> Result<Token, ParseError> {
        let start = self.mark;
        let mut end = self.mark;
        let mut text = String::new();
        let mut gap = Gap::default();
        let indent = self.indent + 1;
        while !self.is_document_indicator() && self.at(0) != b'#' {
            while !self.is_space_or_end(0) {
                let next = self.at(0);
                if next == b':' && self.is_space_or_end(1)
                    || self.flow > 0 && matches!(next, b',' | b'?' | b'[' | b']' | b'{' | b'}')
                {
                    break;
                }
                if !gap.is_empty() {
                    gap.fold_into(&mut text);
                }
                self.read(&mut text);
                end = self.mark;
            }
            if !(self.is_blank(0) || self.is_break(0)) {
                break;
            }
            while self.is_blank(0) || self.is_break(0) {
                if self.at(0) == b'\t' && gap.broken && i64::from(self.mark.column) < indent {
                    return Err(self
                        .error("a tab is used for indentation")
                        .with_hint("YAML is indented with spaces; replace the tab"));
                }
                self.read_gap(&mut gap);
            }
            if self.flow == 0 && i64::from(self.mark.column) < indent {
                break;
            }
        }
        if gap.broken {
            self.key_allowed = true;
        }
        Ok(Token::new(Kind::Scalar(Style::Plain), start, end).with_text(text))
    }

    fn read_gap(&mut self, gap: &mut Gap) {
        if self.is_blank(0) {
            if gap.broken {
                self.skip();
            } else {
                self.read(&mut gap.blanks);
            }
        } else if gap.broken {
            self.read_break(&mut gap.more_breaks);
        } else {
            gap.blanks.clear();
            self.read_break(&mut gap.first_break);
            gap.broken = true;
        }
    }

    pub(super) fn scan_quoted(&mut self, single: bool) -> Result<Token, ParseError> {
        let start = self.mark;
        let quote = if single { b'\'' } else { b'"' };
        let mut text = String::new();
        let mut gap = Gap::default();
        self.skip();
        loop {
            if self.is_document_indicator() || self.is_end(0) {
                return Err(ParseError::at(start, "the quote that opens here is never closed"));
            }
            while !self.is_space_or_end(0) {
                if single && self.rest().starts_with(b"''") {
                    text.push('\'');
                    self.skip();
                    self.skip();
                } else if self.at(0) == quote {
                    break;
                } else if !single && self.at(0) == b'\\' && self.is_break(1) {
                    self.skip();
                    self.skip_break();
                    // What follows is joined to what came before.
                    gap.broken = true;
                    break;
                } else if !single && self.at(0) == b'\\' {
                    text.push(self.scan_escape()?);
                } else {
                    self.read(&mut text);
                }
            }
            if self.at(0) == quote {
                break;
            }
            while self.is_blank(0) || self.is_break(0) {
                self.read_gap(&mut gap);
            }
            gap.fold_into(&mut text);
        }
        self.skip();
        let style = if single { Style::SingleQuoted } else { Style::DoubleQuoted };
        Ok(Token::new(Kind::Scalar(style), start, self.mark).with_text(text))
    }

    fn scan_escape(&mut self) -> Result<char, ParseError> {
        let unknown = |mark: Mark| {
            ParseError::at(mark, "this escape isn't known in double quotes")
                .with_hint("write a backslash as `\\\\`, or use single quotes")
        };
        let mark = self.mark;
        let mut digits = 0;
        let mut char = match self.at(1) {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0B',
            b'f' => '\x0C',
            b'r' => '\r',
            b'e' => '\x1B',
            b' ' => ' ',
            b'"' => '"',
            b'\'' => '\'',
            b'\\' => '\\',
            b'N' => '\u{85}',
            b'_' => '\u{A0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            code @ (b'x' | b'u' | b'U') => {
                digits = match code {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                '\0'
            }
            _ => return Err(unknown(mark)),
        };
        self.skip();
        self.skip();
        if digits > 0 {
            let mut code: u32 = 0;
            for _ in 0..digits {
                let Some(digit) = char::from(self.at(0)).to_digit(16) else {
                    return Err(unknown(mark));
                };
                code = code.checked_mul(16).ok_or_else(|| unknown(mark))? + digit;
                self.skip();
            }
            char = char::from_u32(code).ok_or_else(|| unknown(mark))?;
        }
        Ok(char)
    }

    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Result<Token, ParseError> {
        let start = self.mark;
        self.skip();
        let (keep, increment) = self.scan_block_header(start)?;
        let content_line = self.mark.line;
        let mut end = self.mark;
        let mut indent = increment.map_or(0, |increment| self.indent.max(0) + increment);
        let mut text = String::new();
        let mut first_break = String::new();
        let mut more_breaks = String::new();
        self.scan_block_breaks(&mut indent, &mut more_breaks, &mut end)?;
        let mut leading_blank = false;
        while i64::from(self.mark.column) == indent && !self.is_end(0) {
            let blank = self.is_blank(0);
            let folds = !literal && !leading_blank && !blank && first_break.starts_with('\n');
            if !folds {
                text.push_str(&first_break);
            } else if more_breaks.is_empty() {
                text.push(' ');
            }
            first_break.clear();
            text.push_str(&more_breaks);
            more_breaks.clear();
            leading_blank = blank;
            while !self.is_break_or_end(0) {
                self.read(&mut text);
            }
            self.read_break(&mut first_break);
            self.scan_block_breaks(&mut indent, &mut more_breaks, &mut end)?;
        }
        if keep != Some(false) {
            text.push_str(&first_break);
        }
        if keep == Some(true) {
            text.push_str(&more_breaks);
        }
        let style = if literal { Style::Literal } else { Style::Folded };
        let mut token = Token::new(Kind::Scalar(style), start, end).with_text(text);
        token.content_line = content_line;
        Ok(token)
    }

    /// `+` is `Some(true)`, `-` is `Some(false)`; then the indentation digit. Either may come first.
    fn scan_block_header(&mut self, start: Mark) -> Result<(Option<bool>, Option<i64>), ParseError> {
        let mut keep = None;
        let mut increment = None;
        for _ in 0..2 {
            match self.at(0) {
                sign @ (b'+' | b'-') if keep.is_none() => {
                    keep = Some(sign == b'+');
                    self.skip();
                }
                digit @ b'1'..=b'9' if increment.is_none() => {
                    increment = Some(i64::from(digit - b'0'));
                    self.skip();
                }
                _ => {}
            }
        }
        self.skip_blanks();
        self.skip_comment();
        if !self.is_break_or_end(0) {
            return Err(ParseError::at(
                start,
                "only an indentation digit, `+` or `-` may follow `|` or `>` on its line",
            )
            .with_hint("put the text on the next line, or a value that begins so in quotes"));
        }
        self.skip_break();
        Ok((keep, increment))
    }

    /// Eats indentation and empty lines; finds the indentation when it is 0.
    fn scan_block_breaks(&mut self, indent: &mut i64, breaks: &mut String, end: &mut Mark) -> Result<(), ParseError> {
        *end = self.mark;
        let mut widest = 0;
        loop {
            let inside = |scanner: &Self, indent: i64| indent == 0 || i64::from(scanner.mark.column) < indent;
            while inside(self, *indent) && self.at(0) == b' ' {
                self.skip();
            }
            widest = widest.max(i64::from(self.mark.column));
            if inside(self, *indent) && self.at(0) == b'\t' {
                return Err(self
                    .error("a tab is used for indentation")
                    .with_hint("YAML is indented with spaces; replace the tab"));
            }
            if !self.is_break(0) {
                break;
            }
            self.read_break(breaks);
            *end = self.mark;
        }
        if *indent == 0 {
            *indent = widest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}
