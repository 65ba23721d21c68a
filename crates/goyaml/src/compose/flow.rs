//! Lists and maps in brackets.

use super::{Composer, Properties};
use crate::error::ParseError;
use crate::scan::{Kind, Mark};

impl Composer<'_> {
    pub(super) fn flow_list(&mut self, properties: Properties, depth: usize) -> Result<usize, ParseError> {
        let index = self.open(properties, false, depth)?;
        let mut items = Vec::new();
        self.scanner.take();
        loop {
            self.flow_separator(items.is_empty(), Kind::FlowListEnd)?;
            let (kind, mark, _) = self.scanner.peek()?;
            match kind {
                Kind::FlowListEnd => {
                    self.scanner.take();
                    return Ok(self.close_list(index, items));
                }
                Kind::Key => {
                    self.scanner.take();
                    items.push(self.flow_pair(mark, depth + 1)?);
                }
                _ => items.push(self.node(false, false, depth + 1)?),
            }
        }
    }

    /// A map of one entry, written in a list without braces.
    fn flow_pair(&mut self, start: Mark, depth: usize) -> Result<usize, ParseError> {
        let properties = Properties { start, end: start, anchor: None, tag: None };
        let index = self.open(properties, true, depth)?;
        let (kind, mark, _) = self.scanner.peek()?;
        let key = match kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowListEnd => {
                // yaml.v2 eats this token too.
                self.scanner.take();
                self.empty_scalar(mark)?
            }
            _ => self.node(false, false, depth + 1)?,
        };
        let value = self.flow_value(Kind::FlowListEnd, depth)?;
        Ok(self.close_map(index, vec![(key, value)]))
    }

    pub(super) fn flow_map(&mut self, properties: Properties, depth: usize) -> Result<usize, ParseError> {
        let index = self.open(properties, true, depth)?;
        let mut entries = Vec::new();
        self.scanner.take();
        loop {
            self.flow_separator(entries.is_empty(), Kind::FlowMapEnd)?;
            let (kind, _, _) = self.scanner.peek()?;
            match kind {
                Kind::FlowMapEnd => {
                    self.scanner.take();
                    return Ok(self.close_map(index, entries));
                }
                Kind::Key => {
                    self.scanner.take();
                    let (kind, mark, _) = self.scanner.peek()?;
                    let key = match kind {
                        Kind::Value | Kind::FlowEntry | Kind::FlowMapEnd => self.empty_scalar(mark)?,
                        _ => self.node(false, false, depth + 1)?,
                    };
                    let value = self.flow_value(Kind::FlowMapEnd, depth)?;
                    entries.push((key, value));
                }
                _ => {
                    let key = self.node(false, false, depth + 1)?;
                    let mark = self.scanner.peek()?.1;
                    let value = self.empty_scalar(mark)?;
                    entries.push((key, value));
                }
            }
        }
    }

    fn flow_value(&mut self, close: Kind, depth: usize) -> Result<usize, ParseError> {
        let (mut kind, mut mark, _) = self.scanner.peek()?;
        if kind == Kind::Value {
            self.scanner.take();
            (kind, mark, _) = self.scanner.peek()?;
            if kind != Kind::FlowEntry && kind != close {
                return self.node(false, false, depth + 1);
            }
        }
        self.empty_scalar(mark)
    }

    /// The comma between two entries.
    fn flow_separator(&mut self, first: bool, close: Kind) -> Result<(), ParseError> {
        let (kind, mark, _) = self.scanner.peek()?;
        if first || kind == close {
            return Ok(());
        }
        if kind == Kind::FlowEntry {
            self.scanner.take();
            return Ok(());
        }
        let close = if close == Kind::FlowMapEnd { '}' } else { ']' };
        Err(ParseError::at(mark, format!("`,` or `{close}` is expected here")))
    }
}
