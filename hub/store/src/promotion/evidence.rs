//! Evidence: signed statements, never changed, never deleted.

use kedge_model::wire::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::statement::Statement;
use crate::{Store, StoreError, Tx, now};

/// A statement that is about to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEvidence {
    /// Empty: all of them.
    pub environment: String,
    pub commit: String,
    pub kind: EvidenceKind,
    pub rollout: Option<u64>,
    /// `passed`, `overridden`, `reopened`, `completed`, `ended`, `loosened`
    pub event: &'static str,
    /// JSON of the envelope.
    pub body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceKind {
    Promotion,
    Rollout,
    /// People agreed to a looser policy.
    Policy,
}

/// A statement that is kept; its body is asked for apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceRow {
    pub id: i64,
    pub environment: String,
    pub commit: String,
    pub kind: String,
    pub rollout: Option<i64>,
    pub event: String,
    pub created_at: Timestamp,
}

/// Which statements a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvidenceFilter {
    pub environment: Option<String>,
    pub commit: Option<String>,
    /// The page goes on below this id.
    pub before: Option<i64>,
    pub limit: i64,
}

impl EvidenceKind {
    pub fn word(self) -> &'static str {
        match self {
            EvidenceKind::Promotion => "promotion",
            EvidenceKind::Rollout => "rollout",
            EvidenceKind::Policy => "policy",
        }
    }
}

impl Tx {
    pub(super) async fn add_evidence(&mut self, one: &NewEvidence) -> Result<(), StoreError> {
        let id = self.tick().await?;
        sqlx::query(
            "INSERT INTO evidence (id, environment, commit_id, kind, rollout, event, body, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id)
        .bind(&one.environment)
        .bind(&one.commit)
        .bind(one.kind.word())
        .bind(one.rollout.and_then(|id| i64::try_from(id).ok()))
        .bind(one.event)
        .bind(&one.body)
        .bind(now().0)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}

impl Store {
    pub async fn keep_evidence(&self, term: crate::Term, all: &[NewEvidence]) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        for one in all {
            tx.add_evidence(one).await?;
        }
        tx.commit().await
    }

    /// The newest first.
    pub async fn evidence(&self, filter: &EvidenceFilter) -> Result<Vec<EvidenceRow>, StoreError> {
        let mut statement = Statement::new(
            "SELECT id, environment, commit_id, kind, rollout, event, created_at FROM evidence WHERE 1 = 1",
        );
        if let Some(environment) = &filter.environment {
            statement.text(" AND environment = ?", environment);
        }
        if let Some(commit) = &filter.commit {
            statement.text(" AND commit_id = ?", commit);
        }
        if let Some(before) = filter.before {
            statement.number(" AND id < ?", before);
        }
        statement.number(" ORDER BY id DESC LIMIT ?", filter.limit);
        statement.fetch(self).await?.iter().map(evidence_row).collect()
    }

    /// With the JSON of its envelope.
    pub async fn one_evidence(&self, id: i64) -> Result<Option<(EvidenceRow, String)>, StoreError> {
        let row = sqlx::query(
            "SELECT id, environment, commit_id, kind, rollout, event, created_at, body FROM evidence WHERE id = $1",
        );
        let row = row.bind(id).fetch_optional(self.pool()).await?;
        row.map(|row| Ok((evidence_row(&row)?, row.try_get("body")?))).transpose()
    }

    /// The newest generation of each stream of an environment, by ring and cluster type.
    pub async fn generations(&self, environment: &str) -> Result<Vec<(String, String, i64)>, StoreError> {
        let rows = sqlx::query(
            "SELECT ring, cluster_type, MAX(generation) AS generation FROM states WHERE environment = $1
             GROUP BY ring, cluster_type ORDER BY ring, cluster_type",
        );
        let rows = rows.bind(environment).fetch_all(self.pool()).await?;
        let one = |row: &AnyRow| Ok((row.try_get("ring")?, row.try_get("cluster_type")?, row.try_get("generation")?));
        rows.iter().map(one).collect()
    }

    /// Members of a ring that are away, by name, at most `limit`, and how many there are.
    pub async fn away(&self, environment: &str, ring: &str, limit: i64) -> Result<(i64, Vec<String>), StoreError> {
        let count = sqlx::query_scalar::<_, i64>(
            "SELECT COUNT(*) FROM clusters WHERE environment = $1 AND ring = $2
             AND unknown_since IS NOT NULL AND state = 'active'",
        );
        let count = count.bind(environment).bind(ring).fetch_one(self.pool()).await?;
        let names = sqlx::query_scalar::<_, String>(
            "SELECT name FROM clusters WHERE environment = $1 AND ring = $2
             AND unknown_since IS NOT NULL AND state = 'active' ORDER BY name, id LIMIT $3",
        );
        Ok((count, names.bind(environment).bind(ring).bind(limit).fetch_all(self.pool()).await?))
    }
}

fn evidence_row(row: &AnyRow) -> Result<EvidenceRow, StoreError> {
    Ok(EvidenceRow {
        id: row.try_get("id")?,
        environment: row.try_get("environment")?,
        commit: row.try_get("commit_id")?,
        kind: row.try_get("kind")?,
        rollout: row.try_get("rollout")?,
        event: row.try_get("event")?,
        created_at: Timestamp(row.try_get("created_at")?),
    })
}
