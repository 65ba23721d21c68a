//! Splits a template into tokens on demand, with Go's positions and line numbers. The parser pulls from it.

mod word;

use crate::quote::{is_alphanumeric, is_print, quote};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text is what went wrong.
    Error,
    Bool,
    /// A printable character that means nothing by itself.
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParenthesis,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParenthesis,
    Space,
    Quoted,
    Text,
    Variable,
    Dot,
    Keyword(Keyword),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Block,
    Break,
    Continue,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub at: usize,
    pub text: String,
    pub line: u32,
}

#[derive(Debug)]
pub(crate) struct Lexer<'s> {
    input: &'s str,
    at: usize,
    start: usize,
    at_end: bool,
    parentheses: usize,
    line: u32,
    start_line: u32,
    in_action: bool,
}

/// What comes after a step of scanning.
enum Step {
    Token(Token),
    Text,
    LeftDelimiter,
    RightDelimiter,
}

impl Token {
    pub(crate) fn none() -> Token {
        Token { kind: Kind::End, at: 0, text: String::new(), line: 0 }
    }

    /// As Go names it in an error.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            Kind::End => "EOF".to_owned(),
            Kind::Error => self.text.clone(),
            Kind::Keyword(_) | Kind::Dot => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                format!("{}...", quote(&self.text.chars().take(10).collect::<String>()))
            }
            _ => quote(&self.text),
        }
    }
}

impl Keyword {
    fn parse(word: &str) -> Option<Keyword> {
        Some(match word {
            "block" => Keyword::Block,
            "break" => Keyword::Break,
            "continue" => Keyword::Continue,
            "define" => Keyword::Define,
            "else" => Keyword::Else,
            "end" => Keyword::End,
            "if" => Keyword::If,
            "nil" => Keyword::Nil,
            "range" => Keyword::Range,
            "template" => Keyword::Template,
            "with" => Keyword::With,
            _ => return None,
        })
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn newlines(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|&b| b == b'\n').count()).unwrap_or(u32::MAX)
}

fn trims_left(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next() == Some('-') && chars.next().is_some_and(is_space)
}

