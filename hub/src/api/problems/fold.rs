//! Which problems are consequences of others, and in which order the rest is told. Pure.

use kedge_api::problems::{ProblemKind, ProblemSeverity, ProblemSummary};
use kedge_model::command::Command;
use std::collections::{BTreeMap, BTreeSet};

use crate::api::fleet::Order;

/// Problems as they were found, and what ties them together.
#[derive(Debug, Default)]
pub struct Found {
    pub problems: Vec<ProblemSummary>,
    /// Environments with repositories that can't be read, and the problems that say so.
    pub failing: BTreeMap<String, BTreeSet<String>>,
    /// Assignments that a stopped or rolled back rollout moves, as (environment, `<cluster type>/<target>`).
    pub moved: BTreeMap<(String, String), String>,
    /// Assignments in quarantine, and objects that are stale, by environment.
    pub quarantined: BTreeMap<String, u64>,
    pub stale: BTreeMap<String, u64>,
}

/// Findings that only repeat that a repository can't be read.
const OF_REPOSITORIES: [&str; 4] = [super::REPOSITORY_FAILING, "RepositoryFailed", "SourceFailing", "SourceUnreadable"];

impl Found {
    pub fn add(&mut self, problem: ProblemSummary) {
        self.problems.push(problem);
    }
}

/// Causes with what they bring, by kind and along the chain.
pub fn fold(mut found: Found, order: &Order) -> Vec<ProblemSummary> {
    let mut kept: Vec<ProblemSummary> = Vec::new();
    let mut brought: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for problem in std::mem::take(&mut found.problems) {
        match cause(&found, &problem) {
            Some(id) => brought.entry(id).or_default().push(consequence(&problem)),
            None => kept.push(problem),
        }
    }
    let mut kept = together(kept);
    let told = |count| match count {
        1 => "1 assignment is in quarantine: what is published and what runs stays".to_owned(),
        count => format!("{count} assignments are in quarantine: what is published and what runs stays"),
    };
    spread(&mut kept, found.quarantined, told, quarantined);
    let told = |count| match count {
        1 => "1 object is stale: its last good version stays in force".to_owned(),
        count => format!("{count} objects are stale: their last good versions stay in force"),
    };
    spread(&mut kept, found.stale, told, stale);
    for problem in &mut kept {
        problem.brings.extend(brought.remove(&problem.id).unwrap_or_default());
        problem.environments.sort_by_cached_key(|name| order.place(name));
    }
    kept.sort_by_cached_key(|one| {
        let place = one.environments.first().map(|name| order.place(name));
        (one.kind, one.severity, place, one.environments.clone(), one.code.clone(), one.id.clone())
    });
    kept
}

/// The problem that this one is a consequence of.
fn cause(found: &Found, problem: &ProblemSummary) -> Option<String> {
    let environment = problem.environments.first()?;
    if OF_REPOSITORIES.contains(&problem.code.as_str()) && problem.kind != ProblemKind::Hub {
        let ids = found.failing.get(environment)?;
        // Each repository is a cause of its own; a finding belongs to the one that it names.
        let is_cause = found.failing.values().any(|ids| ids.contains(&problem.id));
        let names = |id: &&String| id.strip_prefix("git/").is_some_and(|repo| problem.message.contains(repo));
        let named = ids.iter().filter(names).max_by_key(|id| id.len());
        return named.or(ids.first()).filter(|_| !is_cause).cloned();
    }
    if problem.code == super::clusters::FAILED {
        let assignment = problem.examples.first()?.assignment.clone()?;
        return found.moved.get(&(environment.clone(), assignment)).cloned();
    }
    None
}

fn consequence(problem: &ProblemSummary) -> String {
    problem.message.clone()
}

