//! What people say about promotions and about a policy that waits. Any hub's API writes; the leader takes it within a second.

use kedge_rollout::Word;
use kedge_rollout::chain::Standing;
use sqlx::Row as _;

use super::{json, value};
use crate::{Store, StoreError, Tx, now};

/// A word that the leader hasn't taken yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingWord {
    pub id: i64,
    pub about: About,
    pub word: Word,
}

/// What a word is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The policy that waits for approval.
    Policy,
    /// A commit of main in an environment; none: the one that waits.
    Promotion { environment: String, commit: Option<String> },
}

/// How a word ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenWord {
    pub id: i64,
    /// Why it had no effect.
    pub refused: Option<String>,
}

/// So many are taken at once: one person doesn't say more within a second.
const AT_ONCE: i64 = 200;

impl Store {
    /// None: the leader hasn't taken it yet.
    pub async fn promotion_word(&self, id: i64) -> Result<Option<TakenWord>, StoreError> {
        let row = sqlx::query("SELECT refused FROM promotion_words WHERE id = $1 AND taken_at IS NOT NULL");
        let row = row.bind(id).fetch_optional(self.pool()).await?;
        row.map(|row| Ok(TakenWord { id, refused: row.try_get("refused")? })).transpose()
    }

    /// The oldest first.
    pub async fn waiting_promotion_words(&self) -> Result<Vec<WaitingWord>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, environment, commit_id, body FROM promotion_words WHERE taken_at IS NULL ORDER BY id LIMIT $1",
        );
        let mut words = Vec::new();
        for row in rows.bind(AT_ONCE).fetch_all(self.pool()).await? {
            let environment: String = row.try_get("environment")?;
            let commit = Some(row.try_get::<String, _>("commit_id")?).filter(|commit| !commit.is_empty());
            let about = match environment.is_empty() {
                true => About::Policy,
                false => About::Promotion { environment, commit },
            };
            let word = value(&row.try_get::<String, _>("body")?, "a word on a promotion")?;
            words.push(WaitingWord { id: row.try_get("id")?, about, word });
        }
        Ok(words)
    }

    pub async fn has_promotion_words(&self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar::<_, i64>("SELECT id FROM promotion_words WHERE taken_at IS NULL LIMIT 1");
        Ok(found.fetch_optional(self.pool()).await?.is_some())
    }
}

impl Tx {
    /// Gives the word's number, by which `promotion_word` tells what became of it. The audit's entry is written in the same
    /// transaction: no word without its entry.
    pub async fn say_on_promotion(&mut self, about: &About, word: &Word) -> Result<i64, StoreError> {
        let (environment, commit) = match about {
            About::Policy => ("", None),
            About::Promotion { environment, commit } => (environment.as_str(), commit.as_deref()),
        };
        let id = self.tick().await?;
        sqlx::query("INSERT INTO promotion_words (id, environment, commit_id, body) VALUES ($1, $2, $3, $4)")
            .bind(id)
            .bind(environment)
            .bind(commit.unwrap_or_default())
            .bind(json(word)?)
            .execute(self.connection())
            .await?;
        Ok(id)
    }

    /// The commit that a word about an environment means when it names none.
    pub async fn promotion_subject(&mut self, environment: &str) -> Result<Option<String>, StoreError> {
        let row = sqlx::query("SELECT body FROM promotions WHERE environment = $1");
        let Some(row) = row.bind(environment).fetch_optional(self.connection()).await? else { return Ok(None) };
        let standing: Standing = value(&row.try_get::<String, _>("body")?, "a promotion")?;
        Ok(standing.subject().map(str::to_owned))
    }

    pub(super) async fn take_words(&mut self, taken: &[TakenWord]) -> Result<(), StoreError> {
        for word in taken {
            let query = sqlx::query("UPDATE promotion_words SET taken_at = $2, refused = $3 WHERE id = $1");
            let query = query.bind(word.id).bind(now().0).bind(word.refused.as_deref());
            query.execute(self.connection()).await?;
        }
        Ok(())
    }
}
