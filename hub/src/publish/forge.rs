//! Pull requests and commit statuses on GitHub and on Gitea: the same few calls of their REST APIs. Called by `request` and
//! by promotion. One open pull request per environment is found again by its branches, so that a crash or a lost database
//! never makes a second.

mod address;
mod http;
mod status;

use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

pub use address::Address;
pub use http::{Client, segment};
pub use status::CommitState;

use super::error::Next;
use super::message::shown_repo;
use super::remote::Remote;
use crate::config::{self, ForgeKind};

/// A repository on a forge, with who we are there.
#[derive(Debug)]
pub struct Forge {
    pub address: Address,
    pub client: Client,
}

/// A pull request, as far as we look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: i64,
    pub url: String,
    pub state: PullState,
    /// The commit of its branch; of a merged one, what was merged.
    pub head: String,
    pub title: String,
    pub body: String,
    pub labels: Vec<Label>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    Open,
    Merged,
    /// Closed and not merged.
    Closed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Label {
    pub id: i64,
    pub name: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("{0}")]
    NoAddress(String),
    #[error("there is no credential for {0}")]
    NoCredential(String),
    #[error("{0} can't be reached")]
    Unreachable(String, #[source] reqwest::Error),
    #[error("{0} asks us to come back later")]
    Later(String, Option<Duration>),
    #[error("{what} is refused with status {status}: {message}")]
    Denied { what: String, status: u16, message: String },
    #[error("{what} is not possible (status {status}): {message}")]
    Refused { what: String, status: u16, message: String },
    #[error("{what} failed with status {status}: {message}")]
    Broken { what: String, status: u16, message: String },
    #[error("the answer to {0} is longer than we read")]
    TooLong(String),
    #[error("the answer to {0} can't be understood")]
    Malformed(String, #[source] serde_json::Error),
}

/// A page of a list. GitHub gives at most 100, Gitea at most 50 by default.
const PAGE: usize = 50;

/// So many pages are looked through: 5000 open pull requests or labels.
const PAGES: usize = 100;

/// What a new label looks like.
const LABEL_COLOUR: &str = "0e8a16";

/// The fields that both servers share.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pull {
    number: i64,
    html_url: String,
    state: String,
    merged: Option<bool>,
    merged_at: Option<String>,
    title: Option<String>,
    body: Option<String>,
    labels: Option<Vec<Label>>,
    head: Side,
    base: Side,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Side {
    r#ref: String,
    sha: String,
    repo: Option<Repo>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Commit {
    sha: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Repo {
    full_name: String,
}

impl Forge {
    /// The forge of a repository; none: it is on no server that is configured as one.
    pub fn of(repo: &str, forges: &[config::Forge], remote: &dyn Remote) -> Result<Option<Forge>, ForgeError> {
        let Some(address) = Address::of(repo, forges) else { return Ok(None) };
        let address = address?;
        let secret = remote.credential(repo).ok_or_else(|| ForgeError::NoCredential(shown_repo(repo)))?;
        let client = Client::new(address.kind, &secret, &shown_repo(repo))?;
        Ok(Some(Forge { address, client }))
    }

    /// The open pull request from one branch into another.
    pub async fn find(&self, branch: &str, base: &str) -> Result<Option<PullRequest>, ForgeError> {
        let ours = format!("{}/{}", self.address.owner, self.address.name);
        for page in 1..=PAGES {
            let mut query = self.page(page);
            query.push(("state", "open".to_owned()));
            if self.address.kind == ForgeKind::GitHub {
                query.push(("head", format!("{}:{branch}", self.address.owner)));
                query.push(("base", base.to_owned()));
            }
            let found: Vec<Pull> = self.client.call(Method::GET, &self.of_repository("pulls"), &query, None).await?;
            let full = found.len() >= PAGE;
            let ours = |pull: &Pull| {
                let repo = pull.head.repo.as_ref().map_or(ours.as_str(), |repo| repo.full_name.as_str());
                pull.head.r#ref == branch && pull.base.r#ref == base && repo.eq_ignore_ascii_case(&ours)
            };
            if let Some(pull) = found.into_iter().find(ours) {
                return Ok(Some(pull.into()));
            }
            if !full {
                break;
            }
        }
        Ok(None)
    }

    pub async fn get(&self, number: i64) -> Result<PullRequest, ForgeError> {
        let pull: Pull =
            self.client.call(Method::GET, &self.of_repository(&format!("pulls/{number}")), &[], None).await?;
        Ok(pull.into())
    }

    pub async fn open(&self, branch: &str, base: &str, title: &str, body: &str) -> Result<PullRequest, ForgeError> {
        let wanted = json!({"title": title, "head": branch, "base": base, "body": body});
        let pull: Pull = self.client.call(Method::POST, &self.of_repository("pulls"), &[], Some(&wanted)).await?;
        Ok(pull.into())
    }

    pub async fn tell(&self, number: i64, title: &str, body: &str) -> Result<PullRequest, ForgeError> {
        self.patch(number, json!({"title": title, "body": body})).await
    }

    /// Whether a commit is one of the pull request's.
    pub async fn has_commit(&self, number: i64, commit: &str) -> Result<bool, ForgeError> {
        let path = self.of_repository(&format!("pulls/{number}/commits"));
        for page in 1..=PAGES {
            let found: Vec<Commit> = self.client.call(Method::GET, &path, &self.page(page), None).await?;
            if found.iter().any(|one| one.sha == commit) {
                return Ok(true);
            }
            if found.len() < PAGE {
                break;
            }
        }
        Ok(false)
    }

    /// Closes one whose content isn't wanted any more.
    pub async fn close(&self, number: i64) -> Result<PullRequest, ForgeError> {
        self.patch(number, json!({"state": "closed"})).await
    }

    /// Puts a label on, or takes it off. A label that the repository lacks is made.
    pub async fn label(&self, pull: &PullRequest, name: &str, on: bool) -> Result<(), ForgeError> {
        let there = pull.labels.iter().find(|label| label.name == name);
        let path = self.of_repository(&format!("issues/{}/labels", pull.number));
        match (there, on) {
            (None, true) => {
                let label = self.label_of_repository(name).await?;
                let wanted = match self.address.kind {
                    ForgeKind::GitHub => json!({"labels": [label.name]}),
                    ForgeKind::Gitea => json!({"labels": [label.id]}),
                };
                self.client.call::<serde_json::Value>(Method::POST, &path, &[], Some(&wanted)).await?;
            }
            (Some(label), false) => {
                let which = match self.address.kind {
                    ForgeKind::GitHub => http::segment(&label.name),
                    ForgeKind::Gitea => label.id.to_string(),
                };
                self.client.send(Method::DELETE, &format!("{path}/{which}"), &[], None).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn label_of_repository(&self, name: &str) -> Result<Label, ForgeError> {
        for page in 1..=PAGES {
            let found: Vec<Label> =
                self.client.call(Method::GET, &self.of_repository("labels"), &self.page(page), None).await?;
            let full = found.len() >= PAGE;
            if let Some(label) = found.into_iter().find(|label| label.name == name) {
                return Ok(label);
            }
            if !full {
                break;
            }
        }
        let colour = match self.address.kind {
            ForgeKind::GitHub => LABEL_COLOUR.to_owned(),
            ForgeKind::Gitea => format!("#{LABEL_COLOUR}"),
        };
        let wanted = json!({"name": name, "color": colour});
        self.client.call(Method::POST, &self.of_repository("labels"), &[], Some(&wanted)).await
    }

    async fn patch(&self, number: i64, wanted: serde_json::Value) -> Result<PullRequest, ForgeError> {
        let path = self.of_repository(&format!("pulls/{number}"));
        let pull: Pull = self.client.call(Method::PATCH, &path, &[], Some(&wanted)).await?;
        Ok(pull.into())
    }

    fn of_repository(&self, what: &str) -> String {
        let Address { api, owner, name, .. } = &self.address;
        format!("{api}/repos/{}/{}/{what}", http::segment(owner), http::segment(name))
    }

    fn page(&self, page: usize) -> Vec<(&'static str, String)> {
        let size = match self.address.kind {
            ForgeKind::GitHub => "per_page",
            ForgeKind::Gitea => "limit",
        };
        vec![("page", page.to_string()), (size, PAGE.to_string())]
    }
}

impl From<Pull> for PullRequest {
    fn from(pull: Pull) -> PullRequest {
        let merged = pull.merged == Some(true) || pull.merged_at.is_some();
        PullRequest {
            number: pull.number,
            url: pull.html_url,
            state: match pull.state.as_str() {
                _ if merged => PullState::Merged,
                "open" => PullState::Open,
                _ => PullState::Closed,
            },
            head: pull.head.sha,
            title: pull.title.unwrap_or_default(),
            body: pull.body.unwrap_or_default(),
            labels: pull.labels.unwrap_or_default(),
        }
    }
}

impl ForgeError {
    pub fn next(&self) -> Next {
        match self {
            ForgeError::Later(_, after) => Next::Retry(*after),
            ForgeError::Unreachable(..) | ForgeError::Broken { .. } => Next::Retry(None),
            // Also what a forge says of a repository whose first push it hasn't looked at yet.
            ForgeError::Denied { status: 404, .. } => Next::Retry(None),
            ForgeError::Refused { .. } => Next::Wait,
            ForgeError::NoAddress(_)
            | ForgeError::NoCredential(_)
            | ForgeError::Denied { .. }
            | ForgeError::TooLong(_)
            | ForgeError::Malformed(..) => Next::Stalled,
        }
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            ForgeError::Denied { .. } => {
                Some("the token needs the right to write pull requests and labels of the repository".to_owned())
            }
            ForgeError::NoCredential(_) => {
                Some("add a `[[git.credentials]]` entry whose prefix the repository's address begins with".to_owned())
            }
            ForgeError::NoAddress(_) | ForgeError::Malformed(..) => {
                Some("check `kind` and `api` of the `[[git.forges]]` entry".to_owned())
            }
            _ => None,
        }
    }

    /// A pull request for these branches is there already, or something else is in the way.
    pub fn is_conflict(&self) -> bool {
        matches!(self, ForgeError::Refused { status: 409 | 422, .. })
    }

    /// Whether the pull request itself is gone, with its repository there.
    pub fn is_missing(&self) -> bool {
        matches!(self, ForgeError::Denied { status: 404, .. })
    }
}

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
