//! Which token comes next, and what it does to indentation and to the keys that may be open.

use super::{Kind, Mark, Scanner, Token};
use crate::error::ParseError;

impl Scanner<'_> {
    pub(super) fn fetch_next(&mut self) -> Result<(), ParseError> {
        if !self.started {
            self.started = true;
            let token = Token::new(Kind::StreamStart, self.mark, self.mark);
            self.tokens.push_back(token);
            return Ok(());
        }
        self.skip_to_token();
        self.unroll_indent(i64::from(self.mark.column));
        if self.is_end(0) {
            return self.fetch_end();
        }
        let next = self.at(0);
        if self.mark.column == 0 && next == b'%' {
            self.unroll_indent(-1);
            self.remove_key()?;
            self.key_allowed = false;
            let token = self.scan_directive()?;
            self.tokens.push_back(token);
            return Ok(());
        }
        if self.is_document_indicator() {
            let kind = if next == b'-' { Kind::DocumentStart } else { Kind::DocumentEnd };
            self.unroll_indent(-1);
            self.remove_key()?;
            self.key_allowed = false;
            self.push_indicator(kind, 3);
            return Ok(());
        }
        let flow = self.flow > 0;
        match next {
            b'[' => self.fetch_flow_start(Kind::FlowListStart),
            b'{' => self.fetch_flow_start(Kind::FlowMapStart),
            b']' => self.fetch_flow_end(Kind::FlowListEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMapEnd),
            b',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.push_indicator(Kind::FlowEntry, 1);
                Ok(())
            }
            b'-' if self.is_space_or_end(1) => self.fetch_block_entry(),
            b'?' if flow || self.is_space_or_end(1) => self.fetch_key(),
            b':' if flow || self.is_space_or_end(1) => self.fetch_value(),
            b'*' => self.fetch_name(Kind::Alias),
            b'&' => self.fetch_name(Kind::Anchor),
            b'!' => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.scan_tag()?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'|' | b'>' if !flow => {
                self.remove_key()?;
                self.key_allowed = true;
                let token = self.scan_block_scalar(next == b'|')?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'\'' | b'"' => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.scan_quoted(next == b'\'')?;
                self.tokens.push_back(token);
                Ok(())
            }
            b'-' => self.fetch_plain(),
            b'?' | b':' if !flow => self.fetch_plain(),
            b'\t' => Err(self
                .error("a tab is used for indentation")
                .with_hint("YAML is indented with spaces; replace the tab")),
            b'#' | b'|' | b'>' | b'%' | b'@' | b'`' | b'?' | b':' | b' ' => {
                let message = format!("a value cannot begin with `{}`", char::from(next));
                Err(self.error(message).with_hint("put the value in quotes"))
            }
            _ => self.fetch_plain(),
        }
    }

    /// Eats white space and comments. A tab is white space only where no key can begin.
    fn skip_to_token(&mut self) {
        loop {
            while self.at(0) == b' ' || (self.at(0) == b'\t' && (self.flow > 0 || !self.key_allowed)) {
                self.skip();
            }
            self.skip_comment();
            if !self.is_break(0) {
                return;
            }
            self.skip_break();
            if self.flow == 0 {
                self.key_allowed = true;
            }
        }
    }

    fn push_indicator(&mut self, kind: Kind, length: usize) {
        let start = self.mark;
        for _ in 0..length {
            self.skip();
        }
        self.tokens.push_back(Token::new(kind, start, self.mark));
    }

    fn fetch_end(&mut self) -> Result<(), ParseError> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let token = Token::new(Kind::StreamEnd, self.mark, self.mark);
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind) -> Result<(), ParseError> {
        self.save_key()?;
        self.enter_flow()?;
        self.key_allowed = true;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind) -> Result<(), ParseError> {
        self.remove_key()?;
        self.leave_flow();
        self.key_allowed = false;
        self.push_indicator(kind, 1);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), ParseError> {
        // Inside brackets the composer refuses it; it knows the context.
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self
                    .error("a list item cannot begin here")
                    .with_hint("put the `-` on a line of its own, indented under its key"));
            }
            self.roll_indent(self.mark, None, Kind::BlockListStart)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.push_indicator(Kind::BlockEntry, 1);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), ParseError> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self.error("a key cannot begin here").with_hint("put the value in quotes"));
            }
            self.roll_indent(self.mark, None, Kind::BlockMapStart)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow == 0;
        self.push_indicator(Kind::Key, 1);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), ParseError> {
        let index = self.keys.len() - 1;
        if self.key_is_valid(index)? {
            let key = self.keys[index];
            let mark: Mark = key.mark;
            self.insert(Some(key.token), Token::new(Kind::Key, mark, mark));
            self.roll_indent(mark, Some(key.token), Kind::BlockMapStart)?;
            self.keys[index].possible = false;
            self.keys_by_token.remove(&key.token);
            self.key_allowed = false;
        } else {
            if self.flow == 0 {
                if !self.key_allowed {
                    return Err(self
                        .error("a `key: value` cannot begin here")
                        .with_hint("put a value that contains `: ` in quotes, and check the indentation"));
                }
                self.roll_indent(self.mark, None, Kind::BlockMapStart)?;
            }
            self.key_allowed = self.flow == 0;
        }
        self.push_indicator(Kind::Value, 1);
        Ok(())
    }

    fn fetch_name(&mut self, kind: Kind) -> Result<(), ParseError> {
        self.save_key()?;
        self.key_allowed = false;
        let token = self.scan_name(kind)?;
        self.tokens.push_back(token);
        Ok(())
    }

    fn fetch_plain(&mut self) -> Result<(), ParseError> {
        self.save_key()?;
        self.key_allowed = false;
        let token = self.scan_plain()?;
        self.tokens.push_back(token);
        Ok(())
    }
}
