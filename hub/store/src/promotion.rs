//! What the database knows of promotions: the policy in force, where each environment is, and the pull requests that ask for
//! a commit. Written by the leader's promotion controller; read by the platform's reading and by the API of every hub.

pub mod checks;
pub mod evidence;
pub mod rollouts;
pub mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_hub_types::history::Entry;
use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::Timestamp;
use kedge_rollout::{Chain, Standing, Word};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::{Store, StoreError, Term, Tx, now};
use evidence::NewEvidence;
use words::TakenWord;

/// A version of the PromotionPolicy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRow {
    /// None: there is no policy, which somebody agreed to.
    pub policy: Option<Arc<PromotionPolicy>>,
    pub digest: String,
    /// Of main, with its first line and author.
    pub commit: String,
    pub subject: String,
    pub author: String,
    /// In which ways it is looser than the one in force, or what is wrong with it.
    pub reasons: Vec<String>,
    /// Who agreed.
    pub words: Vec<Word>,
    pub since: Timestamp,
}

/// Which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicySlot {
    Force,
    Waiting,
    Broken,
}

/// All that is known of policies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    pub force: Option<PolicyRow>,
    pub waiting: Option<PolicyRow>,
    pub broken: Option<PolicyRow>,
}

/// Where an environment is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromotionRow {
    pub standing: Standing,
    /// The commit of main that the environment is read at.
    pub in_force: Option<String>,
    pub trouble: Option<String>,
}

/// What changes at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromotionSave {
    pub rows: BTreeMap<String, PromotionRow>,
    /// Governed no more.
    pub gone: Vec<String>,
    pub evidence: Vec<NewEvidence>,
    pub taken: Vec<TakenWord>,
    /// What history says of it.
    pub news: Vec<Entry>,
}

/// A pull request that asks for a promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromotionRequest {
    pub branch: String,
    pub main_commit: String,
    /// The commit that our branch shall hold, and what it held before.
    pub asked: String,
    pub previous: Option<String>,
    /// What `asked` was built on.
    pub base: String,
    pub number: Option<i64>,
    pub url: Option<String>,
    /// A person closed it: it is asked again for another commit only.
    pub declined: bool,
}

impl PolicySlot {
    fn word(self) -> &'static str {
        match self {
            PolicySlot::Force => "force",
            PolicySlot::Waiting => "waiting",
            PolicySlot::Broken => "broken",
        }
    }
}

impl Policies {
    /// The policy that counts.
    pub fn in_force(&self) -> Option<&Arc<PromotionPolicy>> {
        self.force.as_ref()?.policy.as_ref()
    }
}

impl Store {
    pub async fn policies(&self) -> Result<Policies, StoreError> {
        let rows =
            sqlx::query("SELECT slot, body, digest, commit_id, subject, author, reasons, words, since FROM policies");
        let mut found = Policies::default();
        for row in rows.fetch_all(self.pool()).await? {
            let policy = Some(policy_row(&row)?);
            match row.try_get::<String, _>("slot")?.as_str() {
                "force" => found.force = policy,
                "waiting" => found.waiting = policy,
                _ => found.broken = policy,
            }
        }
        Ok(found)
    }

    /// Names the policy in force; none: there was never one.
    pub async fn policy_digest(&self) -> Result<Option<String>, StoreError> {
        let digest = sqlx::query_scalar("SELECT digest FROM policies WHERE slot = 'force'");
        Ok(digest.fetch_optional(self.pool()).await?)
    }

    /// Writes these versions, and takes away those that are none, with the words that led there, the evidence of it and what
    /// history says.
    pub async fn save_policies(
        &self,
        term: Term,
        changes: &[(PolicySlot, Option<&PolicyRow>)],
        taken: &[TakenWord],
        evidence: &[NewEvidence],
        news: Vec<Entry>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        tx.take_words(taken).await?;
        for one in evidence {
            tx.add_evidence(one).await?;
        }
        for (slot, row) in changes {
            match row {
                Some(row) => put_policy(&mut tx, *slot, row).await?,
                None => {
                    let query = sqlx::query("DELETE FROM policies WHERE slot = $1").bind(slot.word());
                    query.execute(tx.connection()).await?;
                }
            }
        }
        tx.record(news).await?;
        tx.commit().await
    }

