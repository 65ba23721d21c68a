//! What a kind is: by the CustomResourceDefinitions of the same packages, then by the API server's discovery.

use std::collections::BTreeMap;

use serde_json::Value;

use super::confinement::is_label;
use super::document::{Document, is_kind};
use super::kinds::{KindInfo, Kinds};
use crate::record::Failure;

/// Each kind is asked for once.
pub(super) struct Known<'a> {
    server: &'a dyn Kinds,
    found: BTreeMap<(String, String), Option<KindInfo>>,
}

const DEFINITION: &str = "CustomResourceDefinition";

impl<'a> Known<'a> {
    pub fn new(server: &'a dyn Kinds, documents: &[Document]) -> Result<Known<'a>, Failure> {
        let mut found = BTreeMap::new();
        let definitions =
            documents.iter().filter(|one| one.kind == DEFINITION && one.version.starts_with("apiextensions.k8s.io/"));
        for document in definitions {
            for info in defined(document)? {
                found.insert((format!("{}/{}", info.group, info.version), info.kind.clone()), Some(info));
            }
        }
        Ok(Known { server, found })
    }

    pub fn find(&mut self, document: &Document) -> Result<Option<KindInfo>, Failure> {
        let key = (document.version.clone(), document.kind.clone());
        if let Some(info) = self.found.get(&key) {
            return Ok(info.clone());
        }
        let info = self.server.find(&document.version, &document.kind)?;
        self.found.insert(key, info.clone());
        Ok(info)
    }
}

/// The kinds that a definition will bring, one for each version.
fn defined(document: &Document) -> Result<Vec<KindInfo>, Failure> {
    let refuse = |why: &str| document.wrong(&format!("the {DEFINITION} {} {why}", document.name));
    let value: Value = serde_json::from_slice(&document.json).map_err(|error| refuse(&error.to_string()))?;
    let spec = &value["spec"];
    let text = |value: &Value, what: &str, fits: fn(&str) -> bool| match value.as_str().filter(|text| fits(text)) {
        Some(text) => Ok(text.to_owned()),
        None => Err(refuse(&format!("has no `{what}` that can be one"))),
    };
    let group = text(&spec["group"], "spec.group", |text| text.len() <= 253 && text.split('.').all(is_label))?;
    let kind = text(&spec["names"]["kind"], "spec.names.kind", is_kind)?;
    let plural = text(&spec["names"]["plural"], "spec.names.plural", is_label)?;
    let namespaced = match spec["scope"].as_str() {
        Some("Namespaced") => true,
        Some("Cluster") => false,
        _ => return Err(refuse("has no `spec.scope` that is Namespaced or Cluster")),
    };
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let version = |version: &Value| {
        let version = text(&version["name"], "spec.versions[].name", is_label)?;
        Ok(KindInfo { group: group.clone(), version, kind: kind.clone(), plural: plural.clone(), namespaced })
    };
    versions.iter().filter(|version| version["served"] != Value::Bool(false)).map(version).collect()
}
