//! Which values look secret, so that comments on pull requests, annotations, logs and the hub's API never show them.
//! Errs on the side of hiding. Used by `plan -o markdown`, by what `validate` and `render` report, and by the hub.

use std::collections::{BTreeMap, BTreeSet};

use kedge_goyaml::{Key, Value};
use kedge_model::{Kind, Platform, Spec};
use serde_json::Value as Json;

use crate::json::value_in_line;
use crate::schedule::Assignment;
use crate::scheduler::Scheduler;

/// What is shown instead.
pub const REDACTED: &str = "[redacted]";

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

/// In a list of named values: what names one, and what holds it.
const NAMES: [&str; 4] = ["name", "key", "variable", "env"];
const VALUES: [&str; 6] = ["value", "val", "values", "data", "content", "default"];

/// A shared access signature, only as a word of its own: names of places end like it.
const SAS: &str = "sas";

/// So much of one schema is read; what a longer one says about its keys isn't known, so all are hidden.
const STEPS: usize = 100_000;

/// Shorter secrets are looked for as whole words only: a digit of them may be part of anything.
const SHORT: usize = 4;

#[derive(Debug, Default)]
pub struct Redaction {
    /// Keys whose schema says `writeOnly`.
    write_only: BTreeSet<String>,
    /// A schema says `writeOnly` without naming the keys.
    all_keys: bool,
}

impl Redaction {
    pub fn of<'a>(sides: impl IntoIterator<Item = &'a Scheduler>) -> Redaction {
        Redaction::of_platforms(sides.into_iter().map(Scheduler::platform))
    }

    pub fn of_platforms<'a>(platforms: impl IntoIterator<Item = &'a Platform>) -> Redaction {
        // Many workloads share one schema: it is read once.
        let mut texts: BTreeSet<&str> = BTreeSet::new();
        for platform in platforms {
            for object in platform.of_kind(Kind::ConfigSchema).chain(platform.of_kind(Kind::Workload)) {
                match &object.spec {
                    Spec::ConfigSchema(schema) => drop(texts.insert(&schema.schema)),
                    Spec::Workload(workload) => {
                        let of_targets = workload.targets.iter().flat_map(|target| &target.config_schemas);
                        texts.extend(workload.config_schemas.iter().chain(of_targets).map(String::as_str));
                    }
                    _ => {}
                }
            }
        }
        let mut redaction = Redaction::default();
        texts.into_iter().for_each(|text| redaction.learn(text));
        redaction
    }

    /// Takes what a JSON Schema says about its keys.
    fn learn(&mut self, text: &str) {
        // A schema that isn't JSON is a problem that others report.
        let Ok(root) = serde_json::from_str::<Json>(text) else { return };
        let mut steps = STEPS;
        let mut todo = vec![&root];
        while let Some(schema) = todo.pop() {
            let Json::Object(map) = schema else {
                todo.extend(schema.as_array().into_iter().flatten());
                continue;
            };
            for (key, property) in map.get("properties").and_then(Json::as_object).into_iter().flatten() {
                if is_write_only(property, &root, &mut steps) {
                    self.write_only.insert(key.clone());
                }
            }
            let unnamed = ["patternProperties", "additionalProperties"].into_iter().filter_map(|word| map.get(word));
            self.all_keys |= unnamed.into_iter().any(|inner| is_write_only(inner, &root, &mut steps));
            todo.extend(map.values());
        }
    }

    pub fn is_secret_key(&self, key: &str) -> bool {
        self.all_keys || self.write_only.contains(key) || looks_secret(key)
    }

    /// Whether a value, or a part of it, is to be hidden.
    pub fn hides(&self, key: &str, value: &Value) -> bool {
        self.value(key, value) != *value
    }

    /// The value with what looks secret taken out.
    pub fn value(&self, key: &str, value: &Value) -> Value {
        if self.is_secret_key(key) {
            return Value::String(REDACTED.to_owned());
        }
        match value {
            Value::String(text) if holds_secret(text) => Value::String(REDACTED.to_owned()),
            Value::List(items) => Value::List(items.iter().map(|item| self.value("", item)).collect()),
            Value::Map(map) => {
                let named = self.names_secret(map);
                let shown = |key: &Key, value: &Value| match named && is_value(key) {
                    true => Value::String(REDACTED.to_owned()),
                    false => self.value(field(key), value),
                };
                Value::Map(map.iter().map(|(key, value)| (key.clone(), shown(key, value))).collect())
            }
            other => other.clone(),
        }
    }

    /// A sentence without the secrets of these assignments, which it may quote, and without passwords of addresses.
    pub fn sentence<'a>(&self, text: &str, assignments: impl IntoIterator<Item = &'a Assignment>) -> String {
        let mut secrets = BTreeSet::new();
        for assignment in assignments {
            for (key, value) in &assignment.configuration.values {
                self.collect(key, value, &mut secrets);
            }
        }
        let words = without(text, &secrets);
        let hidden = |word: &str| has_password(word) || is_signed(word);
        let words = words.split(' ').map(|word| if hidden(word) { REDACTED } else { word });
        words.collect::<Vec<_>>().join(" ")
    }

    fn collect(&self, key: &str, value: &Value, secrets: &mut BTreeSet<String>) {
        if self.is_secret_key(key) {
            leaves(value, secrets);
            return;
        }
        match value {
            Value::String(text) if holds_secret(text) => leaves(value, secrets),
            Value::List(items) => items.iter().for_each(|item| self.collect("", item, secrets)),
            Value::Map(map) => {
                let named = self.names_secret(map);
                for (key, value) in map {
                    match named && is_value(key) {
                        true => leaves(value, secrets),
                        false => self.collect(field(key), value, secrets),
                    }
                }
            }
            _ => {}
        }
    }

    /// `{name: DB_PASSWORD, value: …}`, as lists of environment variables have it.
    fn names_secret(&self, map: &BTreeMap<Key, Value>) -> bool {
        let is_name = |key: &Key| NAMES.iter().any(|word| field(key).eq_ignore_ascii_case(word));
        map.iter().any(|(key, value)| is_name(key) && value.as_str().is_some_and(|name| self.is_secret_key(name)))
    }
}

