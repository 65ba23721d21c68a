//! A ConfigMap made ready for composition: which of its values are structures, and where each was written. Parsed once
//! for all assignments.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_goyaml::Value;
use kedge_model::kinds::ConfigMap;
use kedge_model::{Labels, Object, Origin, Spec};

use crate::applies::PLATFORM_CONFIG;

/// ConfigMaps with this prefix hold keys of the form `label.value.key`.
const APP_CONFIG: &str = "azure-app-config";

/// A ConfigMap that takes part in composition.
#[derive(Debug)]
pub struct Config {
    pub name: Arc<str>,
    pub labels: Labels,
    pub origin: Origin,
    /// Set when it is labelled `platform-config: "true"`: its values under their own keys.
    pub values: Option<BTreeMap<Arc<str>, Entry>>,
    /// Set when its name begins with `azure-app-config`: its values, shortest key first.
    pub scoped: Option<Vec<Scoped>>,
}

/// One value of a ConfigMap.
#[derive(Clone, Debug)]
pub struct Entry {
    pub value: Arc<Value>,
    pub text: Arc<str>,
    pub line: u32,
}

/// A value whose key says where it applies.
#[derive(Debug)]
pub struct Scoped {
    pub labels: Labels,
    pub key: Arc<str>,
    pub entry: Entry,
}

impl Config {
    /// None when the ConfigMap has no part in composition.
    pub fn of(object: &Object) -> Option<Config> {
        let Spec::ConfigMap(map) = &object.spec else { return None };
        let labelled = object.meta.labels.get(PLATFORM_CONFIG).is_some_and(|value| value == "true");
        let scoped = is_app_config(&object.meta.name);
        if !labelled && !scoped {
            return None;
        }
        let entries = entries(map);
        Some(Config {
            name: Arc::from(object.meta.name.as_str()),
            labels: object.meta.labels.clone(),
            origin: object.origin.clone(),
            scoped: scoped.then(|| scoped_values(&entries)),
            values: labelled.then_some(entries),
        })
    }
}

/// Whether a ConfigMap of that name holds keys that say where they apply.
pub fn is_app_config(name: &str) -> bool {
    name.starts_with(APP_CONFIG)
}

fn entries(map: &ConfigMap) -> BTreeMap<Arc<str>, Entry> {
    map.data
        .iter()
        .map(|(key, value)| {
            let entry = Entry {
                value: Arc::new(interpret(&value.text)),
                text: Arc::from(value.text.as_str()),
                line: value.line,
            };
            (Arc::from(key.as_str()), entry)
        })
        .collect()
}

/// `label.value.label.value.key`; a key with an even number of parts has a label without a value and applies nowhere.
fn scoped_values(entries: &BTreeMap<Arc<str>, Entry>) -> Vec<Scoped> {
    let mut ordered: Vec<_> = entries.iter().collect();
    ordered.sort_by_key(|(key, _)| key.len());
    ordered
        .into_iter()
        .filter_map(|(path, entry)| {
            let mut parts: Vec<&str> = path.split('.').collect();
            let key = parts.pop()?;
            if !parts.len().is_multiple_of(2) {
                return None;
            }
            let labels = parts.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
            Some(Scoped { labels, key: Arc::from(key), entry: entry.clone() })
        })
        .collect()
}

/// A value that reads as a YAML map or list becomes one, one in single quotes loses them, the rest stays text.
pub fn interpret(text: &str) -> Value {
    let trimmed = text.trim();
    if trimmed.starts_with('\'') && trimmed.ends_with('\'') {
        return Value::String(trimmed.trim_matches('\'').to_owned());
    }
    match kedge_goyaml::decode(text) {
        Ok(structure @ (Value::Map(_) | Value::List(_))) => structure,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_make_a_string_and_go() {
        assert_eq!(interpret("'8080'"), Value::String("8080".into()));
        assert_eq!(interpret(" 'a' "), Value::String("a".into()));
        assert_eq!(interpret("''a''"), Value::String("a".into()));
        assert_eq!(interpret("'"), Value::String(String::new()));
        assert_eq!(interpret("\"x\""), Value::String("\"x\"".into()));
    }

    #[test]
    fn scalars_stay_the_text_they_are() {
        for text in ["false", "8080", "null", "~", "2024-01-01", "", " x"] {
            assert_eq!(interpret(text), Value::String(text.into()));
        }
    }

    #[test]
    fn maps_and_lists_become_structures() {
        assert!(matches!(interpret("a: b"), Value::Map(_)));
        assert!(matches!(interpret("a:"), Value::Map(_)));
        assert!(matches!(interpret("- a"), Value::List(_)));
        assert!(matches!(interpret("[1, 2]"), Value::List(_)));
        assert!(matches!(interpret("{{ .X }}"), Value::String(_)), "a map as a key stays text");
    }
}
