//! The statements about who belongs to which ring.

use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Stream};
use sqlx::Row as _;

use super::{labels, parsed, stream};
use crate::{Store, StoreError};

/// Where a member is, and what decides its ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub id: ClusterId,
    pub stream: Stream,
    pub labels: Labels,
}

impl Store {
    /// Members in the order of their ids, after one.
    pub async fn placed_after(&self, after: &str, limit: i64) -> Result<Vec<Placed>, StoreError> {
        let found = sqlx::query(
            "SELECT id, environment, cluster_type, ring, labels FROM clusters WHERE id > $1 AND state = 'active' \
             ORDER BY id LIMIT $2",
        );
        let rows = found.bind(after).bind(limit).fetch_all(self.pool()).await?;
        let placed = |row: &sqlx::any::AnyRow| {
            Ok(Placed {
                id: parsed(row.try_get("id")?)?,
                stream: stream(row)?,
                labels: labels(row.try_get("labels")?)?,
            })
        };
        rows.iter().map(placed).collect()
    }

    /// Whether a policy is in force; none: there never was one.
    pub async fn policy_in_force(&self) -> Result<Option<bool>, StoreError> {
        let found = sqlx::query_scalar("SELECT body FROM policies WHERE slot = 'force'");
        let body: Option<String> = found.fetch_optional(self.pool()).await?;
        Ok(body.map(|body| !body.is_empty()))
    }
}
