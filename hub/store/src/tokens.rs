//! Tokens of people and programs for `/api/v1`: made here, checked by `api`. The secret leaves this module once, in the
//! text that is handed over; the database has its hash.

use std::fmt;
use std::str::FromStr;

use kedge_model::wire::Timestamp;
use kedge_model::wire::digest::{Digest, hex};

use super::{Store, StoreError, now};

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads, without secrets.
    Viewer,
    /// Reads and writes what belongs to its workspaces.
    Application,
    /// Everything but tokens of people.
    Platform,
    /// People and their tokens; reads as a viewer does. It never approves and moves nothing.
    Administrator,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role: it is `viewer`, `application`, `platform` or `administrator`")]
pub struct RoleError(String);

/// Whose a token is, and what it may do.
#[derive(Clone, Copy, Debug)]
pub struct Grant<'a> {
    /// The id of the person.
    pub person: &'a str,
    /// Tells the person's tokens apart.
    pub name: &'a str,
    pub role: Role,
    pub workspaces: &'a [String],
    pub expires: Option<Timestamp>,
    /// The id of the person who made it; empty: on the hub's host.
    pub created_by: &'a str,
}

/// A token that was just made: what is stored, and the text that its owner gets.
#[derive(Clone, PartialEq, Eq)]
pub struct NewToken {
    pub id: String,
    secret: String,
}

/// Says whose text this is, so that scanners for leaked secrets can know it.
const PREFIX: &str = "kedge_";

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Application => "application",
            Role::Platform => "platform",
            Role::Administrator => "administrator",
        }
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Role, RoleError> {
        [Role::Viewer, Role::Application, Role::Platform, Role::Administrator]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| RoleError(text.chars().take(40).collect()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl NewToken {
    pub fn generate() -> NewToken {
        NewToken { id: hex(&rand::random::<[u8; 8]>()), secret: hex(&rand::random::<[u8; 32]>()) }
    }

    /// `kedge_<id>_<secret>`.
    pub fn text(&self) -> String {
        format!("{PREFIX}{}_{}", self.id, self.secret)
    }

    /// The parts of a text that somebody sends.
    pub fn parse(text: &str) -> Option<NewToken> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |part: &str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
        (is_hex(id, 16) && is_hex(secret, 64)).then(|| NewToken { id: id.to_owned(), secret: secret.to_owned() })
    }

    /// What `api_tokens.secret_hash` holds.
    pub fn secret_hash(&self) -> String {
        Digest::of(self.secret.as_bytes()).hex()
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Store {
    /// Whether anybody can log in at all: at the first start nobody can.
    pub async fn has_api_tokens(&self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar::<_, i64>("SELECT 1 FROM api_tokens LIMIT 1").fetch_optional(self.pool());
        Ok(found.await?.is_some())
    }
}

impl super::Tx {
    /// The same as this transaction sees it.
    pub async fn has_api_tokens(&mut self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar::<_, i64>("SELECT 1 FROM api_tokens LIMIT 1").fetch_optional(self.connection());
        Ok(found.await?.is_some())
    }

    /// The same within a transaction that writes more: the audit's entry.
    pub async fn insert_api_token(&mut self, token: &NewToken, grant: &Grant<'_>) -> Result<(), StoreError> {
        let workspaces = serde_json::Value::from(grant.workspaces.to_vec()).to_string();
        sqlx::query(
            "INSERT INTO api_tokens (id, name, role, workspaces, secret_hash, created_at, expires_at, person, created_by) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(&token.id)
        .bind(grant.name)
        .bind(grant.role.as_str())
        .bind(workspaces)
        .bind(token.secret_hash())
        .bind(now().0)
        .bind(grant.expires.map(|time| time.0))
        .bind(grant.person)
        .bind(grant.created_by)
        .execute(self.connection())
        .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_secret_is_handed_over_once_and_only_its_hash_is_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&format!("sqlite:{}", folder.path().join("hub.db").display())).await.unwrap();
        assert!(!store.has_api_tokens().await.unwrap());
        let (id, text) = store.add_api_token("first", Role::Platform, &[], None).await.unwrap();
        assert!(store.has_api_tokens().await.unwrap());
        let token = NewToken::parse(&text).unwrap();
        assert_eq!(token.id, id);
        let stored: String = sqlx::query_scalar("SELECT secret_hash FROM api_tokens WHERE id = $1")
            .bind(&id)
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(stored, token.secret_hash());
        assert!(!text.contains(&stored) && !format!("{token:?}").contains(&token.secret));
    }

    #[test]
    fn a_text_that_is_no_token_is_refused() {
        for text in ["", "kedge_", "kedge_0011223344556677_", "kedge_x_y", "kedge_001122334455667_00"] {
            assert_eq!(NewToken::parse(text), None, "{text}");
        }
        assert_eq!("root".parse::<Role>().unwrap_err(), RoleError("root".to_owned()));
    }
}
