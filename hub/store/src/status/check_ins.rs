//! Contacts, missed check-ins, and the hub's own heartbeat.

use kedge_hub_types::status::Carrier;
use kedge_hub_types::status::tally::Tally;
use kedge_model::wire::{ClusterId, Generation, Stream, Timestamp};
use sqlx::Row as _;

use super::{cluster_of, corrupt, stream_of, tally_of};
use crate::{Backend, Store, StoreError, Tx};

/// What a contact changes of a cluster's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContactRow {
    pub at: Timestamp,
    pub check_in_deadline: Timestamp,
    pub look_at: Timestamp,
    pub generation: Generation,
    /// None: the cluster itself.
    pub via: Option<Carrier>,
    /// The lowest epoch that it named of its document, and when at the earliest; 0 is none.
    pub epoch: u64,
    pub epoch_at: Timestamp,
}

/// A member after its contact was written.
#[derive(Clone, Debug)]
pub struct Contacted {
    pub stream: Stream,
    pub unknown_since: Option<Timestamp>,
    pub check_in_deadline: Timestamp,
    /// Of the stored document; 0 is none.
    pub epoch: u64,
    pub cloned: bool,
}

/// A missed check-in.
#[derive(Clone, Debug)]
pub struct Due {
    pub cluster: ClusterId,
    pub stream: Stream,
    pub check_in_deadline: Timestamp,
    pub tally: Option<Tally>,
}

const DUE: &str = "SELECT id, environment, cluster_type, ring, promise_until FROM clusters \
     WHERE unknown_since IS NULL AND state = 'active' AND promise_until < $1 ORDER BY promise_until LIMIT $2";
const DUE_LOCKED: &str = "SELECT id, environment, cluster_type, ring, promise_until FROM clusters \
     WHERE unknown_since IS NULL AND state = 'active' AND promise_until < $1 ORDER BY promise_until LIMIT $2 \
     FOR UPDATE SKIP LOCKED";
const OWN_CONTACT: &str = "UPDATE clusters SET last_contact = $2, promise_until = $3, look_at = $4, generation = $5, via = $6 \
     WHERE id = $1 AND state = 'active' AND last_contact <= $2 \
     RETURNING environment, cluster_type, ring, unknown_since, promise_until, cloned_since, \
     (SELECT epoch FROM documents WHERE cluster = $1) AS epoch";
/// What others carry brings no deadline nearer that the cluster's own check-in set.
const CARRIED_CONTACT: &str = "UPDATE clusters SET last_contact = $2, \
     promise_until = CASE WHEN promise_until > $3 THEN promise_until ELSE $3 END, look_at = $4, generation = $5, via = $6 \
     WHERE id = $1 AND state = 'active' AND last_contact <= $2 \
     RETURNING environment, cluster_type, ring, unknown_since, promise_until, cloned_since, \
     (SELECT epoch FROM documents WHERE cluster = $1) AS epoch";
const LAST_ALIVE: &str = "last_alive";

impl Store {
    /// Whether any check-in was due before this.
    pub async fn any_due(&self, before: Timestamp) -> Result<bool, StoreError> {
        let found = sqlx::query(
            "SELECT 1 AS due FROM clusters WHERE unknown_since IS NULL AND state = 'active' AND promise_until < $1 LIMIT 1",
        );
        Ok(found.bind(before.0).fetch_optional(self.pool()).await?.is_some())
    }
}

impl Tx {
    /// None: no active member.
    pub async fn put_contact(
        &mut self,
        cluster: &ClusterId,
        contact: &ContactRow,
    ) -> Result<Option<Contacted>, StoreError> {
        let put = if contact.via.is_some() { CARRIED_CONTACT } else { OWN_CONTACT };
        let row = sqlx::query(put)
            .bind(cluster.to_string())
            .bind(contact.at.0)
            .bind(contact.check_in_deadline.0)
            .bind(contact.look_at.0)
            .bind(i64::try_from(contact.generation.0).unwrap_or(i64::MAX))
            .bind(contact.via.map(Carrier::to_text))
            .fetch_optional(self.connection())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let unknown_since: Option<i64> = row.try_get("unknown_since")?;
        let check_in_deadline = Timestamp(row.try_get("promise_until")?);
        let epoch: Option<i64> = row.try_get("epoch")?;
        Ok(Some(Contacted {
            stream: stream_of(&row)?,
            unknown_since: unknown_since.map(Timestamp),
            check_in_deadline,
            epoch: u64::try_from(epoch.unwrap_or_default()).map_err(corrupt)?,
            cloned: row.try_get::<Option<i64>, _>("cloned_since")?.is_some(),
        }))
    }

