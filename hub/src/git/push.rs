//! Pushing a commit of a mirror with the `git` program: never over a head that nobody expected. Called by publishing.

use std::path::PathBuf;
use std::time::Duration;

use kedge_platform::Want;

use super::access::Trust;
use super::address::{Address, Refused, Scheme};
use super::credential::SecretError;
use super::program::{Program, ProgramError, Said};
use super::repository::{Failure, RefName, Repository};
use super::{MirrorError, Mirrors};
use crate::store::now;

/// A push of some commits takes seconds; hooks of the server may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// Fetch, build again on the new head, push again.
    #[error("the branch moved meanwhile")]
    Moved,
    /// A person has to do something: rights, a protected branch, a hook.
    #[error("the server refused the push: {message}")]
    Refused { message: String },
    /// Worth another try.
    #[error("the server can't be reached: {message}")]
    Unreachable { message: String },
    #[error(transparent)]
    NotAllowed(#[from] Refused),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Where a branch is on its server at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchNow {
    /// The bare mirror, which has the commit.
    pub path: PathBuf,
    /// Good or not; none: there is no such branch.
    pub commit: Option<String>,
}

impl Mirrors {
    /// Asks the server where a branch is, for whoever pushes to it. It isn't followed because of that.
    pub async fn branch_now(&self, url: &str, branch: &str) -> Result<BranchNow, MirrorError> {
        let repository = self.repository(url, Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        match repository.bring(self.around(), want).await {
            Ok(found) => {
                Ok(BranchNow { path: repository.path.clone(), commit: found.map(|found| found.commit.to_string()) })
            }
            Err(fault) => {
                let (error, hint, firm) = (fault.error, fault.hint, fault.firm);
                let failure = Failure { error, hint, since: now(), attempts: 1, firm };
                Err(MirrorError::Failing { repo: url.to_owned(), failure })
            }
        }
    }

    /// Pushes a commit that is in the mirror. `expected` is the head that is replaced; none: the branch must be new.
    pub async fn push(&self, url: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        let repository = self.repository(url, Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        let _turn = repository.turn.lock().await;
        self.send(&repository, &want, Some(commit), expected).await?;
        let reference = Program::new(&repository.path).args(["update-ref", "--no-deref", want.local(), commit]);
        if !reference.run(PATIENCE).await?.success {
            tracing::warn!(repo = url, branch, "the mirror's ref can't be moved; the next fetch does it");
        }
        repository.pushed(self.around(), branch, commit).await;
        tracing::info!(repo = url, branch, commit, "pushed");
        Ok(())
    }

    /// Deletes a branch of ours, if it is where we expect it.
    pub async fn delete_branch(&self, url: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        let repository = self.repository(url, Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        let _turn = repository.turn.lock().await;
        self.send(&repository, &want, None, Some(expected)).await?;
        let reference = Program::new(&repository.path).args(["update-ref", "--no-deref", "-d", want.local()]);
        if !reference.run(PATIENCE).await?.success {
            tracing::debug!(repo = url, branch, "the mirror's ref stays");
        }
        repository.unfollow(self.around(), branch).await;
        tracing::info!(repo = url, branch, "branch deleted");
        Ok(())
    }

    /// To a commit, or to nothing.
    async fn send(
        &self,
        repository: &Repository,
        want: &Want,
        commit: Option<&str>,
        expected: Option<&str>,
    ) -> Result<(), PushError> {
        if [commit, expected].into_iter().flatten().any(|id| gix::ObjectId::from_hex(id.as_bytes()).is_err()) {
            return Err(Refused::new("a push needs full commit ids", "this is a fault of the hub").into());
        }
        let address = &repository.address;
        let (remote, full) = (address.url(), want.theirs());
        let lease = format!("--force-with-lease={full}:{}", expected.unwrap_or_default());
        let mut program = Program::new(&repository.path).args(["push", "--porcelain", "--no-verify", &lease]);
        match address {
            // Its hooks and settings are the repository's own business, its owner is ours.
            Address::Local(_) => program = program.args(["--receive-pack=git -c safe.directory=* receive-pack"]),
            Address::Server(server) => {
                let rules = &self.around().rules;
                if server.scheme == Scheme::Ssh {
                    program = program.ssh(rules.credentials.ssh_key(server));
                } else if let Some(secret) = rules.credentials.secret(server)? {
                    program = program.authorization(&remote, &secret.basic());
                }
            }
        }
        let spec = format!("{}:{full}", commit.unwrap_or_default());
        judge(&program.args(["--", &remote, &spec]).run(PATIENCE).await?)
    }
}

fn judge(said: &Said) -> Result<(), PushError> {
    if said.success {
        return Ok(());
    }
    // `!<tab>from:to<tab>[reason]`: the server was reached and said no.
    let Some(verdict) = said.out.lines().find_map(|line| line.strip_prefix("!\t")) else {
        return Err(PushError::Unreachable { message: said.reason() });
    };
    let summary = verdict.rsplit('\t').next().unwrap_or(verdict);
    let moved = ["stale info", "fetch first", "non-fast-forward", "cannot lock ref", "failed to update ref"];
    if moved.iter().any(|word| summary.contains(word)) {
        return Err(PushError::Moved);
    }
    let remarks: Vec<&str> =
        said.error.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim).collect();
    let remarks = remarks.join(" ").chars().filter(|c| !c.is_control()).take(500).collect::<String>();
    let message = if remarks.is_empty() { summary.to_owned() } else { format!("{summary}: {remarks}") };
    Err(PushError::Refused { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(out: &str, error: &str) -> Said {
        Said { success: false, out: out.to_owned(), error: error.to_owned() }
    }

    #[test]
    fn what_a_push_said_is_what_happens_next() {
        let moved = said("To h\n!\tabc:refs/heads/dev\t[rejected] (stale info)\nDone\n", "error: failed to push\n");
        assert!(matches!(judge(&moved), Err(PushError::Moved)));
        let refused = said(
            "To h\n!\tabc:refs/heads/dev\t[remote rejected] (pre-receive hook declined)\n",
            "remote: only pull requests\nerror: failed to push\n",
        );
        let Err(PushError::Refused { message }) = judge(&refused) else { panic!("refused") };
        assert_eq!(message, "[remote rejected] (pre-receive hook declined): only pull requests");
        let away = said("", "fatal: unable to access 'http://h/': Failed to connect\n");
        assert!(matches!(judge(&away), Err(PushError::Unreachable { .. })));
    }
}
