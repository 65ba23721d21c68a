//! What the cluster is: its own id, by which it is told from every other, and what the hub's page shows of it. Asked at the begin of a
//! term.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::RunError;
use super::candidate::LeaseCandidate;
use crate::cluster::asking::{self, AskError};

pub(super) struct ClusterFacts {
    /// The uid of its namespace `kube-system`: it has none of its own, and this one is made once.
    pub id: String,
    pub facts: BTreeMap<&'static str, String>,
}

const LIMIT: Duration = Duration::from_secs(10);
/// A count needs no nodes; the server says how many there are beyond the first.
const NODES: &str = "/api/v1/nodes?limit=1";

/// What isn't allowed to be read is left out; without the id nothing begins.
pub(super) async fn gather(candidate: &LeaseCandidate) -> Result<ClusterFacts, RunError> {
    let client = candidate.cluster.client().clone();
    let asked = candidate.handle.spawn(async move {
        let system = asking::get(&client, "/api/v1/namespaces/kube-system", LIMIT).await?;
        let version = asking::get(&client, "/version", LIMIT).await.ok();
        let nodes = asking::get(&client, NODES, LIMIT).await.ok();
        Ok::<_, AskError>((system, version, nodes))
    });
    let which = |error| RunError::cluster("the cluster doesn't say which one it is", error);
    let gone = |error: tokio::task::JoinError| RunError::Begin(std::io::Error::other(error));
    let (system, version, nodes) = asked.await.map_err(gone)?.map_err(which)?;
    let id = system["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let mut facts = BTreeMap::from([("agentVersion", env!("CARGO_PKG_VERSION").to_owned())]);
    let version = version.and_then(|version| Some(version["gitVersion"].as_str()?.to_owned()));
    facts.extend(version.map(|version| ("system", format!("Kubernetes {version}"))));
    let count = nodes.map(|list| {
        let listed = list["items"].as_array().map_or(0, Vec::len) as u64;
        listed + list["metadata"]["remainingItemCount"].as_u64().unwrap_or(0)
    });
    facts.extend(count.map(|count| ("nodes", count.to_string())));
    Ok(ClusterFacts { id, facts })
}

impl ClusterFacts {
    /// What it calls itself where nobody said how.
    pub(super) fn name(&self) -> String {
        let short: String = self.id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
        format!("cluster-{short}")
    }
}
