//! Statements of the `publish` module: what was published, what is about to be, what waits for a person. Reads are here,
//! writes in `writes`.

mod writes;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::{Store, StoreError};

/// Everything that was published of a cluster type since a person last confirmed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfirmedSet {
    pub size: u64,
    pub assignments: BTreeSet<String>,
}

/// A cluster type that would lose more than half.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRemoval {
    pub environment: String,
    pub cluster_type: String,
    pub gone: BTreeSet<String>,
    /// The size of the confirmed set.
    pub of: u64,
    pub since: Timestamp,
    pub approval: Option<Approval>,
}

/// A person's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    pub gone: BTreeSet<String>,
    pub who: String,
    pub at: Timestamp,
}

/// Path to blob id; none: deleted.
pub type Blobs = BTreeMap<String, Option<String>>;

/// A commit of ours on an environment's branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    pub repo: String,
    pub branch: String,
    pub base: Option<String>,
    pub commit: String,
    pub content: String,
    pub subject: String,
    pub changes: Blobs,
    pub state: PublicationState,
    pub created_at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublicationState {
    Intended,
    Published,
    /// Never reached the branch.
    Superseded,
}

/// The environment's one pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestRow {
    /// Ours.
    pub branch: String,
    /// What is on it.
    pub asked: Option<Ask>,
    /// What we are about to push; only the server knows whether it arrived.
    pub intended: Option<Ask>,
    /// None where the server has no pull requests that we know of, or before it is opened.
    pub number: Option<i64>,
    pub url: Option<String>,
    pub state: RequestState,
    pub updated_at: Timestamp,
}

/// A commit that asks to be merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub commit: String,
    /// The head of the environment's branch that it was built on.
    pub base: String,
    /// Digest of what the schedule wanted.
    pub content: String,
    pub changes: Blobs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    Open,
    /// Its content is on the environment's branch, and the forge shows it open yet.
    Landed,
    Merged,
    /// Closed by a person without a merge.
    Declined,
    /// Closed by us: there was nothing left to ask for.
    Withdrawn,
}

/// A file of ours that a person changed on the environment's branch. It is delivered as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandEdit {
    pub path: String,
    pub commit: String,
    pub author: String,
    pub since: Timestamp,
}

/// What changes once a publish is through, in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    pub files: Blobs,
    pub confirmed: BTreeMap<String, BTreeSet<String>>,
    /// All that wait now, as `(gone, of)`; None: as before.
    pub waiting: Option<BTreeMap<String, (BTreeSet<String>, usize)>>,
    /// All that there are now; None: as before.
    pub hand_edits: Option<Vec<HandEdit>>,
    /// How the intended publication ended.
    pub intent: Option<PublicationState>,
    pub pull_request: Option<PullRequestRow>,
}

impl Store {
    /// The repository and branch that an environment was published to.
    pub async fn publish_target(&self, environment: &str) -> Result<Option<(String, String)>, StoreError> {
        let query = sqlx::query("SELECT repo, branch FROM publish_targets WHERE environment = $1").bind(environment);
        let row = query.fetch_optional(self.pool()).await?;
        row.map(|row| Ok((row.try_get("repo")?, row.try_get("branch")?))).transpose()
    }

    /// Path to blob id.
    pub async fn published_files(&self, environment: &str) -> Result<HashMap<String, String>, StoreError> {
        let query = sqlx::query("SELECT path, blob_id FROM published_files WHERE environment = $1").bind(environment);
        let rows = query.fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get("path")?, row.try_get("blob_id")?))).collect()
    }

    pub async fn confirmed(&self, environment: &str, cluster_type: &str) -> Result<Option<ConfirmedSet>, StoreError> {
        let query = sqlx::query("SELECT assignments FROM confirmed_sets WHERE environment = $1 AND cluster_type = $2");
        let row = query.bind(environment).bind(cluster_type).fetch_optional(self.pool()).await?;
        row.map(|row| {
            let assignments: BTreeSet<String> = json(row.try_get("assignments")?)?;
            Ok(ConfirmedSet { size: assignments.len() as u64, assignments })
        })
        .transpose()
    }

    /// What every desired state carries.
    pub async fn confirmed_size(&self, environment: &str, cluster_type: &str) -> Result<Option<u64>, StoreError> {
        let query = sqlx::query_scalar::<_, i64>(
            "SELECT size FROM confirmed_sets WHERE environment = $1 AND cluster_type = $2",
        );
        let size = query.bind(environment).bind(cluster_type).fetch_optional(self.pool()).await?;
        Ok(size.map(|size| u64::try_from(size).unwrap_or(0)))
    }

    /// Of all cluster types.
    pub async fn confirmed_sets(&self, environment: &str) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
        let query = sqlx::query("SELECT cluster_type, assignments FROM confirmed_sets WHERE environment = $1");
        let rows = query.bind(environment).fetch_all(self.pool()).await?;
        rows.iter().map(|row| Ok((row.try_get("cluster_type")?, json(row.try_get("assignments")?)?))).collect()
    }

    /// Removals that wait, in one environment or in all.
    pub async fn waiting_removals(&self, environment: Option<&str>) -> Result<Vec<WaitingRemoval>, StoreError> {
        let query = sqlx::query(
            "SELECT environment, cluster_type, gone, of_size, since, approved, approved_by, approved_at
             FROM removals_waiting WHERE $1 = '' OR environment = $1 ORDER BY environment, cluster_type",
        );
        let rows = query.bind(environment.unwrap_or_default()).fetch_all(self.pool()).await?;
        rows.iter().map(waiting).collect()
    }

    /// Environments in which somebody agreed to a removal that isn't published yet: the leader's cue.
    pub async fn approved_environments(&self) -> Result<Vec<String>, StoreError> {
        let query = sqlx::query_scalar("SELECT DISTINCT environment FROM removals_waiting WHERE approved IS NOT NULL");
        Ok(query.fetch_all(self.pool()).await?)
    }

    pub async fn pull_request(&self, environment: &str) -> Result<Option<PullRequestRow>, StoreError> {
        let query = sqlx::query(
            "SELECT branch, asked, intended, number, url, state, updated_at
             FROM pull_requests WHERE environment = $1",
        );
        let row = query.bind(environment).fetch_optional(self.pool()).await?;
        row.as_ref().map(pull_request).transpose()
    }

    pub async fn hand_edits(&self, environment: &str) -> Result<Vec<HandEdit>, StoreError> {
        let query =
            sqlx::query("SELECT path, commit_id, author, since FROM hand_edits WHERE environment = $1 ORDER BY path");
        let rows = query.bind(environment).fetch_all(self.pool()).await?;
        let edit = |row: &AnyRow| {
            let since = Timestamp(row.try_get("since")?);
            Ok(HandEdit {
                path: row.try_get("path")?,
                commit: row.try_get("commit_id")?,
                author: row.try_get("author")?,
                since,
            })
        };
        rows.iter().map(edit).collect()
    }

    /// The newest first.
    pub async fn publications(&self, environment: &str, limit: i64) -> Result<Vec<Publication>, StoreError> {
        let query = sqlx::query(
            "SELECT repo, branch, base, commit_id, content, subject, changes, state, created_at
             FROM publications WHERE environment = $1 ORDER BY number DESC LIMIT $2",
        );
        let rows = query.bind(environment).bind(limit).fetch_all(self.pool()).await?;
        rows.iter().map(publication).collect()
    }

    /// The commit that was about to be pushed when a hub stopped.
    pub async fn intended_publication(&self, environment: &str) -> Result<Option<Publication>, StoreError> {
        let query = sqlx::query(
            "SELECT repo, branch, base, commit_id, content, subject, changes, state, created_at
             FROM publications WHERE environment = $1 AND state = 'intended' ORDER BY number DESC LIMIT 1",
        );
        let row = query.bind(environment).fetch_optional(self.pool()).await?;
        row.as_ref().map(publication).transpose()
    }
}

