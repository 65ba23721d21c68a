//! The statements of `status`: documents and the exceptions in them (this file), `counts`, `check_ins` and `warnings`.

pub mod check_ins;
pub mod counts;
pub mod warnings;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_hub_types::history::{Entry, Place, What};
use kedge_hub_types::status::prepared::{Exception, Prepared};
use kedge_hub_types::status::tally::{Tally, Word};
use kedge_hub_types::status::warnings::Warned;
use kedge_model::wire::{ClusterId, DesiredState, Envelope, Stream, Timestamp};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Backend, Store, StoreError, Tx};

/// What the writer must know of a cluster before it stores a document.
#[derive(Clone, Debug)]
pub struct Seat {
    pub stream: Stream,
    pub active: bool,
    pub public_key: Vec<u8>,
    pub unknown_since: Option<i64>,
    pub look_at: Option<i64>,
    pub last_contact: i64,
    pub check_in_deadline: i64,
    pub cloned: bool,
    pub document: Option<StoredHeads>,
    /// When the document came.
    pub received_at: Timestamp,
    pub tally: Option<Tally>,
    /// None: no document, or one from before warnings were kept.
    pub warned: Option<Warned>,
    /// Up to which of its events history was told.
    pub told: i64,
}

/// How far the stored document has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredHeads {
    pub epoch: u64,
    pub nonce: String,
    pub heads: Vec<String>,
}

/// What runs of an assignment was changed by somebody else, or no longer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftChange {
    pub assignment: String,
    pub before: Option<String>,
    pub now: Option<String>,
}

/// A cluster's document as it is stored.
#[derive(Clone, Debug)]
pub struct StoredDocument {
    pub envelopes: Vec<Envelope>,
    pub received_at: Timestamp,
    /// Who brought it; None: a person.
    pub via: Option<ClusterId>,
    /// What was taken of its reports.
    pub tally: Tally,
}

/// What the newest states name, by stream, with their generations: kept by who asks.
#[derive(Debug, Default)]
pub struct States(HashMap<Stream, (i64, Arc<BTreeSet<String>>)>);

/// The assignments of a stream.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub described: BTreeSet<String>,
    pub stated: Arc<BTreeSet<String>>,
}

/// One exception of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionRow {
    pub cluster: ClusterId,
    pub assignment: String,
    pub exception: Exception,
    /// The cluster as a whole is Unknown since then: what the row says is what was last heard.
    pub unknown_since: Option<Timestamp>,
}

/// Which exceptions are asked for; what is None is not asked.
#[derive(Clone, Debug, Default)]
pub struct ConditionFilter {
    pub cluster: Option<ClusterId>,
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub assignment: Option<String>,
    pub condition: Option<Word>,
    /// Only what comes after this (cluster, assignment): the page before ended there.
    pub after: Option<(ClusterId, String)>,
    pub limit: i64,
}

const SEAT: &str = "SELECT k.environment, k.cluster_type, k.ring, k.state, k.public_key, k.unknown_since, k.look_at, \
     k.last_contact, k.promise_until, k.cloned_since, d.epoch, d.nonce, d.heads, d.received_at, d.tally, d.warned, d.told \
     FROM clusters k LEFT JOIN documents d ON d.cluster = k.id WHERE k.id = $1";
const DOCUMENT: &str = "SELECT envelopes, received_at, via, tally FROM documents WHERE cluster = $1";
/// Two hubs must not change one cluster's counts at once; SQLite has one writer anyway. The document is read by a statement
/// after this one: PostgreSQL would join the row that it waited for with the document from before the wait.
const LOCK: &str = "SELECT id FROM clusters WHERE id = $1 FOR UPDATE";

impl Named {
    pub fn contains(&self, assignment: &str) -> bool {
        self.described.contains(assignment) || self.stated.contains(assignment)
    }
}

