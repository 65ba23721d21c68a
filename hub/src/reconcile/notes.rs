//! What the reconciler knows besides the schedule, in the form that the catalog shows. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::environments::{PublishSummary, WaitingRemovals};
use kedge_api::findings::Finding;
use kedge_api::repositories::{RepositoryFailure, RepositorySummary};
use kedge_api::source::InputCommit;
use kedge_hub_types::git::{Failure, RefName};
use kedge_model::wire::Timestamp;
use kedge_model::{Kind, Platform, Spec};
use kedge_platform::RepoKey;
use kedge_rollout::chain::short;

use super::steps::Stop;
use crate::git::RepoStatus;
use crate::pack::Packed;
use crate::platform::Input;
use crate::publish::{Outcome, Published, PullState, shown_repo};

pub(super) fn inputs(commits: &BTreeMap<Input, String>) -> Vec<InputCommit> {
    let view =
        |(input, commit): (&Input, &String)| InputCommit { repo: input.repo.to_string(), commit: commit.clone() };
    commits.iter().map(view).collect()
}

/// What an environment asks of repositories.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    /// Branches that are read or written.
    pub branches: BTreeSet<Input>,
    /// What workloads are delivered from, by whatever ref.
    pub sources: BTreeSet<RepoKey>,
}

impl Asked {
    fn has_repository(&self, key: &RepoKey) -> bool {
        self.sources.contains(key) || self.branches.iter().any(|input| input.repo == *key)
    }

    /// A branch that was named once may be followed still.
    fn has(&self, repo: &RepoStatus, name: &RefName) -> bool {
        let is_read = |branch: Option<String>| self.branches.contains(&Input { repo: repo.key.clone(), branch });
        self.sources.contains(&repo.key)
            || match name {
                RefName::Branch(name) => is_read(Some(name.clone())) || (name.is_empty() && is_read(None)),
                RefName::Tag(_) => false,
            }
    }
}

/// The repositories of an environment: its inputs, where it is published, what it delivers.
pub(super) fn repositories(status: &[RepoStatus], platform: &Platform, asked: &Asked) -> Vec<RepositorySummary> {
    let mut workspaces: BTreeMap<RepoKey, BTreeSet<String>> = BTreeMap::new();
    for object in platform.of_kind(Kind::WorkloadRegistration) {
        if let Spec::WorkloadRegistration(registration) = &object.spec {
            let key = RepoKey::new(&registration.workload.repo);
            let workspace = registration.workspace.clone().unwrap_or_default();
            workspaces.entry(key).or_default().insert(workspace);
        }
    }
    let views = status.iter().filter_map(|repo| {
        let of = workspaces.get(&RepoKey::new(&repo.url));
        (of.is_some() || asked.has_repository(&repo.key)).then(|| RepositorySummary {
            url: repo.url.clone(),
            branches: heads(repo),
            last_good: repo.last_good.map(rfc3339),
            failing: failing(repo, asked),
            forced: forced(repo),
            workspaces: of.into_iter().flatten().cloned().collect(),
        })
    });
    views.collect()
}

fn heads(repo: &RepoStatus) -> BTreeMap<String, String> {
    let branch = |(name, commit): (&RefName, &Option<String>)| match (name, commit) {
        (RefName::Branch(name), Some(commit)) => Some((name.clone(), commit.clone())),
        _ => None,
    };
    repo.refs.iter().filter_map(|(name, tracked)| branch((name, &tracked.commit))).collect()
}

fn failing(repo: &RepoStatus, asked: &Asked) -> Option<RepositoryFailure> {
    let mut refs = repo.refs.iter().filter(|(name, _)| asked.has(repo, name));
    let of_ref = || refs.find_map(|(_, tracked)| tracked.failing.clone());
    let Failure { error, hint, since, .. } = repo.failing.clone().or_else(of_ref)?;
    let hint = Some(hint).filter(|hint| !hint.is_empty());
    Some(RepositoryFailure { error, hint, since: rfc3339(since), next_try: repo.next_try.map(rfc3339) })
}

fn forced(repo: &RepoStatus) -> Vec<String> {
    repo.refs.iter().filter(|(_, tracked)| tracked.forced.is_some()).map(|(name, _)| name.to_string()).collect()
}

