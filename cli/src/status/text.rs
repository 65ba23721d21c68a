//! The glance as text: a table of environments, what moves, and what is wrong with the way to it. Pure.

use kedge_api::conditions::ConditionSummary;
use kedge_api::fleet::{FailingRepository, FleetEnvironment, FleetSummary, RunningCommit};
use kedge_api::rollouts::RolloutSummary;
use kedge_model::command::Command;
use std::collections::BTreeMap;

use super::Glance;
use crate::condition::{CONDITIONS, counts};
use crate::get::columns::{one_line, to_the_second};
use crate::output::Table;

/// So many names stand in a line.
const NAMED: usize = 3;

pub fn of(glance: &Glance) -> String {
    let environments = &glance.fleet.environments;
    let mut out = table(environments);
    let is_stopped = |rollout: &&RolloutSummary| rollout.state == "Stopped";
    let moving = glance.rollouts.iter().filter(|rollout| !is_stopped(rollout)).map(|one| rollout("◐", one));
    let waiting = environments.iter().filter_map(waits);
    section(&mut out, "Moving", moving.chain(waiting).collect());
    let mut wrong: Vec<String> = environments.iter().flat_map(notices).collect();
    wrong.extend(glance.rollouts.iter().filter(is_stopped).map(|one| rollout("▲", one)));
    wrong.extend(failures(&glance.failures, environments));
    for environment in environments {
        wrong.extend(silent(environment));
        wrong.extend(troubles(environment));
    }
    wrong.extend(inputs(&glance.fleet));
    let calm = wrong.is_empty() && !environments.is_empty();
    section(&mut out, "Wrong", wrong);
    let problems = glance.problem_count.unwrap_or_default();
    if calm && problems == 0 {
        out.push_str("\nNothing is wrong.\n");
    } else if calm {
        let told = plural(problems, "problem needs attention", "problems need attention");
        out.push_str(&format!("\n{told}  > kedge get problems\n"));
    }
    out
}

fn table(environments: &[FleetEnvironment]) -> String {
    if environments.is_empty() {
        return String::new();
    }
    let mut table = Table::default();
    let words = CONDITIONS.map(|(_, word)| word.to_uppercase());
    let head = ["ENVIRONMENT", "COMMIT", "CLUSTERS", "OFFLINE"].map(str::to_owned);
    table.row(head.into_iter().chain(words));
    for environment in environments {
        let clusters = &environment.clusters;
        let silent = if clusters.unknown == 0 { "-".to_owned() } else { clusters.unknown.to_string() };
        let cells = [one_line(&environment.name), running(environment), clusters.total.to_string(), silent];
        table.row(cells.into_iter().chain(counts(&environment.conditions)));
    }
    table.to_text("")
}

/// The commit that runs; several while rings have different ones.
fn running(environment: &FleetEnvironment) -> String {
    let commit = |one: &RunningCommit| {
        let commit = if one.commit.is_empty() { "none of main".to_owned() } else { short(&one.commit) };
        let mut said: Vec<String> = one.rings.iter().map(|ring| one_line(ring)).collect();
        // What they reported last.
        said.extend((one.offline > 0).then(|| format!("{} offline", one.offline)));
        if said.is_empty() { commit } else { format!("{commit} ({})", said.join(", ")) }
    };
    match environment.running.is_empty() {
        true => "-".to_owned(),
        false => environment.running.iter().map(commit).collect::<Vec<_>>().join(", "),
    }
}

/// Why an environment doesn't run what Git says; stopped and paused rollouts are told apart.
fn notices(environment: &FleetEnvironment) -> Vec<String> {
    let name = one_line(&environment.name);
    let mut lines = Vec::new();
    // While something moves, it is told among what moves.
    let moving = environment.rollouts.moving + environment.rollouts.paused > 0;
    let mut other = names_other(environment).filter(|_| !moving);
    for notice in &environment.notices {
        let (shape, way) = match notice.kind.as_str() {
            "rolledBack" | "aborted" => {
                let id = notice.rollout.map(|id| id.to_string()).unwrap_or_default();
                ("▲", format!("kedge rollout show {id}"))
            }
            "held" => ("○", Command::new("kedge get clusters").option("-e", &name).into()),
            "publish" | "stale" => ("!", Command::new("kedge describe environment").names(&[&name]).into()),
            _ => continue,
        };
        lines.push(format!("{shape} {name}: {}  > {way}", one_line(&notice.text)));
        if shape == "▲" || notice.kind == "stale" {
            lines.extend(other.take().map(|other| format!("    {other}")));
        }
    }
    lines.extend(
        other.map(|other| {
            format!("! {name}: {other}  > {}", Command::new("kedge describe environment").names(&[&name]))
        }),
    );
    lines
}