fn waiting(row: &AnyRow) -> Result<WaitingRemoval, StoreError> {
    let approved: Option<String> = row.try_get("approved")?;
    let approval = match approved {
        Some(gone) => Some(Approval {
            gone: json(gone)?,
            who: row.try_get::<Option<String>, _>("approved_by")?.unwrap_or_default(),
            at: Timestamp(row.try_get::<Option<i64>, _>("approved_at")?.unwrap_or_default()),
        }),
        None => None,
    };
    Ok(WaitingRemoval {
        environment: row.try_get("environment")?,
        cluster_type: row.try_get("cluster_type")?,
        gone: json(row.try_get("gone")?)?,
        of: u64::try_from(row.try_get::<i64, _>("of_size")?).unwrap_or(0),
        since: Timestamp(row.try_get("since")?),
        approval,
    })
}

fn publication(row: &AnyRow) -> Result<Publication, StoreError> {
    let state: String = row.try_get("state")?;
    Ok(Publication {
        repo: row.try_get("repo")?,
        branch: row.try_get("branch")?,
        base: row.try_get("base")?,
        commit: row.try_get("commit_id")?,
        content: row.try_get("content")?,
        subject: row.try_get("subject")?,
        changes: json(row.try_get("changes")?)?,
        state: PublicationState::of(&state)?,
        created_at: Timestamp(row.try_get("created_at")?),
    })
}

fn pull_request(row: &AnyRow) -> Result<PullRequestRow, StoreError> {
    let state: String = row.try_get("state")?;
    Ok(PullRequestRow {
        branch: row.try_get("branch")?,
        asked: row.try_get::<Option<String>, _>("asked")?.map(json).transpose()?,
        intended: row.try_get::<Option<String>, _>("intended")?.map(json).transpose()?,
        number: row.try_get("number")?,
        url: row.try_get("url")?,
        state: RequestState::of(&state)?,
        updated_at: Timestamp(row.try_get("updated_at")?),
    })
}

impl PublicationState {
    fn word(self) -> &'static str {
        match self {
            PublicationState::Intended => "intended",
            PublicationState::Published => "published",
            PublicationState::Superseded => "superseded",
        }
    }

    fn of(word: &str) -> Result<PublicationState, StoreError> {
        [PublicationState::Intended, PublicationState::Published, PublicationState::Superseded]
            .into_iter()
            .find(|state| state.word() == word)
            .ok_or_else(|| StoreError::Corrupt(format!("a publication is `{word}`")))
    }
}

impl RequestState {
    pub fn word(self) -> &'static str {
        match self {
            RequestState::Open => "open",
            RequestState::Landed => "landed",
            RequestState::Merged => "merged",
            RequestState::Declined => "declined",
            RequestState::Withdrawn => "withdrawn",
        }
    }

    fn of(word: &str) -> Result<RequestState, StoreError> {
        use RequestState::{Declined, Landed, Merged, Open, Withdrawn};
        [Open, Landed, Merged, Declined, Withdrawn]
            .into_iter()
            .find(|state| state.word() == word)
            .ok_or_else(|| StoreError::Corrupt(format!("a pull request is `{word}`")))
    }
}

fn json<T: serde::de::DeserializeOwned>(text: String) -> Result<T, StoreError> {
    serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(error.to_string()))
}

#[cfg(test)]
mod tests;
