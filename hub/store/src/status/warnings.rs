//! Warnings of agents: a row each, in the transaction that stores the document that tells of it.

use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::warnings::Warned;
use kedge_model::wire::{ClusterId, Stream};
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{cluster_of, corrupt};
use crate::{Store, StoreError, Tx};

impl Store {
    /// Documents whose warnings nobody has looked at.
    pub async fn unwarned(&self, most: i64) -> Result<Vec<ClusterId>, StoreError> {
        let found = sqlx::query("SELECT cluster FROM documents WHERE warned IS NULL ORDER BY cluster LIMIT $1");
        found.bind(most).fetch_all(self.pool()).await?.iter().map(|row| cluster_of(row, "cluster")).collect()
    }
}

impl Tx {
    /// Writes the warnings that changed, and takes away those that are over.
    pub async fn put_warnings(
        &mut self,
        cluster: &ClusterId,
        stream: &Stream,
        before: &Warned,
        prepared: &Prepared,
    ) -> Result<(), StoreError> {
        for code in before.0.keys().filter(|code| !prepared.warnings.contains_key(*code)) {
            let gone = sqlx::query("DELETE FROM warnings WHERE cluster = $1 AND code = $2");
            gone.bind(cluster.to_string()).bind(code.as_str()).execute(self.connection()).await?;
        }
        for (code, row) in &prepared.warnings {
            if before.0.get(code) == prepared.warned.0.get(code) {
                continue;
            }
            let put = sqlx::query(
                "INSERT INTO warnings (cluster, code, kind, severity, message, since, environment, cluster_type) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (cluster, code) DO UPDATE SET \
                 kind = excluded.kind, severity = excluded.severity, message = excluded.message, \
                 since = excluded.since, environment = excluded.environment, cluster_type = excluded.cluster_type",
            );
            put.bind(cluster.to_string())
                .bind(code.as_str())
                .bind(row.kind)
                .bind(row.severity.as_str())
                .bind(row.message.as_str())
                .bind(row.since)
                .bind(stream.environment.as_str())
                .bind(stream.cluster_type.as_str())
                .execute(self.connection())
                .await?;
        }
        Ok(())
    }

    /// What the cluster adds to the counts of warnings from now on.
    pub async fn put_warned(&mut self, cluster: &ClusterId, warned: &Warned) -> Result<(), StoreError> {
        let put = sqlx::query("UPDATE documents SET warned = $2 WHERE cluster = $1").bind(cluster.to_string());
        put.bind(serde_json::to_string(warned).map_err(corrupt)?).execute(self.connection()).await?;
        Ok(())
    }

    /// The cluster is in another stream: its warnings go with it.
    pub async fn move_warnings(&mut self, cluster: &ClusterId, to: &Stream) -> Result<(), StoreError> {
        let moved = sqlx::query("UPDATE warnings SET environment = $2, cluster_type = $3 WHERE cluster = $1");
        let moved = moved.bind(cluster.to_string()).bind(to.environment.as_str()).bind(to.cluster_type.as_str());
        moved.execute(self.connection()).await?;
        Ok(())
    }

    /// The cluster warns of nothing any more: it isn't a member.
    pub async fn clear_warnings(&mut self, cluster: &ClusterId) -> Result<(), StoreError> {
        let gone = sqlx::query("DELETE FROM warnings WHERE cluster = $1").bind(cluster.to_string());
        gone.execute(self.connection()).await?;
        Ok(())
    }
}

pub(super) fn warned_of(row: &AnyRow) -> Result<Option<Warned>, StoreError> {
    let warned: Option<String> = row.try_get("warned")?;
    warned.map(|text| serde_json::from_str(&text)).transpose().map_err(corrupt)
}
