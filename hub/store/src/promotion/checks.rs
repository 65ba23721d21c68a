//! What external checks said last, and what Git servers were told about commits.

use std::collections::BTreeMap;

use kedge_model::wire::Timestamp;
use kedge_rollout::{CheckFact, RolloutId};
use sqlx::Row as _;

use crate::{Store, StoreError, Term, now};

/// What a Git server knows of a commit under one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldStatus {
    pub state: String,
    pub description: String,
}

/// Told statuses are kept so long: nobody changes what is said of an older commit.
const TOLD_KEPT_MS: i64 = 90 * 24 * 3600 * 1000;

impl Store {
    /// By ring and the check's name.
    pub async fn check_facts(&self, rollout: RolloutId) -> Result<BTreeMap<(String, String), CheckFact>, StoreError> {
        let rows = sqlx::query("SELECT ring, name, ok, said, at FROM checks WHERE rollout = $1");
        let mut facts = BTreeMap::new();
        for row in rows.bind(number(rollout)).fetch_all(self.pool()).await? {
            let fact = CheckFact {
                ok: row.try_get::<i64, _>("ok")? != 0,
                said: row.try_get("said")?,
                at: Timestamp(row.try_get("at")?),
            };
            facts.insert((row.try_get("ring")?, row.try_get("name")?), fact);
        }
        Ok(facts)
    }

    pub async fn save_check(
        &self,
        term: Term,
        rollout: RolloutId,
        ring: &str,
        name: &str,
        fact: &CheckFact,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        sqlx::query(
            "INSERT INTO checks (rollout, ring, name, ok, said, at) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (rollout, ring, name) DO UPDATE SET ok = excluded.ok, said = excluded.said, at = excluded.at",
        )
        .bind(number(rollout))
        .bind(ring)
        .bind(name)
        .bind(i64::from(fact.ok))
        .bind(&fact.said)
        .bind(fact.at.0)
        .execute(tx.connection())
        .await?;
        tx.commit().await
    }

    pub async fn told_status(&self, repo: &str, commit: &str, context: &str) -> Result<Option<ToldStatus>, StoreError> {
        let row = sqlx::query(
            "SELECT state, description FROM commit_statuses WHERE repo = $1 AND commit_id = $2 AND context = $3",
        );
        let row = row.bind(repo).bind(commit).bind(context).fetch_optional(self.pool()).await?;
        row.map(|row| Ok(ToldStatus { state: row.try_get("state")?, description: row.try_get("description")? }))
            .transpose()
    }

    pub async fn save_told_status(
        &self,
        term: Term,
        repo: &str,
        commit: &str,
        context: &str,
        told: &ToldStatus,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        sqlx::query(
            "INSERT INTO commit_statuses (repo, commit_id, context, state, description, told_at)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (repo, commit_id, context) DO UPDATE SET state = excluded.state,
             description = excluded.description, told_at = excluded.told_at",
        )
        .bind(repo)
        .bind(commit)
        .bind(context)
        .bind(&told.state)
        .bind(&told.description)
        .bind(now().0)
        .execute(tx.connection())
        .await?;
        let old = sqlx::query("DELETE FROM commit_statuses WHERE told_at < $1").bind(now().0 - TOLD_KEPT_MS);
        old.execute(tx.connection()).await?;
        tx.commit().await
    }
}

fn number(rollout: RolloutId) -> i64 {
    i64::try_from(rollout.0).unwrap_or(i64::MAX)
}
