//! Manifests of an application as a test writes them: files of a folder. The objects that most tests need are made here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lab::git::Checkout;

/// Files of a target's folder.
#[derive(Debug, Clone, Default)]
pub struct Manifests {
    files: BTreeMap<String, String>,
}

impl Manifests {
    /// A Deployment `web` of this version and its Service.
    pub fn web(version: &str) -> Manifests {
        Manifests::default().with(&deployment("web", version)).with(&service("web"))
    }

    /// One object more, in a file of its own. An object of the same kind and name is replaced.
    #[must_use]
    pub fn with(self, object: &Value) -> Manifests {
        let word = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_lowercase();
        let file = format!("{}-{}.yaml", word("/kind"), word("/metadata/name"));
        // JSON is YAML.
        self.file(&file, &serde_json::to_string_pretty(object).unwrap())
    }

    #[must_use]
    pub fn without(mut self, file: &str) -> Manifests {
        assert!(self.files.remove(file).is_some(), "{file} is one of {:?}", self.files.keys());
        self
    }

    /// Any text.
    #[must_use]
    pub fn file(mut self, name: &str, text: &str) -> Manifests {
        self.files.insert(name.to_owned(), text.to_owned());
        self
    }

    /// Replaces what the folder has by this.
    pub(super) fn write(&self, checkout: &Checkout, folder: &str, id: &str) {
        if checkout.path(folder).exists() {
            checkout.remove(folder);
        }
        for (name, text) in &self.files {
            checkout.write(&format!("{folder}/{name}"), &text.replace(ID, id));
        }
    }
}

/// A Deployment with one pod, as strict as the namespace asks for. The version is the image's tag.
pub fn deployment(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(version)},
        },
    })
}

/// The same whose pods go the way that the lab's stages call `outcome`.
pub fn with_outcome(mut object: Value, outcome: &str) -> Value {
    object["spec"]["template"]["metadata"]["annotations"] = json!({"lab.kedge.dev/outcome": outcome});
    object
}

/// The same with an annotation of its own.
pub fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

pub fn pod_spec(version: &str) -> Value {
    json!({
        "automountServiceAccountToken": false,
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main",
            "image": format!("registry.example.com/app:{version}"),
            "envFrom": [{"configMapRef": {"name": "platform-config"}}],
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}

pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

pub fn config_map(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {key: value}})
}

pub fn secret(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": {key: value}})
}

pub fn job(name: &str) -> Value {
    let mut template = pod_spec("1");
    template["restartPolicy"] = json!("Never");
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"metadata": {}, "spec": template}},
    })
}

/// The test's own word, once the manifests are written: for names that belong to the whole cluster.
pub const ID: &str = "@ID@";

/// A CustomResourceDefinition of a group of the test's own, with its kind `Widget`.
pub fn widget_definition() -> Value {
    let (group, schema) = (widget_group(ID), json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema, "status": schema}}},
            }],
        },
    })
}

/// One of its kind.
pub fn widget(name: &str) -> Value {
    json!({
        "apiVersion": format!("{}/v1", widget_group(ID)), "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 1},
    })
}

pub fn widget_group(id: &str) -> String {
    format!("w{id}.example.com")
}
