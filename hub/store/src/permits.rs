//! The statements of permits: how many clusters of a ring may change at once (`ring_limits`, written by the rollouts' controller), and
//! which ones do now.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::permits::RingLimit;
use kedge_model::wire::{ClusterId, DesiredState, Envelope, Generation, Stream, Timestamp};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Backend, Store, StoreError, Tx};

/// What holds a ring's clusters up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// None: any number may change at once.
    pub permits: Option<u64>,
    /// Nobody begins now: the rollout is paused, or it isn't the time for it.
    pub closed: bool,
    /// The tick at which a rollout last went back there; 0: none did. Who has an older state gets the newest also while it is closed.
    pub returned: i64,
}

/// Rings that are held up, by environment and name.
pub type Limits = BTreeMap<String, BTreeMap<String, Limit>>;

const LIMIT: &str = "SELECT slots, closed, returned FROM ring_limits WHERE environment = $1 AND ring = $2";
/// Of two hubs one at a time counts and takes.
const LIMIT_LOCKED: &str =
    "SELECT slots, closed, returned FROM ring_limits WHERE environment = $1 AND ring = $2 FOR UPDATE";

impl Store {
    /// Rings that have a limit; the others aren't there.
    pub async fn limited_rings(&self) -> Result<Limits, StoreError> {
        let found = sqlx::query(
            "SELECT environment, ring, slots, closed, returned FROM ring_limits WHERE slots >= 0 OR closed <> 0 \
             ORDER BY environment, ring",
        );
        let mut limits = Limits::new();
        for row in &found.fetch_all(self.pool()).await? {
            let environment = limits.entry(row.try_get("environment")?).or_default();
            environment.insert(row.try_get("ring")?, limit(row)?);
        }
        Ok(limits)
    }

    /// What the controller of an environment wrote, by ring.
    pub async fn ring_limits(&self, environment: &str) -> Result<BTreeMap<String, RingLimit>, StoreError> {
        let rows = sqlx::query("SELECT ring, slots, closed FROM ring_limits WHERE environment = $1");
        let limit = |row: &AnyRow| {
            let permits = u64::try_from(row.try_get::<i64, _>(1)?).ok();
            Ok((row.try_get(0)?, RingLimit { permits, closed: row.try_get::<i64, _>(2)? != 0 }))
        };
        rows.bind(environment).fetch_all(self.pool()).await?.iter().map(limit).collect()
    }

    pub async fn any_permit(&self) -> Result<bool, StoreError> {
        let found = sqlx::query("SELECT 1 AS taken FROM slots LIMIT 1");
        Ok(found.fetch_optional(self.pool()).await?.is_some())
    }
}

impl Tx {
    /// A ring's limit as it is now, held for this transaction; none: there is none.
    pub async fn ring_limit(
        &mut self,
        environment: &str,
        ring: &str,
        backend: Backend,
    ) -> Result<Option<Limit>, StoreError> {
        let sql = if backend == Backend::Postgres { LIMIT_LOCKED } else { LIMIT };
        let row = sqlx::query(sql).bind(environment).bind(ring).fetch_optional(self.connection()).await?;
        Ok(row.as_ref().map(limit).transpose()?.filter(|limit| limit.closed || limit.permits.is_some()))
    }

    pub async fn permits_taken(&mut self, environment: &str, ring: &str) -> Result<u64, StoreError> {
        let counted = sqlx::query_scalar("SELECT COUNT(*) FROM slots WHERE environment = $1 AND ring = $2");
        let taken: i64 = counted.bind(environment).bind(ring).fetch_one(self.connection()).await?;
        u64::try_from(taken).map_err(corrupt)
    }

    pub async fn permit_holders(&mut self, environment: &str, ring: &str) -> Result<BTreeSet<ClusterId>, StoreError> {
        let found = sqlx::query("SELECT cluster FROM slots WHERE environment = $1 AND ring = $2");
        let rows = found.bind(environment).bind(ring).fetch_all(self.connection()).await?;
        rows.iter().map(|row| row.try_get::<String, _>("cluster")?.parse().map_err(corrupt)).collect()
    }

