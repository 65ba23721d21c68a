//! What the one question about a rollout asks besides counts: since when somebody is away, why some failed, and who is held. None
//! of it grows with the fleet: each is a lookup or looks at exceptions only, and at so many of them.

use kedge_model::wire::{ClusterId, Stream, Timestamp};
use sqlx::Row as _;

use crate::agents::holds::in_force;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// A hold on a cluster that a selection names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCluster {
    pub cluster: String,
    pub stream: Stream,
    pub assignment: String,
    pub by: String,
}

/// Failures that are looked at for their reasons; more are not needed to know the most frequent.
const LOOKED_AT: i64 = 1000;
/// Hold documents that are looked at.
const MAX_HOLDS: i64 = 500;

impl Store {
    /// Since when the member of a stream that is away the longest is.
    pub async fn offline_since(&self, stream: &Stream) -> Result<Option<Timestamp>, StoreError> {
        let found = sqlx::query_scalar(
            "SELECT MIN(unknown_since) FROM clusters WHERE environment = $1 AND cluster_type = $2 AND ring = $3 \
             AND unknown_since IS NOT NULL AND state = 'active'",
        );
        let since: Option<i64> = found
            .bind(stream.environment.as_str())
            .bind(stream.cluster_type.as_str())
            .bind(stream.ring.as_str())
            .fetch_one(self.pool())
            .await?;
        Ok(since.map(Timestamp))
    }

    /// Why an assignment failed with these packages in a stream, the most frequent first.
    pub async fn failure_reasons(
        &self,
        stream: &Stream,
        assignment: &str,
        packages: &[String],
    ) -> Result<Vec<(String, u64)>, StoreError> {
        let mut statement = Statement::new(
            "SELECT reason, COUNT(*) AS number FROM (SELECT c.reason AS reason FROM conditions c \
             JOIN clusters k ON k.id = c.cluster WHERE c.condition = 'Failed' AND k.state = 'active' \
             AND k.unknown_since IS NULL",
        );
        statement.text(" AND c.assignment = ?", assignment);
        statement.text(" AND k.environment = ?", &stream.environment);
        statement.text(" AND k.cluster_type = ?", &stream.cluster_type);
        statement.text(" AND k.ring = ?", &stream.ring);
        statement.list(" AND c.packages IN (", packages, ")");
        statement.number(" LIMIT ?) AS failed GROUP BY reason ORDER BY number DESC, reason LIMIT 5", LOOKED_AT);
        let reason = |row: &sqlx::any::AnyRow| {
            let reason: Option<String> = row.try_get(0)?;
            Ok((reason.unwrap_or_default(), u64::try_from(row.try_get::<i64, _>(1)?).unwrap_or_default()))
        };
        statement.fetch(self).await?.iter().map(reason).collect()
    }

    /// Holds on members of an environment.
    pub async fn held_clusters(&self, environment: &str) -> Result<Vec<HeldCluster>, StoreError> {
        let found = sqlx::query(
            "SELECT k.id, k.name, k.cluster_type, k.ring, h.writer, h.envelope, h.received_at, \
             (SELECT a.name FROM clusters AS a WHERE a.id = CASE h.writer WHEN 'cluster' THEN h.cluster ELSE h.writer END) AS author \
             FROM holds h JOIN clusters k ON k.id = h.cluster \
             WHERE k.environment = $1 AND k.state = 'active' \
             ORDER BY k.name, k.id, CASE h.writer WHEN 'hub' THEN 0 ELSE 1 END, h.writer LIMIT $2",
        );
        let rows = found.bind(environment).bind(MAX_HOLDS).fetch_all(self.pool()).await?;
        let id = |row: &sqlx::any::AnyRow| row.try_get::<String, _>("id").unwrap_or_default();
        let mut held = Vec::new();
        // The hub's document stands first: it lifts what others hold.
        for of_cluster in rows.chunk_by(|one, other| id(one) == id(other)) {
            let Some(row) = of_cluster.first() else { continue };
            let stream = Stream::new(environment, row.try_get("cluster_type")?, row.try_get("ring")?);
            for entry in in_force(of_cluster)?.into_iter().flat_map(|(_, document)| document.holds) {
                held.push(HeldCluster {
                    cluster: row.try_get("name")?,
                    stream: stream.clone(),
                    assignment: entry.assignment,
                    by: entry.by,
                });
            }
        }
        Ok(held)
    }

    /// Whether a cluster changes now, and since when.
    pub async fn permit_since(&self, cluster: &ClusterId) -> Result<Option<Timestamp>, StoreError> {
        let found = sqlx::query_scalar("SELECT since FROM slots WHERE cluster = $1").bind(cluster.to_string());
        Ok(found.fetch_optional(self.pool()).await?.map(Timestamp))
    }
}

impl Store {
    /// Whole commits of rollouts and sources that begin so; at most two, which is one too many.
    pub async fn commits_like(&self, digits: &str) -> Result<Vec<String>, StoreError> {
        // Behind the last digit there is no other: an index finds the range.
        let (from, to) = (digits.to_ascii_lowercase(), format!("{}g", digits.to_ascii_lowercase()));
        let mut statement =
            Statement::new("SELECT DISTINCT commit_id FROM (SELECT commit_id FROM rollouts WHERE 1 = 1");
        let tables = [
            "",
            " UNION SELECT main AS commit_id FROM rollouts WHERE 1 = 1",
            " UNION SELECT commit_id FROM rollout_items WHERE 1 = 1",
            " UNION SELECT commit_id FROM rollout_sources WHERE 1 = 1",
        ];
        for table in tables {
            statement.push(table);
            let main = table.contains("main");
            statement.text(if main { " AND main >= ?" } else { " AND commit_id >= ?" }, &from);
            statement.text(if main { " AND main < ?" } else { " AND commit_id < ?" }, &to);
        }
        statement.push(") AS known LIMIT 2");
        statement.fetch(self).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

/// A Pin's file, as it was last good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFile {
    pub name: String,
    pub repo: String,
    pub revision: String,
    pub file: String,
    pub text: Vec<u8>,
}

impl Store {
    /// The Pins of an environment, by name: the first that fits counts.
    pub async fn pin_files(&self, environment: &str) -> Result<Vec<PinFile>, StoreError> {
        let found = sqlx::query(
            "SELECT o.name, o.repo, o.revision, o.file, t.text FROM good_objects o JOIN good_texts t ON t.id = o.text_id \
             WHERE o.environment = $1 AND o.kind = 'Pin'",
        );
        let file = |row: &sqlx::any::AnyRow| {
            Ok(PinFile {
                name: row.try_get("name")?,
                repo: row.try_get("repo")?,
                revision: row.try_get("revision")?,
                file: row.try_get("file")?,
                text: row.try_get("text")?,
            })
        };
        let mut files: Vec<PinFile> = found
            .bind(environment)
            .fetch_all(self.pool())
            .await?
            .iter()
            .map(file)
            .collect::<Result<_, StoreError>>()?;
        files.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(files)
    }
}
