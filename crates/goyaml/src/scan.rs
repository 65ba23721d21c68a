//! The scanner: text into tokens, by yaml.v2's rules. The composer pulls its tokens one at a time.
//!
//! yaml.v2 reads YAML 1.1 with habits of its own (what ends a plain scalar inside `[]`, which escapes exist, when
//! a key is recognised). Kalypso asks it whether a value is a map, so the answer has to be the same, and that is why the
//! scanner is ours. It is lazy as yaml.v2's is: a fault behind the first document doesn't spoil that document.

mod directive;
mod fetch;
mod scalar;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::error::ParseError;
use crate::node::Style;

/// Deeper than any limit of ours; here so that no counter can grow without end.
const MAX_LEVELS: usize = 10_000;

/// How far a `:` may be behind the start of its key, in characters.
const KEY_REACH: usize = 1024;

/// A position, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) index: usize,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    StreamStart,
    StreamEnd,
    /// `text` is the version as written.
    Version,
    /// `text` is the handle, `suffix` the prefix that it stands for.
    TagDirective,
    DocumentStart,
    DocumentEnd,
    BlockListStart,
    BlockMapStart,
    BlockEnd,
    FlowListStart,
    FlowListEnd,
    FlowMapStart,
    FlowMapEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias,
    Anchor,
    /// `text` is the handle.
    Tag,
    Scalar(Style),
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: Mark,
    pub(crate) end: Mark,
    pub(crate) text: String,
    pub(crate) suffix: String,
    /// The line, from 0, of the first line of the text itself.
    pub(crate) content_line: u32,
}

/// A place where a key without `?` may have begun.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    pos: usize,
    mark: Mark,
    tokens: VecDeque<Token>,
    /// How many tokens left the queue.
    taken: usize,
    flow: usize,
    indent: i64,
    indents: Vec<i64>,
    key_allowed: bool,
    keys: Vec<SimpleKey>,
    /// Token number to index in `keys`. Closing a bracket drops the entry that the bracket's opening left here, even
    /// when it belongs to the level outside; that is why `[]: x` is an error in yaml.v2, and so here.
    keys_by_token: HashMap<usize, usize>,
    started: bool,
    /// Lines and bytes of the comments so far, where somebody asked for them.
    pub(crate) comments: Option<Vec<(u32, Range<usize>)>>,
}

impl Token {
    fn new(kind: Kind, start: Mark, end: Mark) -> Token {
        Token { kind, start, end, text: String::new(), suffix: String::new(), content_line: start.line }
    }

    fn with_text(mut self, text: String) -> Token {
        self.text = text;
        self
    }
}

