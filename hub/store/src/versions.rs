//! Which commit each version of a workload was packed from. Written and asked by `pack`.

use kedge_model::wire::Timestamp;
use sqlx::Row as _;

use super::{Store, StoreError};

/// A version of the workload in a folder of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenVersion {
    pub repo: String,
    pub path: String,
    pub version: String,
    pub commit: String,
}

impl Store {
    pub async fn remember_versions(&self, seen: &[SeenVersion], now: Timestamp) -> Result<(), StoreError> {
        if seen.is_empty() {
            return Ok(());
        }
        let mut tx = self.write().await?;
        for one in seen {
            let insert = sqlx::query(
                "INSERT INTO versions (repo, path, version, commit_id, seen_at) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (repo, path, version) DO UPDATE SET commit_id = excluded.commit_id, seen_at = excluded.seen_at",
            );
            let insert = insert.bind(&one.repo).bind(&one.path).bind(&one.version).bind(&one.commit).bind(now.0);
            insert.execute(tx.connection()).await?;
        }
        tx.commit().await
    }

    /// The commit that a version was last packed from.
    pub async fn version_commit(&self, repo: &str, path: &str, version: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT commit_id FROM versions WHERE repo = $1 AND path = $2 AND version = $3");
        let row = row.bind(repo).bind(path).bind(version).fetch_optional(self.pool()).await?;
        row.map(|row| row.try_get(0)).transpose().map_err(StoreError::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_version_is_where_it_was_last_seen() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        let seen = |commit: &str| SeenVersion {
            repo: "r".to_owned(),
            path: "p".to_owned(),
            version: "1.0.0".to_owned(),
            commit: commit.to_owned(),
        };
        for commit in ["one", "two"] {
            store.remember_versions(&[seen(commit)], Timestamp(1)).await.unwrap();
        }
        assert_eq!(store.version_commit("r", "p", "1.0.0").await.unwrap().as_deref(), Some("two"));
        assert_eq!(store.version_commit("r", "", "1.0.0").await.unwrap(), None);
    }
}