impl Store {
    /// Every stored document's place in history: what a poll's heads are compared with.
    pub async fn document_heads(&self) -> Result<Vec<(ClusterId, StoredHeads)>, StoreError> {
        let rows = sqlx::query("SELECT cluster, epoch, nonce, heads FROM documents").fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((cluster_of(row, "cluster")?, stored_heads(row)?))).collect()
    }

    pub async fn document(&self, cluster: &ClusterId) -> Result<Option<StoredDocument>, StoreError> {
        let row = sqlx::query(DOCUMENT).bind(cluster.to_string()).fetch_optional(self.pool()).await?;
        row.as_ref().map(stored_document).transpose()
    }

    /// Exceptions of members, in the order of (cluster, assignment).
    pub async fn conditions(&self, filter: &ConditionFilter) -> Result<Vec<ConditionRow>, StoreError> {
        let cluster = filter.cluster.map(|id| id.to_string());
        let (after, after_assignment) = match &filter.after {
            Some((cluster, assignment)) => (cluster.to_string(), assignment.clone()),
            None => Default::default(),
        };
        let asked: [(&str, Option<&str>); 5] = [
            ("c.cluster", cluster.as_deref()),
            ("k.environment", filter.environment.as_deref()),
            ("k.cluster_type", filter.cluster_type.as_deref()),
            ("c.assignment", filter.assignment.as_deref()),
            ("c.condition", filter.condition.map(Word::as_str)),
        ];
        let mut sql = "SELECT c.*, k.unknown_since FROM conditions c JOIN clusters k ON k.id = c.cluster \
                       WHERE k.state = 'active' AND (c.cluster > $1 OR (c.cluster = $1 AND c.assignment > $2))"
            .to_owned();
        let mut values = Vec::new();
        for (column, value) in asked {
            if let Some(value) = value {
                values.push(value);
                sql.push_str(&format!(" AND {column} = ${}", values.len() + 3));
            }
        }
        sql.push_str(" ORDER BY c.cluster, c.assignment LIMIT $3");
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(after).bind(after_assignment).bind(filter.limit);
        for value in values {
            query = query.bind(value);
        }
        query.fetch_all(self.pool()).await?.iter().map(condition_row).collect()
    }
}

impl Tx {
    /// A cluster and its document, held for this transaction.
    pub async fn seat(&mut self, cluster: &ClusterId, backend: Backend) -> Result<Option<Seat>, StoreError> {
        if backend == Backend::Postgres {
            sqlx::query(LOCK).bind(cluster.to_string()).fetch_optional(self.connection()).await?;
        }
        let row = sqlx::query(SEAT).bind(cluster.to_string()).fetch_optional(self.connection()).await?;
        row.as_ref().map(seat).transpose()
    }

    /// The assignments that Git describes for a stream, or its newest state names. None: the hub hasn't read the environment.
    pub async fn assignments(&mut self, stream: &Stream, states: &mut States) -> Result<Option<Named>, StoreError> {
        let read = sqlx::query("SELECT 1 AS found FROM catalog_structures WHERE environment = $1");
        if read.bind(stream.environment.as_str()).fetch_optional(self.connection()).await?.is_none() {
            return Ok(None);
        }
        let described = sqlx::query_scalar(
            "SELECT name FROM catalog WHERE kind = 'assignment' AND environment = $1 AND parent = $2",
        );
        let described = described.bind(stream.environment.as_str()).bind(stream.cluster_type.as_str());
        let described: Vec<String> = described.fetch_all(self.connection()).await?;
        let bare = |name: &String| name.split_once('/').map(|(_, name)| name.to_owned());
        let described = described.iter().filter_map(bare).collect();
        Ok(Some(Named { described, stated: self.stated(stream, states).await? }))
    }