/// Git names a commit that nobody there runs.
fn names_other(environment: &FleetEnvironment) -> Option<String> {
    let git = environment.promoted_commit.as_ref()?;
    let other = !environment.running.is_empty() && environment.running.iter().all(|one| one.commit != *git);
    if let [only] = environment.running.as_slice()
        && other
        && only.commit.is_empty()
    {
        return Some(format!("Git names {}; what runs is no commit of main that the hub knows", short(git)));
    }
    other.then(|| format!("Git names {}; {} runs", short(git), running(environment)))
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title}:\n"));
    for line in lines {
        out.push_str(&format!("  {line}\n"));
    }
}

fn rollout(shape: &str, rollout: &RolloutSummary) -> String {
    let (id, state) = (rollout.id, one_line(&rollout.state));
    let why = one_line(&rollout.why);
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let state = if state == "Active" { ":".to_owned() } else { format!(" is {state}{why};") };
    format!(
        "{shape} {}: rollout {id} of {} {}{state} {}  > kedge rollout show {id}",
        one_line(&rollout.environment),
        crate::rollout::commit(&rollout.cause),
        one_line(&rollout.cause.subject),
        crate::rollout::rings(&rollout.rings),
    )
}

/// A commit of main that isn't let in yet.
fn waits(environment: &FleetEnvironment) -> Option<String> {
    let next = environment.next.as_ref()?;
    let why = if next.waits_for.is_empty() { String::new() } else { format!(": {}", next.waits_for.join(", ")) };
    let (name, commit, subject) = (one_line(&environment.name), short(&next.commit), one_line(&next.subject));
    Some(format!("◐ {name}: {commit} {subject} waits{why}  > kedge promote"))
}

/// By environment, assignment and reason: on whom, and what still runs there.
fn failures(rows: &[ConditionSummary], environments: &[FleetEnvironment]) -> Vec<String> {
    let mut groups: BTreeMap<(String, String, String), Vec<&ConditionSummary>> = BTreeMap::new();
    for row in rows {
        let assignment = format!("{}/{}", one_line(&row.cluster_type), one_line(&row.assignment));
        let reason = one_line(row.reason.as_deref().unwrap_or_default());
        groups.entry((one_line(&row.environment), assignment, reason)).or_default().push(row);
    }
    let mut lines = Vec::new();
    for environment in environments {
        let name = one_line(&environment.name);
        let failed = environment.conditions.failed;
        let mut told = 0;
        for ((_, assignment, reason), rows) in groups.iter().filter(|((of, ..), _)| *of == name) {
            told += rows.len() as u64;
            let names: Vec<String> = rows.iter().map(|row| one_line(&row.cluster_name)).collect();
            lines.push(format!("▲ {name}: {assignment} {reason} on {}{}", listed(&names), still(rows)));
            let mut messages = rows.iter().filter_map(|row| row.message.as_deref()).map(one_line);
            if let Some(message) = messages.find(|message| !message.is_empty()) {
                lines.push(format!("    {message}"));
            }
        }
        if failed > told {
            lines.push(format!("▲ {name}: {} more failed", failed - told));
        }
        if failed > 0 {
            let command = Command::new("kedge get conditions").option("-e", &name).then("--condition Failed");
            lines.push(format!("    > {command}"));
        }
    }
    lines
}

/// "Failed" alone doesn't say what runs.
fn still(rows: &[&ConditionSummary]) -> String {
    let mut versions: Vec<String> = rows.iter().filter_map(|row| row.version.as_deref()).map(one_line).collect();
    versions.sort();
    versions.dedup();
    match versions.is_empty() {
        true => String::new(),
        false => format!("; still running {}", listed(&versions)),
    }
}