fn is_value(key: &Key) -> bool {
    VALUES.iter().any(|word| field(key).eq_ignore_ascii_case(word))
}

/// A key as the name of a field.
fn field(key: &Key) -> &str {
    match key {
        Key::String(text) => text,
        _ => "",
    }
}

fn looks_secret(key: &str) -> bool {
    let plain: String = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    WORDS.iter().any(|word| plain.contains(word)) || words_of(key).any(|word| word.eq_ignore_ascii_case(SAS))
}

/// `blobSasUrl`, `BLOB_SAS_URL` and `BlobSASUrl` have the same words.
fn words_of(key: &str) -> impl Iterator<Item = &str> {
    let letters: Vec<(usize, char)> = key.char_indices().collect();
    let mut starts: Vec<usize> = vec![0];
    for (index, (at, letter)) in letters.iter().enumerate().skip(1) {
        let before = letters[index - 1].1;
        let small_behind = letters.get(index + 1).is_some_and(|(_, behind)| behind.is_lowercase());
        if letter.is_uppercase() && (!before.is_uppercase() || small_behind) {
            starts.push(*at);
        }
    }
    starts.push(key.len());
    let pieces: Vec<&str> = starts.windows(2).map(|ends| &key[ends[0]..ends[1]]).collect();
    pieces.into_iter().flat_map(|piece| piece.split(|c: char| !c.is_alphabetic()))
}

/// Each text of a value, as it is, as JSON would quote it, and as the number that a schema sees in it.
fn leaves(value: &Value, secrets: &mut BTreeSet<String>) {
    match value {
        Value::List(items) => items.iter().for_each(|item| leaves(item, secrets)),
        Value::Map(map) => map.values().for_each(|item| leaves(item, secrets)),
        Value::String(text) => {
            secrets.insert(Json::String(text.clone()).to_string().trim_matches('"').to_owned());
            secrets.extend(text.lines().map(|line| line.trim().to_owned()));
            secrets.extend(text.parse::<i64>().ok().map(|number| number.to_string()));
            secrets.extend(text.replace('_', "").parse::<f64>().ok().map(|number| number.to_string()));
            secrets.insert(text.clone());
        }
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => drop(secrets.insert(value_in_line(value))),
        Value::Null | Value::Bool(_) => {}
    }
    secrets.remove("");
}

