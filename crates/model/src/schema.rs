//! JSON Schemas of every kind, for editors. They say what the decoder says; a test compares the two, and another that the
//! committed files are what this module writes.

mod delivery;
mod platform;
mod promotion;

use serde_json::{Map, Value, json};

use crate::Kind;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The schema of objects of one kind.
pub fn of(kind: Kind) -> Value {
    let mut schema = json!({
        "$schema": DRAFT,
        "title": format!("{kind} ({})", kind.api_version()),
        "description": describe(kind),
    });
    if let (Some(schema), Value::Object(body)) = (schema.as_object_mut(), body(kind)) {
        schema.extend(body);
    }
    schema
}

/// One schema for all kinds: it looks at `apiVersion` and `kind`, and takes other people's objects as they are.
pub fn all() -> Value {
    let definitions: Map<String, Value> = Kind::ALL
        .into_iter()
        .map(|kind| (kind.to_string(), json!({"description": describe(kind), "allOf": [body(kind)]})))
        .collect();
    let branches: Vec<Value> = Kind::ALL
        .into_iter()
        .map(|kind| {
            json!({
                "if": {
                    "type": "object",
                    "properties": {"apiVersion": {"const": kind.api_version()}, "kind": {"const": kind.as_str()}},
                    "required": ["apiVersion", "kind"],
                },
                "then": {"$ref": format!("#/definitions/{kind}")},
            })
        })
        .collect();
    json!({
        "$schema": DRAFT,
        "title": "Objects of Kalypso and Kedge",
        "allOf": branches,
        "definitions": definitions,
    })
}

/// The name of the file that a kind's schema is committed as.
pub fn file_name(kind: Kind) -> String {
    format!("{}.json", kind.as_str().to_lowercase())
}

fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Environment => "An environment and the branch that describes it.",
        Kind::BaseRepo => {
            "Another repository whose objects belong to this environment too. The one named `main` is the promoted commit."
        }
        Kind::GitOpsRepo => "Where the rendered files go.",
        Kind::ClusterType => "A group of clusters with the same workloads and configuration.",
        Kind::Template => "Go templates that render to manifests.",
        Kind::WorkloadRegistration => "Brings an application's repository into the platform.",
        Kind::Workload => "An application and the deployment targets it wants.",
        Kind::SchedulingPolicy => "Which deployment targets run on which cluster types.",
        Kind::ConfigSchema => "A JSON Schema that configuration must fulfil where its labels match.",
        Kind::ConfigMap => {
            "Configuration values. With the label `platform-config: \"true\"` it applies where its other labels match."
        }
        Kind::CapabilityMap => {
            "Rules that give deployment targets platform labels from the labels the application chose."
        }
        Kind::Delivery => "Where a workload's content is and how Kedge applies it.",
        Kind::HostWorkload => "What a plain host runs.",
        Kind::HostNamespace => "A tenant's place on a host: its user, folders, limits and rights.",
        Kind::PromotionPolicy => "The chain of environments and what must hold before a commit moves on.",
        Kind::Pin => "Keeps a workload at a version or commit on some clusters.",
    }
}

fn body(kind: Kind) -> Value {
    let header = [
        ("apiVersion", json!({"const": kind.api_version()})),
        ("kind", json!({"const": kind.as_str()})),
        ("metadata", metadata(kind)),
    ];
    let mut properties: Map<String, Value> =
        header.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    let mut required = vec!["apiVersion", "kind", "metadata"];
    match kind {
        Kind::ConfigMap => {
            properties.insert(
                "data".to_owned(),
                text_map("Each value is a string; lists and maps are YAML inside a string."),
            );
            properties.insert("binaryData".to_owned(), json!({}));
            properties.insert("immutable".to_owned(), json!({"type": ["boolean", "null"]}));
        }
        _ => {
            properties.insert("spec".to_owned(), spec(kind));
            required.push("spec");
        }
    }
    properties.insert("status".to_owned(), json!({}));
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn spec(kind: Kind) -> Value {
    match kind {
        Kind::Environment => platform::environment(),
        Kind::BaseRepo => platform::base_repo(),
        Kind::GitOpsRepo => platform::repo("Where the rendered files go.", &["repo", "branch"]),
        Kind::ClusterType => platform::cluster_type(),
        Kind::Template => platform::template(),
        Kind::WorkloadRegistration => platform::registration(),
        Kind::Workload => platform::workload(),
        Kind::SchedulingPolicy => platform::scheduling_policy(),
        Kind::ConfigSchema => platform::config_schema(),
        Kind::CapabilityMap => platform::capability_map(),
        Kind::Delivery => delivery::delivery(),
        Kind::HostWorkload => delivery::host_workload(),
        Kind::HostNamespace => delivery::host_namespace(),
        Kind::PromotionPolicy => promotion::policy(),
        Kind::Pin => promotion::pin(),
        Kind::ConfigMap => json!({}),
    }
}

fn metadata(kind: Kind) -> Value {
    let first = if kind == Kind::ClusterType { "^[^./\\x00-\\x1f]" } else { "^[^/\\x00-\\x1f]" };
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 253, "pattern": format!("{first}[^/\\x00-\\x1f]*$")},
            "labels": text_map("Labels are strings: write `\"true\"`, not `true`."),
            "annotations": text_map("Notes of any kind; values are strings."),
        },
        "required": ["name"],
    })
}

/// A map of fields; those not in `required` may be left out or empty.
fn object(description: &str, required: &[&str], fields: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, schema)| {
            let schema = if required.contains(name) { schema.clone() } else { or_null(schema.clone()) };
            ((*name).to_owned(), schema)
        })
        .collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// An empty value counts as a field that isn't there.
fn or_null(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else { return schema };
    if let Some(kind) = fields.get("type").and_then(Value::as_str).map(str::to_owned) {
        fields.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(words)) = fields.get_mut("enum") {
        words.push(Value::Null);
    }
    schema
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A text of at least one character.
fn word(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn words(description: &str, choices: &[&str]) -> Value {
    json!({"type": "string", "enum": choices, "description": description})
}

fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

fn list(description: &str, items: &Value) -> Value {
    json!({"type": "array", "items": items, "description": description})
}

fn text_map(description: &str) -> Value {
    json!({"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}, "description": description})
}
