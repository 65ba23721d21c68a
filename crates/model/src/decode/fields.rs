//! Maps of fields, read one by one: what is asked for is known, the rest is reported when the map is done.

use kedge_goyaml::Node;

use super::node::{self, Shape};
use super::notes::{Notes, Spot};
use super::suggestion::{choices, nearest};

/// A value and how to speak of it.
#[derive(Clone, Debug)]
pub(super) struct Value<'n> {
    /// `spec.deploymentTargets[0].name`
    pub path: String,
    /// The field's own name, for hints; empty for an item of a list.
    pub key: &'n str,
    /// Where the key is, or the item.
    pub key_spot: Spot,
    pub node: &'n Node,
}

/// A map whose keys are fields.
#[derive(Debug)]
pub(super) struct Fields<'n> {
    path: String,
    spot: Spot,
    entries: Vec<(&'n str, Spot, &'n Node)>,
    known: Vec<&'static str>,
}

impl<'n> Value<'n> {
    /// The value of a map that is read as pairs rather than as fields.
    pub fn child(&self, key: &'n str, key_spot: Spot, node: &'n Node) -> Value<'n> {
        Value { path: join(&self.path, key), key, key_spot, node }
    }

    pub fn spot(&self) -> Spot {
        node::spot(self.node)
    }

    /// The line that the value begins on.
    pub fn line(&self) -> u32 {
        u32::try_from(self.key_spot.line).unwrap_or(u32::MAX)
    }

    pub fn fields(&self, notes: &mut Notes<'_>) -> Option<Fields<'n>> {
        Fields::read(self, notes)
    }

    /// The keys and values of a map; empty when nothing is written.
    pub fn pairs(&self, notes: &mut Notes<'_>) -> Option<Vec<Value<'n>>> {
        match node::shape(self.node) {
            Shape::Null => Some(Vec::new()),
            Shape::Map(_) => {
                Some(node::entries(self.node).map(|(key, spot, node)| self.child(key, spot, node)).collect())
            }
            other => {
                self.wrong_type("a map", &other, notes);
                None
            }
        }
    }

    pub fn items(&self, notes: &mut Notes<'_>) -> Option<Vec<Value<'n>>> {
        match node::shape(self.node) {
            Shape::Null => Some(Vec::new()),
            Shape::List(items) => {
                let item = |(index, node)| Value {
                    path: format!("{}[{index}]", self.path),
                    key: "",
                    key_spot: node::spot(node),
                    node,
                };
                Some(items.iter().enumerate().map(item).collect())
            }
            other => {
                self.wrong_type("a list", &other, notes);
                None
            }
        }
    }

    /// A string as the Kubernetes API wants it: what YAML reads as another type must be quoted. Nothing is "".
    pub fn text(&self, notes: &mut Notes<'_>) -> Option<String> {
        match node::shape(self.node) {
            Shape::Text(text) => Some(text.to_owned()),
            Shape::Null => Some(String::new()),
            other => {
                let message =
                    format!("`{}` of {} must be a string, but is {}", self.path, notes.subject, other.describe());
                let hint = match other {
                    Shape::Bool(_, text) | Shape::Number(text) => Some(self.quoted(text)),
                    _ => None,
                };
                notes.error(self.spot(), "NotAString", message).hint = hint;
                None
            }
        }
    }

    /// A string of at least one character.
    pub fn word(&self, notes: &mut Notes<'_>) -> Option<String> {
        let text = self.text(notes)?;
        if text.is_empty() {
            let message = format!("`{}` of {} is empty", self.path, notes.subject);
            notes.error(self.key_spot, "MissingField", message);
            return None;
        }
        Some(text)
    }

    pub fn texts(&self, notes: &mut Notes<'_>) -> Option<Vec<String>> {
        // Collected first, so that every item is looked at.
        let texts: Vec<Option<String>> = self.items(notes)?.iter().map(|item| item.text(notes)).collect();
        texts.into_iter().collect()
    }

    pub fn flag(&self, notes: &mut Notes<'_>) -> Option<bool> {
        match node::shape(self.node) {
            Shape::Bool(value, _) => Some(value),
            other => {
                self.wrong_type("`true` or `false`", &other, notes);
                None
            }
        }
    }

    pub fn count(&self, notes: &mut Notes<'_>) -> Option<u64> {
        match node::shape(self.node) {
            Shape::Number(text) if text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u64>().is_ok() => {
                text.parse().ok()
            }
            other => {
                self.wrong_type("a whole number", &other, notes);
                None
            }
        }
    }

    /// A string, or a number as it is written: `cpu: 2`.
    pub fn amount<T, E: std::fmt::Display>(
        &self,
        notes: &mut Notes<'_>,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = match node::shape(self.node) {
            Shape::Number(text) | Shape::Text(text) => text,
            _ => return self.text(notes).and(None),
        };
        match parse(text) {
            Ok(amount) => Some(amount),
            Err(error) => {
                let message = format!("`{}` of {} is `{}`, and {error}", self.path, notes.subject, node::short(text));
                notes.error(self.spot(), "InvalidValue", message);
                None
            }
        }
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, notes: &mut Notes<'_>, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(notes)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let all = || words.iter().map(|(word, _)| *word);
        let message = format!("`{}` of {} can't be `{}`", self.path, notes.subject, node::short(&text));
        notes.error(self.spot(), "UnknownValue", message).hint = Some(match nearest(&text, all()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("write {}", choices(all())),
        });
        None
    }

    /// Says that the value can't be what it is; the caller has the words.
    pub fn refuse(&self, notes: &mut Notes<'_>, code: &'static str, why: &str, hint: Option<&str>) {
        let message = format!("`{}` of {} {why}", self.path, notes.subject);
        notes.error(self.spot(), code, message).hint = hint.map(str::to_owned);
    }

    fn wrong_type(&self, wanted: &str, found: &Shape<'_>, notes: &mut Notes<'_>) {
        let message = format!("`{}` of {} must be {wanted}, but is {}", self.path, notes.subject, found.describe());
        notes.error(self.spot(), "WrongType", message);
    }

    fn quoted(&self, text: &str) -> String {
        match self.key {
            "" => format!("put it in quotes: `\"{text}\"`"),
            key => format!("put it in quotes: `{key}: \"{text}\"`"),
        }
    }
}

impl<'n> Fields<'n> {
    pub fn read(value: &Value<'n>, notes: &mut Notes<'_>) -> Option<Fields<'n>> {
        let entries = match node::shape(value.node) {
            Shape::Null => Vec::new(),
            Shape::Map(_) => node::entries(value.node).collect(),
            other => {
                value.wrong_type("a map", &other, notes);
                return None;
            }
        };
        Some(Fields { path: value.path.clone(), spot: value.key_spot, entries, known: Vec::new() })
    }

    /// A field that may be absent; null counts as absent.
    pub fn take(&mut self, name: &'static str) -> Option<Value<'n>> {
        self.written(name).filter(|value| !matches!(node::shape(value.node), Shape::Null))
    }

    /// A field even when its value is empty.
    pub fn written(&mut self, name: &'static str) -> Option<Value<'n>> {
        self.known.push(name);
        let (key, spot, node) = *self.entries.iter().rev().find(|(key, ..)| *key == name)?;
        Some(Value { path: join(&self.path, key), key, key_spot: spot, node })
    }

    /// A field that must be there. The hint says what to write.
    pub fn need(&mut self, name: &'static str, notes: &mut Notes<'_>, hint: &str) -> Option<Value<'n>> {
        let found = self.take(name);
        if found.is_none() {
            let spot = self.entries.iter().find(|(key, ..)| *key == name).map_or(self.spot, |(_, spot, _)| *spot);
            let message = format!("{} has no `{}`", notes.subject, join(&self.path, name));
            notes.error(spot, "MissingField", message).hint = Some(hint.to_owned());
        }
        found
    }

    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(key, ..)| *key == name)
    }

    pub fn spot(&self) -> Spot {
        self.spot
    }

    /// Warns of every field that nobody asked for.
    pub fn finish(self, notes: &mut Notes<'_>) {
        let strict = notes.strict;
        self.rest(notes, strict);
    }

    /// As `finish`, where an unread field would change the meaning: an error.
    pub fn finish_strictly(self, notes: &mut Notes<'_>) {
        self.rest(notes, true);
    }

    fn rest(self, notes: &mut Notes<'_>, strict: bool) {
        let free: Vec<&str> = self.known.iter().copied().filter(|name| !self.has(name)).collect();
        for (key, spot, _) in &self.entries {
            if self.known.contains(key) {
                continue;
            }
            let message = format!("`{}` of {} isn't a field that Kedge knows", join(&self.path, key), notes.subject);
            let hint = match nearest(key, free.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("the fields here are {}", choices(self.known.iter().copied()).replace(" or ", " and ")),
            };
            let problem = match strict {
                true => notes.error(*spot, "UnknownField", message),
                false => notes.warning(*spot, "UnknownField", message),
            };
            problem.hint = Some(hint);
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { node::short(key) } else { format!("{path}.{}", node::short(key)) }
}
