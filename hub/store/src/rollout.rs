//! The statements of `rollout`: what people ask (this file), the leader's own (`controller`, `save`), and what
//! people say (`words`).

pub mod controller;
mod save;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::rollout::Difference;
use kedge_hub_types::rollout::change::{Change, Held};
use kedge_hub_types::rollout::running::Place;
use kedge_model::wire::{Digest, PackageRef, PackagesKey, Stream, Timestamp};
use kedge_rollout::{Cause, Item, Rollout, RolloutId};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::pack::corrupt;
use super::statement::Statement;
use super::{Store, StoreError};

/// A rollout as it is stored, without its items.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRollout {
    /// `items` is empty: ask `rollout_items` for them.
    pub rollout: Rollout,
    /// Waited and were taken over, the newest first.
    pub skipped: Vec<Cause>,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub tick: i64,
}

/// One item with its new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredItem {
    pub item: Item,
    pub change: Change,
}

/// Which rollouts are asked for; what is None is not asked.
#[derive(Clone, Debug, Default)]
pub struct RolloutFilter<'a> {
    pub environment: Option<&'a str>,
    pub lane: Option<&'a str>,
    /// `Active`, `Stopped`, …
    pub state: Option<&'a str>,
    /// Only those that haven't ended.
    pub unfinished: bool,
    /// Of the lane, or of an application's source that an item moves to.
    pub source_commit: Option<&'a str>,
    pub main_commit: Option<&'a str>,
    pub workload: Option<&'a str>,
    pub cluster_type: Option<&'a str>,
    /// Only older ones than this: the page before ended there.
    pub before: Option<RolloutId>,
    pub limit: i64,
}

/// Under which names the clusters of a ring report the new content of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemKey {
    pub ring: String,
    pub cluster_type: String,
    pub assignment: String,
    pub packages: PackagesKey,
}

/// The newest content of a lane, waiting for the rollout before it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    pub cause: Cause,
    pub fingerprint: String,
    /// Waited before it and were taken over, the newest first.
    pub skipped: Vec<Cause>,
    pub behind: RolloutId,
    pub since: Timestamp,
}

/// Content that isn't started again until it changes or a person says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedRow {
    pub lane: String,
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    pub fingerprint: String,
    pub rollout: RolloutId,
}

/// An assignment at the head of an environment, and where its workload comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    pub environment: String,
    pub cluster_type: String,
    pub assignment: String,
    pub workload: String,
    pub repo: String,
    pub reference: String,
    pub commit: String,
}

impl BlockedRow {
    pub fn place(&self) -> Place {
        (self.cluster_type.clone(), self.assignment.clone())
    }

    /// Whether it speaks of this change: of all its parts, or of the platform's, which then can't come with another either.
    pub fn blocks(&self, difference: &Difference) -> bool {
        let (item, change) = (&difference.item, &difference.change);
        let platform = Change { platform: change.platform.clone(), ..Change::default() };
        item.cluster_type == self.cluster_type
            && item.assignment == self.assignment
            && (change.fingerprint() == self.fingerprint
                || (!platform.removes() && platform.fingerprint() == self.fingerprint))
    }
}

const ROLLOUT: &str = "SELECT r.id, r.body, r.skipped, r.updated_at, r.ended_at, r.tick FROM rollouts r";

impl Store {
    /// The newest first.
    pub async fn rollouts(&self, filter: &RolloutFilter<'_>) -> Result<Vec<StoredRollout>, StoreError> {
        let mut statement = Statement::new(ROLLOUT);
        statement.push(" WHERE r.id > 0");
        let asked = [
            (" AND r.environment = ?", filter.environment),
            (" AND r.lane = ?", filter.lane),
            (" AND r.state = ?", filter.state),
            (" AND r.main = ?", filter.main_commit),
            (" AND r.id IN (SELECT rollout FROM rollout_items WHERE workload = ?)", filter.workload),
            (" AND r.id IN (SELECT rollout FROM rollout_items WHERE cluster_type = ?)", filter.cluster_type),
        ];
        for (part, value) in asked {
            if let Some(value) = value {
                statement.text(part, value);
            }
        }
        if let Some(commit) = filter.source_commit {
            statement.text(" AND (r.commit_id = ?", commit);
            statement.text(" OR r.id IN (SELECT rollout FROM rollout_items WHERE commit_id = ?))", commit);
        }
        if filter.unfinished {
            statement.push(" AND r.state IN ('Active', 'Paused', 'Stopped')");
        }
        if let Some(before) = filter.before {
            statement.number(" AND r.id < ?", number(before));
        }
        statement.number(" ORDER BY r.id DESC LIMIT ?", filter.limit);
        statement.fetch(self).await?.iter().map(stored).collect()
    }

