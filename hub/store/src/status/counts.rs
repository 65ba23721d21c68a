//! Counts: written as differences in the transaction that changes a cluster, read as a lookup.

use std::sync::LazyLock;

use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::tally::{CountKey, Deltas, Presence, Weight, Word};
use kedge_hub_types::status::warnings::Warned;
use kedge_model::wire::{ClusterId, PackagesKey, Stream};
use sqlx::Row as _;

use super::{corrupt, stream_of};
use crate::{Store, StoreError, Tx};

/// So many clusters of a stream say the same of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    pub stream: Stream,
    pub assignment: String,
    /// Desired, as the clusters say; empty: nothing.
    pub packages: String,
    /// Empty: nothing.
    pub running: String,
    pub condition: Word,
    pub count: i64,
}

/// Which counts are asked for; what is None is not asked.
#[derive(Clone, Debug, Default)]
pub struct CountFilter<'a> {
    pub environment: &'a str,
    pub cluster_type: Option<&'a str>,
    pub ring: Option<&'a str>,
    pub assignment: Option<&'a str>,
    pub packages: Option<&'a str>,
    pub running: Option<&'a str>,
}

/// So many members of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    pub stream: Stream,
    pub presence: Presence,
    pub count: i64,
}

/// Rows of one statement: most of a statement's time is the way to the database and back.
const CHUNK: usize = 24;
static ADD_CHUNK: LazyLock<String> = LazyLock::new(|| add(CHUNK));
static ADD_ONE: LazyLock<String> = LazyLock::new(|| add(1));

fn add(rows: usize) -> String {
    let row = |index: usize| {
        let at = |column: usize| 4 + index * 5 + column;
        format!("($1, $2, $3, ${}, ${}, ${}, ${}, ${})", at(0), at(1), at(2), at(3), at(4))
    };
    format!(
        "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
         VALUES {} ON CONFLICT (environment, cluster_type, ring, assignment, packages, running, condition) \
         DO UPDATE SET count = counts.count + excluded.count",
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    )
}

impl Store {
    pub async fn counts(&self, filter: &CountFilter<'_>) -> Result<Vec<Count>, StoreError> {
        let asked = [
            ("cluster_type", filter.cluster_type),
            ("ring", filter.ring),
            ("assignment", filter.assignment),
            ("packages", filter.packages),
            ("running", filter.running),
        ];
        let (sql, values) = narrowed("SELECT * FROM counts WHERE count <> 0 AND environment = $1", &asked);
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(filter.environment);
        for value in values {
            query = query.bind(value);
        }
        let rows = query.fetch_all(self.pool()).await?;
        let count = |row: &sqlx::any::AnyRow| {
            let condition: String = row.try_get("condition")?;
            Ok(Count {
                stream: stream_of(row)?,
                assignment: row.try_get("assignment")?,
                packages: row.try_get("packages")?,
                running: row.try_get("running")?,
                condition: Word::from_text(&condition).ok_or_else(|| corrupt(condition))?,
                count: row.try_get("count")?,
            })
        };
        rows.iter().map(count).collect()
    }

    /// How many members the streams of an environment have.
    pub async fn population(&self, environment: &str) -> Result<Vec<Members>, StoreError> {
        let found = sqlx::query("SELECT * FROM population WHERE count <> 0 AND environment = $1").bind(environment);
        let rows = found.fetch_all(self.pool()).await?;
        let members = |row: &sqlx::any::AnyRow| {
            let presence: String = row.try_get("presence")?;
            let presence = Presence::from_text(&presence).ok_or_else(|| corrupt(presence))?;
            Ok(Members { stream: stream_of(row)?, presence, count: row.try_get("count")? })
        };
        rows.iter().map(members).collect()
    }
}

impl Tx {
    /// Adds to the counts, in the order of their keys, so that two hubs never wait for each other in a circle. A count
    /// that comes to nothing stays as a row until `sweep_counts`. Whether any changed.
    pub async fn apply(&mut self, deltas: Deltas) -> Result<bool, StoreError> {
        let deltas = deltas.settled().0;
        for (stream, deltas) in &deltas {
            let mut rows = Vec::new();
            for (assignment, keys) in &deltas.counts {
                rows.extend(keys.iter().map(|(key, delta)| (assignment.as_str(), key, *delta)));
            }
            let (whole, rest) = rows.as_chunks::<CHUNK>();
            for chunk in whole {
                self.add_counts(ADD_CHUNK.as_str(), stream, chunk).await?;
            }
            for row in rest {
                self.add_counts(ADD_ONE.as_str(), stream, std::slice::from_ref(row)).await?;
            }
            for (presence, delta) in &deltas.population {
                let put = sqlx::query(
                    "INSERT INTO population (environment, cluster_type, ring, presence, count) \
                     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (environment, cluster_type, ring, presence) \
                     DO UPDATE SET count = population.count + excluded.count",
                );
                put.bind(stream.environment.as_str())
                    .bind(stream.cluster_type.as_str())
                    .bind(stream.ring.as_str())
                    .bind(presence.as_str())
                    .bind(*delta)
                    .execute(self.connection())
                    .await?;
            }
            for ((kind, severity), delta) in &deltas.warnings {
                let put = sqlx::query(
                    "INSERT INTO warning_counts (environment, cluster_type, ring, kind, severity, count) \
                     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (environment, cluster_type, ring, kind, severity) \
                     DO UPDATE SET count = warning_counts.count + excluded.count",
                );
                put.bind(stream.environment.as_str())
                    .bind(stream.cluster_type.as_str())
                    .bind(stream.ring.as_str())
                    .bind(kind.as_str())
                    .bind(severity.as_str())
                    .bind(*delta)
                    .execute(self.connection())
                    .await?;
            }
        }
        Ok(!deltas.is_empty())
    }