fn trims_right(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_space) && chars.next() == Some('-')
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(input: &'s str) -> Lexer<'s> {
        Lexer { input, at: 0, start: 0, at_end: false, parentheses: 0, line: 1, start_line: 1, in_action: false }
    }

    pub(crate) fn next_token(&mut self) -> Token {
        let mut step = if self.in_action { self.action() } else { Step::Text };
        loop {
            step = match step {
                Step::Token(token) => return token,
                Step::Text => self.text(),
                Step::LeftDelimiter => self.left_delimiter(),
                Step::RightDelimiter => self.right_delimiter(),
            };
        }
    }

    fn rest(&self) -> &'s str {
        &self.input[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let Some(c) = self.rest().chars().next() else {
            self.at_end = true;
            return None;
        };
        self.at += c.len_utf8();
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn back(&mut self) {
        if self.at_end {
            return;
        }
        if let Some(c) = self.input[..self.at].chars().next_back() {
            self.at -= c.len_utf8();
            if c == '\n' {
                self.line -= 1;
            }
        }
    }

    fn peek(&mut self) -> Option<char> {
        let c = self.next();
        self.back();
        c
    }

    fn token(&mut self, kind: Kind) -> Token {
        let text = self.input[self.start..self.at].to_owned();
        let token = Token { kind, at: self.start, text, line: self.start_line };
        self.start = self.at;
        self.start_line = self.line;
        token
    }

    fn emit(&mut self, kind: Kind) -> Step {
        Step::Token(self.token(kind))
    }

    fn fail(&mut self, message: impl Into<String>) -> Step {
        let token = Token { kind: Kind::Error, at: self.start, text: message.into(), line: self.start_line };
        // Nothing comes after an error.
        self.input = "";
        self.at = 0;
        self.start = 0;
        Step::Token(token)
    }

    fn skip(&mut self) {
        self.line += newlines(&self.input[self.start..self.at]);
        self.start = self.at;
        self.start_line = self.line;
    }

    fn accept(&mut self, valid: &str) -> bool {
        if self.next().is_some_and(|c| valid.contains(c)) {
            return true;
        }
        self.back();
        false
    }

    fn accept_run(&mut self, valid: &str) {
        while self.next().is_some_and(|c| valid.contains(c)) {}
        self.back();
    }

    fn text(&mut self) -> Step {
        let rest = self.rest();
        let Some(length) = rest.find("{{") else {
            self.at = self.input.len();
            if self.at > self.start {
                self.line += newlines(&self.input[self.start..self.at]);
                return self.emit(Kind::Text);
            }
            return self.emit(Kind::End);
        };
        if length > 0 {
            self.at += length;
            let mut trimmed = 0;
            if trims_left(&self.input[self.at + 2..]) {
                let text = &self.input[self.start..self.at];
                trimmed = text.len() - text.trim_end_matches(is_space).len();
            }
            self.at -= trimmed;
            self.line += newlines(&self.input[self.start..self.at]);
            let token = self.token(Kind::Text);
            self.at += trimmed;
            self.skip();
            if !token.text.is_empty() {
                return Step::Token(token);
            }
        }
        Step::LeftDelimiter
    }

    /// Whether the action closes here, and whether it trims what follows.
    fn closes(&self) -> Option<bool> {
        let rest = self.rest();
        if trims_right(rest) && rest[2..].starts_with("}}") {
            return Some(true);
        }
        rest.starts_with("}}").then_some(false)
    }

    fn left_delimiter(&mut self) -> Step {
        self.at += 2;
        let marker = if trims_left(self.rest()) { 2 } else { 0 };
        if self.rest()[marker..].starts_with("/*") {
            self.at += marker;
            self.skip();
            return self.comment();
        }
        let token = self.token(Kind::LeftDelimiter);
        self.in_action = true;
        self.at += marker;
        self.skip();
        self.parentheses = 0;
        Step::Token(token)
    }

    fn comment(&mut self) -> Step {
        self.at += 2;
        let Some(length) = self.rest().find("*/") else {
            return self.fail("unclosed comment");
        };
        self.at += length + 2;
        let Some(trims) = self.closes() else {
            return self.fail("comment ends before closing delimiter");
        };
        self.line += newlines(&self.input[self.start..self.at]);
        self.start = self.at;
        self.start_line = self.line;
        self.at += if trims { 4 } else { 2 };
        if trims {
            self.trim_left();
        }
        self.skip();
        Step::Text
    }

    fn trim_left(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches(is_space).len();
    }

    fn right_delimiter(&mut self) -> Step {
        let trims = self.closes() == Some(true);
        if trims {
            self.at += 2;
            self.skip();
        }
        self.at += 2;
        let token = self.token(Kind::RightDelimiter);
        if trims {
            self.trim_left();
            self.skip();
        }
        self.in_action = false;
        Step::Token(token)
    }

    fn action(&mut self) -> Step {
        if self.closes().is_some() {
            if self.parentheses == 0 {
                return Step::RightDelimiter;
            }
            return self.fail("unclosed left paren");
        }
        let Some(c) = self.next() else {
            return self.fail("unclosed action");
        };
        match c {
            c if is_space(c) => {
                self.back();
                self.space()
            }
            '=' => self.emit(Kind::Assign),
            ':' if self.next() == Some('=') => self.emit(Kind::Declare),
            ':' => self.fail("expected :="),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted('"', Kind::Quoted, "unterminated quoted string"),
            '\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw(),
            '$' => self.field_or_variable(Kind::Variable),
            '.' if self.rest().bytes().next().is_some_and(|b| !b.is_ascii_digit()) => {
                self.field_or_variable(Kind::Field)
            }
            '.' | '+' | '-' | '0'..='9' => {
                self.back();
                self.number()
            }
            c if is_alphanumeric(c) => {
                self.back();
                self.identifier()
            }
            '(' => {
                self.parentheses += 1;
                self.emit(Kind::LeftParenthesis)
            }
            ')' => match self.parentheses.checked_sub(1) {
                Some(depth) => {
                    self.parentheses = depth;
                    self.emit(Kind::RightParenthesis)
                }
                None => self.fail("unexpected right paren"),
            },
            c if c.is_ascii() && is_print(c) => self.emit(Kind::Char),
            c => self.fail(format!("unrecognized character in action: {}", describe(c))),
        }
    }
}

/// Go's `%#U`: `U+002D '-'`.
fn describe(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    if is_print(c) { format!("{code} '{c}'") } else { code }
}
