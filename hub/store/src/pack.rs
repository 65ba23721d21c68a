//! What was packed before, by the digest of its inputs; and which blobs the rings' picks name.

use std::collections::{BTreeSet, HashMap};

use kedge_model::wire::{BlobRef, Digest, Timestamp};
use sqlx::Row as _;

use super::{Store, StoreError};

/// Rows of one statement: below SQLite's and PostgreSQL's limits for parameters.
const ROWS: usize = 400;

impl Store {
    /// The results of these keys, as far as they are known.
    pub async fn packings(&self, keys: &[String]) -> Result<HashMap<String, String>, StoreError> {
        let mut found = HashMap::with_capacity(keys.len());
        for keys in keys.chunks(ROWS) {
            let sql = format!("SELECT key, result FROM packings WHERE key IN ({})", places(keys.len(), 1, 1));
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
            for key in keys {
                query = query.bind(key.as_str());
            }
            for row in query.fetch_all(self.pool()).await? {
                found.insert(row.try_get(0)?, row.try_get(1)?);
            }
        }
        Ok(found)
    }

    pub async fn remember_packings(&self, rows: &[(String, String)], now: Timestamp) -> Result<(), StoreError> {
        for rows in rows.chunks(ROWS) {
            let sql = format!(
                "INSERT INTO packings (key, result, used_at) VALUES {} ON CONFLICT (key) DO UPDATE SET result = excluded.result, used_at = excluded.used_at",
                places(rows.len(), 3, 1)
            );
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
            for (key, result) in rows {
                query = query.bind(key.as_str()).bind(result.as_str()).bind(now.0);
            }
            let mut tx = self.write().await?;
            query.execute(tx.connection()).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// These are in use; others that weren't since `before` are forgotten.
    pub async fn keep_packings(&self, keys: &[String], now: Timestamp, before: i64) -> Result<(), StoreError> {
        for keys in keys.chunks(ROWS) {
            let sql = format!("UPDATE packings SET used_at = $1 WHERE key IN ({})", places(keys.len(), 1, 2));
            let mut query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(now.0);
            for key in keys {
                query = query.bind(key.as_str());
            }
            let mut tx = self.write().await?;
            query.execute(tx.connection()).await?;
            tx.commit().await?;
        }
        let mut tx = self.write().await?;
        sqlx::query("DELETE FROM packings WHERE used_at < $1").bind(before).execute(tx.connection()).await?;
        tx.commit().await
    }

    /// Every blob that a current or previous pick names.
    pub async fn picked_blobs(&self) -> Result<BTreeSet<Digest>, StoreError> {
        let rows = sqlx::query("SELECT digest, artifacts, previous_digest, previous_artifacts FROM picks");
        let mut named = BTreeSet::new();
        for row in rows.fetch_all(self.pool()).await? {
            let columns: [(Option<String>, Option<String>); 2] =
                [(row.try_get(0)?, row.try_get(1)?), (row.try_get(2)?, row.try_get(3)?)];
            for (digest, artifacts) in columns {
                if let Some(digest) = digest {
                    named.insert(digest.parse().map_err(corrupt)?);
                }
                if let Some(artifacts) = artifacts {
                    let artifacts: Vec<BlobRef> = serde_json::from_str(&artifacts).map_err(corrupt)?;
                    named.extend(artifacts.into_iter().map(|blob| blob.digest));
                }
            }
        }
        Ok(named)
    }
}

/// `($1, $2), ($3, $4)`: rows of so many columns, or `$1, $2` for one.
pub(super) fn places(rows: usize, columns: usize, first: usize) -> String {
    let mut out = String::new();
    for row in 0..rows {
        if row > 0 {
            out.push_str(", ");
        }
        let numbers: Vec<String> = (0..columns).map(|column| format!("${}", first + row * columns + column)).collect();
        match columns {
            1 => out.push_str(&numbers.concat()),
            _ => out.push_str(&format!("({})", numbers.join(", "))),
        }
    }
    out
}

pub(super) fn corrupt(error: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
