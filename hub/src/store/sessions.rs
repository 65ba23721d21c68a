//! The statements of `web`'s sessions and login links. The database has the hash of a secret, never the secret.

use kedge_model::wire::Timestamp;
use kedge_model::wire::digest::{Digest, hex};
use sqlx::Row as _;

use super::api::access::AccessToken;
use super::{Store, StoreError, Tx};

/// What a secret is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionKind {
    /// Carried by a browser's cookie.
    Session,
    /// Makes one session.
    Link,
}

/// What a browser carries, or a link ends with.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn generate() -> Secret {
        Secret(hex(&rand::random::<[u8; 32]>()))
    }

    /// None: this can't be one.
    pub fn parse(text: &str) -> Option<Secret> {
        let fits = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| Secret(text.to_owned()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// What the database has.
    pub fn hash(&self) -> String {
        Digest::of(self.0.as_bytes()).hex()
    }

    /// A word that only who has the secret can know, and that doesn't tell it: for forms.
    pub fn word_for_forms(&self) -> String {
        Digest::of(format!("form {}", self.0).as_bytes()).hex()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl SessionKind {
    fn as_str(self) -> &'static str {
        match self {
            SessionKind::Session => "session",
            SessionKind::Link => "link",
        }
    }
}

impl Store {
    /// The access token behind a session that hasn't ended. Whether the token itself is still good, the caller checks.
    pub async fn session(&self, hash: &str, at: Timestamp) -> Result<Option<AccessToken>, StoreError> {
        let query =
            sqlx::query("SELECT token FROM web_sessions WHERE id = $1 AND kind = 'session' AND expires_at > $2");
        let Some(row) = query.bind(hash).bind(at.0).fetch_optional(self.pool()).await? else { return Ok(None) };
        self.access_token(row.try_get("token")?).await
    }
}

impl Tx {
    /// Adds one, and forgets those that have ended.
    pub async fn insert_session(
        &mut self,
        kind: SessionKind,
        hash: &str,
        token: &str,
        expires_at: Timestamp,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let ended = sqlx::query("DELETE FROM web_sessions WHERE expires_at <= $1").bind(at.0);
        ended.execute(self.connection()).await?;
        let query = sqlx::query("INSERT INTO web_sessions (id, kind, token, expires_at) VALUES ($1, $2, $3, $4)");
        let query = query.bind(hash).bind(kind.as_str()).bind(token).bind(expires_at.0);
        query.execute(self.connection()).await?;
        Ok(())
    }

    /// Uses a link up: the id of its access token.
    pub async fn take_link(&mut self, hash: &str, at: Timestamp) -> Result<Option<String>, StoreError> {
        let query = sqlx::query_scalar(
            "DELETE FROM web_sessions WHERE id = $1 AND kind = 'link' AND expires_at > $2 RETURNING token",
        );
        Ok(query.bind(hash).bind(at.0).fetch_optional(self.connection()).await?)
    }

    pub async fn end_session(&mut self, hash: &str) -> Result<(), StoreError> {
        let query = sqlx::query("DELETE FROM web_sessions WHERE id = $1 AND kind = 'session'").bind(hash);
        query.execute(self.connection()).await?;
        Ok(())
    }
}
