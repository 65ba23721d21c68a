//! What somebody asks for once: a revision for a plan, a branch that is published to. Found and fetched, and not followed.

use std::path::PathBuf;

use kedge_hub_types::git::{Failure, RefName};
use kedge_platform::Want;

use super::repository::Repository;
use super::{Head, MirrorError, Mirrors, Trust};
use crate::store::now;

/// A name of a revision that is longer isn't one.
const LONGEST_REVISION: usize = 250;

/// Digits of a commit's id: as few as Git abbreviates to, and all.
const SHORTEST_COMMIT: usize = 7;
const WHOLE_COMMIT: usize = 40;

impl Mirrors {
    /// The commit of a branch, a tag or a commit id (also abbreviated, and with `~1` behind it), as its server has it now. What is
    /// found is fetched; nothing is followed from then on, and a name that isn't there fails nothing but this question.
    pub async fn find(&self, url: &str, revision: &str, trust: Trust) -> Result<Head, MirrorError> {
        let repository = self.repository(url, &trust)?;
        let (name, steps) = revision.split_at(revision.find(['~', '^']).unwrap_or(revision.len()));
        let plain = |c: char| c.is_ascii_digit() || matches!(c, '~' | '^');
        let is_hex = name.len() >= SHORTEST_COMMIT && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if name.is_empty() || revision.len() > LONGEST_REVISION || !steps.chars().all(plain) {
            return Err(unknown_revision(url, revision, String::new()));
        }
        if name.len() == WHOLE_COMMIT && repository.has_commit(name) {
            return Mirrors::stepped(&repository, name, revision, steps);
        }
        let mut why = String::new();
        let mut found = None;
        for want in [Want::branch(name), Want::tag(name)].into_iter().flatten() {
            match repository.bring(&self.inner.around, want).await {
                Ok(Some(at)) => found = Some(at.commit.to_string()),
                Ok(None) => {}
                Err(fault) => why = fault.error,
            }
            if found.is_some() {
                break;
            }
        }
        if found.is_none() && is_hex {
            if name.len() == WHOLE_COMMIT {
                return Mirrors::stepped(
                    &repository,
                    &self.commit(url, None, name, trust).await?.commit,
                    revision,
                    steps,
                );
            }
            found = repository.open().and_then(|repo| repo.resolve(name).ok()).map(|known| known.commit.to_string());
        }
        match found {
            Some(commit) => Mirrors::stepped(&repository, &commit, revision, steps),
            None => Err(unknown_revision(url, revision, why)),
        }
    }

    /// Where a branch is just now, and the mirror that has it; none: the server has no such branch. Good or not, and not followed
    /// because of that: a branch of ours that isn't there fails nobody.
    pub async fn ask(&self, url: &str, branch: &str) -> Result<(PathBuf, Option<String>), MirrorError> {
        let repository = self.repository(url, &Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        match repository.bring(self.around(), want).await {
            Ok(found) => Ok((repository.path.clone(), found.map(|found| found.commit.to_string()))),
            Err(fault) => {
                let (error, hint, firm) = (fault.error, fault.hint, fault.firm);
                let failure = Failure { error, hint, since: now(), attempts: 1, firm };
                Err(MirrorError::Failing { repo: url.to_owned(), failure })
            }
        }
    }

    fn stepped(repository: &Repository, commit: &str, revision: &str, steps: &str) -> Result<Head, MirrorError> {
        if steps.is_empty() {
            return Ok(repository.head("", commit));
        }
        let found = repository.open().and_then(|repo| repo.resolve(&format!("{commit}{steps}")).ok());
        match found {
            Some(found) => Ok(repository.head("", &found.commit.to_string())),
            None => Err(unknown_revision(&repository.name, revision, String::new())),
        }
    }
}

fn unknown_revision(url: &str, revision: &str, why: String) -> MirrorError {
    let error = match why.is_empty() {
        true => format!("there is no branch, tag or commit `{revision}`"),
        false => format!("`{revision}`: {why}"),
    };
    let hint = "push it first, or name a branch, a tag or a commit that is there".to_owned();
    let failure = Failure { error, hint, since: now(), attempts: 1, firm: false };
    MirrorError::Failing { repo: url.to_owned(), failure }
}
