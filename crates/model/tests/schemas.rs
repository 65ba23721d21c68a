//! The committed JSON Schemas are what the code writes, and they say what the decoder says.

#![allow(clippy::unwrap_used, clippy::panic)] // The functions beside the tests are tests too.

use std::path::PathBuf;
use std::sync::Arc;

use kedge_goyaml::{Key, Value as Yaml};
use kedge_model::decode::{Decoded, Options, objects};
use kedge_model::{Kind, Origin, Source, schema};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/schemas")
}

fn fixture(kind: Kind) -> String {
    let name = format!("tests/fixtures/{}.yaml", kind.as_str().to_lowercase());
    std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn to_json(value: &Yaml) -> Value {
    match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => json!(value),
        Yaml::Int(value) => json!(value),
        Yaml::Uint(value) => json!(value),
        Yaml::Float(value) => json!(value),
        Yaml::String(value) => json!(value),
        Yaml::List(items) => items.iter().map(to_json).collect(),
        Yaml::Map(map) => map
            .iter()
            .map(|(key, value)| match key {
                Key::String(key) => (key.clone(), to_json(value)),
                other => panic!("a fixture has the key {other:?}"),
            })
            .collect(),
    }
}

fn as_json(text: &str) -> Value {
    to_json(&kedge_goyaml::decode(text).unwrap())
}

/// JSON is YAML, so the decoder reads what the schema judges.
fn decode(value: &Value) -> Decoded {
    let source = Source { repo: "fixtures".into(), revision: None };
    let file = Origin { source: Arc::new(source), file: "x.yaml".into(), line: 0, column: 0 };
    objects(value.to_string().as_bytes(), &file, &Options::default())
}

/// What a schema can't say: how the rings of a list stand to each other.
fn is_beyond_schemas(decoded: &Decoded) -> bool {
    decoded.problems.iter().all(|problem| problem.code == "RingOrder")
}

/// A pointer to every map below `spec`, and to the top.
fn maps(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(path.to_owned());
            for (key, value) in fields {
                maps(value, &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| maps(item, &format!("{path}/{index}"), found));
        }
        _ => {}
    }
}

#[test]
fn committed_schemas_are_current() {
    let mut files: Vec<(String, Value)> =
        Kind::ALL.into_iter().map(|kind| (schema::file_name(kind), schema::of(kind))).collect();
    files.push(("all.json".to_owned(), schema::all()));
    let update = std::env::var_os("KEDGE_UPDATE").is_some();
    for (name, schema) in &files {
        let path = folder().join(name);
        let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
        if update {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, text).unwrap();
        } else {
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "{name} isn't current: run the test with KEDGE_UPDATE=1 and commit the result");
        }
    }
    let committed = std::fs::read_dir(folder()).unwrap().count();
    assert_eq!(committed, files.len(), "there is a schema of a kind that is gone");
}

#[test]
fn fixtures_pass_the_decoder_and_the_schemas() {
    let all = jsonschema::validator_for(&schema::all()).unwrap();
    for kind in Kind::ALL {
        let value = as_json(&fixture(kind));
        let decoded = decode(&value);
        assert_eq!((decoded.objects.len(), decoded.problems), (1, Vec::new()), "{kind}");
        let one = jsonschema::validator_for(&schema::of(kind)).unwrap();
        for validator in [&one, &all] {
            let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{kind}");
        }
    }
    assert!(
        all.is_valid(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": 1})),
        "other kinds aren't judged"
    );
}

#[test]
fn schemas_and_decoder_know_the_same_fields() {
    let mut compared = 0;
    for kind in Kind::ALL {
        let validator = jsonschema::validator_for(&schema::of(kind)).unwrap();
        let good = as_json(&fixture(kind));
        let mut places = Vec::new();
        maps(&good, "", &mut places);
        for place in places {
            // A field that nobody knows.
            let mut more = good.clone();
            let map = more.pointer_mut(&place).and_then(Value::as_object_mut).unwrap();
            map.insert("zzz".to_owned(), json!("zzz"));
            let decoded = decode(&more);
            let known = decoded.problems.is_empty();
            // Kubernetes may have more metadata than we list; the schema leaves that to it.
            if place != "/metadata" {
                assert_eq!(
                    validator.is_valid(&more),
                    known,
                    "{kind}: a field more in `{place}`: {:?}",
                    decoded.problems
                );
                compared += 1;
            }
            // Each field taken away.
            let fields: Vec<String> =
                good.pointer(&place).and_then(Value::as_object).unwrap().keys().cloned().collect();
            for field in fields.iter().filter(|field| !matches!(field.as_str(), "apiVersion" | "kind")) {
                let mut less = good.clone();
                less.pointer_mut(&place).and_then(Value::as_object_mut).unwrap().remove(field);
                let decoded = decode(&less);
                assert_eq!(
                    validator.is_valid(&less),
                    decoded.broken.is_empty() || is_beyond_schemas(&decoded),
                    "{kind}: `{place}` without `{field}`: {:?}",
                    decoded.problems
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 150, "only {compared} comparisons");
}

#[test]
fn schemas_and_decoder_refuse_the_same_values() {
    for kind in Kind::ALL {
        let validator = jsonschema::validator_for(&schema::of(kind)).unwrap();
        let good = as_json(&fixture(kind));
        let mut places = Vec::new();
        maps(&good, "", &mut places);
        for place in places {
            let fields = good.pointer(&place).and_then(Value::as_object).unwrap().clone();
            for field in fields.keys().filter(|field| !matches!(field.as_str(), "apiVersion" | "kind" | "namespace")) {
                for wrong in [json!(true), json!(-7), json!([[]]), json!({"a": {"b": []}})] {
                    let mut bad = good.clone();
                    bad.pointer_mut(&place)
                        .and_then(Value::as_object_mut)
                        .unwrap()
                        .insert(field.clone(), wrong.clone());
                    let decoded = decode(&bad);
                    let fine = decoded.broken.is_empty()
                        && decoded.problems.iter().all(|problem| problem.code != "UnknownField");
                    assert_eq!(
                        validator.is_valid(&bad),
                        fine,
                        "{kind}: `{place}/{field}` as {wrong}: {:?}",
                        decoded.problems
                    );
                }
            }
        }
    }
}
