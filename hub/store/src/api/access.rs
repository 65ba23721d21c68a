//! Access tokens as `api` checks, lists and revokes them; they are made in `tokens`.

use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::people::{emails, former, still_counts};
use crate::tokens::Role;
use crate::{Store, StoreError, Tx, now};

/// A token as stored. The hash stays inside of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessToken {
    pub id: String,
    /// The id of whose it is, with that person's name and addresses.
    pub person: String,
    pub person_name: String,
    pub emails: Vec<String>,
    /// Names and addresses of that person that were taken away not long ago.
    pub former: Vec<String>,
    pub name: String,
    pub role: Role,
    pub workspaces: Vec<String>,
    pub secret_hash: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    pub last_used: Option<i64>,
    /// The id of the person who made it; empty: on the hub's host.
    pub created_by: String,
}

const TOKEN: &str = "SELECT t.id AS id, t.name AS name, t.role AS role, t.workspaces AS workspaces, \
     t.secret_hash AS secret_hash, t.created_at AS created_at, t.expires_at AS expires_at, t.revoked_at AS revoked_at, \
     t.last_used AS last_used, t.created_by AS created_by, p.id AS person, p.name AS person_name, p.emails AS emails, \
     p.former AS former, p.removed_at AS removed_at FROM api_tokens t JOIN people p ON p.id = t.person";

impl Store {
    pub async fn access_token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!("{TOKEN} WHERE t.id = $1")));
        query.bind(id).fetch_optional(self.pool()).await?.as_ref().map(token).transpose()
    }

    /// In the order of their ids, after one of them.
    pub async fn access_tokens(&self, after: &str, limit: i64) -> Result<Vec<AccessToken>, StoreError> {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!("{TOKEN} WHERE t.id > $1 ORDER BY t.id LIMIT $2")));
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
        person: row.try_get("person")?,
        person_name: row.try_get("person_name")?,
        emails: emails(row.try_get("emails")?)?,
        former: still_counts(former(row.try_get("former")?)?, now().0).map(|former| former.known).collect(),
        name: row.try_get("name")?,
        role: role.parse().map_err(|error| StoreError::Corrupt(format!("api_tokens: {error}")))?,
        workspaces: serde_json::from_str(&workspaces)
            .map_err(|error| StoreError::Corrupt(format!("workspaces of a token: {error}")))?,
        secret_hash: row.try_get("secret_hash")?,
        created_at: row.try_get("created_at")?,
        expires_at: row.try_get("expires_at")?,
        // With a person all its tokens end.
        revoked_at: row.try_get::<Option<i64>, _>("revoked_at")?.or(row.try_get("removed_at")?),
        last_used: row.try_get("last_used")?,
        created_by: row.try_get("created_by")?,
    })
}