    pub async fn rollout(&self, id: RolloutId) -> Result<Option<StoredRollout>, StoreError> {
        let mut statement = Statement::new(ROLLOUT);
        statement.number(" WHERE r.id = ?", number(id));
        statement.fetch(self).await?.first().map(stored).transpose()
    }

    /// With its items, as `advance` and `hear` take it.
    pub async fn whole_rollout(&self, id: RolloutId) -> Result<Option<StoredRollout>, StoreError> {
        let Some(mut found) = self.rollout(id).await? else { return Ok(None) };
        let items = self.rollout_items(id).await?;
        found.rollout.items = items.into_iter().map(|stored| stored.item).collect();
        Ok(Some(found))
    }

    /// In the order of the value's items.
    pub async fn rollout_items(&self, id: RolloutId) -> Result<Vec<StoredItem>, StoreError> {
        let rows = sqlx::query(
            "SELECT cluster_type, assignment, workload, body FROM rollout_items WHERE rollout = $1 \
             ORDER BY cluster_type, assignment",
        );
        let mut items: Vec<StoredItem> =
            rows.bind(number(id)).fetch_all(self.pool()).await?.iter().map(item).collect::<Result<_, StoreError>>()?;
        // Databases sort text by their own rules.
        items.sort_by(|one, other| one.item.cmp(&other.item));
        Ok(items)
    }

    pub async fn rollout_keys(&self, id: RolloutId) -> Result<Vec<ItemKey>, StoreError> {
        let rows = sqlx::query("SELECT ring, cluster_type, assignment, packages FROM rollout_keys WHERE rollout = $1");
        let key = |row: &AnyRow| {
            Ok(ItemKey {
                ring: row.try_get(0)?,
                cluster_type: row.try_get(1)?,
                assignment: row.try_get(2)?,
                packages: row.try_get::<String, _>(3)?.parse().map_err(corrupt)?,
            })
        };
        rows.bind(number(id)).fetch_all(self.pool()).await?.iter().map(key).collect()
    }

    /// What waits in the lanes of an environment, by lane.
    pub async fn rollouts_waiting(&self, environment: &str) -> Result<BTreeMap<String, Waiting>, StoreError> {
        let rows = sqlx::query("SELECT lane, body FROM rollout_waiting WHERE environment = $1");
        let waiting = |row: &AnyRow| {
            let body: String = row.try_get(1)?;
            Ok((row.try_get(0)?, serde_json::from_str(&body).map_err(corrupt)?))
        };
        rows.bind(environment).fetch_all(self.pool()).await?.iter().map(waiting).collect()
    }

