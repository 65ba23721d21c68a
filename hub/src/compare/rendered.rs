//! The configuration of an assignment out of its published file: what it was at an earlier time. A ConfigMap's data, lines of
//! `export K="v"`, or a plain map; other shapes can't be compared by key. Pure.

use std::collections::BTreeMap;

use kedge_goyaml::{Key, Value};
use kedge_scheduler::json::value_to_json;
use kedge_scheduler::{ConfigFile, REDACTED, Redaction};

use super::Values;
use crate::pack::configurations::Rendered;
use crate::pack::environment_file;

/// Which values a caller doesn't see.
#[derive(Debug, Default)]
pub struct Hidden {
    /// Sees everything.
    pub nothing: bool,
    /// Keys that the catalog hides, such as `writeOnly` ones of a schema.
    pub keys: std::collections::BTreeSet<String>,
    pub redaction: Redaction,
}

/// None: its shape isn't known. Without a file there are no values.
pub fn values(rendered: Option<&Rendered>, hidden: &Hidden) -> Option<Values> {
    let Some(rendered) = rendered else { return Some(Values::new()) };
    let found = match rendered.file {
        ConfigFile::Yaml => from_yaml(&rendered.text)?,
        ConfigFile::Shell => from_exports(&rendered.text)?,
    };
    let shown = |(key, (value, secret)): (String, (Value, bool))| {
        let value = hidden.value(&key, &value, secret);
        (key, value)
    };
    Some(found.into_iter().map(shown).collect())
}

/// Values by key, and whether all of their object is a secret.
type Found = BTreeMap<String, (Value, bool)>;

impl Hidden {
    fn value(&self, key: &str, value: &Value, secret: bool) -> super::Value {
        let exact = value_to_json(value);
        if self.nothing {
            return super::Value { shown: exact.clone(), exact };
        }
        if secret || self.keys.contains(key) {
            return super::Value { shown: REDACTED.into(), exact };
        }
        let inside = structure(value);
        let shown = match self.redaction.hides(key, value) || self.redaction.hides(key, &inside) {
            true => value_to_json(&self.redaction.value(key, &inside)),
            false => exact.clone(),
        };
        super::Value { shown, exact }
    }
}

/// ConfigMaps hold structures as text; secrets in them are hidden all the same.
fn structure(value: &Value) -> Value {
    let Value::String(text) = value else { return value.clone() };
    if !text.contains([':', '-', '{', '[']) {
        return value.clone();
    }
    kedge_goyaml::decode(text).ok().filter(Value::is_collection).unwrap_or_else(|| value.clone())
}

fn from_yaml(text: &str) -> Option<Found> {
    let mut found = Found::new();
    for document in documents(text) {
        let value = kedge_goyaml::decode(&document).ok()?;
        let kind = value.get("apiVersion").and(value.get("kind")).and_then(Value::as_str);
        let secret = kind == Some("Secret");
        let data = match (&value, kind) {
            (Value::Null, _) => continue,
            (Value::Map(_), None) => vec![&value],
            (Value::Map(_), Some("ConfigMap" | "Secret")) => {
                [value.get("data"), value.get("stringData")].into_iter().flatten().collect()
            }
            _ => return None,
        };
        for data in data {
            let Value::Map(data) = data else { continue };
            found.extend(data.iter().map(|(key, value)| (name(key), (value.clone(), secret))));
        }
    }
    Some(found)
}

fn from_exports(text: &str) -> Option<Found> {
    let pairs = environment_file::exported(text)?;
    Some(pairs.into_iter().map(|(key, value)| (key, (Value::String(value), false))).collect())
}

fn documents(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    found
}

fn name(key: &Key) -> String {
    match key {
        Key::String(text) => text.clone(),
        other => value_to_json(&Value::from(other.clone())).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn yaml(text: &str) -> Option<Values> {
        values(Some(&Rendered { file: ConfigFile::Yaml, text: text.to_owned() }), &Hidden::default())
    }

    fn shown(values: &Values, key: &str) -> serde_json::Value {
        values[key].shown.clone()
    }

    #[test]
    fn values_come_from_config_maps_exports_and_plain_maps() {
        let map = yaml("apiVersion: v1\nkind: ConfigMap\ndata:\n  REGION: west\n  LIST: \"- a\\n- b\\n\"\n").unwrap();
        assert_eq!((shown(&map, "REGION"), shown(&map, "LIST")), ("west".into(), "- a\n- b\n".into()));
        assert_eq!(shown(&yaml("REGION: west\nPORT: 80\n").unwrap(), "PORT"), 80);
        let exports = Rendered { file: ConfigFile::Shell, text: "export A=\"b c\"\nexport D=e\n".to_owned() };
        assert_eq!(shown(&values(Some(&exports), &Hidden::default()).unwrap(), "A"), "b c");
        assert_eq!(values(None, &Hidden::default()), Some(Values::new()));
        assert_eq!(yaml("- a\n"), None);
    }

    #[test]
    fn secrets_are_hidden_and_stay_exact() {
        let text = "DB_PASSWORD: hunter2\nPIN: \"4711\"\nDB: \"{user: me, password: hunter2}\"\n";
        let hidden = Hidden { keys: ["PIN".to_owned()].into(), ..Hidden::default() };
        let rendered = Rendered { file: ConfigFile::Yaml, text: text.to_owned() };
        let found = values(Some(&rendered), &hidden).unwrap();
        let text = format!("{:?}", found.values().map(|value| value.shown.to_string()).collect::<Vec<_>>());
        assert!(!text.contains("hunter2") && !text.contains("4711"), "{text}");
        assert_eq!(found["PIN"].exact, "4711");
        let secret = yaml("apiVersion: v1\nkind: Secret\nstringData: {NAME: anna}\n").unwrap();
        assert_eq!(shown(&secret, "NAME"), REDACTED);
        let all = values(Some(&rendered), &Hidden { nothing: true, ..hidden }).unwrap();
        assert_eq!(shown(&all, "DB_PASSWORD"), "hunter2");
    }

    proptest! {
        #[test]
        fn any_text_has_values_or_none(text in "(?s).{0,400}") {
            let _ = yaml(&text);
            let exports = Rendered { file: ConfigFile::Shell, text };
            let _ = values(Some(&exports), &Hidden::default());
        }
    }
}