fn without(text: &str, secrets: &BTreeSet<String>) -> String {
    let mut hidden = vec![false; text.len()];
    for secret in secrets {
        for (at, found) in text.match_indices(secret.as_str()) {
            let end = at + found.len();
            let inside = text[..at].ends_with(char::is_alphanumeric) || text[end..].starts_with(char::is_alphanumeric);
            if found.len() >= SHORT || !inside {
                hidden[at..end].fill(true);
            }
        }
    }
    let mut shown = String::with_capacity(text.len());
    let mut before = false;
    for (at, c) in text.char_indices() {
        match (hidden[at], before) {
            (false, _) => shown.push(c),
            (true, false) => shown.push_str(REDACTED),
            (true, true) => {}
        }
        before = hidden[at];
    }
    shown
}

/// Secrets that values hold whatever their key is: addresses, connection strings, private keys.
fn holds_secret(text: &str) -> bool {
    let mut parts = text.split([';', ',', '&', '?', '#', ' ', '\t', '\n']).filter_map(|part| part.split_once('='));
    has_password(text)
        || is_signed(text)
        || has_secret_flag(text)
        || is_authorization(text)
        || text.contains("PRIVATE KEY-----")
        || parts.any(|(key, value)| !value.is_empty() && looks_secret(key))
}

/// `scheme://user:password@host`
fn has_password(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// `--password hunter2`; with `=` it is found as any other assignment.
fn has_secret_flag(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let is_flag = word.starts_with('-') && !word.contains('=') && looks_secret(word);
        if is_flag && words.peek().is_some_and(|value| !value.starts_with('-')) {
            return true;
        }
    }
    false
}

/// A header, or its value.
fn is_authorization(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["authorization:", "authorization\":", "bearer "].iter().any(|word| text.contains(word))
}

/// An address that lets in whoever has it: `https://host/file?…&sig=…`.
fn is_signed(text: &str) -> bool {
    let parameters = text.split(['?', '&', '#', ' ', '\t', '\n']).filter_map(|part| part.split_once('='));
    parameters.filter(|(_, value)| !value.is_empty()).any(|(name, _)| {
        let name = name.to_lowercase();
        name == "sig" || name.ends_with("signature") || name.ends_with("token")
    })
}