/// Branches that are read and whose history was rewritten, until somebody pushes on top: what was taken off them runs in places
/// until the new head has come everywhere.
pub(super) fn rewritten(status: &[RepoStatus], read: &BTreeSet<Input>) -> Vec<Finding> {
    let mut found = Vec::new();
    for repo in status {
        for (name, tracked) in &repo.refs {
            let RefName::Branch(branch) = name else { continue };
            let input = Input { repo: repo.key.clone(), branch: Some(branch.clone()) };
            let forced = tracked.forced.as_ref().filter(|forced| tracked.commit.as_ref() == Some(&forced.to));
            let Some(forced) = forced.filter(|_| read.contains(&input)) else { continue };
            let (from, to, at) = (short(&forced.from), short(&forced.to), rfc3339(forced.at));
            found.push(Finding {
                severity: "warning".to_owned(),
                code: "HistoryRewritten".to_owned(),
                message: format!(
                    "the history of {name} of {} was rewritten at {at}: {from} isn't on it any more, and its new head {to} is followed",
                    shown_repo(&repo.url)
                ),
                hint: Some(format!("if that was a mistake, push again what was taken off: it is in {from}")),
                origin: None,
                related: Vec::new(),
                stage: "load".to_owned(),
            });
        }
    }
    found
}

pub(super) fn published(published: &Published) -> PublishSummary {
    let view = |outcome: &str| PublishSummary { outcome: outcome.to_owned(), ..PublishSummary::default() };
    let head = published.head.as_ref().map(|head| head.commit.clone());
    match &published.outcome {
        Outcome::Unchanged if !published.waiting.is_empty() => PublishSummary { commit: head, ..view("waiting") },
        Outcome::Unchanged => PublishSummary { commit: head, ..view("unchanged") },
        Outcome::Committed(commit) => PublishSummary { commit: Some(commit.clone()), ..view("committed") },
        Outcome::PullRequest { number, url, state } => PublishSummary {
            commit: head,
            link: Some(url.clone()),
            message: Some(format!("pull request {number} is {}", pull_state(*state))),
            ..view("pullRequest")
        },
        Outcome::BranchPushed(name) => PublishSummary {
            commit: head,
            link: Some(name.clone()),
            message: Some(format!("merge the branch {name}")),
            ..view("branchPushed")
        },
        Outcome::Declined { number, url } => PublishSummary {
            commit: head,
            link: Some(url.clone()),
            message: Some(format!("pull request {number} was closed; it is asked again when its content changes")),
            ..view("declined")
        },
        Outcome::ForeignCommits { branch, commit, author } => PublishSummary {
            commit: head,
            link: Some(branch.clone()),
            message: Some(format!("{author} pushed {commit} to {branch}; it is left alone")),
            ..view("waiting")
        },
    }
}

fn pull_state(state: PullState) -> &'static str {
    match state {
        PullState::Open => "open",
        PullState::Merged => "merged",
        PullState::Closed => "closed",
    }
}

pub(super) fn failed(stop: &Stop) -> PublishSummary {
    let message = match &stop.hint {
        Some(hint) => format!("{} ({hint})", stop.message),
        None => stop.message.clone(),
    };
    PublishSummary { outcome: "failing".to_owned(), commit: None, link: None, message: Some(message) }
}

pub(super) fn waiting(published: &Published) -> Vec<WaitingRemovals> {
    let view = |(cluster_type, removal): (&String, &crate::publish::Removal)| WaitingRemovals {
        cluster_type: cluster_type.clone(),
        removed: removal.gone.iter().cloned().collect(),
        confirmed: removal.of as u64,
    };
    published.waiting.iter().map(view).collect()
}

/// Files of ours that people changed.
fn hand_edits(published: &Published) -> Vec<Finding> {
    let view = |edit: &crate::store::publish::HandEdit| Finding {
        severity: "warning".to_owned(),
        code: "HandEdit".to_owned(),
        message: format!("{} was changed by {} in {}; it is delivered as it is", edit.path, edit.author, edit.commit),
        hint: Some("put the change into the control plane; the next publish of this file replaces it".to_owned()),
        origin: None,
        related: Vec::new(),
        stage: "publish".to_owned(),
    };
    published.foreign.iter().map(view).collect()
}