    pub async fn promotions(&self) -> Result<BTreeMap<String, PromotionRow>, StoreError> {
        let rows = sqlx::query("SELECT environment, body, in_force, trouble FROM promotions");
        let rows = rows.fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get("environment")?, promotion_row(row)?))).collect()
    }

    pub async fn promotion(&self, environment: &str) -> Result<Option<PromotionRow>, StoreError> {
        let row = sqlx::query("SELECT body, in_force, trouble FROM promotions WHERE environment = $1");
        let row = row.bind(environment).fetch_optional(self.pool()).await?;
        row.as_ref().map(promotion_row).transpose()
    }

    /// All environments of the policy in force, as they stand: what a person's word is judged by. None: no policy.
    pub async fn promotion_chain(&self) -> Result<Option<Chain>, StoreError> {
        let policies = self.policies().await?;
        let Some(policy) = policies.in_force() else { return Ok(None) };
        let rows = self.promotions().await?.into_iter();
        let environments = rows.filter(|(name, _)| policy.environment(name).is_some());
        let environments = environments.map(|(name, row)| (name, row.standing)).collect();
        Ok(Some(Chain { policy: Arc::clone(policy), environments }))
    }

    /// Writes where environments are, together with the evidence of it and the words that led there.
    pub async fn save_promotions(&self, term: Term, save: &PromotionSave) -> Result<(), StoreError> {
        if *save == PromotionSave::default() {
            return Ok(());
        }
        let PromotionSave { rows, gone, evidence, taken, news } = save;
        let mut tx = self.write_as(term).await?;
        for (environment, row) in rows {
            put_promotion(&mut tx, environment, row).await?;
        }
        for environment in gone {
            for statement in [
                "DELETE FROM promotions WHERE environment = $1",
                "DELETE FROM promotion_requests WHERE environment = $1",
            ] {
                sqlx::query(statement).bind(environment).execute(tx.connection()).await?;
            }
        }
        for one in evidence {
            tx.add_evidence(one).await?;
        }
        tx.take_words(taken).await?;
        tx.record(news.clone()).await?;
        tx.commit().await
    }

    pub async fn promotion_request(&self, environment: &str) -> Result<Option<PromotionRequest>, StoreError> {
        let row = sqlx::query(
            "SELECT branch, main_commit, asked, previous, base, number, url, state FROM promotion_requests WHERE environment = $1",
        );
        let row = row.bind(environment).fetch_optional(self.pool()).await?;
        row.map(|row| {
            Ok(PromotionRequest {
                branch: row.try_get("branch")?,
                main_commit: row.try_get("main_commit")?,
                asked: row.try_get("asked")?,
                previous: row.try_get("previous")?,
                base: row.try_get("base")?,
                number: row.try_get("number")?,
                url: row.try_get("url")?,
                declined: row.try_get::<String, _>("state")? == "declined",
            })
        })
        .transpose()
    }

    pub async fn save_promotion_request(
        &self,
        term: Term,
        environment: &str,
        request: Option<&PromotionRequest>,
    ) -> Result<(), StoreError> {
        let mut tx = self.write_as(term).await?;
        let Some(request) = request else {
            let query = sqlx::query("DELETE FROM promotion_requests WHERE environment = $1").bind(environment);
            query.execute(tx.connection()).await?;
            return tx.commit().await;
        };
        sqlx::query(
            "INSERT INTO promotion_requests
             (environment, branch, main_commit, asked, base, number, url, state, updated_at, previous)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
             ON CONFLICT (environment) DO UPDATE SET branch = excluded.branch, main_commit = excluded.main_commit,
             asked = excluded.asked, previous = excluded.previous, base = excluded.base, number = excluded.number, url = excluded.url,
             state = excluded.state, updated_at = excluded.updated_at",
        )
        .bind(environment)
        .bind(&request.branch)
        .bind(&request.main_commit)
        .bind(&request.asked)
        .bind(&request.base)
        .bind(request.number)
        .bind(request.url.as_deref())
        .bind(if request.declined { "declined" } else { "open" })
        .bind(now().0)
        .bind(request.previous.as_deref())
        .execute(tx.connection())
        .await?;
        tx.commit().await
    }
}

async fn put_policy(tx: &mut Tx, slot: PolicySlot, row: &PolicyRow) -> Result<(), StoreError> {
    let body = row.policy.as_ref().map(|policy| json(&**policy)).transpose()?.unwrap_or_default();
    sqlx::query(
        "INSERT INTO policies (slot, body, digest, commit_id, subject, author, reasons, words, since)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (slot) DO UPDATE SET body = excluded.body, digest = excluded.digest,
         commit_id = excluded.commit_id, subject = excluded.subject, author = excluded.author,
         reasons = excluded.reasons, words = excluded.words, since = excluded.since",
    )
    .bind(slot.word())
    .bind(body)
    .bind(&row.digest)
    .bind(&row.commit)
    .bind(&row.subject)
    .bind(&row.author)
    .bind(json(&row.reasons)?)
    .bind(json(&row.words)?)
    .bind(row.since.0)
    .execute(tx.connection())
    .await?;
    Ok(())
}

async fn put_promotion(tx: &mut Tx, environment: &str, row: &PromotionRow) -> Result<(), StoreError> {
    let tick = tx.tick().await?;
    sqlx::query(
        "INSERT INTO promotions (environment, body, in_force, trouble, updated_at, tick)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (environment) DO UPDATE SET body = excluded.body, in_force = excluded.in_force,
         trouble = excluded.trouble, updated_at = excluded.updated_at, tick = excluded.tick",
    )
    .bind(environment)
    .bind(json(&row.standing)?)
    .bind(row.in_force.as_deref())
    .bind(row.trouble.as_deref())
    .bind(now().0)
    .bind(tick)
    .execute(tx.connection())
    .await?;
    Ok(())
}

fn policy_row(row: &AnyRow) -> Result<PolicyRow, StoreError> {
    let body: String = row.try_get("body")?;
    let policy = match body.is_empty() {
        true => None,
        false => Some(Arc::new(value(&body, "a policy")?)),
    };
    Ok(PolicyRow {
        policy,
        digest: row.try_get("digest")?,
        commit: row.try_get("commit_id")?,
        subject: row.try_get("subject")?,
        author: row.try_get("author")?,
        reasons: value(&row.try_get::<String, _>("reasons")?, "reasons of a policy")?,
        words: value(&row.try_get::<String, _>("words")?, "words on a policy")?,
        since: Timestamp(row.try_get("since")?),
    })
}

fn promotion_row(row: &AnyRow) -> Result<PromotionRow, StoreError> {
    Ok(PromotionRow {
        standing: value(&row.try_get::<String, _>("body")?, "a promotion")?,
        in_force: row.try_get("in_force")?,
        trouble: row.try_get("trouble")?,
    })
}

fn json<T: Serialize + ?Sized>(what: &T) -> Result<String, StoreError> {
    serde_json::to_string(what).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn value<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests;
