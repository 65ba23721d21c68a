//! Directives, anchors, aliases and tags.

use super::{Kind, Mark, Scanner, Token};
use crate::error::ParseError;

impl Scanner<'_> {
    pub(super) fn scan_directive(&mut self) -> Result<Token, ParseError> {
        let start = self.mark;
        self.skip();
        let mut name = String::new();
        while self.is_word() {
            self.read(&mut name);
        }
        if name.is_empty() || !self.is_space_or_end(0) {
            return Err(directive_error(start));
        }
        self.skip_blanks();
        let mut token = match name.as_str() {
            "YAML" => {
                let version = self.scan_version(start)?;
                Token::new(Kind::Version, start, self.mark).with_text(version)
            }
            "TAG" => {
                let handle = self.scan_handle(true, start)?;
                if !self.is_blank(0) {
                    return Err(directive_error(start));
                }
                self.skip_blanks();
                let prefix = self.scan_uri("", start)?;
                if !self.is_space_or_end(0) {
                    return Err(directive_error(start));
                }
                let mut token = Token::new(Kind::TagDirective, start, self.mark).with_text(handle);
                token.suffix = prefix;
                token
            }
            _ => return Err(directive_error(start)),
        };
        token.end = self.mark;
        self.skip_blanks();
        self.skip_comment();
        if !self.is_break_or_end(0) {
            return Err(directive_error(start));
        }
        self.skip_break();
        Ok(token)
    }

    fn scan_version(&mut self, start: Mark) -> Result<String, ParseError> {
        let major = self.scan_version_number(start)?;
        if self.at(0) != b'.' {
            return Err(directive_error(start));
        }
        self.skip();
        let minor = self.scan_version_number(start)?;
        Ok(format!("{major}.{minor}"))
    }

    fn scan_version_number(&mut self, start: Mark) -> Result<u32, ParseError> {
        let mut digits = String::new();
        while self.at(0).is_ascii_digit() && digits.len() < 3 {
            self.read(&mut digits);
        }
        match digits.parse() {
            Ok(number) if digits.len() <= 2 => Ok(number),
            _ => Err(directive_error(start)),
        }
    }

    /// The name of an anchor or an alias.
    pub(super) fn scan_name(&mut self, kind: Kind) -> Result<Token, ParseError> {
        let start = self.mark;
        self.skip();
        let mut name = String::new();
        while self.is_word() {
            self.read(&mut name);
        }
        let ends =
            self.is_space_or_end(0) || matches!(self.at(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            let message = if kind == Kind::Alias {
                "a value that begins with `*` is an alias, and this isn't a name for one"
            } else {
                "a value that begins with `&` is an anchor, and this isn't a name for one"
            };
            return Err(ParseError::at(start, message).with_hint("put the value in quotes"));
        }
        Ok(Token::new(kind, start, self.mark).with_text(name))
    }

    pub(super) fn scan_tag(&mut self) -> Result<Token, ParseError> {
        let start = self.mark;
        let mut handle;
        let mut suffix;
        if self.at(1) == b'<' {
            handle = String::new();
            self.skip();
            self.skip();
            suffix = self.scan_uri("", start)?;
            if self.at(0) != b'>' {
                return Err(tag_error(start));
            }
            self.skip();
        } else {
            handle = self.scan_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                suffix = self.scan_uri("", start)?;
            } else {
                suffix = self.scan_uri(&handle, start)?;
                handle = "!".to_owned();
                if suffix.is_empty() {
                    std::mem::swap(&mut handle, &mut suffix);
                }
            }
        }
        if !self.is_space_or_end(0) {
            return Err(tag_error(start));
        }
        let mut token = Token::new(Kind::Tag, start, self.mark).with_text(handle);
        token.suffix = suffix;
        Ok(token)
    }

    fn scan_handle(&mut self, directive: bool, start: Mark) -> Result<String, ParseError> {
        if self.at(0) != b'!' {
            return Err(tag_error(start));
        }
        let mut handle = String::new();
        self.read(&mut handle);
        while self.is_word() {
            self.read(&mut handle);
        }
        if self.at(0) == b'!' {
            self.read(&mut handle);
        } else if directive && handle != "!" {
            return Err(tag_error(start));
        }
        Ok(handle)
    }

    /// The rest of a tag; `head` is what was read of it so far, with its `!`.
    fn scan_uri(&mut self, head: &str, start: Mark) -> Result<String, ParseError> {
        let mut uri: Vec<u8> = head.bytes().skip(1).collect();
        let mut found = !head.is_empty();
        while self.is_word() || b";/?:@&=+$,.!~*'()[]%".contains(&self.at(0)) {
            if self.at(0) == b'%' {
                self.scan_escaped_char(&mut uri, start)?;
            } else {
                uri.push(self.at(0));
                self.skip();
            }
            found = true;
        }
        if !found {
            return Err(tag_error(start));
        }
        Ok(String::from_utf8_lossy(&uri).into_owned())
    }

    /// One character written as `%XX` octets.
    fn scan_escaped_char(&mut self, uri: &mut Vec<u8>, start: Mark) -> Result<(), ParseError> {
        let mut left = None;
        while left != Some(0) {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.at(0), digit(self.at(1)), digit(self.at(2))) else {
                return Err(tag_error(start));
            };
            let octet = u8::try_from(high * 16 + low).unwrap_or_default();
            left = match left {
                None => match octet {
                    0..=0x7F => Some(0),
                    0xC0..=0xDF => Some(1),
                    0xE0..=0xEF => Some(2),
                    0xF0..=0xF7 => Some(3),
                    _ => return Err(tag_error(start)),
                },
                Some(_) if octet & 0xC0 != 0x80 => return Err(tag_error(start)),
                Some(count) => Some(count - 1),
            };
            uri.push(octet);
            for _ in 0..3 {
                self.skip();
            }
        }
        Ok(())
    }
}

fn directive_error(mark: Mark) -> ParseError {
    ParseError::at(mark, "a line that begins with `%` is a directive, and this one isn't valid")
        .with_hint("put a value that begins with `%` in quotes")
}

fn tag_error(mark: Mark) -> ParseError {
    ParseError::at(mark, "a value that begins with `!` is a tag, and this one isn't valid")
        .with_hint("put the value in quotes")
}