fn silent(environment: &FleetEnvironment) -> Vec<String> {
    let name = one_line(&environment.name);
    let since = environment.oldest_unknown.as_deref().map(to_the_second).unwrap_or_default();
    let told = match environment.clusters.unknown {
        0 => return Vec::new(),
        1 => format!("1 cluster has been offline since {since}"),
        count => format!("{count} clusters have been offline, the first since {since}"),
    };
    let command = Command::new("kedge get clusters").option("-e", &name).then("--condition Unknown");
    vec![format!("○ {name}: {told}  > {command}")]
}

fn troubles(environment: &FleetEnvironment) -> Vec<String> {
    let name = one_line(&environment.name);
    let mut lines = Vec::new();
    if environment.quarantined > 0 {
        let quarantined = plural(environment.quarantined, "assignment is", "assignments are");
        let command = Command::new("kedge get assignments").option("-e", &name).then("--state quarantined");
        lines.push(format!("! {name}: {quarantined} quarantined  > {command}"));
    }
    if environment.drifted > 0 {
        let drifted = plural(environment.drifted, "assignment", "assignments");
        let command = Command::new("kedge get conditions").option("-e", &name).then("--drift");
        lines.push(format!("▲ {name}: {drifted} drifted  > {command}"));
    }
    if environment.problems.errors > 0 {
        let told = plural(environment.problems.errors, "finding", "findings");
        let command = Command::new("kedge get findings").option("-e", &name).then("--state error");
        lines.push(format!("! {name}: {told}  > {command}"));
    }
    if let Some(trouble) = environment.trouble.as_deref().filter(|trouble| !trouble.is_empty()) {
        lines.push(format!("! {name}: {}  > kedge promote", one_line(trouble)));
    }
    lines
}

/// `https://… (dev, prod)`
fn repository(one: &FailingRepository) -> String {
    format!("{} ({})", one_line(&one.url), one.environments.join(", "))
}

fn inputs(fleet: &FleetSummary) -> Option<String> {
    let failing = fleet.repositories.failing;
    (failing > 0).then(|| {
        let told = plural(failing, "repository fails", "repositories fail");
        let named: Vec<String> = fleet.failing_repositories.iter().map(repository).take(NAMED).collect();
        let named = if named.is_empty() { String::new() } else { format!(": {}", named.join(", ")) };
        format!("! {told}{named}  > kedge get repositories --state failing")
    })
}

