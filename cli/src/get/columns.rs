//! The columns of each list.

use std::collections::BTreeMap;

use kedge_api::assignments::AssignmentSummary;
use kedge_api::client::ClientError;
use kedge_api::cluster_types::ClusterTypeSummary;
use kedge_api::clusters::ClusterSummary;
use kedge_api::conditions::ConditionSummary;
use kedge_api::deployment_targets::DeploymentTargetSummary;
use kedge_api::desired_states::DesiredStateSummary;
use kedge_api::environments::{EnvironmentSummary, EnvironmentTotals};
use kedge_api::findings::FindingSummary;
use kedge_api::join_tokens::JoinTokenSummary;
use kedge_api::page::Stored;
use kedge_api::problems::ProblemSummary;
use kedge_api::repositories::{EnvironmentRepository, RepositoryFailure};
use kedge_api::source::{RepositoryFolder, SourceLocation};
use kedge_api::workloads::WorkloadSummary;
use kedge_model::name::MAX_CLUSTER_NAME_BYTES;
use kedge_model::shown::cell;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Listing;

/// A column: its head, what it shows, and whether only the wide table has it.
type Column<T> = (&'static str, fn(&T) -> String, bool);

const CLUSTERS: [Column<ClusterSummary>; 15] = [
    ("NAME", |item| cell(&one_line(&item.name), MAX_CLUSTER_NAME_BYTES), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("TYPE", |item| one_line(&item.cluster_type), false),
    ("RING", |item| one_line(&item.ring), false),
    ("CONDITION", cluster_condition, false),
    ("STATUS", cluster_status, false),
    ("GENERATION", |item| item.generation.to_string(), false),
    ("LAST HEARD", |item| to_the_second(&item.last_contact), false),
    ("ID", |item| one_line(&item.id), true),
    ("SITE", |item| told(&item.site), true),
    ("VIA", |item| item.via.as_ref().map(|via| one_line(&via.name)).unwrap_or_default(), true),
    ("RELAY", |item| if item.relay { "yes".to_owned() } else { String::new() }, true),
    ("AGENT", |item| one_line(&item.facts.agent_version), true),
    ("SYSTEM", |item| one_line(&item.facts.system), true),
    ("LABELS", |item| pairs(&item.labels), true),
];
const CONDITIONS: [Column<ConditionSummary>; 13] = [
    ("CLUSTER", |item| one_line(&item.cluster_name), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("ASSIGNMENT", |item| format!("{}/{}", one_line(&item.cluster_type), one_line(&item.assignment)), false),
    ("CONDITION", |item| crate::condition::shaped(&one_line(&item.condition)), false),
    ("REASON", |item| told(&item.reason), false),
    ("RUNNING", |item| told(&item.version), false),
    ("SINCE", |item| when(&item.since), false),
    ("MESSAGE", changed_or_said, false),
    ("RING", |item| one_line(&item.ring), true),
    ("WORKLOAD", |item| told(&item.workload), true),
    ("RUNNING IS", |item| item.reality.as_str().to_owned(), true),
    ("OBSERVED", |item| when(&item.observed_at), true),
    ("ID", |item| one_line(&item.cluster), true),
];
const CLUSTER_TYPES: [Column<ClusterTypeSummary>; 7] = [
    ("NAME", |item| one_line(&item.name), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("RECONCILER", |item| one_line(&item.reconciler), false),
    ("NAMESPACE", |item| one_line(&item.namespace_service), false),
    ("LABELS", |item| pairs(&item.labels), false),
    ("STALE SINCE", |item| when(&item.stale_since), true),
    ("WRITTEN IN", |item| location(&item.origin), true),
];
const WORKLOADS: [Column<WorkloadSummary>; 6] = [
    ("NAME", |item| one_line(&item.name), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("WORKSPACE", |item| one_line(&item.workspace), false),
    ("TARGETS", |item| item.targets.len().to_string(), false),
    ("LABELS", |item| pairs(&item.labels), true),
    ("WRITTEN IN", |item| location(&item.origin), true),
];
const TARGETS: [Column<DeploymentTargetSummary>; 6] = [
    ("NAME", |item| one_line(&item.name), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("WORKLOAD", |item| one_line(&item.workload), false),
    ("WORKSPACE", |item| one_line(&item.workspace), false),
    ("LABELS", |item| pairs(&item.labels), true),
    ("WRITTEN IN", |item| location(&item.origin), true),
];
const ASSIGNMENTS: [Column<Stored<AssignmentSummary>>; 7] = [
    ("NAME", |item| one_line(&item.object.name), false),
    ("ENVIRONMENT", |item| one_line(&item.object.environment), false),
    ("WORKSPACE", |item| one_line(&item.object.workspace), false),
    ("STATE", |item| one_line(&item.object.state), false),
    ("POLICIES", |item| item.object.policies.join(","), false),
    ("WHY", |item| item.object.quarantine.first().map(|why| one_line(&why.message)).unwrap_or_default(), true),
    ("CHANGED", |item| to_the_second(&item.updated_at), true),
];
const ENVIRONMENTS: [Column<EnvironmentSummary>; 9] = [
    ("NAME", |item| one_line(&item.name), false),
    ("CLUSTER TYPES", |item| total(item, |totals| totals.cluster_types), false),
    ("TARGETS", |item| total(item, |totals| totals.targets), false),
    ("ASSIGNMENTS", |item| total(item, |totals| totals.assignments), false),
    ("QUARANTINED", |item| total(item, |totals| totals.quarantined), false),
    ("PUBLISH", |item| item.publish.as_ref().map(|publish| one_line(&publish.outcome)).unwrap_or_default(), false),
    ("WAITING", waiting, false),
    ("PROMOTED", |item| item.promoted_commit.as_deref().map(short).unwrap_or_default(), true),
    ("GITOPS", |item| item.gitops.as_ref().map(folder).unwrap_or_default(), true),
];
const PROBLEMS: [Column<ProblemSummary>; 10] = [
    ("STATE", |item| item.severity.as_str().to_owned(), false),
    ("KIND", |item| item.kind.as_str().to_owned(), false),
    ("ENVIRONMENT", |item| item.environments.join(","), false),
    ("CODE", |item| one_line(&item.code), false),
    ("MESSAGE", super::problems::message, false),
    ("NEXT", |item| one_line(&item.command), false),
    ("SINCE", |item| when(&item.since), true),
    ("HINT", |item| told(&item.hint), true),
    ("WRITTEN IN", places, true),
    ("ID", |item| one_line(&item.id), true),
];
const FINDINGS: [Column<FindingSummary>; 9] = [
    ("SEVERITY", |item| one_line(&item.finding.severity), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("CODE", |item| one_line(&item.finding.code), false),
    ("ASSIGNMENT", |item| told(&item.assignment), false),
    ("AT", |item| item.finding.origin.as_ref().map(line).unwrap_or_default(), false),
    ("MESSAGE", |item| one_line(&item.finding.message), false),
    ("WRITTEN IN", |item| item.finding.origin.as_ref().map(location).unwrap_or_default(), true),
    ("HINT", |item| told(&item.finding.hint), true),
    ("ID", |item| one_line(&item.id), true),
];
const REPOSITORIES: [Column<EnvironmentRepository>; 6] = [
    ("URL", |item| one_line(&item.repository.url), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("LAST GOOD", |item| when(&item.repository.last_good), false),
    ("FAILING SINCE", |item| failing(item, |failure| to_the_second(&failure.since)), false),
    ("ERROR", |item| failing(item, |failure| one_line(&failure.error)), false),
    ("WORKSPACES", |item| item.repository.workspaces.join(","), true),
];
const STATES: [Column<DesiredStateSummary>; 9] = [
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("TYPE", |item| one_line(&item.cluster_type), false),
    ("RING", |item| one_line(&item.ring), false),
    ("GENERATION", |item| item.generation.to_string(), false),
    ("ENTRIES", |item| item.entries.len().to_string(), false),
    ("CREATED", |item| to_the_second(&item.created_at), false),
    ("COMMIT", |item| item.source.as_ref().map(|source| short(&source.commit)).unwrap_or_default(), true),
    ("REMOVED", |item| item.removed.join(","), true),
    ("SIGNED BY", |item| item.signed_by.join(","), true),
];
const TOKENS: [Column<JoinTokenSummary>; 10] = [
    ("ID", |item| one_line(&item.id), false),
    ("ENVIRONMENT", |item| one_line(&item.environment), false),
    ("TYPE", |item| one_line(&item.cluster_type), false),
    ("STATE", |item| one_line(&item.state), false),
    ("USES LEFT", |item| format!("{} of {}", item.uses_left, item.uses), false),
    ("EXPIRES", |item| to_the_second(&item.expires_at), false),
    ("MADE BY", |item| one_line(&item.created_by), false),
    ("SITE", |item| told(&item.site), true),
    ("REPLACES", |item| told(&item.replaces), true),
    ("LABELS", |item| pairs(&item.labels), true),
];

pub fn head(kind: Listing, wide: bool) -> Vec<String> {
    match kind {
        Listing::Clusters => heads(&CLUSTERS, wide),
        Listing::Conditions => heads(&CONDITIONS, wide),
        Listing::ClusterTypes => heads(&CLUSTER_TYPES, wide),
        Listing::Workloads => heads(&WORKLOADS, wide),
        Listing::Assignments => heads(&ASSIGNMENTS, wide),
        Listing::Environments => heads(&ENVIRONMENTS, wide),
        Listing::Targets => heads(&TARGETS, wide),
        Listing::Problems => heads(&PROBLEMS, wide),
        Listing::Findings => heads(&FINDINGS, wide),
        Listing::Repositories => heads(&REPOSITORIES, wide),
        Listing::DesiredStates => heads(&STATES, wide),
        Listing::Tokens => heads(&TOKENS, wide),
    }
}

pub fn row(kind: Listing, item: &Value, wide: bool) -> Result<Vec<String>, ClientError> {
    match kind {
        Listing::Clusters => cells(&CLUSTERS, item, wide),
        Listing::Conditions => cells(&CONDITIONS, item, wide),
        Listing::ClusterTypes => cells(&CLUSTER_TYPES, item, wide),
        Listing::Workloads => cells(&WORKLOADS, item, wide),
        Listing::Assignments => cells(&ASSIGNMENTS, item, wide),
        Listing::Environments => cells(&ENVIRONMENTS, item, wide),
        Listing::Targets => cells(&TARGETS, item, wide),
        Listing::Problems => cells(&PROBLEMS, item, wide),
        Listing::Findings => cells(&FINDINGS, item, wide),
        Listing::Repositories => cells(&REPOSITORIES, item, wide),
        Listing::DesiredStates => cells(&STATES, item, wide),
        Listing::Tokens => cells(&TOKENS, item, wide),
    }
}

fn heads<T>(columns: &[Column<T>], wide: bool) -> Vec<String> {
    shown(columns, wide).map(|(head, _, _)| (*head).to_owned()).collect()
}

fn cells<T: DeserializeOwned>(columns: &[Column<T>], item: &Value, wide: bool) -> Result<Vec<String>, ClientError> {
    let item = T::deserialize(item).map_err(|error| ClientError::unreadable(&error))?;
    let dashed = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
    Ok(shown(columns, wide).map(|(_, show, _)| dashed(show(&item))).collect())
}

fn shown<T>(columns: &[Column<T>], wide: bool) -> impl Iterator<Item = &Column<T>> {
    columns.iter().filter(move |(_, _, only_wide)| wide || !only_wide)
}

/// The worst of what it runs; of one that is silent, Unknown.
fn cluster_condition(item: &ClusterSummary) -> String {
    let of = |word: &str, count: u64| match count {
        1 => crate::condition::shaped(word),
        count => format!("{} ({count})", crate::condition::shaped(word)),
    };
    if item.state != "active" {
        return String::new();
    }
    match &item.issues {
        _ if item.unknown_since.is_some() => crate::condition::shaped("Unknown"),
        None => "nothing reported yet".to_owned(),
        Some(issues) if issues.failed > 0 => of("Failed", issues.failed),
        Some(issues) if issues.converging > 0 => of("Converging", issues.converging),
        Some(issues) if issues.drifted > 0 => {
            format!("{}, {} drifted", crate::condition::shaped("Converged"), issues.drifted)
        }
        Some(_) => crate::condition::shaped("Converged"),
    }
}

/// What was changed by hand, or what the reason means here.
fn changed_or_said(item: &ConditionSummary) -> String {
    let changed = told(&item.drift);
    if changed.is_empty() { told(&item.message) } else { changed }
}

/// Nothing stays green by silence.
fn cluster_status(item: &ClusterSummary) -> String {
    if item.state != "active" {
        return item.state.clone();
    }
    match (&item.unknown_since, &item.via) {
        _ if item.cloned_since.is_some() => "cloned".to_owned(),
        _ if item.needs_readmission => "needs readmission".to_owned(),
        (Some(since), _) => format!("offline since {}", to_the_second(since)),
        _ if !item.held.is_empty() => format!("in contact, {} held", item.held.join(",")),
        (None, Some(via)) => format!("in contact via {}", one_line(&via.name)),
        (None, None) => "in contact".to_owned(),
    }
}

/// Files and lines of what a problem is about, each once.
fn places(item: &ProblemSummary) -> String {
    let mut known: Vec<String> = Vec::new();
    for origin in item.examples.iter().filter_map(|example| example.origin.as_ref()) {
        let shown = location(origin);
        if !known.contains(&shown) {
            known.push(shown);
        }
    }
    known.join(", ")
}

fn total(item: &EnvironmentSummary, of: fn(&EnvironmentTotals) -> u64) -> String {
    item.totals.as_ref().map(|totals| of(totals).to_string()).unwrap_or_default()
}

fn waiting(item: &EnvironmentSummary) -> String {
    item.waiting.iter().map(|one| one_line(&one.cluster_type)).collect::<Vec<_>>().join(",")
}

fn failing(item: &EnvironmentRepository, of: fn(&RepositoryFailure) -> String) -> String {
    item.repository.failing.as_ref().map(of).unwrap_or_default()
}

fn told(text: &Option<String>) -> String {
    text.as_deref().map(one_line).unwrap_or_default()
}

fn when(at: &Option<String>) -> String {
    at.as_deref().map(to_the_second).unwrap_or_default()
}

fn pairs(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(key, value)| format!("{key}={}", one_line(value))).collect::<Vec<_>>().join(",")
}

/// The file and the line alone, where the repository is known or can be asked for.
fn line(place: &SourceLocation) -> String {
    let line = place.line.filter(|line| *line > 0).map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}", place.file)
}

/// `file:line of repo at branch@commit`
fn location(place: &SourceLocation) -> String {
    self::place(&serde_json::json!(place))
}

fn folder(folder: &RepositoryFolder) -> String {
    format!("{} {} {}", one_line(&folder.repo), one_line(&folder.branch), one_line(&folder.path))
}

fn short(commit: &str) -> String {
    let commit = one_line(commit);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

/// One line, whatever it holds.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        other => other.to_string(),
    }
}

/// A text in one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// To the second, as it is in UTC.
pub fn moment(value: &Value) -> String {
    to_the_second(value.as_str().unwrap_or_default())
}

/// `2026-01-02 03:04:05Z`
pub fn to_the_second(text: &str) -> String {
    let seconds = text.get(..19).filter(|start| start.as_bytes().get(10) == Some(&b'T'));
    seconds.map_or_else(|| text.to_owned(), |seconds| format!("{}Z", seconds.replace('T', " ")))
}

pub fn labels(value: &Value) -> String {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| format!("{key}={}", text(value))).collect::<Vec<_>>().join(",")
}

pub fn list(value: &Value) -> String {
    value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(",")
}

/// `file:line of repo at branch@commit`
pub fn place(value: &Value) -> String {
    if !value.is_object() {
        return String::new();
    }
    let line = value["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    let revision = value["revision"].as_str().map(|revision| match revision.rsplit_once("sha1:") {
        Some((branch, commit)) => format!(" at {branch}{}", commit.get(..10).unwrap_or(commit)),
        None => format!(" at {revision}"),
    });
    format!("{}{line} of {}{}", text(&value["file"]), text(&value["repo"]), revision.unwrap_or_default())
}
