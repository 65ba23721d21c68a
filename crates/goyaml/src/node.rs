//! Trees with positions, for files that people write: every object of a platform is read through [`parse`].
//!
//! Stricter than [`crate::decode()`]: a duplicate key is an error, and every document of the stream counts.

mod build;

use crate::check::{check, check_size, check_utf8};
use crate::compose::{Composer, RawKind};
use crate::error::{Limits, ParseError};
use crate::resolve;
use crate::value::{Key, Value};

use build::Builder;

/// A value of a file and where it stands; `line` and `column` count from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub value: NodeValue,
    pub line: u32,
    pub column: u32,
    /// Where the first line of the text stands. For `|` and `>` it is the line below the indicator, else `line`.
    pub content_line: u32,
    /// As written, `!!str` for the standard ones.
    pub tag: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    Scalar { text: String, style: Style },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
    Folded,
}

/// All documents of a stream, empty ones left out. Aliases and merge keys are resolved.
pub fn parse(text: &str, limits: &Limits) -> Result<Vec<Node>, ParseError> {
    check(text, limits)?;
    documents(&mut Composer::new(text, *limits), *limits)
}

fn documents(composer: &mut Composer<'_>, limits: Limits) -> Result<Vec<Node>, ParseError> {
    let mut documents = Vec::new();
    let mut used = 0;
    while let Some(tree) = composer.next_document()? {
        let empty = matches!(
            &tree.nodes[tree.root].kind,
            RawKind::Scalar { text, style: Style::Plain, tag: None, .. } if text.is_empty()
        );
        if !empty {
            let mut builder = Builder::new(&tree, limits, used);
            documents.push(builder.build(tree.root, 0)?);
            used = builder.used();
        }
    }
    Ok(documents)
}

/// What the structure of a text doesn't show; lines count from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes<'t> {
    /// From the `#` on.
    pub comments: Vec<(u32, &'t str)>,
    /// Lines of anchors and aliases.
    pub references: Vec<u32>,
}

/// As [`parse`], with what else is in the text.
pub fn parse_noting<'t>(text: &'t str, limits: &Limits) -> Result<(Vec<Node>, Notes<'t>), ParseError> {
    check(text, limits)?;
    let mut composer = Composer::new(text, *limits);
    composer.note_comments();
    let documents = documents(&mut composer, *limits)?;
    let (comments, references) = composer.into_notes();
    let comments = comments.into_iter().filter_map(|(line, bytes)| Some((line + 1, text.get(bytes)?))).collect();
    Ok((documents, Notes { comments, references: references.iter().map(|mark| mark.line + 1).collect() }))
}

/// As [`parse`], for the bytes of a file; what isn't UTF-8 is an error with its place.
pub fn parse_bytes(bytes: &[u8], limits: &Limits) -> Result<Vec<Node>, ParseError> {
    check_size(bytes.len(), limits)?;
    parse(check_utf8(bytes)?, limits)
}

impl Node {
    /// A scalar as yaml.v2 types it, and so `sigs.k8s.io/yaml`; nothing for a map or a list.
    pub fn resolve(&self) -> Option<Value> {
        let NodeValue::Scalar { text, style } = &self.value else {
            return None;
        };
        let tag = self.tag.as_deref().map(full_tag);
        // `parse` has checked that the text fits its tag.
        Some(resolve::resolve(tag.as_deref(), *style, text).unwrap_or_else(|_| Value::String(text.clone())))
    }

    /// The whole tree as a value. Keys follow the rule of [`crate::decode()`].
    pub fn to_value(&self) -> Value {
        match &self.value {
            NodeValue::Scalar { .. } => self.resolve().unwrap_or(Value::Null),
            NodeValue::List(items) => Value::List(items.iter().map(Node::to_value).collect()),
            NodeValue::Map(entries) => {
                Value::Map(entries.iter().map(|(key, value)| (key.to_key(), value.to_value())).collect())
            }
        }
    }

    fn to_key(&self) -> Key {
        let text = self.text().unwrap_or_default();
        if self.tag.is_none() && self.is_plain() && resolve::parse_old_bool(text).is_some() {
            return Key::String(text.to_owned());
        }
        self.to_value().into_key().unwrap_or_else(|_| Key::String(text.to_owned()))
    }

    /// The text of a scalar as written, whatever its type.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The entries of a map.
    pub fn entries(&self) -> Option<&[(Node, Node)]> {
        match &self.value {
            NodeValue::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            NodeValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value under a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        let (_, value) = self.entries()?.iter().find(|(name, _)| name.text() == Some(key))?;
        Some(value)
    }

    /// True for a scalar that is null: `~`, `null`, or nothing at all.
    pub fn is_null(&self) -> bool {
        self.resolve() == Some(Value::Null)
    }

    fn is_plain(&self) -> bool {
        matches!(self.value, NodeValue::Scalar { style: Style::Plain, .. })
    }
}

fn full_tag(tag: &str) -> String {
    match tag.strip_prefix("!!") {
        Some(rest) => format!("tag:yaml.org,2002:{rest}"),
        None => tag.to_owned(),
    }
}

#[cfg(test)]
mod tests;
