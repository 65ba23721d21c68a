//! Pushing a commit of a mirror with the `git` program: never over a head that nobody expected. Called by publishing.

use std::time::Duration;

use kedge_hub_types::git::RefName;

use super::Mirrors;
use super::access::Trust;
use super::address::{Address, Refused, Scheme};
use super::credential::{Reader, SecretError};
use super::program::{Program, ProgramError, Said};
use super::repository::Repository;

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
    /// The credential isn't taken, or gives no right to write.
    #[error("the credential isn't accepted: {message}")]
    Denied { message: String },
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

impl Mirrors {
    /// Pushes a commit that is in the mirror. `expected` is the head that is replaced; none: the branch must be new.
    pub async fn push(&self, url: &str, commit: &str, branch: &str, expected: Option<&str>) -> Result<(), PushError> {
        let repository = self.repository(url, &Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        full_ids([Some(commit), expected])?;
        let _turn = repository.turn.lock().await;
        let lease = format!("--force-with-lease={}:{}", want.theirs(), expected.unwrap_or_default());
        let program = self.pushing(&repository, &lease)?;
        let spec = format!("{commit}:{}", want.theirs());
        let begun = std::time::Instant::now();
        judge(&program.args(["--", &repository.route.address.url(), &spec]).run(PATIENCE).await?)?;
        let reference = Program::new(&repository.path).args(["update-ref", "--no-deref", want.local(), commit]);
        if !reference.run(PATIENCE).await?.success {
            tracing::warn!(repo = url, branch, "the mirror's ref can't be moved; the next fetch does it");
        }
        let programs_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        repository.pushed(self.around(), branch, commit).await;
        tracing::info!(repo = url, branch, commit, programs_ms, "pushed");
        Ok(())
    }

    /// Deletes a branch that is where we expect it, and follows it no more.
    pub async fn delete(&self, url: &str, branch: &str, expected: &str) -> Result<(), PushError> {
        let repository = self.repository(url, &Trust::Platform)?;
        let want = RefName::Branch(branch.to_owned()).want()?;
        full_ids([Some(expected), None])?;
        let _turn = repository.turn.lock().await;
        let lease = format!("--force-with-lease={}:{expected}", want.theirs());
        let program = self.pushing(&repository, &lease)?;
        let spec = format!(":{}", want.theirs());
        judge(&program.args(["--", &repository.route.address.url(), &spec]).run(PATIENCE).await?)?;
        repository.deleted(self.around(), branch).await;
        tracing::info!(repo = url, branch, "branch deleted");
        Ok(())
    }

    fn pushing(&self, repository: &Repository, lease: &str) -> Result<Program, PushError> {
        let program = Program::new(&repository.path).args(["push", "--porcelain", "--no-verify", lease]);
        let server = match &repository.route.address {
            // Its hooks and settings are the repository's own business, its owner is ours.
            Address::Local(_) => return Ok(program.args(["--receive-pack=git -c safe.directory=* receive-pack"])),
            Address::Server(server) => server,
        };
        let rules = &self.around().rules;
        if server.scheme == Scheme::Ssh {
            return Ok(program.ssh(rules.credentials.ssh_key(server, &Reader::Platform)));
        }
        Ok(match rules.credentials.secret(server, &Reader::Platform)? {
            Some(secret) => program.authorization(&repository.route.address.url(), &secret.basic()),
            None => program,
        })
    }
}

/// What is not an id could be an option or another ref.
fn full_ids(commits: [Option<&str>; 2]) -> Result<(), Refused> {
    let is_id = |text: &str| gix::ObjectId::from_hex(text.as_bytes()).is_ok();
    match commits.into_iter().flatten().all(is_id) {
        true => Ok(()),
        false => Err(Refused::new("a push needs full commit ids", "this is a fault of the hub")),
    }
}

fn judge(said: &Said) -> Result<(), PushError> {
    if said.success {
        return Ok(());
    }
    // `!<tab>from:to<tab>[reason]`: the server was reached and said no.
    let Some(verdict) = said.out.lines().find_map(|line| line.strip_prefix("!\t")) else {
        let (message, text) = (said.reason(), said.error.to_lowercase());
        let denied =
            ["authentication failed", "could not read username", "error: 401", "error: 403", "permission denied"];
        return Err(match denied.iter().any(|words| text.contains(words)) {
            true => PushError::Denied { message },
            false => PushError::Unreachable { message },
        });
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