/// The same findings in several environments are one: the same file was promoted to them.
fn together(problems: Vec<ProblemSummary>) -> Vec<ProblemSummary> {
    let mut kept: Vec<ProblemSummary> = Vec::new();
    for problem in problems {
        let told = |one: &ProblemSummary| one.examples.iter().map(|one| one.message.clone()).collect::<BTreeSet<_>>();
        let finding = problem.examples.iter().any(|example| example.id.is_some());
        let same = kept.iter_mut().find(|one| {
            finding
                && one.code == problem.code
                && one.severity == problem.severity
                && one.count == problem.count
                && told(one) == told(&problem)
        });
        match same {
            Some(one) => {
                one.environments.extend(problem.environments);
                one.since = one.since.take().into_iter().chain(problem.since).min();
                one.link = crate::links::query("/problems", &[("code", &one.code)]);
                one.command = Command::new("kedge get findings")
                    .option("-l", &format!("code={}", one.code))
                    .then("-o wide")
                    .into();
            }
            None => kept.push(problem),
        }
    }
    kept
}

/// Adds what a number means to the first error of the environment that can have caused it; where there is none, it is a
/// problem of its own.
fn spread(
    kept: &mut Vec<ProblemSummary>,
    counts: BTreeMap<String, u64>,
    told: impl Fn(u64) -> String,
    alone: impl Fn(&str) -> ProblemSummary,
) {
    // One problem of several environments is told the sum once.
    let mut caused: BTreeMap<usize, u64> = BTreeMap::new();
    for (environment, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let causes = |one: &ProblemSummary| {
            matches!(one.kind, ProblemKind::Schedule | ProblemKind::Delivery | ProblemKind::Git)
                && one.severity == ProblemSeverity::Error
                && one.environments.contains(&environment)
        };
        match kept.iter().position(causes) {
            Some(cause) => *caused.entry(cause).or_default() += count,
            None => {
                let message = told(count);
                kept.push(ProblemSummary {
                    count,
                    message,
                    environments: vec![environment.clone()],
                    ..alone(&environment)
                });
            }
        }
    }
    for (cause, count) in caused {
        kept[cause].brings.push(told(count));
    }
}

fn quarantined(environment: &str) -> ProblemSummary {
    let pairs = [("environment", environment), ("state", "error")];
    ProblemSummary {
        id: format!("schedule/{environment}/Quarantined"),
        kind: ProblemKind::Schedule,
        severity: ProblemSeverity::Error,
        code: "Quarantined".to_owned(),
        command: Command::new("kedge get assignments")
            .option("-e", environment)
            .then("--state quarantined -o wide")
            .into(),
        link: crate::links::query("/problems", &pairs),
        ..ProblemSummary::default()
    }
}

fn stale(environment: &str) -> ProblemSummary {
    ProblemSummary {
        id: format!("git/{environment}/Stale"),
        kind: ProblemKind::Git,
        severity: ProblemSeverity::Warning,
        code: "Stale".to_owned(),
        command: Command::new("kedge get cluster-types").option("-e", environment).then("-o wide").into(),
        link: crate::links::environment(environment),
        ..ProblemSummary::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repository_that_fails_is_a_problem_of_its_own_and_has_its_own_findings() {
        let problem = |id: &str, message: &str| ProblemSummary {
            id: id.to_owned(),
            kind: ProblemKind::Git,
            code: super::super::REPOSITORY_FAILING.to_owned(),
            environments: vec!["dev".to_owned()],
            message: message.to_owned(),
            ..ProblemSummary::default()
        };
        let (one, two) = ("git/https://git.example/app", "git/https://git.example/app-two");
        let mut found = Found::default();
        found.failing.insert("dev".to_owned(), [one.to_owned(), two.to_owned()].into());
        found.add(problem(one, "https://git.example/app can't be read: away"));
        found.add(problem(two, "https://git.example/app-two can't be read: gone"));
        found.add(problem("git/dev/warning/RepositoryFailing", "https://git.example/app-two: gone"));
        let told = fold(found, &Order::default());
        let brings: Vec<(&str, usize)> = told.iter().map(|one| (one.id.as_str(), one.brings.len())).collect();
        assert_eq!(brings, [(one, 0), (two, 1)], "{told:#?}");
    }
}
