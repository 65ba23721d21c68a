//! What a text that isn't YAML seems to be, line by line: a broken ConfigMap must stop the assignments that it would
//! apply to, and no others. Labels that aren't certain are left out, which stops more, not less.

use crate::{Kind, Labels};

/// A text with more objects than this was made to have them.
const MAX_OBJECTS: usize = 1000;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Salvaged {
    pub kind: Option<Kind>,
    pub name: Option<String>,
    /// Only when every line of `metadata` could be read and the fault isn't among them.
    pub labels: Option<Labels>,
}

/// One object of the text, as far as it was walked.
#[derive(Debug, Default)]
struct Draft {
    /// What stands behind `kind:`, when it is a plain word.
    kind: Option<String>,
    /// Which of the header's fields it has.
    fields: Vec<&'static str>,
    /// Whether it has `data`, as ConfigMaps do.
    has_data: bool,
    name: Option<String>,
    labels: Labels,
    uncertain: bool,
    /// The indentation of `metadata`'s fields, once one was met.
    field_indentation: Option<usize>,
    place: Place,
}

/// Where the walk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Metadata,
    /// Below `labels`, with the indentation of the first one.
    Labels(Option<usize>),
}

/// The objects of a text, at least one: more when somebody forgot the `---` between them. `first_line` is the number
/// of the text's first line, `fault_line` where reading stopped.
pub(super) fn read(text: &str, first_line: usize, fault_line: Option<usize>) -> Vec<Salvaged> {
    let mut drafts = vec![Draft::default()];
    for (index, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') || line.starts_with("---") {
            continue;
        }
        let Some(draft) = drafts.last_mut() else { break };
        if line.starts_with([' ', '\t']) {
            draft.below(line, content, fault_line == Some(first_line + index));
        } else if let Some(again) = draft.top(content) {
            let mut next = Draft::default();
            next.top(again);
            drafts.push(next);
        }
        if drafts.len() > MAX_OBJECTS {
            return vec![Salvaged { kind: mentioned(text), ..Salvaged::default() }];
        }
    }
    // Parts of an object are no objects: then a field stands twice, and nobody knows which was meant.
    let parts = drafts.len() > 1 && drafts.iter().any(|draft| draft.kind.is_none() || !draft.has("metadata"));
    drafts.into_iter().map(|draft| draft.finish(text, parts)).collect()
}

impl Draft {
    fn has(&self, field: &str) -> bool {
        self.fields.contains(&field)
    }

    /// A line without indentation. Gives it back when it begins another object.
    fn top<'t>(&mut self, content: &'t str) -> Option<&'t str> {
        self.place = Place::Outside;
        let (key, value) = pair(content)?;
        self.has_data |= key == "data";
        let field = ["apiVersion", "kind", "metadata"].into_iter().find(|field| *field == key)?;
        if self.has(field) {
            return Some(content);
        }
        self.fields.push(field);
        match field {
            "kind" => self.kind = value.map(str::to_owned),
            "metadata" => {
                self.place = Place::Metadata;
                self.uncertain |= value != Some("");
            }
            _ => {}
        }
        None
    }

    /// An indented line: of interest below `metadata` only.
    fn below(&mut self, line: &str, content: &str, is_fault: bool) {
        if self.place == Place::Outside {
            return;
        }
        let indentation = line.len() - line.trim_start_matches(' ').len();
        let fields_at = *self.field_indentation.get_or_insert(indentation);
        if is_fault || line[indentation..].starts_with('\t') || indentation < fields_at {
            self.uncertain = true;
            return;
        }
        if indentation == fields_at {
            return self.field(content);
        }
        let Place::Labels(labels_at) = &mut self.place else { return };
        match pair(content) {
            Some((key, Some(value))) if *labels_at.get_or_insert(indentation) == indentation => {
                self.labels.insert(key.to_owned(), value.to_owned());
            }
            _ => self.uncertain = true,
        }
    }

    fn field(&mut self, content: &str) {
        self.place = Place::Metadata;
        match pair(content) {
            Some(("labels", value)) => {
                self.uncertain |= value != Some("");
                self.place = Place::Labels(None);
            }
            Some(("name", value)) => {
                self.name = self.name.take().or(value.filter(|name| !name.is_empty()).map(str::to_owned));
            }
            Some(_) => {}
            // An item of a list that some field holds.
            None if content.starts_with("- ") => {}
            None => self.uncertain = true,
        }
    }

    fn finish(self, text: &str, is_part: bool) -> Salvaged {
        let found = self.kind.as_deref().and_then(Kind::parse);
        // Behind a List, or in braces, the objects are somewhere inside.
        if found.is_none() && matches!(self.kind.as_deref(), None | Some("List")) {
            let kind = if self.has_data { Some(Kind::ConfigMap) } else { mentioned(text) };
            return Salvaged { kind, name: self.name, labels: None };
        }
        let labels = (self.has("metadata") && !self.uncertain && !is_part).then_some(self.labels);
        Salvaged { kind: found, name: self.name, labels }
    }
}

/// The kind of ours that a text names anywhere; of several the one that would stop the most.
fn mentioned(text: &str) -> Option<Kind> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let words = lines.flat_map(|line| line.split("kind").skip(1)).filter_map(|rest| {
        let value = rest.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?;
        let word = value.trim_start().trim_start_matches(['"', '\'']);
        Kind::parse(word.split(|c: char| !c.is_ascii_alphanumeric()).next()?)
    });
    words.min_by_key(|kind| match kind {
        Kind::ConfigMap => 0,
        Kind::ConfigSchema => 1,
        _ => 2,
    })
}

/// `key: value` with the quotes and the comment taken off. A value that isn't that simple is None.
fn pair(content: &str) -> Option<(&str, Option<&str>)> {
    let (key, value) = content.split_once(':')?;
    if !(value.is_empty() || value.starts_with(' '))
        || key.contains(|c: char| c.is_whitespace() || c == '{' || c == '[')
    {
        return None;
    }
    Some((unquoted(key)?, scalar(value.trim())))
}

fn scalar(value: &str) -> Option<&str> {
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let (inner, rest) = value[1..].split_once(quote)?;
            let rest = rest.trim_start();
            (!inner.contains('\\') && (rest.is_empty() || rest.starts_with('#'))).then_some(inner)
        }
        Some('{' | '[' | '&' | '*' | '!' | '|' | '>') => None,
        Some('#') | None => Some(""),
        Some(_) => Some(value.split(" #").next().unwrap_or(value).trim_end()),
    }
}

fn unquoted(key: &str) -> Option<&str> {
    match key.chars().next() {
        Some(quote @ ('"' | '\'')) => key[1..].strip_suffix(quote),
        _ => Some(key),
    }
}

#[cfg(test)]
mod tests;
