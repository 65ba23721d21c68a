//! What promotion asks about rollouts: which ended without evidence, which of applications a Git server should know of, and
//! how far one is, in one number of placements. Costs follow changed assignments and streams, never clusters.

use kedge_rollout::{Rollout, RolloutId};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::{Store, StoreError, now};

/// How far a rollout is, counted in placements: an assignment on a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headway {
    pub of: u64,
    pub converged: u64,
    pub failed: u64,
    pub offline: u64,
}

/// So many at once; the rest comes with the next look.
const AT_ONCE: i64 = 20;

/// A rollout of an application that ended is told for so long.
const TOLD_MS: i64 = 24 * 3600 * 1000;

/// Applications whose commits are told at once.
const SOURCES: i64 = 500;

impl Store {
    /// Rollouts that ended and have no evidence yet: those that are complete, and those whose gates somebody overrode.
    pub async fn unwitnessed_rollouts(&self) -> Result<Vec<RolloutId>, StoreError> {
        let ids = sqlx::query_scalar::<_, i64>(
            "SELECT r.id FROM rollouts r WHERE (r.state = 'Complete' OR
             (r.state IN ('RolledBack', 'Aborted', 'Superseded') AND r.body LIKE '%\"say\":\"override\"%'))
             AND NOT EXISTS (SELECT 1 FROM evidence e WHERE e.kind = 'rollout' AND e.rollout = r.id)
             ORDER BY r.id LIMIT $1",
        );
        ids.bind(AT_ONCE).fetch_all(self.pool()).await?.into_iter().map(id).collect()
    }

    /// Of application sources: unfinished, or ended a short while ago; the newest first.
    pub async fn told_rollouts(&self) -> Result<Vec<Rollout>, StoreError> {
        let rows = sqlx::query(
            "SELECT body FROM rollouts WHERE lane <> 'platform' AND (ended_at IS NULL OR ended_at > $1)
             ORDER BY id DESC LIMIT $2",
        );
        bodies(rows.bind(now().0 - TOLD_MS).bind(SOURCES).fetch_all(self.pool()).await?)
    }

    /// Rollouts that are on their way.
    pub async fn active_rollouts(&self) -> Result<Vec<Rollout>, StoreError> {
        let rows = sqlx::query("SELECT body FROM rollouts WHERE watched = 1 AND state = 'Active' ORDER BY id");
        bodies(rows.fetch_all(self.pool()).await?)
    }

    pub async fn headway(&self, rollout: RolloutId, environment: &str) -> Result<Headway, StoreError> {
        let number = i64::try_from(rollout.0).unwrap_or(i64::MAX);
        let of = sqlx::query_scalar::<_, Option<i64>>(
            "SELECT CAST(SUM(p.count) AS BIGINT) FROM rollout_items i
             JOIN population p ON p.environment = $2 AND p.cluster_type = i.cluster_type WHERE i.rollout = $1",
        );
        let of = of.bind(number).bind(environment).fetch_one(self.pool()).await?.unwrap_or_default();
        let rows = sqlx::query(
            "SELECT c.condition AS condition, CAST(SUM(c.count) AS BIGINT) AS count FROM rollout_keys k
             JOIN counts c ON c.environment = $2 AND c.cluster_type = k.cluster_type AND c.ring = k.ring
             AND c.assignment = k.assignment AND c.packages = k.packages
             WHERE k.rollout = $1 GROUP BY c.condition",
        );
        let mut headway = Headway { of: amount(of), ..Headway::default() };
        for row in rows.bind(number).bind(environment).fetch_all(self.pool()).await? {
            let count = amount(row.try_get("count")?);
            match row.try_get::<String, _>("condition")?.as_str() {
                "Converged" => headway.converged += count,
                "Failed" => headway.failed += count,
                "Unknown" => headway.offline += count,
                _ => {}
            }
        }
        Ok(headway)
    }
}

fn bodies(rows: Vec<AnyRow>) -> Result<Vec<Rollout>, StoreError> {
    let body = |row: &AnyRow| super::value(&row.try_get::<String, _>("body")?, "a rollout");
    rows.iter().map(body).collect()
}

fn id(number: i64) -> Result<RolloutId, StoreError> {
    let number = u64::try_from(number).map_err(|_| StoreError::Corrupt(format!("rollout {number}")))?;
    Ok(RolloutId(number))
}

fn amount(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}
