//! `yaml.v2.Unmarshal` into an `interface{}`: what Kalypso makes of a configuration value.

use std::collections::BTreeMap;

use crate::check::check;
use crate::compose::{Composer, RawKind, Tree};
use crate::error::{DecodeError, Limits};
use crate::node::Style;
use crate::resolve::{self, MERGE};
use crate::value::{Key, Value};

/// A ConfigMap has at most 1 MiB, so only hostile values meet these. yaml.v2 itself stops at 10,000 levels.
const LIMITS: Limits = Limits { bytes: 2 << 20, nodes: 500_000, depth: 100 };

/// yaml.v2's bounds on how much of a document may come from aliases: 99 % of a small one, 10 % of a large one.
const ALIAS_RANGE: std::ops::Range<f64> = 400_000.0..4_000_000.0;

/// The same cap as on the nodes of the text, for what aliases make of them.
const MAX_DECODED: f64 = 500_000.0;

/// How much text aliases may repeat. Go shares the strings; we copy them.
const COPIED_BYTES: usize = 16 << 20;

/// The first document of a text.
///
/// As yaml.v2: of two equal keys the later wins, merge keys are expanded, dates stay strings, YAML 1.1's `yes`, `on`, … are
/// booleans. Different on purpose: a plain *key* `yes`, `on`, `y`, … stays the string that was written; nesting deeper than
/// 100 levels is an error; `!!binary` that isn't UTF-8 is an error.
pub fn decode(text: &str) -> Result<Value, DecodeError> {
    check(text, &LIMITS)?;
    let Some(tree) = Composer::new(text, LIMITS).next_document()? else {
        return Ok(Value::Null);
    };
    let mut decoder = Decoder { tree: &tree, open: Vec::new(), decoded: 1, from_aliases: 0, copied: 0 };
    decoder.value(tree.root, 0)
}

struct Decoder<'a> {
    tree: &'a Tree,
    /// The aliases that are being expanded.
    open: Vec<usize>,
    decoded: u32,
    from_aliases: u32,
    copied: usize,
}

