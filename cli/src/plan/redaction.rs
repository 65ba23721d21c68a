//! Which values look secret, so that a comment on a pull request never shows them. Errs on the side of hiding.

use std::collections::BTreeSet;

use kedge_goyaml::{Key, Value};
use kedge_model::{Kind, Spec};
use kedge_scheduler::Scheduler;
use serde_json::Value as Json;

const REDACTED: &str = "[redacted]";

/// Parts of a key, without separators and in lower case.
const WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "key",
    "credential",
    "private",
    "connectionstring",
    "certificate",
    "auth",
];

/// References of a schema are followed this far.
const DEPTH: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Redaction {
    /// Keys whose schema says `writeOnly`.
    write_only: BTreeSet<String>,
    /// Texts of secret values, the longest first, to be taken out of sentences.
    secrets: Vec<String>,
}

impl Redaction {
    pub fn of(sides: [&Scheduler; 2]) -> Redaction {
        let mut redaction = Redaction::default();
        for side in sides {
            redaction.learn_schemas(side);
        }
        let mut secrets = BTreeSet::new();
        for side in sides {
            for assignment in side.schedule().assignments.values() {
                for (key, value) in &assignment.configuration.values {
                    redaction.collect(key, value, &mut secrets);
                }
            }
        }
        redaction.secrets = secrets.into_iter().collect();
        redaction.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        redaction
    }

    fn learn_schemas(&mut self, side: &Scheduler) {
        let platform = side.platform();
        for object in platform.of_kind(Kind::ConfigSchema).chain(platform.of_kind(Kind::Workload)) {
            let texts: Vec<&String> = match &object.spec {
                Spec::ConfigSchema(schema) => vec![&schema.schema],
                Spec::Workload(workload) => {
                    let of_targets = workload.targets.iter().flat_map(|target| &target.config_schemas);
                    workload.config_schemas.iter().chain(of_targets).collect()
                }
                _ => continue,
            };
            for text in texts {
                // A schema that isn't JSON is a problem that others report.
                if let Ok(schema) = serde_json::from_str::<Json>(text) {
                    self.learn(&schema, &schema, DEPTH);
                }
            }
        }
    }

    fn learn(&mut self, schema: &Json, root: &Json, depth: usize) {
        if depth == 0 {
            return;
        }
        match schema {
            Json::Object(map) => {
                if let Some(Json::Object(properties)) = map.get("properties") {
                    for (key, property) in properties {
                        if is_write_only(property, root, DEPTH) {
                            self.write_only.insert(key.clone());
                        }
                    }
                }
                map.values().for_each(|inner| self.learn(inner, root, depth - 1));
            }
            Json::Array(items) => items.iter().for_each(|inner| self.learn(inner, root, depth - 1)),
            _ => {}
        }
    }

    pub fn is_secret_key(&self, key: &str) -> bool {
        let plain: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        self.write_only.contains(key) || WORDS.iter().any(|word| plain.contains(word))
    }

    /// Whether a value, or a part of it, is to be hidden.
    pub fn hides(&self, key: &str, value: &Value) -> bool {
        if self.is_secret_key(key) {
            return true;
        }
        match value {
            Value::String(text) => has_password(text),
            Value::List(items) => items.iter().any(|item| self.hides("", item)),
            Value::Map(map) => map.iter().any(|(key, value)| self.hides(name(key), value)),
            _ => false,
        }
    }

    /// The value with what looks secret taken out.
    pub fn value(&self, key: &str, value: &Value) -> Value {
        if self.is_secret_key(key) {
            return Value::String(REDACTED.to_owned());
        }
        match value {
            Value::String(text) if has_password(text) => Value::String(REDACTED.to_owned()),
            Value::List(items) => Value::List(items.iter().map(|item| self.value("", item)).collect()),
            Value::Map(map) => {
                Value::Map(map.iter().map(|(key, value)| (key.clone(), self.value(name(key), value))).collect())
            }
            other => other.clone(),
        }
    }

    /// A sentence without the secrets that it may quote.
    pub fn sentence(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        text
    }

