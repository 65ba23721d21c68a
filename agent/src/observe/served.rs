//! Whether the API server serves a kind, and as what: the version that a file names may be gone by now. Asked by a watch when it
//! begins; nothing is asked while it runs.

use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use serde::Deserialize;

use super::name::Kind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    pub resource: ApiResource,
    pub namespaced: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    versions: Vec<GroupVersion>,
    #[serde(default)]
    preferred_version: Option<GroupVersion>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct GroupVersion {
    version: String,
}

/// None: it isn't served. `version` is preferred where it is.
pub async fn find(client: &Client, kind: &Kind, version: &str) -> Result<Option<Served>, kube::Error> {
    for version in versions(client, kind, version).await? {
        let listed = match kind.group.as_str() {
            "" => client.list_core_api_resources(&version).await,
            group => client.list_api_group_resources(&format!("{group}/{version}")).await,
        };
        let resources = match listed {
            Ok(listed) => listed.resources,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(error),
        };
        // A subresource (`deployments/scale`) has a kind too.
        let Some(found) = resources.into_iter().find(|one| one.kind == kind.kind && !one.name.contains('/')) else {
            continue;
        };
        let named = GroupVersionKind::gvk(&kind.group, &version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, &found.name);
        return Ok(Some(Served { resource, namespaced: found.namespaced }));
    }
    Ok(None)
}

async fn versions(client: &Client, kind: &Kind, version: &str) -> Result<Vec<String>, kube::Error> {
    if kind.group.is_empty() {
        return Ok(vec![version.to_owned()]);
    }
    let request =
        http::Request::get(format!("/apis/{}", kind.group)).body(Vec::new()).map_err(kube::Error::HttpError)?;
    match client.request::<Group>(request).await {
        Ok(group) => Ok(group.order(version)),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

impl Group {
    /// The one that is named, then the server's favourite, then the rest.
    fn order(self, named: &str) -> Vec<String> {
        let favourite = self.preferred_version.map(|one| one.version);
        let mut all: Vec<String> = self.versions.into_iter().map(|one| one.version).collect();
        all.sort_by_key(|version| (version != named, Some(version) != favourite.as_ref()));
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use super::*;

    #[test]
    fn the_named_version_comes_first_and_then_the_favourite() {
        let group = |named: &str| {
            let text = r#"{"kind":"APIGroup","name":"g","versions":[{"groupVersion":"g/v1beta2","version":"v1beta2"},
                {"groupVersion":"g/v1","version":"v1"}],"preferredVersion":{"groupVersion":"g/v1","version":"v1"}}"#;
            serde_json::from_str::<Group>(text).unwrap().order(named)
        };
        assert_eq!(group("v1beta2"), ["v1beta2", "v1"]);
        assert_eq!(group("v1beta1"), ["v1", "v1beta2"]);
    }
}
