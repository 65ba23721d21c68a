//! The statements of the catalog: rows that the leader writes and every hub reads. Used by `catalog` and `api`.

mod read;
mod told;

use std::collections::HashMap;

use kedge_model::wire::Digest;
use sqlx::Row as _;

use super::{Store, StoreError, Term, Tx, now};
pub use read::{Filter, Gone, Known, Shown, Visible};
pub(crate) use read::{like, parse_labels};

/// The kinds of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Environment,
    ClusterType,
    Workload,
    DeploymentTarget,
    Assignment,
    Problem,
    Repository,
}

/// One object as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: Kind,
    pub name: String,
    pub parent: String,
    pub workspace: String,
    pub state: String,
    pub labels: String,
    pub body: String,
    pub detail: String,
    /// The digest of the values that belong to it.
    pub content: String,
}

/// What one transaction writes.
#[derive(Debug, Default)]
pub struct Changes {
    pub rows: Vec<Row>,
    pub removed: Vec<(Kind, String)>,
    /// Composed values by their digest.
    pub values: Vec<(String, String)>,
    /// Why packing quarantined an assignment; empty when it no longer does.
    pub notes: Vec<(String, String)>,
    pub structure: Option<String>,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Environment => "environment",
            Kind::ClusterType => "cluster-type",
            Kind::Workload => "workload",
            Kind::DeploymentTarget => "deployment-target",
            Kind::Assignment => "assignment",
            Kind::Problem => "problem",
            Kind::Repository => "repository",
        }
    }
}

impl Row {
    pub fn digest(&self) -> String {
        let mut text = String::new();
        for part in [&self.parent, &self.workspace, &self.state, &self.labels, &self.body, &self.detail, &self.content]
        {
            text.push_str(part);
            text.push('\0');
        }
        Digest::of(text.as_bytes()).to_string()
    }
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.structure.is_none()
    }

    pub fn len(&self) -> usize {
        self.rows.len() + self.removed.len() + self.values.len() + self.notes.len()
    }
}

/// So long who watches may be away and still hear what went.
const GONE_KEPT_MS: i64 = 60 * 60 * 1000;

const UPSERT: &str = "INSERT INTO catalog (kind, environment, name, parent, workspace, state, labels, body, detail, \
     content, note, digest, updated_at, tick) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '', $11, $12, $13) \
     ON CONFLICT (kind, environment, name) DO UPDATE SET parent = excluded.parent, workspace = excluded.workspace, \
     state = excluded.state, labels = excluded.labels, body = excluded.body, detail = excluded.detail, \
     content = excluded.content, digest = excluded.digest, updated_at = excluded.updated_at, tick = excluded.tick";

const GONE: &str = "INSERT INTO catalog_gone (kind, environment, name, parent, workspace, tick, gone_at) \
     SELECT kind, environment, name, parent, workspace, $4, $5 FROM catalog \
     WHERE kind = $1 AND environment = $2 AND name = $3 \
     ON CONFLICT (kind, environment, name) DO UPDATE SET parent = excluded.parent, workspace = excluded.workspace, \
     tick = excluded.tick, gone_at = excluded.gone_at";

impl Store {
    /// Name and digest of every row of a kind; with a parent, of that parent's only.
    pub async fn catalog_digests(
        &self,
        kind: Kind,
        environment: &str,
        parent: Option<&str>,
    ) -> Result<HashMap<String, String>, StoreError> {
        let rows = match parent {
            None => {
                let all = "SELECT name, digest FROM catalog WHERE kind = $1 AND environment = $2";
                sqlx::query(all).bind(kind.as_str()).bind(environment).fetch_all(self.pool()).await?
            }
            Some(parent) => {
                let some = "SELECT name, digest FROM catalog WHERE kind = $1 AND environment = $2 AND parent = $3";
                sqlx::query(some).bind(kind.as_str()).bind(environment).bind(parent).fetch_all(self.pool()).await?
            }
        };
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    pub async fn catalog_structure(&self, environment: &str) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar("SELECT digest FROM catalog_structures WHERE environment = $1");
        Ok(query.bind(environment).fetch_optional(self.pool()).await?)
    }