/// Whether the schema of a value says so anywhere but at keys inside the value, which are looked at by themselves.
/// Schemas of applications are strangers' text: references may form rings, and there is an end to the steps.
fn is_write_only(schema: &Json, root: &Json, steps: &mut usize) -> bool {
    let mut todo = vec![schema];
    let mut followed = BTreeSet::new();
    while let Some(schema) = todo.pop() {
        let Some(left) = steps.checked_sub(1) else { return true };
        *steps = left;
        let Json::Object(map) = schema else {
            todo.extend(schema.as_array().into_iter().flatten());
            continue;
        };
        for (word, inner) in map {
            match (word.as_str(), inner) {
                ("writeOnly", Json::Bool(true)) => return true,
                ("$ref", Json::String(reference)) => {
                    let pointer = reference.strip_prefix('#').filter(|pointer| followed.insert(*pointer));
                    todo.extend(pointer.and_then(|pointer| root.pointer(pointer)));
                }
                ("properties" | "$defs" | "definitions" | "const" | "enum" | "default" | "examples", _) => {}
                _ => todo.push(inner),
            }
        }
    }
    false
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
        for key in ["SAS", "BLOB_SAS", "sas-url", "blobSasUrl", "BlobSASUrl", "SAS2"] {
            assert!(redaction.is_secret_key(key), "{key}");
        }
        for key in ["REGION", "DATABASE_URL", "REPLICAS", "KANSAS", "DISASTER_SITE", ""] {
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
    fn a_secret_that_is_named_beside_its_value_is_hidden() {
        let text = "[{name: DB_PASSWORD, value: hunter2}, {key: SECRET_KEY, val: k}, {name: auth-service, port: 8080, value: plain}, {name: REGION, value: north}]";
        let value = kedge_goyaml::decode(text).unwrap();
        let shown = Redaction::default().value("ENVIRON", &value);
        let shown = value_in_line(&shown);
        assert!(!shown.contains("hunter2") && !shown.contains("\"k\""), "{shown}");
        assert!(shown.contains("8080") && shown.contains("north") && shown.contains("DB_PASSWORD"), "{shown}");
    }

    #[test]
    fn flags_and_headers_with_a_secret_are_hidden_whatever_their_key() {
        let redaction = Redaction::default();
        for text in [
            "--user me --password hunter2",
            "[\"Authorization: Bearer abc\"]",
            "authorization: Basic abc",
            "Bearer abc",
        ] {
            assert!(redaction.hides("ARGS", &Value::from(text)), "{text}");
        }
        for text in ["--region north --verbose", "--password-from-stdin"] {
            assert!(!redaction.hides("ARGS", &Value::from(text)), "{text}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_hidden() {
        let redaction = Redaction::default();
        assert!(redaction.hides("DATABASE_URL", &Value::from("postgres://me:pw@db/x")));
        assert!(!redaction.hides("DATABASE_URL", &Value::from("https://db:5432/x@y:z")));
    }

    #[test]
    fn signed_addresses_are_hidden_whatever_their_key() {
        let redaction = Redaction::default();
        for text in [
            "https://a.blob.example/c/f?sv=2022&sig=abc%3D",
            "https://s3.example/f?X-Amz-Date=1&X-Amz-Signature=abc",
            "https://cdn.example/f?Expires=1&Signature=abc",
            "https://host.example/hook?token=abc",
            "https://host.example/#access_token=abc",
        ] {
            assert!(redaction.hides("IMAGE", &Value::from(text)), "{text}");
            assert_eq!(redaction.sentence(&format!("{text} is no port"), []), "[redacted] is no port");
        }
        for text in ["https://host.example/f?sig=", "https://host.example/design=x?config=1", "sig"] {
            assert!(!redaction.hides("IMAGE", &Value::from(text)), "{text}");
        }
    }

    #[test]
    fn connection_strings_and_private_keys_are_hidden_whatever_their_key() {
        let redaction = Redaction::default();
        for text in
            ["Server=db;Password=hunter2;", "cache:6380,password=hunter2,ssl=True", "-----BEGIN PRIVATE KEY-----"]
        {
            assert!(redaction.hides("CACHE", &Value::from(text)), "{text}");
        }
        assert!(!redaction.hides("CACHE", &Value::from("cache:6380,ssl=True,password=")));
    }

    #[test]
    fn write_only_properties_are_hidden_through_references_too() {
        let mut redaction = Redaction::default();
        redaction.learn(
            r##"{"properties": {
                "PIN": {"writeOnly": true}, "CODE": {"$ref": "#/$defs/hidden"}, "LOOP": {"$ref": "#/properties/LOOP"},
                "BOTH": {"allOf": [{"type": "string"}, {"$ref": "#/$defs/hidden"}]},
                "LIST": {"items": {"writeOnly": true}}, "DB": {"properties": {"INNER": {"writeOnly": true}}}},
              "$defs": {"hidden": {"writeOnly": true}}}"##,
        );
        for key in ["PIN", "CODE", "BOTH", "LIST", "INNER"] {
            assert!(redaction.is_secret_key(key), "{key}");
        }
        assert!(!redaction.is_secret_key("LOOP") && !redaction.is_secret_key("DB"));
    }

    #[test]
    fn a_pattern_that_is_write_only_hides_every_key() {
        let mut redaction = Redaction::default();
        redaction.learn(r#"{"patternProperties": {"^DB_": {"writeOnly": true}}}"#);
        assert!(redaction.is_secret_key("REGION"));
    }

    #[test]
    fn a_schema_that_refers_to_itself_over_and_over_ends_in_hiding() {
        let many: Vec<String> = (0..2000).map(|index| format!("{{\"$ref\": \"#/x/{index}\"}}")).collect();
        let all = many.join(", ");
        let properties: Vec<String> = (0..200).map(|index| format!("\"K{index}\": {{\"$ref\": \"#/x\"}}")).collect();
        let mut redaction = Redaction::default();
        redaction.learn(&format!("{{\"x\": [{all}], \"properties\": {{{}}}}}", properties.join(", ")));
        assert!(redaction.is_secret_key("K199"));
    }

    #[test]
    fn sentences_lose_the_secrets_they_quote() {
        let secrets = [r#"hunter2 \"x\""#, "hunter2", "7", "red"].map(str::to_owned).into();
        assert_eq!(
            without(r#""hunter2 \"x\"" is not a number, hunter2 and 7 aren't 17"#, &secrets),
            r#""[redacted]" is not a number, [redacted] and [redacted] aren't 17"#
        );
        let told = Redaction::default().sentence("https://me:pw@host/x could not be fetched", []);
        assert_eq!(told, "[redacted] could not be fetched");
    }
}