    /// A state is read once: it may have megabytes.
    async fn stated(&mut self, stream: &Stream, states: &mut States) -> Result<Arc<BTreeSet<String>>, StoreError> {
        let (known, named) = states.0.get(stream).cloned().unwrap_or_default();
        let newer = sqlx::query(
            "SELECT generation, envelope FROM states WHERE environment = $1 AND cluster_type = $2 AND ring = $3 \
             AND generation > $4 ORDER BY generation DESC LIMIT 1",
        );
        let newer = newer.bind(stream.environment.as_str()).bind(stream.cluster_type.as_str());
        let newer = newer.bind(stream.ring.as_str()).bind(known);
        let Some(row) = newer.fetch_optional(self.connection()).await? else { return Ok(named) };
        let envelope = Envelope::from_json(&row.try_get::<Vec<u8>, _>("envelope")?).map_err(corrupt)?;
        let state: DesiredState = serde_json::from_slice(&envelope.payload).map_err(corrupt)?;
        let parted = state.removed.into_iter().chain(state.unmanaged).map(|parted| parted.assignment);
        let named = Arc::new(state.entries.into_iter().map(|entry| entry.assignment).chain(parted).collect());
        states.0.insert(stream.clone(), (row.try_get("generation")?, Arc::clone(&named)));
        Ok(named)
    }

    /// The envelopes of a document, as stored.
    pub async fn envelopes(&mut self, cluster: &ClusterId) -> Result<Option<Vec<u8>>, StoreError> {
        let found = sqlx::query_scalar("SELECT envelopes FROM documents WHERE cluster = $1").bind(cluster.to_string());
        Ok(found.fetch_optional(self.connection()).await?)
    }

    /// The document as it is stored.
    pub async fn stored_document(&mut self, cluster: &ClusterId) -> Result<Option<StoredDocument>, StoreError> {
        let row = sqlx::query(DOCUMENT).bind(cluster.to_string()).fetch_optional(self.connection()).await?;
        row.as_ref().map(stored_document).transpose()
    }

