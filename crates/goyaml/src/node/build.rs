//! From a composed document to a [`Node`]: aliases and merge keys are resolved within a budget, duplicate keys refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Node, NodeValue};
use crate::compose::{Raw, RawKind, Tree};
use crate::decode::{is_merge, short_tag};
use crate::error::{Limits, ParseError};
use crate::resolve;
use crate::scan::Mark;

pub(super) struct Builder<'a> {
    tree: &'a Tree,
    limits: Limits,
    nodes: usize,
    /// Text that aliases repeated.
    copied: usize,
    /// The aliases that are being expanded.
    open: Vec<usize>,
}

/// A map while it is built: where each key is, and the line of those that the map itself wrote.
#[derive(Default)]
struct Entries {
    list: Vec<(Node, Node)>,
    places: HashMap<String, (usize, Option<u32>)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(tree: &'a Tree, limits: Limits, used: usize) -> Builder<'a> {
        Builder { tree, limits, nodes: used, copied: 0, open: Vec::new() }
    }

    /// How many nodes were built so far.
    pub(super) fn used(&self) -> usize {
        self.nodes
    }

    pub(super) fn build(&mut self, index: usize, depth: usize) -> Result<Node, ParseError> {
        let tree = self.tree;
        let raw = &tree.nodes[index];
        if let RawKind::Alias(target) = raw.kind {
            self.enter(index, raw.mark)?;
            let node = self.build(target, depth)?;
            self.open.pop();
            return Ok(node);
        }
        self.count(raw, depth)?;
        let (value, tag, content_line) = match &raw.kind {
            RawKind::Scalar { text, style, tag, content_line } => {
                if resolve::resolve(tag.as_deref(), *style, text).is_err() {
                    let tag = short_tag(tag.as_deref().unwrap_or_default());
                    let text: String = text.chars().take(40).collect();
                    let message = format!("`{text}` cannot be read as {tag}");
                    return Err(ParseError::at(raw.mark, message));
                }
                let value = NodeValue::Scalar { text: text.clone(), style: *style };
                (value, tag, *content_line)
            }
            RawKind::List(items, tag) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.build(*item, depth + 1)?);
                }
                (NodeValue::List(list), tag, raw.mark.line)
            }
            RawKind::Map(entries, tag) => {
                let mut map = Entries::default();
                self.fill(entries, &mut map, depth, true)?;
                (NodeValue::Map(map.list), tag, raw.mark.line)
            }
            RawKind::Alias(_) => return Err(ParseError::at(raw.mark, "an alias of an alias")),
        };
        Ok(Node {
            value,
            line: raw.mark.line + 1,
            column: raw.mark.column + 1,
            content_line: content_line + 1,
            tag: tag.as_deref().map(short_tag),
        })
    }

    fn count(&mut self, raw: &Raw, depth: usize) -> Result<(), ParseError> {
        self.nodes += 1;
        if let RawKind::Scalar { text, .. } = &raw.kind
            && !self.open.is_empty()
        {
            self.copied += text.len();
        }
        if self.nodes > self.limits.nodes || self.copied > self.limits.bytes {
            let message = match self.open.first() {
                Some(_) => format!(
                    "aliases expand this document beyond {} values or {} bytes",
                    self.limits.nodes, self.limits.bytes
                ),
                None => format!("more than {} values in one file", self.limits.nodes),
            };
            return Err(ParseError::at(raw.mark, message).with_hint("write fewer aliases, or split the file"));
        }
        let collection = !matches!(raw.kind, RawKind::Scalar { .. });
        if collection && depth >= self.limits.depth {
            return Err(ParseError::too_deep(raw.mark, self.limits.depth));
        }
        Ok(())
    }

    fn enter(&mut self, alias: usize, mark: Mark) -> Result<(), ParseError> {
        if self.open.contains(&alias) {
            return Err(ParseError::at(mark, "the anchored value contains itself"));
        }
        self.open.push(alias);
        Ok(())
    }

    fn fill(
        &mut self,
        entries: &[(usize, usize)],
        map: &mut Entries,
        depth: usize,
        own: bool,
    ) -> Result<(), ParseError> {
        let tree = self.tree;
        for (key, value) in entries {
            if matches!(
                &tree.nodes[*key].kind,
                RawKind::Scalar { text, style, tag, .. } if is_merge(text, *style, tag.as_deref())
            ) {
                self.merge(*value, map, depth)?;
                continue;
            }
            let mark = tree.nodes[*key].mark;
            let key = self.build(*key, depth + 1)?;
            if key.text().is_none() {
                return Err(ParseError::at(mark, "a map or a list cannot be a key")
                    .with_hint("put a template in quotes: '{{ … }}' without them reads as a map"));
            }
            let value = self.build(*value, depth + 1)?;
            map.insert(key, value, mark, own)?;
        }
        Ok(())
    }

    /// The maps behind a merge key, at its place: what comes later in the text wins, and in a list what comes first.
    fn merge(&mut self, index: usize, map: &mut Entries, depth: usize) -> Result<(), ParseError> {
        let tree = self.tree;
        let single = [index];
        let sources = match &tree.nodes[index].kind {
            RawKind::List(items, _) => items.as_slice(),
            _ => &single,
        };
        for source in sources.iter().rev() {
            let raw = &tree.nodes[*source];
            let (target, alias) = match raw.kind {
                RawKind::Alias(target) => (&tree.nodes[target], true),
                _ => (raw, false),
            };
            let RawKind::Map(entries, _) = &target.kind else {
                return Err(ParseError::at(raw.mark, "`<<` needs a map or a list of maps"));
            };
            if alias {
                self.enter(*source, raw.mark)?;
            }
            self.count(target, depth + 1)?;
            self.fill(entries, map, depth + 1, false)?;
            if alias {
                self.open.pop();
            }
        }
        Ok(())
    }
}

impl Entries {
    fn insert(&mut self, key: Node, value: Node, mark: Mark, own: bool) -> Result<(), ParseError> {
        let name = key.text().unwrap_or_default().to_owned();
        let line = own.then_some(mark.line + 1);
        match self.places.entry(name) {
            Entry::Vacant(place) => {
                place.insert((self.list.len(), line));
                self.list.push((key, value));
            }
            Entry::Occupied(mut place) => {
                let (index, earlier) = *place.get();
                if let (Some(first), true) = (earlier, own) {
                    let message = format!(
                        "the key `{}` stands twice in this map, on line {first} and on line {}",
                        place.key(),
                        mark.line + 1
                    );
                    return Err(ParseError::at(mark, message).with_hint("remove one of them"));
                }
                place.insert((index, line.or(earlier)));
                if let Some(entry) = self.list.get_mut(index) {
                    *entry = (key, value);
                }
            }
        }
        Ok(())
    }
}
