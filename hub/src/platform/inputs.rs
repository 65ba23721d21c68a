//! The repositories of one load: mirrors as they are at this moment. Never waits; what isn't there yet is noted, and
//! fetched before the next try.

use std::cell::RefCell;
use std::sync::Arc;

use kedge_hub_types::git::Failure;
use kedge_platform::repositories::Repositories;
use kedge_platform::{Cache, RepoError, Request, Revision, Tree};

use super::enforced::Enforced;
use super::preview::Overlay;
use super::{Input, Seen};
use crate::git::{Head, Look, Mirrors, Trust};

#[derive(Debug)]
pub(super) struct Inputs {
    mirrors: Mirrors,
    cache: Arc<Cache>,
    /// Main is read at the commit that was let in.
    enforced: Option<Arc<Enforced>>,
    /// What is tried in place of what is in force.
    overlay: Option<Arc<Overlay>>,
    seen: RefCell<Seen>,
    failing: RefCell<Vec<FailingInput>>,
}

/// A repository that is read at its last good commit because its newest can't be had.
#[derive(Clone, Debug, PartialEq)]
pub struct FailingInput {
    pub repo: String,
    pub branch: Option<String>,
    pub failure: Failure,
}

impl Inputs {
    pub fn new(mirrors: Mirrors, cache: Arc<Cache>) -> Inputs {
        Inputs { mirrors, cache, enforced: None, overlay: None, seen: RefCell::default(), failing: RefCell::default() }
    }

    pub fn enforcing(mut self, enforced: Option<Arc<Enforced>>) -> Inputs {
        self.enforced = enforced;
        self
    }

    pub fn trying(mut self, overlay: Option<Arc<Overlay>>) -> Inputs {
        self.overlay = overlay;
        self
    }

    pub fn failing(&self) -> Vec<FailingInput> {
        self.failing.borrow().clone()
    }

    pub fn into_seen(self, own: Option<Head>) -> Seen {
        let mut seen = self.seen.into_inner();
        seen.heads.extend(own);
        seen
    }

    fn tree(&self, head: &Head, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        let gone = || RepoError::Refused {
            reason: format!("the mirror of {} can't be read", request.repo),
            hint: "it is fetched again".to_owned(),
        };
        let repo = self.mirrors.open(&request.repo, Trust::Platform).ok_or_else(gone)?;
        let revision = Revision { name: request.branch.clone(), ..repo.commit(&head.commit)? };
        Ok(Box::new(repo.tree(&revision, &request.repo)?))
    }
}

impl Repositories for Inputs {
    fn open(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        let redirected = match &self.enforced {
            Some(enforced) => enforced.redirect(&self.mirrors, request),
            None => Ok(None),
        };
        let Some(overlay) = &self.overlay else {
            return self.open_at(redirected?.as_ref().unwrap_or(request));
        };
        let (request, part) = overlay.redirect(&self.mirrors, request, redirected)?;
        Ok(overlay.cover(part, self.open_at(&request)?))
    }

    fn cache(&self) -> Option<&Cache> {
        Some(&self.cache)
    }
}

impl Inputs {
    fn open_at(&self, request: &Request) -> Result<Box<dyn Tree>, RepoError> {
        let (branch, commit) = (request.branch.as_deref(), request.commit.as_deref());
        let input = Input { repo: self.mirrors.key(&request.repo), branch: request.branch.clone() };
        let mut seen = self.seen.borrow_mut();
        seen.asked.insert(input.clone());
        match self.mirrors.look(&request.repo, branch, commit, Trust::Platform) {
            Look::Known { head, failing } => {
                seen.commits.insert(input, head.commit.clone());
                if let Some(failure) = failing.filter(|failure| failure.firm) {
                    let (repo, branch) = (request.repo.clone(), request.branch.clone());
                    self.failing.borrow_mut().push(FailingInput { repo, branch, failure });
                }
                let tree = self.tree(&head, request);
                seen.heads.push(head);
                tree
            }
            Look::Failing(error) => Err(RepoError::Refused {
                reason: error.to_string(),
                hint: error.hint().unwrap_or_else(|| "check the address".to_owned()),
            }),
            Look::NotYet => {
                seen.missing.insert(request.clone());
                Err(RepoError::Refused {
                    reason: format!("{} is being fetched for the first time", request.repo),
                    hint: "it continues by itself".to_owned(),
                })
            }
        }
    }
}