    pub async fn rollouts_blocked(&self, environment: &str) -> Result<Vec<BlockedRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT lane, cluster_type, assignment, workload, fingerprint, rollout FROM rollout_blocked \
             WHERE environment = $1 ORDER BY cluster_type, assignment",
        );
        let blocked = |row: &AnyRow| {
            Ok(BlockedRow {
                lane: row.try_get(0)?,
                cluster_type: row.try_get(1)?,
                assignment: row.try_get(2)?,
                workload: row.try_get(3)?,
                fingerprint: row.try_get(4)?,
                rollout: id(row.try_get(5)?)?,
            })
        };
        rows.bind(environment).fetch_all(self.pool()).await?.iter().map(blocked).collect()
    }

    /// Rollouts that went back or were aborted, and whose content Git still asks for.
    pub async fn blocked_rollouts(&self) -> Result<BTreeSet<RolloutId>, StoreError> {
        let found = sqlx::query_scalar::<_, i64>("SELECT DISTINCT rollout FROM rollout_blocked");
        found.fetch_all(self.pool()).await?.into_iter().map(id).collect()
    }

    /// Assignments whose head is this commit of an application's source: also where it changed nothing.
    pub async fn sources_at(&self, environment: Option<&str>, commit: &str) -> Result<Vec<SourceRow>, StoreError> {
        let mut statement = Statement::new(
            "SELECT environment, cluster_type, assignment, workload, repo, reference, commit_id FROM rollout_sources",
        );
        statement.text(" WHERE commit_id = ?", commit);
        if let Some(environment) = environment {
            statement.text(" AND environment = ?", environment);
        }
        let source = |row: &AnyRow| {
            Ok(SourceRow {
                environment: row.try_get(0)?,
                cluster_type: row.try_get(1)?,
                assignment: row.try_get(2)?,
                workload: row.try_get(3)?,
                repo: row.try_get(4)?,
                reference: row.try_get(5)?,
                commit: row.try_get(6)?,
            })
        };
        statement.fetch(self).await?.iter().map(source).collect()
    }

    /// Every blob that a rollout may still bring or bring back, and what is below pins.
    pub async fn rolling_blobs(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let mut named = BTreeSet::new();
        let mut name = |package: &PackageRef| {
            named.insert(package.digest);
            named.extend(package.artifacts.iter().map(|blob| blob.digest));
        };
        let items = "SELECT i.body FROM rollout_items i JOIN rollouts r ON r.id = i.rollout WHERE r.watched = 1";
        for body in sqlx::query_scalar::<_, String>(items).fetch_all(self.pool()).await? {
            let change: Change = serde_json::from_str(&body).map_err(corrupt)?;
            change.platform.iter().for_each(|part| name(&part.package));
            change.workload.iter().for_each(|part| name(&part.package));
        }
        let held = "SELECT b.body FROM rollout_before b JOIN rollouts r ON r.id = b.rollout WHERE r.watched = 1 \
             UNION ALL SELECT body FROM pinned";
        for body in sqlx::query_scalar::<_, String>(held).fetch_all(self.pool()).await? {
            if let Held::Apply(packages) = serde_json::from_str(&body).map_err(corrupt)? {
                name(&packages.platform);
                name(&packages.workload);
            }
        }
        Ok(named)
    }

    /// How often people asked for restarts in an environment, by stream and assignment.
    pub async fn restarts_of(&self, environment: &str) -> Result<BTreeMap<Stream, BTreeMap<String, u64>>, StoreError> {
        let rows = sqlx::query("SELECT cluster_type, ring, assignment, counter FROM restarts WHERE environment = $1");
        let mut restarts: BTreeMap<Stream, BTreeMap<String, u64>> = BTreeMap::new();
        for row in rows.bind(environment).fetch_all(self.pool()).await? {
            let stream = Stream::new(environment, row.try_get(0)?, row.try_get(1)?);
            let counter = u64::try_from(row.try_get::<i64, _>(3)?).map_err(corrupt)?;
            restarts.entry(stream).or_default().insert(row.try_get(2)?, counter);
        }
        Ok(restarts)
    }
}

fn stored(row: &AnyRow) -> Result<StoredRollout, StoreError> {
    let (body, skipped): (String, String) = (row.try_get(1)?, row.try_get(2)?);
    let ended_at: Option<i64> = row.try_get(4)?;
    Ok(StoredRollout {
        rollout: serde_json::from_str(&body).map_err(corrupt)?,
        skipped: serde_json::from_str(&skipped).map_err(corrupt)?,
        updated_at: Timestamp(row.try_get(3)?),
        ended_at: ended_at.map(Timestamp),
        tick: row.try_get(5)?,
    })
}

fn item(row: &AnyRow) -> Result<StoredItem, StoreError> {
    let body: String = row.try_get(3)?;
    let change: Change = serde_json::from_str(&body).map_err(corrupt)?;
    let item = Item {
        cluster_type: row.try_get(0)?,
        assignment: row.try_get(1)?,
        workload: row.try_get(2)?,
        removes: change.removes(),
    };
    Ok(StoredItem { item, change })
}

pub(super) fn id(number: i64) -> Result<RolloutId, StoreError> {
    u64::try_from(number).map(RolloutId).map_err(corrupt)
}

pub(super) fn number(id: RolloutId) -> i64 {
    i64::try_from(id.0).unwrap_or(i64::MAX)
}
