//! The leader's rows: everything that the controller reads, at the beginning of a term or in each pass.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::rollout::Known;
use kedge_hub_types::rollout::Origin;
use kedge_hub_types::rollout::Pinned;
use kedge_hub_types::rollout::Reported;
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::{Place, Running};
use kedge_hub_types::status::tally::Word;
use kedge_model::wire::{PackagesKey, Stream, Timestamp};
use kedge_rollout::{Rollout, RolloutId};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::super::pack::{corrupt, places};
use super::{StoredItem, id, number, stored};
use crate::{Store, StoreError};

/// An assignment that can't be rendered or packed, and the commits with which that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Of the branch; empty: before there was a policy.
    pub commit: String,
    pub main: String,
    pub why: String,
    pub since: Timestamp,
}

/// The head that all rings were last compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedHead {
    pub commit: String,
    /// Empty: none.
    pub main: String,
}

/// Names in one statement: below the limits of both databases.
const AT_ONCE: usize = 400;

impl Store {
    /// Rollouts that facts can still change, or that the desired states may lag behind, with all that is known of them.
    pub async fn running_rollouts(&self, environment: &str) -> Result<Vec<Running>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, body, skipped, updated_at, ended_at, tick, issued, watched FROM rollouts \
             WHERE environment = $1 AND (watched = 1 OR issued = 0) ORDER BY id",
        );
        let mut all = Vec::new();
        for row in rows.bind(environment).fetch_all(self.pool()).await? {
            let stored = stored(&row)?;
            let items = self.rollout_items(stored.rollout.id).await?;
            let mut running = assembled(stored.rollout, items);
            running.skipped = stored.skipped;
            running.issued = row.try_get::<i64, _>(6)? != 0;
            running.watched = row.try_get::<i64, _>(7)? != 0;
            self.load_rings(&mut running).await?;
            all.push(running);
        }
        Ok(all)
    }

    /// One that has ended long ago, for a word about it.
    pub async fn running_rollout(&self, rollout: RolloutId) -> Result<Option<Running>, StoreError> {
        let Some(stored) = self.rollout(rollout).await? else { return Ok(None) };
        let items = self.rollout_items(rollout).await?;
        let mut running = assembled(stored.rollout, items);
        running.skipped = stored.skipped;
        running.issued = true;
        running.watched = false;
        self.load_rings(&mut running).await?;
        Ok(Some(running))
    }

    /// The number of the newest rollout; 0 before the first.
    pub async fn newest_rollout(&self) -> Result<RolloutId, StoreError> {
        let newest: Option<i64> = sqlx::query_scalar("SELECT MAX(id) FROM rollouts").fetch_one(self.pool()).await?;
        id(newest.unwrap_or_default())
    }

    async fn load_rings(&self, running: &mut Running) -> Result<(), StoreError> {
        let rows = sqlx::query("SELECT ring, cluster_type, assignment, body FROM rollout_before WHERE rollout = $1");
        for row in rows.bind(number(running.id())).fetch_all(self.pool()).await? {
            let (ring, place, body) = ringed(&row)?;
            let held: Held = serde_json::from_str(&body).map_err(corrupt)?;
            running.before.entry(ring).or_default().insert(place, held);
        }
        for key in self.rollout_keys(running.id()).await? {
            let places = running.keys.entry(key.ring).or_default();
            places.entry((key.cluster_type, key.assignment)).or_default().insert(key.packages);
        }
        Ok(())
    }

    /// What clusters report of these packages.
    pub async fn reported(&self, environment: &str, keys: &BTreeSet<PackagesKey>) -> Result<Vec<Reported>, StoreError> {
        let keys: Vec<String> = keys.iter().map(PackagesKey::to_string).collect();
        let mut found = Vec::new();
        for keys in keys.chunks(AT_ONCE) {
            let sql = format!(
                "SELECT cluster_type, ring, assignment, packages, running, condition, count FROM counts \
                 WHERE environment = $1 AND packages IN ({}) AND count <> 0",
                places(keys.len(), 1, 2)
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(environment);
            for key in keys {
                query = query.bind(key.as_str());
            }
            for row in query.fetch_all(self.pool()).await? {
                let condition: String = row.try_get(5)?;
                found.push(Reported {
                    cluster_type: row.try_get(0)?,
                    ring: row.try_get(1)?,
                    assignment: row.try_get(2)?,
                    packages: row.try_get(3)?,
                    running: row.try_get(4)?,
                    condition: Word::from_text(&condition).ok_or_else(|| corrupt(condition))?,
                    count: u64::try_from(row.try_get::<i64, _>(6)?).unwrap_or_default(),
                });
            }
        }
        Ok(found)
    }

    pub async fn known_sources(&self, environment: &str) -> Result<BTreeMap<Place, Known>, StoreError> {
        let rows = sqlx::query(
            "SELECT cluster_type, assignment, workload, repo, reference, path, commit_id, observed \
             FROM rollout_sources WHERE environment = $1",
        );
        let known = |row: &AnyRow| {
            let origin = Origin {
                workload: row.try_get(2)?,
                repo: row.try_get(3)?,
                reference: row.try_get(4)?,
                path: row.try_get(5)?,
            };
            let known = Known { origin, commit: row.try_get(6)?, observed: row.try_get(7)? };
            Ok(((row.try_get(0)?, row.try_get(1)?), known))
        };
        rows.bind(environment).fetch_all(self.pool()).await?.iter().map(known).collect()
    }

    pub async fn quarantines(&self, environment: &str) -> Result<BTreeMap<String, Quarantine>, StoreError> {
        let rows = sqlx::query(
            "SELECT assignment, commit_id, main, why, since FROM rollout_quarantines WHERE environment = $1",
        );
        let quarantine = |row: &AnyRow| {
            let quarantine = Quarantine {
                commit: row.try_get(1)?,
                main: row.try_get(2)?,
                why: row.try_get(3)?,
                since: Timestamp(row.try_get(4)?),
            };
            Ok((row.try_get(0)?, quarantine))
        };
        rows.bind(environment).fetch_all(self.pool()).await?.iter().map(quarantine).collect()
    }

    pub async fn compared_head(&self, environment: &str) -> Result<Option<ComparedHead>, StoreError> {
        let row = sqlx::query("SELECT commit_id, main FROM rollout_heads WHERE environment = $1");
        let row = row.bind(environment).fetch_optional(self.pool()).await?;
        row.map(|row| Ok(ComparedHead { commit: row.try_get(0)?, main: row.try_get(1)? })).transpose()
    }

    pub async fn pinned_of(&self, environment: &str) -> Result<Pinned, StoreError> {
        let rows = sqlx::query("SELECT cluster_type, ring, assignment, body FROM pinned WHERE environment = $1");
        let mut pinned = Pinned::new();
        for row in rows.bind(environment).fetch_all(self.pool()).await? {
            let stream = Stream::new(environment, row.try_get(0)?, row.try_get(1)?);
            let body: String = row.try_get(3)?;
            let held: Held = serde_json::from_str(&body).map_err(corrupt)?;
            pinned.entry(stream).or_default().insert(row.try_get(2)?, held);
        }
        Ok(pinned)
    }
}

fn assembled(mut rollout: Rollout, items: Vec<StoredItem>) -> Running {
    let (items, changes): (Vec<_>, Vec<_>) = items.into_iter().map(|stored| (stored.item, stored.change)).unzip();
    rollout.items = items.into();
    Running::new(rollout, changes)
}

fn ringed(row: &AnyRow) -> Result<(String, Place, String), StoreError> {
    Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?), row.try_get(3)?))
}
