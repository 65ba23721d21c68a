//! Lists and maps by indentation.

use super::{Composer, Properties};
use crate::error::ParseError;
use crate::scan::{Kind, Mark};

impl Composer<'_> {
    pub(super) fn block_list(&mut self, properties: Properties, depth: usize) -> Result<usize, ParseError> {
        let index = self.open(properties, false, depth)?;
        let mut items = Vec::new();
        self.scanner.take();
        loop {
            let (kind, mark, end) = self.scanner.peek()?;
            match kind {
                Kind::BlockEntry => {
                    self.scanner.take();
                    items.push(match self.scanner.peek()?.0 {
                        Kind::BlockEntry | Kind::BlockEnd => self.empty_scalar(end)?,
                        _ => self.node(true, false, depth + 1)?,
                    });
                }
                Kind::BlockEnd => {
                    self.scanner.take();
                    return Ok(self.close_list(index, items));
                }
                _ => {
                    return Err(ParseError::at(mark, "the next list item, `- …`, is expected here")
                        .with_hint("check the indentation of this line"));
                }
            }
        }
    }

    /// A list whose dashes stand under their key, not right of it.
    pub(super) fn indentless_list(&mut self, properties: Properties, depth: usize) -> Result<usize, ParseError> {
        let index = self.open(properties, false, depth)?;
        let mut items = Vec::new();
        loop {
            let (kind, _, end) = self.scanner.peek()?;
            if kind != Kind::BlockEntry {
                return Ok(self.close_list(index, items));
            }
            self.scanner.take();
            items.push(match self.scanner.peek()?.0 {
                Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => self.empty_scalar(end)?,
                _ => self.node(true, false, depth + 1)?,
            });
        }
    }

    pub(super) fn block_map(&mut self, properties: Properties, depth: usize) -> Result<usize, ParseError> {
        let index = self.open(properties, true, depth)?;
        let mut entries = Vec::new();
        self.scanner.take();
        loop {
            let (kind, mark, end) = self.scanner.peek()?;
            match kind {
                Kind::Key => {
                    self.scanner.take();
                    let key = self.block_map_part(end, depth)?;
                    let (kind, mark, end) = self.scanner.peek()?;
                    let value = if kind == Kind::Value {
                        self.scanner.take();
                        self.block_map_part(end, depth)?
                    } else {
                        self.empty_scalar(mark)?
                    };
                    entries.push((key, value));
                }
                Kind::BlockEnd => {
                    self.scanner.take();
                    return Ok(self.close_map(index, entries));
                }
                _ => {
                    return Err(ParseError::at(mark, "the next `key: value` is expected here")
                        .with_hint("check the indentation of this line, and quotes above it"));
                }
            }
        }
    }

    fn block_map_part(&mut self, end: Mark, depth: usize) -> Result<usize, ParseError> {
        match self.scanner.peek()?.0 {
            Kind::Key | Kind::Value | Kind::BlockEnd => self.empty_scalar(end),
            _ => self.node(true, true, depth + 1),
        }
    }
}