impl<'a> Scanner<'a> {
    /// A scanner over a text without forbidden characters (see [`crate::check`]).
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner {
            text: text.strip_prefix('\u{feff}').unwrap_or(text),
            pos: 0,
            mark: Mark::default(),
            tokens: VecDeque::new(),
            taken: 0,
            flow: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![SimpleKey::default()],
            keys_by_token: HashMap::new(),
            started: false,
            comments: None,
        }
    }

    /// The kind, start and end of the next token.
    pub(crate) fn peek(&mut self) -> Result<(Kind, Mark, Mark), ParseError> {
        self.fetch_more()?;
        Ok(match self.tokens.front() {
            Some(token) => (token.kind, token.start, token.end),
            None => (Kind::StreamEnd, self.mark, self.mark),
        })
    }

    /// Takes the token that `peek` showed.
    pub(crate) fn take(&mut self) -> Token {
        self.taken += 1;
        match self.tokens.pop_front() {
            Some(token) => token,
            None => Token::new(Kind::StreamEnd, self.mark, self.mark),
        }
    }

    fn fetch_more(&mut self) -> Result<(), ParseError> {
        loop {
            // A first token that may turn out to be a key has to wait until we know.
            if !self.tokens.is_empty() {
                match self.keys_by_token.get(&self.taken).copied() {
                    None => return Ok(()),
                    Some(index) => {
                        if !self.key_is_valid(index)? {
                            return Ok(());
                        }
                    }
                }
            }
            self.fetch_next()?;
        }
    }

    fn key_is_valid(&mut self, index: usize) -> Result<bool, ParseError> {
        let Some(key) = self.keys.get_mut(index) else {
            return Ok(false);
        };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line < self.mark.line || key.mark.index + KEY_REACH < self.mark.index {
            if key.required {
                return Err(missing_colon(key.mark));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Remembers that a key may begin here.
    fn save_key(&mut self) -> Result<(), ParseError> {
        let required = self.flow == 0 && self.indent == i64::from(self.mark.column);
        if self.key_allowed {
            let token = self.taken + self.tokens.len();
            let mark = self.mark;
            self.remove_key()?;
            let index = self.keys.len() - 1;
            self.keys[index] = SimpleKey { possible: true, required, token, mark };
            self.keys_by_token.insert(token, index);
        }
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), ParseError> {
        if let Some(key) = self.keys.last_mut()
            && key.possible
        {
            if key.required {
                return Err(missing_colon(key.mark));
            }
            key.possible = false;
            self.keys_by_token.remove(&key.token);
        }
        Ok(())
    }

    fn enter_flow(&mut self) -> Result<(), ParseError> {
        self.keys.push(SimpleKey { token: self.taken + self.tokens.len(), mark: self.mark, ..SimpleKey::default() });
        self.flow += 1;
        if self.flow > MAX_LEVELS {
            return Err(self.error("brackets are nested too deep"));
        }
        Ok(())
    }

    fn leave_flow(&mut self) {
        if self.flow > 0 {
            self.flow -= 1;
            if let Some(key) = self.keys.pop() {
                self.keys_by_token.remove(&key.token);
            }
        }
    }

    /// Opens a block collection when the column is right of the current one.
    fn roll_indent(&mut self, mark: Mark, number: Option<usize>, kind: Kind) -> Result<(), ParseError> {
        let column = i64::from(mark.column);
        if self.flow > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return Err(self.error("the text is nested too deep"));
        }
        self.insert(number, Token::new(kind, mark, mark));
        Ok(())
    }

    fn unroll_indent(&mut self, column: i64) {
        if self.flow > 0 {
            return;
        }
        while self.indent > column {
            self.tokens.push_back(Token::new(Kind::BlockEnd, self.mark, self.mark));
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Puts a token before the one with that number, or at the end when that one was taken already.
    fn insert(&mut self, number: Option<usize>, token: Token) {
        match number.and_then(|number| number.checked_sub(self.taken)) {
            Some(place) if place <= self.tokens.len() => self.tokens.insert(place, token),
            _ => self.tokens.push_back(token),
        }
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::at(self.mark, message)
    }

    /// The byte that many bytes ahead; 0 behind the end.
    fn at(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn is_end(&self, ahead: usize) -> bool {
        self.pos + ahead >= self.text.len()
    }

    fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.at(ahead), b' ' | b'\t')
    }

    /// The width in bytes of the line break there, 0 if there is none.
    fn break_width(&self, ahead: usize) -> usize {
        match self.at(ahead) {
            b'\r' | b'\n' => 1,
            0xC2 if self.at(ahead + 1) == 0x85 => 2,
            0xE2 if self.at(ahead + 1) == 0x80 && matches!(self.at(ahead + 2), 0xA8 | 0xA9) => 3,
            _ => 0,
        }
    }

    fn is_break(&self, ahead: usize) -> bool {
        self.break_width(ahead) > 0
    }

    fn is_break_or_end(&self, ahead: usize) -> bool {
        self.is_break(ahead) || self.is_end(ahead)
    }

    fn is_space_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    fn is_word(&self) -> bool {
        matches!(self.at(0), b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-')
    }

    /// `---` or `...` at the start of a line.
    fn is_document_indicator(&self) -> bool {
        self.mark.column == 0
            && (self.rest().starts_with(b"---") || self.rest().starts_with(b"..."))
            && self.is_space_or_end(3)
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.pos..).unwrap_or_default()
    }

    fn width(&self) -> usize {
        match self.at(0) {
            _ if self.is_end(0) => 0,
            0..=0x7F => 1,
            0x80..=0xDF => 2,
            0xE0..=0xEF => 3,
            _ => 4,
        }
    }

    fn skip(&mut self) {
        self.pos += self.width();
        self.mark.index += 1;
        self.mark.column += 1;
    }

    fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip();
        }
    }

    fn skip_break(&mut self) {
        let crlf = self.rest().starts_with(b"\r\n");
        let width = if crlf { 2 } else { self.break_width(0) };
        if width > 0 {
            self.pos += width;
            self.mark.index += if crlf { 2 } else { 1 };
            self.mark.column = 0;
            self.mark.line += 1;
        }
    }

    fn skip_comment(&mut self) {
        if self.at(0) == b'#' {
            let (line, start) = (self.mark.line, self.pos);
            while !self.is_break_or_end(0) {
                self.skip();
            }
            if let Some(comments) = &mut self.comments {
                comments.push((line, start..self.pos));
            }
        }
    }

    fn read(&mut self, into: &mut String) {
        let width = self.width();
        if let Some(char) = self.text.get(self.pos..self.pos + width) {
            into.push_str(char);
        }
        self.skip();
    }

    /// Every break is read as a newline, but U+2028 and U+2029 as themselves.
    fn read_break(&mut self, into: &mut String) {
        match self.break_width(0) {
            0 => {}
            3 => into.push(if self.at(2) == 0xA8 { '\u{2028}' } else { '\u{2029}' }),
            _ => into.push('\n'),
        }
        self.skip_break();
    }
}

fn missing_colon(mark: Mark) -> ParseError {
    ParseError::at(mark, "a `key: value` is expected here, but the `:` is missing")
        .with_hint("check the indentation of this line, and that a space follows the `:`")
}