    /// With how far history was told of its events.
    pub async fn put_document(&mut self, prepared: &Prepared, told: i64) -> Result<(), StoreError> {
        let status = &prepared.status;
        let heads = status.heads();
        let tally = serde_json::to_string(&prepared.tally).map_err(corrupt)?;
        let warned = serde_json::to_string(&prepared.warned).map_err(corrupt)?;
        let put = sqlx::query(
            "INSERT INTO documents (cluster, epoch, nonce, heads, received_at, written_at, via, tally, envelopes, told, warned) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (cluster) DO UPDATE SET \
             epoch = excluded.epoch, nonce = excluded.nonce, heads = excluded.heads, received_at = excluded.received_at, \
             written_at = excluded.written_at, via = excluded.via, tally = excluded.tally, envelopes = excluded.envelopes, \
             told = excluded.told, warned = excluded.warned",
        );
        put.bind(status.cluster.to_string())
            .bind(i64::try_from(heads.epoch).map_err(corrupt)?)
            .bind(heads.nonce)
            .bind(heads.heads.join(","))
            .bind(prepared.received_at.0)
            .bind(status.written_at_true().0)
            .bind(prepared.carrier.map(|id| id.to_string()))
            .bind(tally)
            .bind(prepared.envelopes.as_slice())
            .bind(told)
            .bind(warned)
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Writes the exceptions that changed, and takes away those that are over. Which of them drifted meanwhile, or no longer
    /// do.
    pub async fn put_conditions(
        &mut self,
        cluster: &ClusterId,
        before: Option<&Tally>,
        prepared: &Prepared,
    ) -> Result<Vec<DriftChange>, StoreError> {
        let mut changes = Vec::new();
        let empty = BTreeMap::new();
        let before = before.map_or(&empty, |tally| &tally.0);
        for (assignment, tallied) in before {
            if tallied.3.is_some() && !prepared.exceptions.contains_key(assignment) {
                let gone = sqlx::query_scalar::<_, Option<String>>(
                    "DELETE FROM conditions WHERE cluster = $1 AND assignment = $2 RETURNING drift",
                );
                let gone = gone.bind(cluster.to_string()).bind(assignment.as_str());
                let before = gone.fetch_optional(self.connection()).await?.flatten();
                if before.is_some() {
                    changes.push(DriftChange { assignment: assignment.clone(), before, now: None });
                }
            }
        }
        for (assignment, exception) in &prepared.exceptions {
            let written = before.get(assignment).and_then(|tallied| tallied.3);
            let fingerprint = prepared.tally.0.get(assignment).and_then(|tallied| tallied.3);
            if written != fingerprint {
                let before = match written {
                    Some(_) => self.drift_of(cluster, assignment).await?,
                    None => None,
                };
                if before != exception.drift {
                    let (assignment, now) = (assignment.clone(), exception.drift.clone());
                    changes.push(DriftChange { assignment, before, now });
                }
                self.put_condition(cluster, assignment, exception).await?;
            }
        }
        Ok(changes)
    }

    async fn drift_of(&mut self, cluster: &ClusterId, assignment: &str) -> Result<Option<String>, StoreError> {
        let found = sqlx::query_scalar::<_, Option<String>>(
            "SELECT drift FROM conditions WHERE cluster = $1 AND assignment = $2",
        );
        let found = found.bind(cluster.to_string()).bind(assignment);
        Ok(found.fetch_optional(self.connection()).await?.flatten())
    }

    async fn put_condition(
        &mut self,
        cluster: &ClusterId,
        assignment: &str,
        exception: &Exception,
    ) -> Result<(), StoreError> {
        let put = sqlx::query(
            "INSERT INTO conditions (cluster, assignment, condition, packages, running, generation, version, reason, \
             message, drift, since, observed_at, corrected) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
             ON CONFLICT (cluster, assignment) DO UPDATE SET condition = excluded.condition, \
             packages = excluded.packages, running = excluded.running, generation = excluded.generation, \
             version = excluded.version, reason = excluded.reason, message = excluded.message, drift = excluded.drift, \
             since = excluded.since, observed_at = excluded.observed_at, corrected = excluded.corrected",
        );
        put.bind(cluster.to_string())
            .bind(assignment)
            .bind(exception.condition.as_str())
            .bind(exception.packages.as_str())
            .bind(exception.running.as_str())
            .bind(exception.generation)
            .bind(exception.version.as_deref())
            .bind(exception.reason.as_deref())
            .bind(exception.message.as_deref())
            .bind(exception.drift.as_deref())
            .bind(exception.since)
            .bind(exception.observed_at)
            .bind(i64::from(exception.corrected))
            .execute(self.connection())
            .await?;
        Ok(())
    }

    /// Takes a cluster's exceptions away: it counts nowhere any more.
    pub async fn clear_conditions(&mut self, cluster: &ClusterId) -> Result<(), StoreError> {
        let gone = sqlx::query("DELETE FROM conditions WHERE cluster = $1").bind(cluster.to_string());
        gone.execute(self.connection()).await?;
        Ok(())
    }

    /// Two hosts with one identity were seen; the first time stays.
    pub async fn mark_cloned(&mut self, cluster: &ClusterId, at: Timestamp) -> Result<(), StoreError> {
        let tick = self.tick().await?;
        let marked = sqlx::query(
            "UPDATE clusters SET cloned_since = $2, tick = $3 WHERE id = $1 AND cloned_since IS NULL \
             RETURNING environment, cluster_type, ring",
        );
        let marked = marked.bind(cluster.to_string()).bind(at.0).bind(tick);
        let Some(row) = marked.fetch_optional(self.connection()).await? else { return Ok(()) };
        let place = Place::cluster(&stream_of(&row)?, *cluster);
        self.record(vec![Entry::new(at, place, What::Cloned)]).await
    }
}

fn seat(row: &AnyRow) -> Result<Seat, StoreError> {
    let state: String = row.try_get("state")?;
    let epoch: Option<i64> = row.try_get("epoch")?;
    Ok(Seat {
        stream: stream_of(row)?,
        active: state == "active",
        public_key: row.try_get("public_key")?,
        unknown_since: row.try_get("unknown_since")?,
        look_at: row.try_get("look_at")?,
        last_contact: row.try_get("last_contact")?,
        check_in_deadline: row.try_get("promise_until")?,
        cloned: row.try_get::<Option<i64>, _>("cloned_since")?.is_some(),
        document: epoch.map(|_| stored_heads(row)).transpose()?,
        received_at: Timestamp(row.try_get::<Option<i64>, _>("received_at")?.unwrap_or_default()),
        tally: tally_of(row)?,
        warned: warnings::warned_of(row)?,
        told: row.try_get::<Option<i64>, _>("told")?.unwrap_or_default(),
    })
}

fn stored_document(row: &AnyRow) -> Result<StoredDocument, StoreError> {
    let envelopes: Vec<u8> = row.try_get("envelopes")?;
    let via: Option<String> = row.try_get("via")?;
    Ok(StoredDocument {
        envelopes: serde_json::from_slice(&envelopes).map_err(corrupt)?,
        received_at: Timestamp(row.try_get("received_at")?),
        via: via.map(|id| id.parse()).transpose().map_err(corrupt)?,
        tally: tally_of(row)?.unwrap_or_default(),
    })
}

fn stored_heads(row: &AnyRow) -> Result<StoredHeads, StoreError> {
    let heads: String = row.try_get("heads")?;
    Ok(StoredHeads {
        epoch: u64::try_from(row.try_get::<i64, _>("epoch")?).map_err(corrupt)?,
        nonce: row.try_get("nonce")?,
        heads: heads.split(',').filter(|head| !head.is_empty()).map(str::to_owned).collect(),
    })
}

/// A row of `conditions`.
pub(super) fn exception_of(row: &AnyRow) -> Result<Exception, StoreError> {
    let condition: String = row.try_get("condition")?;
    Ok(Exception {
        condition: Word::from_text(&condition).ok_or_else(|| corrupt(condition))?,
        packages: row.try_get("packages")?,
        running: row.try_get("running")?,
        generation: row.try_get("generation")?,
        version: row.try_get("version")?,
        reason: row.try_get("reason")?,
        message: row.try_get("message")?,
        drift: row.try_get("drift")?,
        since: row.try_get("since")?,
        observed_at: row.try_get("observed_at")?,
        corrected: row.try_get::<i64, _>("corrected")? != 0,
    })
}

fn condition_row(row: &AnyRow) -> Result<ConditionRow, StoreError> {
    let exception = exception_of(row)?;
    let unknown_since: Option<i64> = row.try_get("unknown_since")?;
    Ok(ConditionRow {
        cluster: cluster_of(row, "cluster")?,
        assignment: row.try_get("assignment")?,
        exception,
        unknown_since: unknown_since.map(Timestamp),
    })
}

pub(super) fn stream_of(row: &AnyRow) -> Result<Stream, StoreError> {
    let environment: String = row.try_get("environment")?;
    let cluster_type: String = row.try_get("cluster_type")?;
    let ring: String = row.try_get("ring")?;
    Ok(Stream { environment, cluster_type, ring })
}

pub(super) fn tally_of(row: &AnyRow) -> Result<Option<Tally>, StoreError> {
    let tally: Option<String> = row.try_get("tally")?;
    tally.map(|text| serde_json::from_str(&text)).transpose().map_err(corrupt)
}

pub(super) fn cluster_of(row: &AnyRow, column: &str) -> Result<ClusterId, StoreError> {
    row.try_get::<String, _>(column)?.parse().map_err(corrupt)
}

pub(super) fn corrupt(why: impl ToString) -> StoreError {
    StoreError::Corrupt(why.to_string())
}