fn plural(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// `a, b, c and 4 more`
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn short(commit: &str) -> String {
    let commit = one_line(commit);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

#[cfg(test)]
mod tests {
    use kedge_api::counts::ConditionCounts;
    use kedge_api::fleet::{PresenceCounts, ProblemCounts, RepositoryCounts, StandingNotice};
    use kedge_api::rollouts::RolloutCause;

    use super::*;

    fn environment(name: &str, total: u64, converged: u64) -> FleetEnvironment {
        FleetEnvironment {
            name: name.to_owned(),
            clusters: PresenceCounts { total, ..PresenceCounts::default() },
            conditions: ConditionCounts { converged, ..ConditionCounts::default() },
            ..FleetEnvironment::default()
        }
    }

    fn runs(commit: &str, rings: &[&str], offline: u64) -> RunningCommit {
        let rings = rings.iter().map(|ring| (*ring).to_owned()).collect();
        RunningCommit { commit: commit.repeat(40), rings, offline, ..RunningCommit::default() }
    }

    fn glance(environments: Vec<FleetEnvironment>) -> Glance {
        Glance { fleet: FleetSummary { environments, ..FleetSummary::default() }, ..Glance::default() }
    }

    #[test]
    fn lists_of_names_end_somewhere() {
        let names: Vec<String> = (1..6).map(|number| format!("c{number}")).collect();
        assert_eq!(listed(&names), "c1, c2, c3 and 2 more");
        assert_eq!(listed(&names[..2]), "c1, c2");
    }

    #[test]
    fn a_rolled_back_environment_says_so_first_and_shows_what_runs() {
        let notice = StandingNotice {
            kind: "rolledBack".to_owned(),
            text: "bbbbbbbbbb “Say Bonjour” was rolled back: no".to_owned(),
            rollout: Some(7),
            since: None,
        };
        let prod = FleetEnvironment {
            promoted_commit: Some("b".repeat(40)),
            running: vec![runs("a", &[], 0)],
            notices: vec![notice],
            ..environment("prod", 2, 4)
        };
        assert_eq!(
            of(&glance(vec![prod])),
            "ENVIRONMENT  COMMIT      CLUSTERS  OFFLINE  CONVERGED  CONVERGING  FAILED  UNKNOWN\n\
             prod         aaaaaaaaaa  2         -        ● 4        -           -       -\n\n\
             Wrong:\n  ▲ prod: bbbbbbbbbb “Say Bonjour” was rolled back: no  > kedge rollout show 7\n      \
             Git names bbbbbbbbbb; aaaaaaaaaa runs\n"
        );
    }

    #[test]
    fn what_runs_beside_git_is_named_with_those_that_are_offline() {
        let prod = FleetEnvironment {
            promoted_commit: Some("c".repeat(40)),
            running: vec![runs("a", &["rest"], 1), runs("b", &["canary"], 0)],
            ..environment("prod", 3, 3)
        };
        let mut glance = glance(vec![prod]);
        glance.fleet.repositories = RepositoryCounts { good: 0, failing: 1 };
        let url = "https://git.example/app".to_owned();
        glance.fleet.failing_repositories = vec![FailingRepository { url, environments: vec!["dev".to_owned()] }];
        let told = of(&glance);
        let runs = "aaaaaaaaaa (rest, 1 offline), bbbbbbbbbb (canary)";
        assert!(told.contains(&format!("! prod: Git names cccccccccc; {runs} runs")), "{told}");
        assert!(told.contains("! 1 repository fails: https://git.example/app (dev)  >"), "{told}");
    }

    #[test]
    fn what_is_no_commit_of_main_is_called_so() {
        let dev = FleetEnvironment {
            promoted_commit: Some("b".repeat(40)),
            running: vec![RunningCommit::default()],
            ..environment("dev", 2, 4)
        };
        let told = of(&glance(vec![dev]));
        assert!(told.contains("Git names bbbbbbbbbb; what runs is no commit of main that the hub knows"), "{told}");
    }

    #[test]
    fn what_was_changed_by_hand_is_wrong() {
        let told = of(&glance(vec![FleetEnvironment { drifted: 1, ..environment("prod", 1, 1) }]));
        assert!(told.ends_with("▲ prod: 1 assignment drifted  > kedge get conditions -e prod --drift\n"), "{told}");
    }

    #[test]
    fn findings_are_called_so_and_a_pause_tells_who_and_why() {
        let problems = ProblemCounts { errors: 3, warnings: 0 };
        let paused = RolloutSummary {
            id: 7,
            environment: "dev".to_owned(),
            state: "Paused".to_owned(),
            why: "paused by anna: lunch".to_owned(),
            cause: RolloutCause {
                commit: "b".repeat(40),
                main: Some("a".repeat(40)),
                subject_of: Some("c".repeat(40)),
                subject: "Rename target".to_owned(),
                ..RolloutCause::default()
            },
            ..RolloutSummary::default()
        };
        let glance = glance(vec![FleetEnvironment { problems, ..environment("dev", 1, 1) }]);
        let told = of(&Glance { rollouts: vec![paused], ..glance });
        assert!(told.contains("! dev: 3 findings  > kedge get findings -e dev --state error"), "{told}");
        assert!(told.contains("rollout 7 of cccccccccc Rename target is Paused (paused by anna: lunch);"), "{told}");
    }

    #[test]
    fn nothing_is_wrong_only_if_there_is_no_problem() {
        let told = of(&Glance { problem_count: Some(1), ..glance(vec![environment("dev", 1, 1)]) });
        assert!(told.ends_with("\n1 problem needs attention  > kedge get problems\n"), "{told}");
    }

    #[test]
    fn a_fleet_without_trouble_is_called_so() {
        assert_eq!(
            of(&glance(vec![environment("dev", 2, 4)])),
            "ENVIRONMENT  COMMIT  CLUSTERS  OFFLINE  CONVERGED  CONVERGING  FAILED  UNKNOWN\n\
             dev          -       2         -        ● 4        -           -       -\n\nNothing is wrong.\n"
        );
        assert_eq!(of(&Glance::default()), "");
    }
}
