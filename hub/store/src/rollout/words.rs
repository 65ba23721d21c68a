//! People's words on rollouts and their restarts: written by any hub, taken by the leader.

use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::{RolloutId, Word};
use sqlx::Row as _;

use super::super::pack::corrupt;
use super::{id, number};
use crate::{Store, StoreError, Tx};

/// A word, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredWord {
    pub id: i64,
    pub rollout: RolloutId,
    pub word: Word,
    /// None: the leader hasn't taken it yet.
    pub taken_at: Option<Timestamp>,
    pub refused: Option<String>,
}

const WORD: &str = "SELECT id, rollout, body, taken_at, refused FROM rollout_words";

impl Store {
    /// Words that the leader hasn't taken yet, in the order they were said.
    pub async fn words_of(&self, environment: &str) -> Result<Vec<StoredWord>, StoreError> {
        let sql = format!("{WORD} WHERE environment = $1 AND taken_at IS NULL ORDER BY id");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(word).collect()
    }

    /// What became of a word that `add_word` wrote.
    pub async fn word(&self, id: i64) -> Result<Option<StoredWord>, StoreError> {
        let sql = format!("{WORD} WHERE id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id).fetch_optional(self.pool()).await?;
        row.as_ref().map(word).transpose()
    }

    /// Environments with words that nobody took yet.
    pub async fn environments_with_words(&self) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query_scalar("SELECT DISTINCT environment FROM rollout_words WHERE taken_at IS NULL");
        Ok(rows.fetch_all(self.pool()).await?)
    }

    /// Environments in which people asked for restarts after a tick, and the newest such tick.
    pub async fn restarts_after(&self, tick: i64) -> Result<(Vec<String>, i64), StoreError> {
        let rows = sqlx::query("SELECT environment, MAX(tick) FROM restarts WHERE tick > $1 GROUP BY environment");
        let (mut environments, mut newest) = (Vec::new(), tick);
        for row in rows.bind(tick).fetch_all(self.pool()).await? {
            environments.push(row.try_get(0)?);
            newest = newest.max(row.try_get(1)?);
        }
        Ok((environments, newest))
    }
}

impl Tx {
    /// Writes a person's word for the leader. Its number.
    pub async fn add_word(&mut self, environment: &str, rollout: RolloutId, word: &Word) -> Result<i64, StoreError> {
        let id = self.tick().await?;
        sqlx::query("INSERT INTO rollout_words (id, rollout, environment, body, said_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(id)
            .bind(number(rollout))
            .bind(environment)
            .bind(serde_json::to_string(word).map_err(corrupt)?)
            .bind(word.at.0)
            .execute(self.connection())
            .await?;
        Ok(id)
    }

    /// Content that went back or was aborted may be started again, where it fits. How much of it there was. A rollout that a word is
    /// on its way to is left to that.
    pub async fn unblock(
        &mut self,
        environment: &str,
        cluster_type: Option<&str>,
        workload: Option<&str>,
    ) -> Result<u64, StoreError> {
        let gone = sqlx::query(
            "DELETE FROM rollout_blocked WHERE environment = $1 AND ($2 = '' OR cluster_type = $2) \
             AND ($3 = '' OR workload = $3) AND NOT EXISTS (SELECT 1 FROM rollout_words AS w \
             WHERE w.rollout = rollout_blocked.rollout AND w.taken_at IS NULL)",
        );
        let gone = gone
            .bind(environment)
            .bind(cluster_type.unwrap_or_default())
            .bind(workload.unwrap_or_default())
            .execute(self.connection())
            .await?;
        Ok(gone.rows_affected())
    }

    /// Asks for a restart of an assignment on all clusters of a stream; a failed one is tried again.
    pub async fn raise_restart(&mut self, stream: &Stream, assignment: &str, tick: i64) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO restarts (environment, cluster_type, ring, assignment, counter, tick) \
             VALUES ($1, $2, $3, $4, 1, $5) ON CONFLICT (environment, cluster_type, ring, assignment) \
             DO UPDATE SET counter = restarts.counter + 1, tick = excluded.tick",
        )
        .bind(stream.environment.as_str())
        .bind(stream.cluster_type.as_str())
        .bind(stream.ring.as_str())
        .bind(assignment)
        .bind(tick)
        .execute(self.connection())
        .await?;
        Ok(())
    }

    pub async fn take_word(&mut self, id: i64, at: Timestamp, refused: Option<&str>) -> Result<(), StoreError> {
        sqlx::query("UPDATE rollout_words SET taken_at = $2, refused = $3 WHERE id = $1")
            .bind(id)
            .bind(at.0)
            .bind(refused)
            .execute(self.connection())
            .await?;
        Ok(())
    }
}

fn word(row: &sqlx::any::AnyRow) -> Result<StoredWord, StoreError> {
    let (rollout, body, taken): (i64, String, Option<i64>) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    Ok(StoredWord {
        id: row.try_get(0)?,
        rollout: id(rollout)?,
        word: serde_json::from_str(&body).map_err(corrupt)?,
        taken_at: taken.map(Timestamp),
        refused: row.try_get(4)?,
    })
}