    fn collect(&self, key: &str, value: &Value, secrets: &mut BTreeSet<String>) {
        if self.is_secret_key(key) {
            leaves(value, secrets);
            return;
        }
        match value {
            Value::String(text) if has_password(text) => leaves(value, secrets),
            Value::List(items) => items.iter().for_each(|item| self.collect("", item, secrets)),
            Value::Map(map) => map.iter().for_each(|(key, value)| self.collect(name(key), value, secrets)),
            _ => {}
        }
    }
}

fn name(key: &Key) -> &str {
    match key {
        Key::String(text) => text,
        _ => "",
    }
}

/// Each text of a value, as it is and as JSON would quote it.
fn leaves(value: &Value, secrets: &mut BTreeSet<String>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| leaves(item, secrets)),
        Value::Map(map) => map.values().for_each(|item| leaves(item, secrets)),
        Value::String(text) if !text.is_empty() => {
            let quoted = Json::String(text.clone()).to_string();
            secrets.insert(quoted.trim_matches('"').to_owned());
            secrets.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
            secrets.insert(text.clone());
        }
        Value::Int(number) => drop(secrets.insert(number.to_string())),
        _ => {}
    }
}

/// `scheme://user:password@host`
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

fn is_write_only(schema: &Json, root: &Json, depth: usize) -> bool {
    if schema.get("writeOnly") == Some(&Json::Bool(true)) {
        return true;
    }
    let pointer = schema.get("$ref").and_then(Json::as_str).and_then(|reference| reference.strip_prefix('#'));
    depth > 0
        && pointer.and_then(|pointer| root.pointer(pointer)).is_some_and(|inner| is_write_only(inner, root, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_look_secret_are_hidden_in_any_spelling() {
        let redaction = Redaction::default();
        for key in ["DB_PASSWORD", "apiToken", "tls.private", "CONNECTION-STRING", "Secret", "SSH_KEY"] {
            assert!(redaction.is_secret_key(key), "{key}");
        }
        for key in ["REGION", "DATABASE_URL", "REPLICAS"] {
            assert!(!redaction.is_secret_key(key), "{key}");
        }
    }

    #[test]
    fn a_secret_inside_a_structure_is_hidden_and_the_rest_stays() {
        let value = kedge_goyaml::decode("{user: me, password: hunter2, hosts: [{token: t}, plain]}").unwrap();
        let shown = Redaction::default().value("DB", &value);
        let wanted = "{user: me, password: '[redacted]', hosts: [{token: '[redacted]'}, plain]}";
        assert_eq!(shown, kedge_goyaml::decode(wanted).unwrap());
        assert!(Redaction::default().hides("DB", &value));
    }

    #[test]
    fn an_address_with_a_password_is_hidden() {
        let redaction = Redaction::default();
        assert!(redaction.hides("DATABASE_URL", &Value::from("postgres://me:pw@db/x")));
        assert!(!redaction.hides("DATABASE_URL", &Value::from("https://db:5432/x@y:z")));
    }

    #[test]
    fn write_only_properties_are_hidden_through_references_too() {
        let schema = serde_json::json!({
            "properties": {"PIN": {"writeOnly": true}, "CODE": {"$ref": "#/$defs/hidden"}, "LOOP": {"$ref": "#/properties/LOOP"}},
            "$defs": {"hidden": {"writeOnly": true}}
        });
        let mut redaction = Redaction::default();
        redaction.learn(&schema, &schema, DEPTH);
        assert!(redaction.is_secret_key("PIN") && redaction.is_secret_key("CODE"));
        assert!(!redaction.is_secret_key("LOOP"));
    }

    #[test]
    fn sentences_lose_the_secrets_they_quote() {
        let redaction =
            Redaction { secrets: vec!["hunter2 \\\"x\\\"".into(), "hunter2".into()], ..Redaction::default() };
        assert_eq!(
            redaction.sentence(r#""hunter2 \"x\"" is not a number, hunter2"#),
            r#""[redacted]" is not a number, [redacted]"#
        );
    }
}