    pub async fn tally(&mut self, cluster: &ClusterId) -> Result<Option<Tally>, StoreError> {
        let found = sqlx::query("SELECT tally FROM documents WHERE cluster = $1").bind(cluster.to_string());
        match found.fetch_optional(self.connection()).await? {
            Some(row) => tally_of(&row),
            None => Ok(None),
        }
    }

    /// The cluster is Unknown since then, or no longer.
    pub async fn set_unknown(
        &mut self,
        cluster: &ClusterId,
        since: Option<Timestamp>,
        tick: i64,
    ) -> Result<(), StoreError> {
        let set = sqlx::query("UPDATE clusters SET unknown_since = $2, tick = $3 WHERE id = $1");
        set.bind(cluster.to_string()).bind(since.map(|since| since.0)).bind(tick).execute(self.connection()).await?;
        Ok(())
    }

    /// A document is a sign of life too: the next check-in is due then at the earliest.
    pub async fn extend_check_in_deadline(&mut self, cluster: &ClusterId, until: Timestamp) -> Result<(), StoreError> {
        let set = sqlx::query("UPDATE clusters SET promise_until = $2 WHERE id = $1 AND promise_until < $2");
        set.bind(cluster.to_string()).bind(until.0).execute(self.connection()).await?;
        Ok(())
    }

    /// Check-ins that were due before this, the oldest first. With several hubs each is given to one.
    pub async fn due(&mut self, before: Timestamp, most: i64, backend: Backend) -> Result<Vec<Due>, StoreError> {
        let sql = if backend == Backend::Postgres { DUE_LOCKED } else { DUE };
        let rows = sqlx::query(sql).bind(before.0).bind(most).fetch_all(self.connection()).await?;
        let mut due = Vec::with_capacity(rows.len());
        for row in &rows {
            let cluster = cluster_of(row, "id")?;
            // Read after the row is held: a document that another hub stored meanwhile is seen.
            let tally = self.tally(&cluster).await?;
            let check_in_deadline = Timestamp(row.try_get("promise_until")?);
            due.push(Due { cluster, stream: stream_of(row)?, check_in_deadline, tally });
        }
        Ok(due)
    }

    /// Says that a hub is alive, and how long none was.
    pub async fn beat(&mut self, now: Timestamp) -> Result<i64, StoreError> {
        // The first statement holds the row, so that of two hubs that start at once one finds the gap.
        let held = sqlx::query_scalar(
            "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = meta.value \
             RETURNING value",
        );
        let last: String = held.bind(LAST_ALIVE).bind(now.0.to_string()).fetch_one(self.connection()).await?;
        let last: i64 = last.parse().map_err(corrupt)?;
        let set = sqlx::query("UPDATE meta SET value = $2 WHERE name = $1");
        set.bind(LAST_ALIVE).bind(now.0.max(last).to_string()).execute(self.connection()).await?;
        Ok(now.0.saturating_sub(last))
    }

    /// Check-ins that were due while no hub could hear: each gets as much more time as the hubs were away.
    pub async fn extend_overdue(&mut self, now: Timestamp, by: i64) -> Result<u64, StoreError> {
        let set = sqlx::query(
            "UPDATE clusters SET promise_until = promise_until + $2 \
             WHERE unknown_since IS NULL AND state = 'active' AND promise_until < $1",
        );
        Ok(set.bind(now.0).bind(by).execute(self.connection()).await?.rows_affected())
    }
}
