//! What the task of an environment does next: where to begin after news, when to look again, how long to wait after a failure. Pure;
//! `environment` does it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kedge_hub_types::git::RefName;
use kedge_platform::RepoKey;

use super::RESYNC;
use super::steps::Stage;
use crate::git::{Head, RepoChange, What};
use crate::metrics::ReconcileOutcome;
use crate::platform::Input;
use crate::publish::{Next, Outcome, PullState};

/// What an environment has to do with repositories, as it was last read.
#[derive(Debug)]
pub(super) struct Environs<'a> {
    /// Repository and branch.
    pub control_plane: (RepoKey, &'a str),
    pub inputs: &'a BTreeSet<Input>,
    pub commits: &'a BTreeMap<Input, String>,
    /// Where it is published: repository and branch.
    pub target: Option<(RepoKey, &'a str)>,
    /// The branch's head that was packed, with its repository.
    pub head: Option<(RepoKey, &'a Head)>,
}

/// What happens after a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Until the next look without news.
    pub pause: Duration,
    /// Where that begins.
    pub from: Stage,
    pub outcome: ReconcileOutcome,
}

/// The first pause after a failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// A pull request that was closed tells nobody: it is looked at so often.
const PULL_REQUEST: Duration = Duration::from_secs(60);

/// Inputs that fail are looked at again; most tell themselves when they are there.
const FAILING_INPUT: Duration = Duration::from_secs(60);

/// A renderer that comes back tells nobody either; it is asked by a connection to its socket.
const RENDERER_AWAY: Duration = Duration::from_secs(30);

/// What a person or a server must mend is tried again after this, and then ever less often: nobody tells when it is mended.
const UNASKED: Duration = Duration::from_secs(8);

impl Environs<'_> {
    /// Where a reconciliation begins after a repository changed; none: nothing here depends on it.
    pub fn begin(&self, change: &RepoChange) -> Option<Stage> {
        // Sources of applications, beside what the platform itself reads of the same repository.
        if !change.of_platform {
            return Some(Stage::Pack);
        }
        let (control_plane, control_branch) = &self.control_plane;
        let own = *control_plane == change.key;
        let read = own || self.inputs.iter().any(|input| input.repo == change.key);
        let target = self.target.as_ref().filter(|(repo, _)| *repo == change.key);
        let (reference, commit) = match &change.what {
            What::Moved { reference, commit, .. } => (reference, commit),
            What::Told => return target.map(|_| Stage::Publish),
            // What is shown of it is another.
            What::Failing | What::Recovered => {
                return Some(match (read, target) {
                    (true, _) => Stage::Read,
                    (false, Some(_)) => Stage::Publish,
                    (false, None) => Stage::Pack,
                });
            }
        };
        let RefName::Branch(branch) = reference else { return Some(Stage::Pack) };
        let input = Input { repo: change.key.clone(), branch: Some(branch.clone()) };
        // The reconciliation that just ended has read it.
        if self.commits.get(&input) == Some(commit) || self.is_head(change, branch, commit) {
            return None;
        }
        if self.inputs.contains(&input) || (own && branch == control_branch) {
            return Some(Stage::Read);
        }
        if target.is_some_and(|(_, ours)| branch == ours || branch.starts_with("kedge/")) {
            return Some(Stage::Publish);
        }
        Some(Stage::Pack)
    }

    fn is_head(&self, change: &RepoChange, branch: &str, commit: &str) -> bool {
        let known = self.head.as_ref().filter(|(repo, _)| *repo == change.key);
        known.is_some_and(|(_, head)| head.commit == commit && head.branch == branch)
    }
}

/// When to look again though nobody says anything, and where that begins.
pub(super) fn look_again(outcome: Option<&Outcome>, inputs_fail: bool, awaits_renderer: bool) -> (Duration, Stage) {
    if matches!(outcome, Some(Outcome::PullRequest { state: PullState::Open, .. } | Outcome::BranchPushed(_))) {
        return (PULL_REQUEST, Stage::Publish);
    }
    if inputs_fail {
        return (FAILING_INPUT, Stage::Read);
    }
    match awaits_renderer {
        true => (RENDERER_AWAY, Stage::Read),
        false => (RESYNC, Stage::Read),
    }
}

/// What happens after a stop, the so many-th in a row, or after none. `again` is when to look without news.
pub(super) fn next(stop: Option<(Stage, Next)>, again: (Duration, Stage), failures: u32) -> Verdict {
    let Some((from, next)) = stop else {
        return Verdict { pause: again.0, from: again.1, outcome: ReconcileOutcome::Done };
    };
    let unasked = again.0.min(doubled(UNASKED, failures));
    let (pause, outcome) = match next {
        Next::Retry(least) => (doubled(FIRST_PAUSE, failures).max(least.unwrap_or_default()), ReconcileOutcome::Retry),
        Next::Wait => (unasked, ReconcileOutcome::Waiting),
        Next::Stalled => (unasked, ReconcileOutcome::Failed),
    };
    Verdict { pause, from, outcome }
}

fn doubled(first: Duration, failures: u32) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGAIN: (Duration, Stage) = (RESYNC, Stage::Read);

    fn moved(repo: &str, branch: &str, commit: &str) -> RepoChange {
        let reference = RefName::Branch(branch.to_owned());
        let what = What::Moved { reference, commit: commit.to_owned(), forced: false };
        RepoChange { key: RepoKey::new(repo), repo: repo.to_owned(), of_platform: true, what }
    }

    #[test]
    fn a_reconciliation_begins_where_the_change_is_and_not_for_what_it_has_read() {
        let key = |repo: &str| RepoKey::new(repo);
        let main = Input { repo: key("https://h/cp"), branch: Some("main".to_owned()) };
        let (inputs, commits) = (BTreeSet::from([main.clone()]), BTreeMap::from([(main, "c1".to_owned())]));
        let environs = Environs {
            control_plane: (key("https://h/cp"), "dev"),
            inputs: &inputs,
            commits: &commits,
            target: Some((key("https://h/gitops"), "dev")),
            head: None,
        };
        for (repo, branch, commit, from) in [
            ("https://h/cp", "main", "c1", None),
            ("https://h/cp", "main", "c2", Some(Stage::Read)),
            ("https://h/cp", "dev", "c2", Some(Stage::Read)),
            ("https://h/cp", "other", "c2", Some(Stage::Pack)),
            ("https://h/gitops", "dev", "c2", Some(Stage::Publish)),
            ("https://h/gitops", "kedge/dev", "c2", Some(Stage::Publish)),
            ("https://h/app", "main", "c2", Some(Stage::Pack)),
        ] {
            assert_eq!(environs.begin(&moved(repo, branch, commit)), from, "{repo} {branch} {commit}");
        }
        let told = RepoChange { what: What::Told, ..moved("https://h/app", "main", "c2") };
        assert_eq!(environs.begin(&told), None);
    }

    #[test]
    fn pauses_grow_with_each_failure_up_to_a_bound() {
        let pause = |next_step, failures| next(Some((Stage::Pack, next_step)), AGAIN, failures).pause.as_secs();
        assert_eq!([1, 2, 5, 60].map(|failures| pause(Next::Retry(None), failures)), [1, 2, 16, 120]);
        assert_eq!(pause(Next::Retry(Some(Duration::from_secs(30))), 1), 30);
        assert_eq!([1, 2, 60].map(|failures| pause(Next::Wait, failures)), [8, 16, 120]);
        let done = Verdict { pause: RESYNC, from: Stage::Read, outcome: ReconcileOutcome::Done };
        assert_eq!(next(None, AGAIN, 0), done);
    }
}
