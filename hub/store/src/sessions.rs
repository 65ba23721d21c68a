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

/// So many of a kind a token has at most: a new one ends the oldest. Nobody has more browsers.
const KEPT: i64 = 20;

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

    /// The id of the access token behind a link that wasn't used.
    pub async fn link(&self, hash: &str, at: Timestamp) -> Result<Option<String>, StoreError> {
        let query =
            sqlx::query_scalar("SELECT token FROM web_sessions WHERE id = $1 AND kind = 'link' AND expires_at > $2");
        Ok(query.bind(hash).bind(at.0).fetch_optional(self.pool()).await?)
    }
}

impl Tx {
    /// Adds one, forgets those that have ended, and ends the token's oldest ones beyond `KEPT`.
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
        // Those of a kind live equally long: who ends last is the newest.
        let oldest = sqlx::query(
            "DELETE FROM web_sessions WHERE token = $1 AND kind = $2 AND id NOT IN (SELECT id FROM web_sessions \
             WHERE token = $1 AND kind = $2 ORDER BY expires_at DESC, id LIMIT $3)",
        );
        oldest.bind(token).bind(kind.as_str()).bind(KEPT - 1).execute(self.connection()).await?;
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

#[cfg(test)]
mod tests {
    use super::super::test_database;
    use super::*;

    async fn only_the_newest_are_kept(store: Store) {
        let (_, text) = store.add_api_token("anna", crate::tokens::Role::Viewer, &[], None).await.unwrap();
        let (_, other) = store.add_api_token("ben", crate::tokens::Role::Viewer, &[], None).await.unwrap();
        let id = |text: &str| crate::tokens::NewToken::parse(text).unwrap().id;
        let insert = async |kind, hash: String, token: &str, at: i64| {
            let mut tx = store.write().await.unwrap();
            tx.insert_session(kind, &hash, token, Timestamp(at + 10_000), Timestamp(at)).await.unwrap();
            tx.commit().await.unwrap();
        };
        let session = async |hash: &str| store.session(hash, Timestamp(100)).await.unwrap().is_some();
        insert(SessionKind::Session, "of ben".to_owned(), &id(&other), 0).await;
        insert(SessionKind::Link, "a link".to_owned(), &id(&text), 0).await;
        for number in 0..50 {
            insert(SessionKind::Session, format!("session {number}"), &id(&text), number).await;
            assert!(session(&format!("session {number}")).await, "the newest is always good");
        }
        // Within one millisecond too.
        for number in 50..80 {
            insert(SessionKind::Session, format!("session {number}"), &id(&text), 49).await;
            assert!(session(&format!("session {number}")).await);
        }
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM web_sessions WHERE kind = 'session'")
            .fetch_one(store.pool())
            .await
            .unwrap();
        assert_eq!(count, KEPT + 1);
        assert!(session("of ben").await, "somebody else's isn't touched");
        assert!(!session("session 0").await);
        for number in 0..50 {
            insert(SessionKind::Link, format!("link {number}"), &id(&text), number).await;
        }
        let mut tx = store.write().await.unwrap();
        assert_eq!(tx.take_link("a link", Timestamp(60)).await.unwrap(), None);
        assert_eq!(tx.take_link("link 29", Timestamp(60)).await.unwrap(), None);
        assert_eq!(tx.take_link("link 30", Timestamp(60)).await.unwrap(), Some(id(&text)));
    }

    #[tokio::test]
    async fn a_token_has_twenty_sessions_and_links() {
        let (_folder, store) = test_database::sqlite().await;
        only_the_newest_are_kept(store).await;
    }

    #[tokio::test]
    async fn a_token_has_twenty_sessions_and_links_on_postgres() {
        let Some(store) = test_database::postgres().await else { return };
        only_the_newest_are_kept(store).await;
    }
}