impl Decoder<'_> {
    fn value(&mut self, index: usize, depth: usize) -> Result<Value, DecodeError> {
        self.count()?;
        let raw = &self.tree.nodes[index];
        let line = raw.mark.line + 1;
        match &raw.kind {
            RawKind::Scalar { text, style, tag, .. } => {
                if !self.open.is_empty() {
                    self.copied += text.len();
                    if self.copied > COPIED_BYTES {
                        return Err(DecodeError::Aliases);
                    }
                }
                scalar(tag.as_deref(), *style, text, line)
            }
            RawKind::List(items, _) => {
                check_depth(depth, line)?;
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    list.push(self.value(*item, depth + 1)?);
                }
                Ok(Value::List(list))
            }
            RawKind::Map(entries, _) => {
                let mut map = BTreeMap::new();
                self.map_into(entries, &mut map, depth, line)?;
                Ok(Value::Map(map))
            }
            RawKind::Alias(target) => {
                self.open_alias(index, line)?;
                let value = self.value(*target, depth)?;
                self.open.pop();
                Ok(value)
            }
        }
    }

    fn count(&mut self) -> Result<(), DecodeError> {
        self.decoded += 1;
        if !self.open.is_empty() {
            self.from_aliases += 1;
        }
        if self.from_aliases > 100 && self.decoded > 1000 {
            let decoded = f64::from(self.decoded);
            let share = (decoded.clamp(ALIAS_RANGE.start, ALIAS_RANGE.end) - ALIAS_RANGE.start)
                / (ALIAS_RANGE.end - ALIAS_RANGE.start);
            let excessive = f64::from(self.from_aliases) / decoded > 0.99 - 0.89 * share;
            if excessive || decoded > MAX_DECODED {
                return Err(DecodeError::Aliases);
            }
        }
        Ok(())
    }

    fn open_alias(&mut self, index: usize, line: u32) -> Result<(), DecodeError> {
        if self.open.contains(&index) {
            return Err(DecodeError::Cycle { line });
        }
        // Each open alias is at least one level of the text, so this bounds the search above too.
        if self.open.len() > LIMITS.depth {
            return Err(DecodeError::Depth { line, limit: LIMITS.depth });
        }
        self.open.push(index);
        Ok(())
    }

    fn map_into(
        &mut self,
        entries: &[(usize, usize)],
        map: &mut BTreeMap<Key, Value>,
        depth: usize,
        line: u32,
    ) -> Result<(), DecodeError> {
        check_depth(depth, line)?;
        for (key, value) in entries {
            if self.is_merge(*key) {
                self.merge(*value, map, depth)?;
                continue;
            }
            let key = self.key(*key, depth)?;
            let value = self.value(*value, depth + 1)?;
            // Go keeps the later of two equal keys too, and 0.0 and -0.0 are equal.
            if matches!(key, Key::Float(_)) {
                map.remove(&key);
            }
            map.insert(key, value);
        }
        Ok(())
    }

    fn key(&mut self, index: usize, depth: usize) -> Result<Key, DecodeError> {
        let target = match self.tree.nodes[index].kind {
            RawKind::Alias(target) => target,
            _ => index,
        };
        let value = self.value(index, depth + 1)?;
        if let RawKind::Scalar { text, style: Style::Plain, tag: None, .. } = &self.tree.nodes[target].kind
            && resolve::parse_old_bool(text).is_some()
        {
            return Ok(Key::String(text.clone()));
        }
        value.into_key().map_err(|value| DecodeError::InvalidKey {
            line: self.tree.nodes[index].mark.line + 1,
            kind: match value {
                Value::Map(_) => "map",
                _ => "list",
            },
        })
    }

    fn is_merge(&self, index: usize) -> bool {
        matches!(
            &self.tree.nodes[index].kind,
            RawKind::Scalar { text, style, tag, .. } if is_merge(text, *style, tag.as_deref())
        )
    }

    /// Into the map at the place where the merge key stands: what comes later in the text wins.
    fn merge(&mut self, index: usize, map: &mut BTreeMap<Key, Value>, depth: usize) -> Result<(), DecodeError> {
        match &self.tree.nodes[index].kind {
            RawKind::List(items, _) => {
                // The first of a list wins, so it goes in last.
                for item in items.iter().rev() {
                    self.merge_one(*item, map, depth)?;
                }
                Ok(())
            }
            _ => self.merge_one(index, map, depth),
        }
    }

    fn merge_one(&mut self, index: usize, map: &mut BTreeMap<Key, Value>, depth: usize) -> Result<(), DecodeError> {
        let raw = &self.tree.nodes[index];
        let line = raw.mark.line + 1;
        let (entries, alias) = match &raw.kind {
            RawKind::Map(entries, _) => (entries, false),
            RawKind::Alias(target) => match &self.tree.nodes[*target].kind {
                RawKind::Map(entries, _) => (entries, true),
                _ => return Err(DecodeError::Merge { line }),
            },
            _ => return Err(DecodeError::Merge { line }),
        };
        self.count()?;
        if alias {
            self.open_alias(index, line)?;
            self.count()?;
        }
        self.map_into(entries, map, depth + 1, line)?;
        if alias {
            self.open.pop();
        }
        Ok(())
    }
}

pub(crate) fn is_merge(text: &str, style: Style, tag: Option<&str>) -> bool {
    text == "<<"
        && match tag {
            None => style == Style::Plain,
            Some(tag) => tag == "!" || tag == MERGE,
        }
}

fn scalar(tag: Option<&str>, style: Style, text: &str, line: u32) -> Result<Value, DecodeError> {
    resolve::resolve(tag, style, text).map_err(|_| DecodeError::Tag {
        line,
        tag: short_tag(tag.unwrap_or_default()),
        text: text.chars().take(40).collect(),
    })
}

pub(crate) fn short_tag(tag: &str) -> String {
    match tag.strip_prefix("tag:yaml.org,2002:") {
        Some(rest) => format!("!!{rest}"),
        None => tag.to_owned(),
    }
}

fn check_depth(depth: usize, line: u32) -> Result<(), DecodeError> {
    if depth >= LIMITS.depth {
        return Err(DecodeError::Depth { line, limit: LIMITS.depth });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
