//! What a namespace or a definition still holds when it is to be deleted: everything that isn't on its way out anyway keeps it.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Deserialize;
use serde_json::Value;

use super::ApplyContext;
use super::put::PATIENCE;
use crate::cluster::kinds::Listable;
use crate::cluster::metadata::{Metadata, Partial, or_default};
use crate::cluster::request::{ApiError, Call, METADATA_LIST, collection, encode};
use crate::cluster::retry::persist;
use crate::content::kubernetes::accounts::{ACCOUNT, BINDINGS};
use crate::goal::ObjectGoal;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    metadata: Next,
    #[serde(deserialize_with = "or_default")]
    items: Vec<Partial>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Next {
    r#continue: String,
}

/// Kinds that nobody stores for their own sake.
const PASSING_KINDS: [&str; 4] = ["Event", "Endpoints", "EndpointSlice", "Lease"];
/// Groups that show what is elsewhere.
const MIRRORS: [&str; 5] =
    ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io", "events.k8s.io", "authorization.k8s.io"];
/// What every namespace has, or every workload's.
const DEFAULTS: [(&str, &str); 5] = [
    ("ServiceAccount", "default"),
    ("ConfigMap", "kube-root-ca.crt"),
    // Of the agent itself.
    ("ServiceAccount", ACCOUNT),
    ("RoleBinding", BINDINGS[0].0),
    ("RoleBinding", BINDINGS[1].0),
];
const PAGE: usize = 50;
const BESIDE: usize = 8;
/// More are only counted.
const SHOWN: usize = 3;

impl ApplyContext {
    /// What is left in a namespace, in words; none: nothing.
    pub(super) async fn in_namespace(&self, namespace: &str) -> Result<Option<String>, ApiError> {
        let kinds = self.kinds.listable().await?;
        let kinds = kinds.into_iter().filter(|kind| kind.namespaced && is_stored(kind));
        let all = stream::iter(kinds).map(|kind| async move { self.held(&kind, Some(namespace)).await });
        let mut all = std::pin::pin!(all.buffer_unordered(BESIDE));
        let mut found = Vec::new();
        while let Some(held) = all.next().await {
            found.extend(held?);
        }
        found.sort();
        Ok(words(&found))
    }

    /// What objects of a definition there are.
    pub(super) async fn of_definition(&self, goal: &ObjectGoal) -> Result<Option<String>, ApiError> {
        let live = match self.get(&goal.id, goal.account.as_deref()).await {
            Err(error) if error.code() == Some(404) => return Ok(None),
            live => live?,
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = live["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(version) = versions.iter().find(|version| version["served"] == true) else { return Ok(None) };
        let kind = Listable {
            group: text(&live["spec"]["group"]),
            version: text(&version["name"]),
            kind: text(&live["spec"]["names"]["kind"]),
            plural: text(&live["spec"]["names"]["plural"]),
            namespaced: live["spec"]["scope"] == "Namespaced",
        };
        Ok(words(&self.held(&kind, None).await?))
    }

    /// Names of what is there of a kind, up to a page of them.
    async fn held(&self, kind: &Listable, namespace: Option<&str>) -> Result<Vec<String>, ApiError> {
        let (mut found, mut next) = (Vec::new(), String::new());
        loop {
            let path = collection(&kind.group, &kind.version, &kind.plural, namespace);
            let path = format!("{path}?limit={PAGE}&continue={}", encode(&next));
            let call = Call::get(path).with_accept(METADATA_LIST);
            let page: List = match persist(PATIENCE, &*self.gate, || self.cluster.call(&call)).await {
                // It went while we looked.
                Err(error) if error.code() == Some(404) => return Ok(found),
                page => page?,
            };
            let stays = page.items.iter().map(|item| &item.metadata).filter(|about| stays(&kind.kind, about));
            found.extend(stays.map(|about| match (namespace, about.namespace.as_str()) {
                (None, inner) if !inner.is_empty() => format!("{} {inner}/{}", kind.kind, about.name),
                _ => format!("{} {}", kind.kind, about.name),
            }));
            next = page.metadata.r#continue;
            if next.is_empty() || found.len() > PAGE {
                return Ok(found);
            }
        }
    }
}

fn is_stored(kind: &Listable) -> bool {
    !MIRRORS.contains(&kind.group.as_str()) && !PASSING_KINDS.contains(&kind.kind.as_str())
}

/// What isn't deleted already and doesn't go with its owner.
fn stays(kind: &str, about: &Metadata) -> bool {
    let default = DEFAULTS.contains(&(kind, about.name.as_str()));
    about.deletion_timestamp.is_none() && about.owner_references.is_empty() && !default
}

fn words(found: &[String]) -> Option<String> {
    let shown = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match found.len() {
        0 => None,
        many if many > SHOWN => Some(format!("{shown} and {} more", many - SHOWN)),
        _ => Some(shown),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn about(value: Value) -> Metadata {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_goes_by_itself_keeps_nothing() {
        assert!(stays("ConfigMap", &about(json!({"name": "settings"}))));
        assert!(!stays("ConfigMap", &about(json!({"name": "kube-root-ca.crt"}))));
        assert!(!stays("ServiceAccount", &about(json!({"name": "default"}))));
        assert!(!stays("Pod", &about(json!({"name": "web-1", "ownerReferences": [{"kind": "ReplicaSet"}]}))));
        assert!(!stays("Pod", &about(json!({"name": "web-1", "deletionTimestamp": "2026-01-01T00:00:00Z"}))));
    }

    #[test]
    fn many_are_counted() {
        let found: Vec<String> = (0..5).map(|at| format!("Secret s{at}")).collect();
        assert_eq!(words(&found).unwrap(), "Secret s0, Secret s1, Secret s2 and 2 more");
        assert_eq!(words(&[]), None);
    }
}