    /// Takes a permit, or keeps the one it has for a newer generation. False: it is no member of that stream any more.
    pub async fn take_permit(
        &mut self,
        cluster: &ClusterId,
        stream: &Stream,
        generation: Generation,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let put = sqlx::query(
            "INSERT INTO slots (cluster, environment, ring, cluster_type, generation, since) \
             SELECT id, environment, ring, cluster_type, $5, $6 FROM clusters \
             WHERE id = $1 AND state = 'active' AND environment = $2 AND cluster_type = $3 AND ring = $4 \
             ON CONFLICT (cluster) DO UPDATE SET environment = excluded.environment, ring = excluded.ring, \
             cluster_type = excluded.cluster_type, generation = excluded.generation",
        );
        let done = put
            .bind(cluster.to_string())
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(i64::try_from(generation.0).unwrap_or(i64::MAX))
            .bind(at.0)
            .execute(self.connection())
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// The generation for which a cluster has a permit.
    pub async fn permit_of(&mut self, cluster: &ClusterId) -> Result<Option<Generation>, StoreError> {
        let found = sqlx::query_scalar("SELECT generation FROM slots WHERE cluster = $1").bind(cluster.to_string());
        let generation: Option<i64> = found.fetch_optional(self.connection()).await?;
        generation.map(|number| u64::try_from(number).map(Generation).map_err(corrupt)).transpose()
    }

    /// Whether it had one.
    pub async fn end_permit(&mut self, cluster: &ClusterId) -> Result<bool, StoreError> {
        let gone = sqlx::query("DELETE FROM slots WHERE cluster = $1").bind(cluster.to_string());
        Ok(gone.execute(self.connection()).await?.rows_affected() > 0)
    }

    /// Whether a cluster runs anything: one that doesn't can't become unavailable.
    pub async fn runs_something(&mut self, cluster: &ClusterId) -> Result<bool, StoreError> {
        Ok(self.tally(cluster).await?.is_some_and(|tally| tally.0.values().any(|tallied| tallied.1.is_some())))
    }

    /// A state as it was issued; none: it isn't there.
    pub async fn state_of_generation(
        &mut self,
        stream: &Stream,
        generation: Generation,
    ) -> Result<Option<DesiredState>, StoreError> {
        let found = sqlx::query_scalar(
            "SELECT envelope FROM states WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND generation = $4",
        );
        let envelope: Option<Vec<u8>> = found
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(i64::try_from(generation.0).unwrap_or(i64::MAX))
            .fetch_optional(self.connection())
            .await?;
        let Some(envelope) = envelope else { return Ok(None) };
        let envelope = Envelope::from_json(&envelope).map_err(corrupt)?;
        serde_json::from_slice(&envelope.payload).map(Some).map_err(corrupt)
    }

    /// Whether a state was issued before a tick. One that isn't there any more is old.
    pub async fn is_issued_before(
        &mut self,
        stream: &Stream,
        generation: Generation,
        tick: i64,
    ) -> Result<bool, StoreError> {
        let later = sqlx::query_scalar(
            "SELECT generation FROM states \
             WHERE environment = $1 AND cluster_type = $2 AND ring = $3 AND generation = $4 AND tick >= $5",
        );
        let later: Option<i64> = later
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .bind(i64::try_from(generation.0).unwrap_or(i64::MAX))
            .bind(tick)
            .fetch_optional(self.connection())
            .await?;
        Ok(later.is_none())
    }

    /// Takes away permits that nothing else would end: of rings without a limit, of who isn't there any more, and of who has been
    /// silent since before a moment. How many.
    pub async fn sweep_permits(&mut self, silent_before: Timestamp) -> Result<u64, StoreError> {
        let gone = sqlx::query(
            "DELETE FROM slots WHERE NOT EXISTS (SELECT 1 FROM ring_limits l \
             WHERE l.environment = slots.environment AND l.ring = slots.ring AND l.slots >= 0) \
             OR NOT EXISTS (SELECT 1 FROM clusters k WHERE k.id = slots.cluster AND k.state = 'active' \
             AND k.environment = slots.environment AND k.ring = slots.ring \
             AND (k.unknown_since IS NULL OR slots.since > $1))",
        );
        Ok(gone.bind(silent_before.0).execute(self.connection()).await?.rows_affected())
    }

    /// None: the ring is gone from the policy.
    pub async fn put_limit(
        &mut self,
        environment: &str,
        ring: &str,
        limit: Option<&RingLimit>,
        tick: i64,
    ) -> Result<(), StoreError> {
        // A row that says "no limit" is kept: other hubs see by its tick that something changed.
        let limit = limit.copied().unwrap_or_default();
        sqlx::query(
            "INSERT INTO ring_limits (environment, ring, slots, closed, tick) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (environment, ring) DO UPDATE SET slots = excluded.slots, closed = excluded.closed, \
             tick = excluded.tick",
        )
        .bind(environment)
        .bind(ring)
        .bind(limit.permits.map_or(-1, |permits| i64::try_from(permits).unwrap_or(i64::MAX)))
        .bind(i64::from(limit.closed))
        .bind(tick)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    /// A rollout goes back in a ring: the states that say so are issued after this tick.
    pub async fn mark_returned(&mut self, environment: &str, ring: &str, tick: i64) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO ring_limits (environment, ring, slots, closed, tick, returned) VALUES ($1, $2, -1, 0, $3, $3) \
             ON CONFLICT (environment, ring) DO UPDATE SET tick = excluded.tick, returned = excluded.returned",
        )
        .bind(environment)
        .bind(ring)
        .bind(tick)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}

fn limit(row: &AnyRow) -> Result<Limit, StoreError> {
    let permits: i64 = row.try_get("slots")?;
    Ok(Limit {
        permits: u64::try_from(permits).ok(),
        closed: row.try_get::<i64, _>("closed")? != 0,
        returned: row.try_get("returned")?,
    })
}

fn corrupt(why: impl ToString) -> StoreError {
    StoreError::Corrupt(why.to_string())
}