    async fn add_counts(
        &mut self,
        sql: &'static str,
        stream: &Stream,
        rows: &[(&str, &CountKey, i64)],
    ) -> Result<(), StoreError> {
        let text = |key: Option<PackagesKey>| key.map(|key| key.to_string()).unwrap_or_default();
        let mut put = sqlx::query(sql)
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str());
        for (assignment, (packages, running, condition), delta) in rows {
            put =
                put.bind(*assignment).bind(text(*packages)).bind(text(*running)).bind(condition.as_str()).bind(*delta);
        }
        put.execute(self.connection()).await?;
        Ok(())
    }

    /// Takes away counts of nobody: what old versions left.
    pub async fn sweep_counts(&mut self) -> Result<u64, StoreError> {
        let gone = sqlx::query("DELETE FROM counts WHERE count = 0").execute(self.connection()).await?.rows_affected();
        let warned = sqlx::query("DELETE FROM warning_counts WHERE count = 0").execute(self.connection()).await?;
        Ok(gone + warned.rows_affected())
    }

    /// A cluster comes into a stream (join), goes to another (move), or goes (retired, revoked, replaced): the counts
    /// go with it, in the transaction that changes its row. Where it is now is `from`; `None` is nowhere.
    pub async fn place_cluster(
        &mut self,
        cluster: &ClusterId,
        from: Option<&Stream>,
        to: Option<&Stream>,
    ) -> Result<(), StoreError> {
        // Holds the row where several hubs write: a document that comes meanwhile counts before or after, not beside.
        let held = sqlx::query("UPDATE clusters SET tick = tick WHERE id = $1").bind(cluster.to_string());
        held.execute(self.connection()).await?;
        // Then the tick, then counts, like everybody: two hubs never wait for each other in a circle.
        self.hold_tick().await?;
        let found = sqlx::query(
            "SELECT k.unknown_since, d.tally, d.warned FROM clusters k LEFT JOIN documents d ON d.cluster = k.id WHERE k.id = $1",
        );
        let row = found.bind(cluster.to_string()).fetch_optional(self.connection()).await?;
        let (unknown, tally, warned) = match &row {
            Some(row) => {
                let unknown = row.try_get::<Option<i64>, _>("unknown_since")?.is_some();
                (unknown, super::tally_of(row)?, super::warnings::warned_of(row)?.unwrap_or_default())
            }
            None => (false, None, Warned::default()),
        };
        let mut deltas = Deltas::default();
        let weight = |stream| Weight { stream, tally: tally.as_ref(), unknown };
        if let Some(stream) = from {
            deltas.subtract(weight(stream));
            deltas.warned(stream, &warned, &Warned::default());
        }
        if let Some(stream) = to {
            deltas.add(weight(stream));
        }
        match (from, to) {
            (Some(_), None) => {
                self.clear_conditions(cluster).await?;
                self.clear_warnings(cluster).await?;
            }
            (None, Some(stream)) if tally.is_some() => {
                let warned = self.restore(cluster, stream).await?;
                deltas.warned(stream, &Warned::default(), &warned);
            }
            (Some(_), Some(stream)) => {
                self.move_warnings(cluster, stream).await?;
                deltas.warned(stream, &Warned::default(), &warned);
            }
            _ => {}
        }
        if from.is_some() {
            self.end_permit(cluster).await?;
        }
        self.apply(deltas).await?;
        Ok(())
    }

    /// A cluster that is back has its exceptions and warnings from the document that it left. What it warns of.
    async fn restore(&mut self, cluster: &ClusterId, stream: &Stream) -> Result<Warned, StoreError> {
        let Some(stored) = self.stored_document(cluster).await? else { return Ok(Warned::default()) };
        let prepared = Prepared::read(&stored.envelopes, stored.received_at, None).map_err(corrupt)?;
        self.put_conditions(cluster, None, &prepared).await?;
        self.put_warnings(cluster, stream, &Warned::default(), &prepared).await?;
        self.put_warned(cluster, &prepared.warned).await?;
        Ok(prepared.warned)
    }
}

/// A statement with further conditions; the columns are literals of this file.
fn narrowed<'a>(start: &str, asked: &[(&str, Option<&'a str>)]) -> (String, Vec<&'a str>) {
    let (mut sql, mut values) = (start.to_owned(), Vec::new());
    for (column, value) in asked {
        if let Some(value) = value {
            values.push(*value);
            sql.push_str(&format!(" AND {column} = ${}", values.len() + 1));
        }
    }
    (sql, values)
}
