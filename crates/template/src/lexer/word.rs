//! Words within an action: space, names, strings, numbers.

use super::{Keyword, Kind, Lexer, Step, describe, is_space, trims_right};
use crate::quote::{is_alphanumeric, quote};

impl Lexer<'_> {
    pub(super) fn space(&mut self) -> Step {
        let mut count = 0;
        while self.peek().is_some_and(is_space) {
            self.next();
            count += 1;
        }
        let last = &self.input[self.at - 1..];
        if trims_right(last) && last[2..].starts_with("}}") {
            self.back();
            if count == 1 {
                return Step::RightDelimiter;
            }
        }
        self.emit(Kind::Space)
    }

    pub(super) fn identifier(&mut self) -> Step {
        let stop = self.word();
        if !self.at_terminator() {
            return self.bad_character(stop);
        }
        let word = &self.input[self.start..self.at];
        let kind = match Keyword::parse(word) {
            Some(keyword) => Kind::Keyword(keyword),
            None if matches!(word, "true" | "false") => Kind::Bool,
            None => Kind::Identifier,
        };
        self.emit(kind)
    }

    /// Runs over letters and digits; returns the character that stopped it.
    fn word(&mut self) -> Option<char> {
        loop {
            let c = self.next();
            if !c.is_some_and(is_alphanumeric) {
                self.back();
                return c;
            }
        }
    }

    pub(super) fn field_or_variable(&mut self, kind: Kind) -> Step {
        if self.at_terminator() {
            return self.emit(if kind == Kind::Variable { Kind::Variable } else { Kind::Dot });
        }
        let stop = self.word();
        if !self.at_terminator() {
            return self.bad_character(stop);
        }
        self.emit(kind)
    }

    fn bad_character(&mut self, c: Option<char>) -> Step {
        let c = c.map_or_else(String::new, describe);
        self.fail(format!("bad character {c}"))
    }

    fn at_terminator(&mut self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with("}}"),
        }
    }

    pub(super) fn quoted(&mut self, mark: char, kind: Kind, message: &str) -> Step {
        loop {
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.fail(message);
                    }
                }
                None | Some('\n') => return self.fail(message),
                Some(c) if c == mark => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    pub(super) fn raw(&mut self) -> Step {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.emit(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    pub(super) fn number(&mut self) -> Step {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.input[..self.at].ends_with('i') {
                return self.bad_number();
            }
            return self.emit(Kind::Complex);
        }
        self.emit(Kind::Number)
    }

    fn bad_number(&mut self) -> Step {
        let text = quote(&self.input[self.start..self.at]);
        self.fail(format!("bad number syntax: {text}"))
    }

    fn scan_number(&mut self) -> bool {
        const DECIMAL: &str = "0123456789_";
        const HEXADECIMAL: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEXADECIMAL;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        let exponent = match digits {
            DECIMAL => "eE",
            HEXADECIMAL => "pP",
            _ => "",
        };
        if !exponent.is_empty() && self.accept(exponent) {
            self.accept("+-");
            self.accept_run(DECIMAL);
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}
