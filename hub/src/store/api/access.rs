//! Access tokens as `api` checks, lists and revokes them; they are made in `tokens`.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::store::tokens::Role;
use crate::store::{Store, StoreError, Tx};

/// A token as stored. The hash stays inside of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub workspaces: Vec<String>,
    pub secret_hash: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    pub last_used: Option<i64>,
}

impl Store {
    pub async fn access_token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        let query = sqlx::query(
            "SELECT id, name, role, workspaces, secret_hash, created_at, expires_at, revoked_at, last_used \
             FROM api_tokens WHERE id = $1",
        );
        query.bind(id).fetch_optional(self.pool()).await?.as_ref().map(token).transpose()
    }

    /// In the order of their ids, after one of them.
    pub async fn access_tokens(&self, after: &str, limit: i64) -> Result<Vec<AccessToken>, StoreError> {
        let query = sqlx::query(
            "SELECT id, name, role, workspaces, secret_hash, created_at, expires_at, revoked_at, last_used \
             FROM api_tokens WHERE id > $1 ORDER BY id LIMIT $2",
        );
        query.bind(after).bind(limit).fetch_all(self.pool()).await?.iter().map(token).collect()
    }

    pub async fn note_use_of_access_token(&self, id: &str, at: i64) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        let query = sqlx::query("UPDATE api_tokens SET last_used = $2 WHERE id = $1").bind(id).bind(at);
        query.execute(tx.connection()).await?;
        tx.commit().await
    }
}

impl Tx {
    /// False: there is no such token, or it is revoked already.
    pub async fn revoke_access_token(&mut self, id: &str, at: i64) -> Result<bool, StoreError> {
        let query = sqlx::query("UPDATE api_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL");
        Ok(query.bind(id).bind(at).execute(self.connection()).await?.rows_affected() == 1)
    }
}

fn token(row: &AnyRow) -> Result<AccessToken, StoreError> {
    let (role, workspaces): (String, String) = (row.try_get("role")?, row.try_get("workspaces")?);
    Ok(AccessToken {
        id: row.try_get("id")?,
        name: row.try_get("name")?,
        role: role.parse().map_err(|error| StoreError::Corrupt(format!("api_tokens: {error}")))?,
        workspaces: serde_json::from_str(&workspaces)
            .map_err(|error| StoreError::Corrupt(format!("workspaces of a token: {error}")))?,
        secret_hash: row.try_get("secret_hash")?,
        created_at: row.try_get("created_at")?,
        expires_at: row.try_get("expires_at")?,
        revoked_at: row.try_get("revoked_at")?,
        last_used: row.try_get("last_used")?,
    })
}
