//! Where the packer gets application repositories: a trait of its own over the mirrors, and the resolving of all that a
//! branch names, at once and with bounded patience, so that a slow server delays nobody else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kedge_hub_types::causes::chain;
use kedge_model::Problem;
use kedge_model::kinds::SourceRef;
use tokio::task::JoinSet;

use super::branch::Listed;
use super::reconciler::{Reference, SourceName};
use super::tenancy::Tenancy;
use crate::git::{MirrorError, Mirrors, Trust};

/// It may pass by itself.
const FAILING: &str = "SourceFailing";

/// Resolves what application teams wrote, under the rules for what may be fetched from where.
#[async_trait]
pub trait Sources: Send + Sync + fmt::Debug {
    /// The commit of a branch, tag or commit, which is in the mirror then. The last good one while the server fails.
    async fn resolve(&self, repo: &str, reference: &SourceRef, trust: &Trust) -> Result<SourceHead, SourceFault>;

    /// The tags of a repository and the commits they lead to, as its server says now.
    async fn tags(&self, repo: &str, trust: &Trust) -> Result<Vec<(String, String)>, SourceFault>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceHead {
    pub commit: String,
    /// The bare mirror.
    pub mirror: PathBuf,
}

/// Why a source has no commit; a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFault {
    pub code: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

#[async_trait]
impl Sources for Mirrors {
    async fn resolve(&self, repo: &str, reference: &SourceRef, trust: &Trust) -> Result<SourceHead, SourceFault> {
        match Mirrors::resolve(self, repo, reference, trust.clone()).await {
            Ok(head) => Ok(SourceHead { commit: head.commit, mirror: head.path }),
            Err(error) => Err(SourceFault::from(&error)),
        }
    }

    async fn tags(&self, repo: &str, trust: &Trust) -> Result<Vec<(String, String)>, SourceFault> {
        Mirrors::tags(self, repo, trust.clone()).await.map_err(|error| SourceFault::from(&error))
    }
}

/// By repository, reference and whose it is.
pub(super) type Heads = BTreeMap<(String, Reference, Trust), Result<SourceHead, SourceFault>>;

/// A source that isn't here by then is packed when it comes; its mirror says when.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn resolve(sources: &Arc<dyn Sources>, listed: &Listed, tenancy: &Tenancy) -> Heads {
    let key = |(assignment, source): (&str, &SourceName)| {
        Some((source.repo.clone(), source.reference.clone(), tenancy.trust(assignment)?.clone()))
    };
    let wanted: BTreeSet<(String, Reference, Trust)> = listed.sources().filter_map(key).collect();
    let mut tasks = JoinSet::new();
    for key in wanted {
        let sources = Arc::clone(sources);
        tasks.spawn(async move {
            let reference = SourceRef::from(&key.1);
            let resolved = tokio::time::timeout(PATIENCE, sources.resolve(&key.0, &reference, &key.2)).await;
            (key, resolved.unwrap_or_else(|_| Err(SourceFault::slow())))
        });
    }
    let mut heads = Heads::new();
    while let Some(done) = tasks.join_next().await {
        if let Ok((key, head)) = done {
            heads.insert(key, head);
        }
    }
    heads
}

pub(super) fn head<'a>(
    heads: &'a Heads,
    source: &SourceName,
    trust: &Trust,
) -> Option<&'a Result<SourceHead, SourceFault>> {
    heads.get(&(source.repo.clone(), source.reference.clone(), trust.clone()))
}

impl From<&MirrorError> for SourceFault {
    fn from(error: &MirrorError) -> SourceFault {
        let code = match error {
            MirrorError::Refused(_) => "SourceNotAllowed",
            MirrorError::Failing { .. } | MirrorError::Pending { .. } => FAILING,
        };
        SourceFault { code, message: chain(error), hint: error.hint() }
    }
}

impl SourceFault {
    pub(super) fn slow() -> SourceFault {
        SourceFault {
            code: FAILING,
            message: "its server hasn't answered yet".to_owned(),
            hint: Some("nothing to do: it is packed as soon as it is fetched".to_owned()),
        }
    }

    pub(super) fn interrupted() -> SourceFault {
        SourceFault { code: FAILING, message: "asking for its commit was interrupted".to_owned(), hint: None }
    }

    pub(super) fn problem(&self, source: &SourceName) -> Problem {
        let problem = Problem::error(self.code, format!("{} can't be read: {}", source.repo, self.message));
        match &self.hint {
            Some(hint) => problem.hint(hint.clone()),
            None => problem,
        }
    }
}