/// What concerns no single assignment: hand edits, and what packing and signing noticed.
pub(super) fn notices(published: &Published, packed: Option<&Packed>) -> Vec<Finding> {
    let mut found = hand_edits(published);
    let problems = packed.map(|packed| packed.problems.as_slice()).unwrap_or_default();
    found.extend(
        problems.iter().filter(|problem| problem.assignment.is_none()).map(|problem| Finding::of(problem, "pack")),
    );
    found
}

pub(super) fn quarantines(packed: &Packed) -> BTreeMap<String, Vec<Finding>> {
    let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
    for problem in &packed.problems {
        if let Some(assignment) = &problem.assignment {
            found.entry(assignment.clone()).or_default().push(Finding::of(problem, "pack"));
        }
    }
    found
}

pub(super) fn rfc3339(time: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(time.0).map(|time| time.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kedge_hub_types::git::{Forced, Tracked};

    #[test]
    fn a_rewritten_branch_that_is_read_is_told_until_somebody_pushes_on_top() {
        let key = RepoKey::new("https://git.example.com/cp");
        let name = RefName::Branch("main".to_owned());
        let (from, to) = ("a".repeat(40), "b".repeat(40));
        let forced = Some(Forced { from, to: to.clone(), at: Timestamp(0) });
        let tracked = Tracked { commit: Some(to), forced, ..Tracked::default() };
        let mut repo = RepoStatus {
            key: key.clone(),
            url: "https://git.example.com/cp".to_owned(),
            refs: BTreeMap::from([(name.clone(), tracked)]),
            last_good: None,
            failing: None,
            next_try: None,
        };
        let main = Input { repo: key.clone(), branch: Some("main".to_owned()) };
        let told = rewritten(std::slice::from_ref(&repo), &BTreeSet::from([main.clone()]));
        assert_eq!((told.len(), told[0].code.as_str(), told[0].severity.as_str()), (1, "HistoryRewritten", "warning"));
        assert!(told[0].message.contains("aaaaaaaaaaaa isn't on it any more"), "{}", told[0].message);
        let dev = Input { repo: key, branch: Some("dev".to_owned()) };
        assert!(rewritten(std::slice::from_ref(&repo), &BTreeSet::from([dev])).is_empty(), "nobody reads it");
        repo.refs.get_mut(&name).unwrap().commit = Some("c".repeat(40));
        assert!(rewritten(&[repo], &BTreeSet::from([main])).is_empty(), "work goes on");
    }

    #[test]
    fn a_branch_that_is_no_longer_read_fails_no_repository() {
        let url = "https://git.example.com/cp";
        let key = RepoKey::new(url);
        let failing = Some(Failure {
            error: "the branch mian does not exist".to_owned(),
            hint: String::new(),
            since: Timestamp(0),
            attempts: 1,
            firm: true,
        });
        let wrong = Tracked { failing, ..Tracked::default() };
        let refs = [("mian", wrong), ("main", Tracked::default())];
        let repo = RepoStatus {
            key: key.clone(),
            url: url.to_owned(),
            refs: refs.into_iter().map(|(name, tracked)| (RefName::Branch(name.to_owned()), tracked)).collect(),
            last_good: None,
            failing: None,
            next_try: None,
        };
        let read = |branch: &str| {
            let branches = BTreeSet::from([Input { repo: key.clone(), branch: Some(branch.to_owned()) }]);
            let asked = Asked { branches, ..Asked::default() };
            repositories(std::slice::from_ref(&repo), &Platform::default(), &asked).remove(0).failing
        };
        assert_eq!(read("mian").unwrap().error, "the branch mian does not exist");
        assert_eq!(read("main"), None, "the name was corrected");
        // A workload may be delivered from any ref.
        let asked = Asked { sources: BTreeSet::from([key.clone()]), ..Asked::default() };
        assert!(repositories(&[repo], &Platform::default(), &asked)[0].failing.is_some());
    }
}