    /// Assignments that packing quarantined, with the note.
    pub async fn catalog_notes(&self, environment: &str) -> Result<HashMap<String, String>, StoreError> {
        let query = "SELECT name, note FROM catalog WHERE kind = 'assignment' AND environment = $1 AND note <> ''";
        let rows = sqlx::query(query).bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Writes all of it, or nothing when the term is over.
    pub async fn write_catalog(&self, term: Term, environment: &str, changes: &Changes) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        let (tick, at) = (tx.tick().await?, now().0);
        for (digest, body) in &changes.values {
            let insert = "INSERT INTO catalog_values (environment, digest, body) VALUES ($1, $2, $3) \
                 ON CONFLICT (environment, digest) DO NOTHING";
            sqlx::query(insert).bind(environment).bind(digest).bind(body).execute(tx.connection()).await?;
        }
        let mut news = Vec::new();
        for row in &changes.rows {
            news.extend(told::written(&mut tx, environment, row).await?);
            upsert(&mut tx, environment, row, at, tick).await?;
        }
        for (kind, name) in &changes.removed {
            news.extend(told::removed(&mut tx, environment, *kind, name).await?);
            remove(&mut tx, environment, *kind, name, at, tick).await?;
        }
        for (name, note) in &changes.notes {
            let update = "UPDATE catalog SET note = $3, updated_at = $4, tick = $5 \
                 WHERE kind = 'assignment' AND environment = $1 AND name = $2";
            let update = sqlx::query(update).bind(environment).bind(name).bind(note).bind(at).bind(tick);
            update.execute(tx.connection()).await?;
        }
        if let Some(structure) = &changes.structure {
            let update = "INSERT INTO catalog_structures (environment, digest) VALUES ($1, $2) \
                 ON CONFLICT (environment) DO UPDATE SET digest = excluded.digest";
            sqlx::query(update).bind(environment).bind(structure).execute(tx.connection()).await?;
        }
        tx.record(told::settled(news)).await?;
        tx.commit().await
    }

    /// Values that no assignment names any more, and what went long ago.
    pub async fn collect_catalog(&self, term: Term, environment: &str) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        let values = "DELETE FROM catalog_values WHERE environment = $1 AND NOT EXISTS (SELECT 1 FROM catalog \
             WHERE catalog.kind = 'assignment' AND catalog.environment = $1 AND catalog.content = catalog_values.digest)";
        sqlx::query(values).bind(environment).execute(tx.connection()).await?;
        let before = now().0 - GONE_KEPT_MS;
        let newest = sqlx::query_scalar::<_, Option<i64>>("SELECT MAX(tick) FROM catalog_gone WHERE gone_at < $1");
        if let Some(floor) = newest.bind(before).fetch_one(tx.connection()).await? {
            let delete = sqlx::query("DELETE FROM catalog_gone WHERE gone_at < $1").bind(before);
            delete.execute(tx.connection()).await?;
            let meta = "INSERT INTO meta (name, value) VALUES ('catalog.floor', $1) \
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            sqlx::query(meta).bind(floor.to_string()).execute(tx.connection()).await?;
        }
        tx.commit().await
    }
}

async fn upsert(tx: &mut Tx, environment: &str, row: &Row, at: i64, tick: i64) -> Result<(), StoreError> {
    let query = sqlx::query(UPSERT)
        .bind(row.kind.as_str())
        .bind(environment)
        .bind(&row.name)
        .bind(&row.parent)
        .bind(&row.workspace)
        .bind(&row.state)
        .bind(&row.labels)
        .bind(&row.body)
        .bind(&row.detail)
        .bind(&row.content)
        .bind(row.digest())
        .bind(at)
        .bind(tick);
    query.execute(tx.connection()).await?;
    Ok(())
}

async fn remove(tx: &mut Tx, environment: &str, kind: Kind, name: &str, at: i64, tick: i64) -> Result<(), StoreError> {
    let gone = sqlx::query(GONE).bind(kind.as_str()).bind(environment).bind(name).bind(tick).bind(at);
    gone.execute(tx.connection()).await?;
    let delete = sqlx::query("DELETE FROM catalog WHERE kind = $1 AND environment = $2 AND name = $3");
    delete.bind(kind.as_str()).bind(environment).bind(name).execute(tx.connection()).await?;
    Ok(())
}
