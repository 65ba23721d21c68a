//! Commit statuses: what a forge shows beside a commit under a context. Set by promotion, read by its external checks.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Forge, ForgeError, PAGE, PAGES, http};

/// The words that both forges share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommitState {
    Pending,
    Success,
    Failure,
}

/// What a forge shows of a commit under one context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStatus {
    /// As the forge says it: `success`, `failure`, `pending`, `error`, `warning`.
    pub state: String,
    pub description: String,
}

/// GitHub takes 140 characters.
pub const DESCRIPTION: usize = 140;

/// One context of the combined status. GitHub says `state`, Gitea says `status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Told {
    context: String,
    state: Option<String>,
    status: Option<String>,
    description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Combined {
    /// Null on Gitea when there is none.
    statuses: Option<Vec<Told>>,
}

impl CommitState {
    pub fn word(self) -> &'static str {
        match self {
            CommitState::Pending => "pending",
            CommitState::Success => "success",
            CommitState::Failure => "failure",
        }
    }
}

impl Forge {
    /// Says how a commit stands under a context; the newest word counts.
    pub async fn set_status(
        &self,
        commit: &str,
        context: &str,
        state: CommitState,
        description: &str,
    ) -> Result<(), ForgeError> {
        let description: String = description.chars().take(DESCRIPTION).collect();
        let wanted = json!({"state": state.word(), "context": context, "description": description});
        let path = self.of_repository(&format!("statuses/{}", http::segment(commit)));
        self.client.send(Method::POST, &path, &[], Some(&wanted)).await?;
        Ok(())
    }

    /// How a commit stands under a context; none: nobody said anything.
    pub async fn status(&self, commit: &str, context: &str) -> Result<Option<CommitStatus>, ForgeError> {
        let path = self.of_repository(&format!("commits/{}/status", http::segment(commit)));
        for page in 1..=PAGES {
            let found: Combined = self.client.call(Method::GET, &path, &self.page(page), None).await?;
            let statuses = found.statuses.unwrap_or_default();
            let full = statuses.len() >= PAGE;
            if let Some(told) = statuses.into_iter().find(|told| told.context == context) {
                let state = told.state.or(told.status).unwrap_or_default();
                return Ok(Some(CommitStatus { state, description: told.description.unwrap_or_default() }));
            }
            if !full {
                break;
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, REPO};
    use super::super::{Address, Client};
    use super::*;
    use crate::config::ForgeKind;
    use crate::git::Secret;

    #[tokio::test]
    async fn both_forges_take_and_tell_statuses() {
        for kind in [ForgeKind::GitHub, ForgeKind::Gitea] {
            let fake = Fake::start(kind).await;
            let address = Address::of(REPO, &[fake.config()]).unwrap().unwrap();
            let secret = Secret { username: None, secret: "s3cret".to_owned() };
            let forge = Forge { client: Client::new(address.kind, &secret, REPO).unwrap(), address };
            assert_eq!(forge.status("abc", "kedge/dev").await.unwrap(), None);
            forge.set_status("abc", "kedge/dev", CommitState::Pending, &"x".repeat(300)).await.unwrap();
            forge.set_status("abc", "kedge/dev", CommitState::Success, "66 of 73 converged").await.unwrap();
            forge.set_status("abc", "other", CommitState::Failure, "").await.unwrap();
            let told = forge.status("abc", "kedge/dev").await.unwrap().unwrap();
            assert_eq!((told.state.as_str(), told.description.as_str()), ("success", "66 of 73 converged"));
            assert_eq!(forge.status("def", "kedge/dev").await.unwrap(), None);
        }
    }
}
