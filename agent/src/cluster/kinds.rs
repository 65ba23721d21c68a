//! Which kinds the API server serves, asked for one group and version at a time and remembered. The applier's thread asks while it
//! makes goals; what isn't known is asked again, and a CustomResourceDefinition that was applied ends what was remembered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;

use super::Cluster;
use super::metadata::or_default;
use super::request::{ApiError, Call};
use super::retry::persist;
use crate::content::kubernetes::{KindInfo, Kinds};
use crate::record::Failure;

#[derive(Debug)]
pub struct Discovered {
    cluster: Cluster,
    runtime: Handle,
    /// By apiVersion; only what goals asked for is kept.
    known: Mutex<BTreeMap<String, Vec<KindInfo>>>,
}

/// A resource that lists: where to look for foreign objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listable {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    #[serde(deserialize_with = "or_default")]
    resources: Vec<Resource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resource {
    name: String,
    kind: String,
    namespaced: bool,
    verbs: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Groups {
    #[serde(deserialize_with = "or_default")]
    groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Group {
    name: String,
    preferred_version: Version,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
}

/// A goal waits for an answer, but not for long: the assignment is tried again.
const PATIENCE: Duration = Duration::from_secs(15);
/// More kinds in one group and version are not looked through.
const MOST_KINDS: usize = 2000;

impl Discovered {
    pub fn new(cluster: Cluster, runtime: Handle) -> Discovered {
        Discovered { cluster, runtime, known: Mutex::default() }
    }

    /// A definition came or changed.
    pub fn refresh(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Everything that can be listed, in the version that each group prefers.
    pub async fn listable(&self) -> Result<Vec<Listable>, ApiError> {
        let groups: Groups = self.ask("/apis".to_owned()).await?;
        let mut all = Vec::new();
        let core = [(String::new(), "v1".to_owned())];
        let named = groups.groups.into_iter().map(|group| (group.name, group.preferred_version.version));
        for (group, version) in core.into_iter().chain(named) {
            let found = match self.resources(&group, &version).await {
                Err(error) if error.code() == Some(404) => continue,
                found => found?,
            };
            all.extend(found.into_iter().filter(|one| one.verbs.iter().any(|verb| verb == "list")).map(|one| {
                Listable {
                    group: group.clone(),
                    version: version.clone(),
                    kind: one.kind,
                    plural: one.name,
                    namespaced: one.namespaced,
                }
            }));
        }
        Ok(all)
    }

    /// Whether what a definition's spec promises is served by now.
    pub async fn serves(&self, spec: &Value) -> bool {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        for version in versions.iter().filter(|version| version["served"] == true) {
            let found = self.resources(&group, &text(&version["name"])).await;
            if !found.is_ok_and(|found| found.iter().any(|one| one.name == plural)) {
                return false;
            }
        }
        true
    }

    fn remembered(&self, api_version: &str, kind: &str) -> Option<KindInfo> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(api_version)?.iter().find(|one| one.kind == kind).cloned()
    }

    /// Subresources are left out.
    async fn resources(&self, group: &str, version: &str) -> Result<Vec<Resource>, ApiError> {
        let path = match group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let found: Resources = self.ask(path).await?;
        let whole = found.resources.into_iter().filter(|one| !one.name.contains('/') && !one.kind.is_empty());
        Ok(whole.take(MOST_KINDS).collect())
    }

    async fn ask<T: serde::de::DeserializeOwned>(&self, path: String) -> Result<T, ApiError> {
        let call = Call::get(path);
        persist(PATIENCE, &|| true, || self.cluster.call(&call)).await
    }
}

impl Kinds for Discovered {
    fn find(&self, api_version: &str, kind: &str) -> Result<Option<KindInfo>, Failure> {
        if let Some(known) = self.remembered(api_version, kind) {
            return Ok(Some(known));
        }
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        if version.is_empty() || version.starts_with('.') || !plain(group) || !plain(version) {
            return Ok(None);
        }
        let found = match self.runtime.block_on(self.resources(group, version)) {
            Ok(found) => found,
            Err(ApiError::Refused(refusal)) if refusal.code == 404 => return Ok(None),
            Err(ApiError::Refused(refusal)) if refusal.code == 403 => {
                return Err(Failure::new("Forbidden", refusal.sentence()));
            }
            Err(error) => {
                return Err(Failure::passing("ApiServer", format!("can't ask which kinds {api_version} has: {error}")));
            }
        };
        let info = |one: Resource| KindInfo {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: one.kind,
            plural: one.name,
            namespaced: one.namespaced,
        };
        let found: Vec<KindInfo> = found.into_iter().map(info).collect();
        let wanted = found.iter().find(|one| one.kind == kind).cloned();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(api_version.to_owned(), found);
        Ok(wanted)
    }
}
