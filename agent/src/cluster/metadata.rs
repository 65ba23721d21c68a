//! What is read of an object's metadata: enough to know whose it is, and whether somebody changed a field that we applied. The watches
//! and the applier's comparison read it from the server's answers.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{ASSIGNMENT, MANAGER};

/// An object without its content.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Partial {
    pub metadata: Metadata,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub owner_references: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "or_default")]
    pub managed_fields: Vec<Managed>,
}

/// Fields that somebody manages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Managed {
    pub manager: String,
    /// `Apply` or `Update`.
    pub operation: String,
    /// `scale`, `status`, or empty.
    pub subresource: String,
    pub time: String,
    /// Some servers and fakes leave it out.
    #[serde(rename = "fieldsV1")]
    pub fields: Value,
}

/// What is kept of an object: 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    uid: u64,
    /// Of the fields that we manage and when we applied them: whoever changes a value of ours takes it out of them.
    ours: u64,
    /// Only compared for order with others of the same object.
    pub version: u64,
    pub deleting: bool,
}

impl Metadata {
    pub fn stamp(&self) -> Stamp {
        let ours = self.managed_fields.iter().find(|managed| managed.is_ours());
        Stamp {
            uid: digest(&self.uid),
            ours: ours.map_or(0, |ours| digest(&(&ours.time, ours.fields.to_string()))),
            version: self.resource_version.parse().unwrap_or_else(|_| digest(&self.resource_version)),
            deleting: self.deletion_timestamp.is_some(),
        }
    }

    /// The assignment's whole name, or what its label says of it.
    pub fn assignment(&self) -> Option<&str> {
        let name = self.annotations.get(ASSIGNMENT).filter(|name| !name.is_empty());
        name.or_else(|| self.labels.get(ASSIGNMENT)).map(String::as_str)
    }
}

impl Managed {
    pub fn is_ours(&self) -> bool {
        self.manager == MANAGER && self.operation == "Apply" && self.subresource.is_empty()
    }
}

impl Stamp {
    /// Whether nobody changed a field of ours between both.
    pub fn is_same(&self, other: &Stamp) -> bool {
        (self.uid, self.ours) == (other.uid, other.ours)
    }
}

/// The server writes an empty list as null, sometimes.
pub fn or_default<'de, D, T>(value: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

/// Only compared within this process.
pub fn digest(what: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str, fields: &Value) -> Metadata {
        let partial = json!({"metadata": {
            "name": "web", "namespace": "shop", "uid": "u-1", "resourceVersion": version, "labels": {"kedge.dev/assignment": "web-eu"},
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "kedge", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields},
            ],
        }});
        serde_json::from_value::<Partial>(partial).unwrap().metadata
    }

    #[test]
    fn a_status_changes_nothing_of_ours_and_an_edit_does() {
        let applied = object("5", &json!({"f:spec": {"f:replicas": {}, "f:image": {}}}));
        let status = object("6", &json!({"f:spec": {"f:replicas": {}, "f:image": {}}}));
        let edited = object("7", &json!({"f:spec": {"f:replicas": {}}}));
        assert!(applied.stamp().is_same(&status.stamp()) && !applied.stamp().is_same(&edited.stamp()));
        assert!(applied.stamp().version < status.stamp().version);
        assert_eq!(applied.assignment(), Some("web-eu"));
    }
}
