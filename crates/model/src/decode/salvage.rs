//! What a text that isn't YAML seems to be, line by line: a broken ConfigMap must stop the assignments that it would
//! apply to, and no others. What isn't certain is left out.

use crate::{Kind, Labels};

#[derive(Debug, Default, PartialEq)]
pub(super) struct Salvaged {
    pub kind: Option<Kind>,
    pub name: Option<String>,
    /// Only when every line of `metadata` could be read and the fault isn't among them.
    pub labels: Option<Labels>,
}

/// Where the walk is inside `metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Outside,
    Metadata,
    /// Under a key of `metadata`, with that key's indentation.
    Labels(usize),
    Other(usize),
}

/// `first_line` is the number of the text's first line, `fault_line` where reading stopped.
pub(super) fn read(text: &str, first_line: usize, fault_line: Option<usize>) -> Salvaged {
    let mut found = Salvaged::default();
    let mut labels = Labels::new();
    let (mut seen, mut certain) = (false, true);
    let mut place = Place::Outside;
    for (index, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') || line.starts_with("---") {
            continue;
        }
        let indentation = line.len() - line.trim_start_matches(' ').len();
        if indentation == 0 && !content.starts_with('\t') {
            place = Place::Outside;
            match pair(content) {
                Some(("kind", kind)) => found.kind = found.kind.or(Kind::parse(&kind)),
                Some(("metadata", value)) => {
                    place = Place::Metadata;
                    certain &= value.is_empty() && !seen;
                    seen = true;
                }
                _ => {}
            }
            continue;
        }
        if place == Place::Outside {
            continue;
        }
        certain &= fault_line != Some(first_line + index);
        if let Place::Labels(outer) | Place::Other(outer) = place
            && indentation <= outer
        {
            place = Place::Metadata;
        }
        match (place, pair(content)) {
            (Place::Metadata, Some(("labels", value))) => {
                certain &= value.is_empty();
                place = Place::Labels(indentation);
            }
            (Place::Metadata, Some((key, value))) => {
                if key == "name" && !value.is_empty() {
                    found.name.get_or_insert(value);
                }
                place = Place::Other(indentation);
            }
            (Place::Labels(_), Some((key, value))) => {
                labels.insert(key.to_owned(), value);
            }
            (Place::Labels(_) | Place::Metadata, None) => certain = false,
            _ => {}
        }
    }
    found.labels = (seen && certain).then_some(labels);
    found
}

/// `key: value` with the quotes and the comment taken off. None when it isn't that simple.
fn pair(content: &str) -> Option<(&str, String)> {
    let (key, value) = content.split_once(':')?;
    if !(value.is_empty() || value.starts_with(' '))
        || key.contains(|c: char| c.is_whitespace() || c == '{' || c == '[')
    {
        return None;
    }
    Some((unquoted(key)?, scalar(value.trim())?.to_owned()))
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
mod tests {
    use super::*;

    const BROKEN: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: east-us-config # ours
  labels:
    platform-config: \"true\"
    region: east-us
  annotations:
    note: x
data:
  A: [1, 2
";

    #[test]
    fn kind_name_and_labels_are_found_when_the_fault_is_elsewhere() {
        let found = read(BROKEN, 1, Some(12));
        assert_eq!(found.kind, Some(Kind::ConfigMap));
        assert_eq!(found.name.as_deref(), Some("east-us-config"));
        let labels = found.labels.unwrap();
        assert_eq!(labels.len(), 2);
        assert_eq!((labels["platform-config"].as_str(), labels["region"].as_str()), ("true", "east-us"));
    }

    #[test]
    fn labels_are_left_out_when_the_fault_is_among_them() {
        let found = read(BROKEN, 1, Some(7));
        assert_eq!(found.name.as_deref(), Some("east-us-config"));
        assert_eq!(found.labels, None);
    }

    #[test]
    fn metadata_without_labels_has_none() {
        let found = read("kind: ConfigMap\nmetadata:\n  name: a\ndata:\n\tb: c\n", 1, Some(5));
        assert_eq!(found.labels, Some(Labels::new()));
    }

    #[test]
    fn what_cannot_be_made_out_is_left_out() {
        for text in [
            "metadata: {labels: {a: b}}",
            "metadata:\n  labels: {a: b}\n",
            "metadata:\n  labels:\n    a\n",
            "kind ConfigMap",
            "",
        ] {
            assert_eq!(read(text, 1, None).labels, None, "{text}");
        }
        assert_eq!(read("kind: Unknown\n", 1, None).kind, None);
    }
}
