//! The statements about clusters that a bundle is for.

use std::collections::BTreeMap;

use kedge_hub_types::status::tally::Tally;
use kedge_model::wire::{ClusterId, Generation, Stream};
use sqlx::Row as _;

use super::statement::Statement;
use super::status::{cluster_of, corrupt, stream_of, tally_of};
use super::{Store, StoreError};

/// A cluster that a bundle is for.
#[derive(Clone, Debug)]
pub struct Addressee {
    pub id: ClusterId,
    pub stream: Stream,
    /// The signed envelopes as JSON.
    pub membership: Vec<u8>,
    pub holds: Option<Vec<u8>>,
    /// The last that it accepted, as reported.
    pub generation: Generation,
}

impl Store {
    /// The members of a cluster type, or one cluster, also a retired one: it has to hear of that.
    pub async fn addressees(
        &self,
        environment: &str,
        cluster_type: Option<&str>,
        cluster: Option<&ClusterId>,
        limit: i64,
    ) -> Result<Vec<Addressee>, StoreError> {
        let mut query = Statement::new(
            "SELECT k.id, k.environment, k.cluster_type, k.ring, k.membership, k.generation, h.envelope \
             FROM clusters AS k LEFT JOIN holds AS h ON h.cluster = k.id AND h.writer = 'hub' WHERE ",
        );
        query.text("k.environment = ?", environment);
        if let Some(cluster_type) = cluster_type {
            query.text(" AND k.cluster_type = ? AND k.state = 'active'", cluster_type);
        }
        if let Some(cluster) = cluster {
            query.text(" AND k.id = ? AND k.state IN ('active', 'retired')", &cluster.to_string());
        }
        query.number(" ORDER BY k.id LIMIT ?", limit);
        let rows = query.fetch(self).await?;
        let addressee = |row: &sqlx::any::AnyRow| {
            Ok(Addressee {
                id: cluster_of(row, "id")?,
                stream: stream_of(row)?,
                membership: row.try_get("membership")?,
                holds: row.try_get("envelope")?,
                generation: Generation(u64::try_from(row.try_get::<i64, _>("generation")?).map_err(corrupt)?),
            })
        };
        rows.iter().map(addressee).collect()
    }

    /// What clusters last said that they run; who said nothing is missing.
    pub async fn tallies(&self, clusters: &[ClusterId]) -> Result<BTreeMap<ClusterId, Tally>, StoreError> {
        let mut tallies = BTreeMap::new();
        for some in clusters.chunks(CHUNK) {
            let ids: Vec<String> = some.iter().map(ToString::to_string).collect();
            let mut query = Statement::new("SELECT cluster, tally FROM documents WHERE cluster IN (");
            query.list("", &ids, ")");
            for row in query.fetch_once(self).await? {
                if let Some(tally) = tally_of(&row)? {
                    tallies.insert(cluster_of(&row, "cluster")?, tally);
                }
            }
        }
        Ok(tallies)
    }
}

/// Values of one statement.
const CHUNK: usize = 500;
