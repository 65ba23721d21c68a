//! What the database remembers of repositories.

use kedge_hub_types::git::{FIRM_ATTEMPTS, Failure, SavedRepository};
use kedge_model::wire::Timestamp;
use kedge_platform::RepoKey;
use sqlx::Row as _;

use super::{Store, StoreError, now};

/// Until then every leader has looked.
const NUDGES_KEPT_MS: i64 = 60_000;

impl Store {
    pub async fn repository(&self, key: &RepoKey) -> Result<Option<SavedRepository>, StoreError> {
        let row = sqlx::query(
            "SELECT refs, last_good, failing_since, error, hint, attempts FROM repositories WHERE repo = $1",
        )
        .bind(key.to_string())
        .fetch_optional(self.pool())
        .await?;
        let Some(row) = row else { return Ok(None) };
        let refs: String = row.try_get("refs")?;
        let refs = serde_json::from_str(&refs).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let failing = match row.try_get::<Option<i64>, _>("failing_since")? {
            Some(since) => {
                let attempts = u32::try_from(row.try_get::<i64, _>("attempts")?).unwrap_or_default();
                Some(Failure {
                    error: row.try_get::<Option<String>, _>("error")?.unwrap_or_default(),
                    hint: row.try_get::<Option<String>, _>("hint")?.unwrap_or_default(),
                    since: Timestamp(since),
                    attempts,
                    firm: attempts >= FIRM_ATTEMPTS,
                })
            }
            None => None,
        };
        let last_good = row.try_get::<Option<i64>, _>("last_good")?.map(Timestamp);
        Ok(Some(SavedRepository { refs, failing, last_good }))
    }

    pub async fn save_repository(&self, key: &RepoKey, url: &str, saved: &SavedRepository) -> Result<(), StoreError> {
        let refs = serde_json::to_string(&saved.refs).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let failing = saved.failing.as_ref();
        let mut tx = self.write().await?;
        sqlx::query(
            "INSERT INTO repositories (repo, url, refs, last_good, failing_since, error, hint, attempts, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
             ON CONFLICT (repo) DO UPDATE SET url = excluded.url, refs = excluded.refs, last_good = excluded.last_good,
             failing_since = excluded.failing_since, error = excluded.error, hint = excluded.hint,
             attempts = excluded.attempts, updated_at = excluded.updated_at",
        )
        .bind(key.to_string())
        .bind(url)
        .bind(refs)
        .bind(saved.last_good.map(|time| time.0))
        .bind(failing.map(|failing| failing.since.0))
        .bind(failing.map(|failing| failing.error.clone()))
        .bind(failing.map(|failing| failing.hint.clone()))
        .bind(failing.map_or(0, |failing| i64::from(failing.attempts)))
        .bind(now().0)
        .execute(tx.connection())
        .await?;
        tx.commit().await
    }

    /// A webhook came to a hub that follows nothing: the leader looks here.
    pub async fn add_nudge(&self, key: &RepoKey) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        sqlx::query("INSERT INTO nudges (repo, at) VALUES ($1, $2) ON CONFLICT (repo) DO UPDATE SET at = excluded.at")
            .bind(key.to_string())
            .bind(now().0)
            .execute(tx.connection())
            .await?;
        // An address that no leader knows isn't kept for ever.
        sqlx::query("DELETE FROM nudges WHERE at < $1")
            .bind(now().0.saturating_sub(NUDGES_KEPT_MS))
            .execute(tx.connection())
            .await?;
        tx.commit().await
    }

    /// What other hubs were told since the last time.
    pub async fn take_nudges(&self) -> Result<Vec<String>, StoreError> {
        let waiting: Option<i64> =
            sqlx::query_scalar("SELECT at FROM nudges LIMIT 1").fetch_optional(self.pool()).await?;
        if waiting.is_none() {
            return Ok(Vec::new());
        }
        let mut tx = self.write().await?;
        let repos = sqlx::query_scalar("DELETE FROM nudges RETURNING repo").fetch_all(tx.connection()).await?;
        tx.commit().await?;
        Ok(repos)
    }
}
