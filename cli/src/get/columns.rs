//! The columns of each list.

use kedge_model::name::MAX_CLUSTER_NAME_BYTES;
use kedge_model::shown::cell;
use serde_json::Value;

use super::Listing;

/// A column: its head, what it shows, and whether only the wide table has it.
type Column = (&'static str, fn(&Value) -> String, bool);

const CLUSTERS: [Column; 15] = [
    ("NAME", |item| cell(&text(&item["name"]), MAX_CLUSTER_NAME_BYTES), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("TYPE", |item| text(&item["clusterType"]), false),
    ("RING", |item| text(&item["ring"]), false),
    ("CONDITION", cluster_condition, false),
    ("STATUS", cluster_status, false),
    ("GENERATION", |item| text(&item["generation"]), false),
    ("LAST HEARD", |item| moment(&item["lastContact"]), false),
    ("ID", |item| text(&item["id"]), true),
    ("SITE", |item| text(&item["site"]), true),
    ("VIA", |item| text(&item["via"]["name"]), true),
    ("RELAY", relay, true),
    ("AGENT", |item| text(&item["facts"]["agentVersion"]), true),
    ("SYSTEM", |item| text(&item["facts"]["system"]), true),
    ("LABELS", |item| labels(&item["labels"]), true),
];
const CONDITIONS: [Column; 13] = [
    ("CLUSTER", |item| text(&item["clusterName"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("ASSIGNMENT", |item| format!("{}/{}", text(&item["clusterType"]), text(&item["assignment"])), false),
    ("CONDITION", |item| crate::condition::shaped(&text(&item["condition"])), false),
    ("REASON", |item| text(&item["reason"]), false),
    ("RUNNING", |item| text(&item["version"]), false),
    ("SINCE", |item| moment(&item["since"]), false),
    ("MESSAGE", told, false),
    ("RING", |item| text(&item["ring"]), true),
    ("WORKLOAD", |item| text(&item["workload"]), true),
    ("RUNNING IS", |item| text(&item["reality"]), true),
    ("OBSERVED", |item| moment(&item["observedAt"]), true),
    ("ID", |item| text(&item["cluster"]), true),
];
const CLUSTER_TYPES: [Column; 7] = [
    ("NAME", |item| text(&item["name"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("RECONCILER", |item| text(&item["reconciler"]), false),
    ("NAMESPACE", |item| text(&item["namespaceService"]), false),
    ("LABELS", |item| labels(&item["labels"]), false),
    ("STALE SINCE", |item| moment(&item["staleSince"]), true),
    ("WRITTEN IN", |item| place(&item["origin"]), true),
];
const WORKLOADS: [Column; 6] = [
    ("NAME", |item| text(&item["name"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("WORKSPACE", |item| text(&item["workspace"]), false),
    ("TARGETS", |item| item["targets"].as_array().map_or(0, Vec::len).to_string(), false),
    ("LABELS", |item| labels(&item["labels"]), true),
    ("WRITTEN IN", |item| place(&item["origin"]), true),
];
const TARGETS: [Column; 6] = [
    ("NAME", |item| text(&item["name"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("WORKLOAD", |item| text(&item["workload"]), false),
    ("WORKSPACE", |item| text(&item["workspace"]), false),
    ("LABELS", |item| labels(&item["labels"]), true),
    ("WRITTEN IN", |item| place(&item["origin"]), true),
];
const ASSIGNMENTS: [Column; 7] = [
    ("NAME", |item| text(&item["name"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("WORKSPACE", |item| text(&item["workspace"]), false),
    ("STATE", |item| text(&item["state"]), false),
    ("POLICIES", |item| list(&item["policies"]), false),
    ("WHY", |item| text(&item["quarantine"][0]["message"]), true),
    ("CHANGED", |item| moment(&item["updatedAt"]), true),
];
const ENVIRONMENTS: [Column; 9] = [
    ("NAME", |item| text(&item["name"]), false),
    ("CLUSTER TYPES", |item| text(&item["totals"]["clusterTypes"]), false),
    ("TARGETS", |item| text(&item["totals"]["targets"]), false),
    ("ASSIGNMENTS", |item| text(&item["totals"]["assignments"]), false),
    ("QUARANTINED", |item| text(&item["totals"]["quarantined"]), false),
    ("PUBLISH", |item| text(&item["publish"]["outcome"]), false),
    ("WAITING", waiting, false),
    ("PROMOTED", |item| short(&item["promotedCommit"]), true),
    ("GITOPS", |item| folder(&item["gitops"]), true),
];
const PROBLEMS: [Column; 10] = [
    ("STATE", |item| text(&item["severity"]), false),
    ("KIND", |item| text(&item["kind"]), false),
    ("ENVIRONMENT", |item| list(&item["environments"]), false),
    ("CODE", |item| text(&item["code"]), false),
    ("MESSAGE", super::problems::message, false),
    ("NEXT", |item| text(&item["command"]), false),
    ("SINCE", |item| moment(&item["since"]), true),
    ("HINT", |item| text(&item["hint"]), true),
    ("WRITTEN IN", places, true),
    ("ID", |item| text(&item["id"]), true),
];
const FINDINGS: [Column; 9] = [
    ("SEVERITY", |item| text(&item["severity"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("CODE", |item| text(&item["code"]), false),
    ("ASSIGNMENT", |item| text(&item["assignment"]), false),
    ("AT", |item| line(&item["origin"]), false),
    ("MESSAGE", |item| text(&item["message"]), false),
    ("WRITTEN IN", |item| place(&item["origin"]), true),
    ("HINT", |item| text(&item["hint"]), true),
    ("ID", |item| text(&item["id"]), true),
];
const REPOSITORIES: [Column; 6] = [
    ("URL", |item| text(&item["url"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("LAST GOOD", |item| moment(&item["lastGood"]), false),
    ("FAILING SINCE", |item| moment(&item["failing"]["since"]), false),
    ("ERROR", |item| text(&item["failing"]["error"]), false),
    ("WORKSPACES", |item| list(&item["workspaces"]), true),
];
const STATES: [Column; 9] = [
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("TYPE", |item| text(&item["clusterType"]), false),
    ("RING", |item| text(&item["ring"]), false),
    ("GENERATION", |item| text(&item["generation"]), false),
    ("ENTRIES", |item| item["entries"].as_array().map_or(0, Vec::len).to_string(), false),
    ("CREATED", |item| moment(&item["createdAt"]), false),
    ("COMMIT", |item| short(&item["source"]["commit"]), true),
    ("REMOVED", |item| list(&item["removed"]), true),
    ("SIGNED BY", |item| list(&item["signedBy"]), true),
];
const TOKENS: [Column; 10] = [
    ("ID", |item| text(&item["id"]), false),
    ("ENVIRONMENT", |item| text(&item["environment"]), false),
    ("TYPE", |item| text(&item["clusterType"]), false),
    ("STATE", |item| text(&item["state"]), false),
    ("USES LEFT", |item| format!("{} of {}", item["usesLeft"], item["uses"]), false),
    ("EXPIRES", |item| moment(&item["expiresAt"]), false),
    ("MADE BY", |item| text(&item["createdBy"]), false),
    ("SITE", |item| text(&item["site"]), true),
    ("REPLACES", |item| text(&item["replaces"]), true),
    ("LABELS", |item| labels(&item["labels"]), true),
];

pub fn head(kind: Listing, wide: bool) -> Vec<String> {
    shown(kind, wide).map(|(head, _, _)| (*head).to_owned()).collect()
}

pub fn row(kind: Listing, item: &Value, wide: bool) -> Vec<String> {
    shown(kind, wide)
        .map(|(_, show, _)| show(item))
        .map(|cell| if cell.is_empty() { "-".to_owned() } else { cell })
        .collect()
}

fn shown(kind: Listing, wide: bool) -> impl Iterator<Item = &'static Column> {
    let columns: &'static [Column] = match kind {
        Listing::Clusters => &CLUSTERS,
        Listing::Conditions => &CONDITIONS,
        Listing::ClusterTypes => &CLUSTER_TYPES,
        Listing::Workloads => &WORKLOADS,
        Listing::Assignments => &ASSIGNMENTS,
        Listing::Environments => &ENVIRONMENTS,
        Listing::Targets => &TARGETS,
        Listing::Problems => &PROBLEMS,
        Listing::Findings => &FINDINGS,
        Listing::Repositories => &REPOSITORIES,
        Listing::DesiredStates => &STATES,
        Listing::Tokens => &TOKENS,
    };
    columns.iter().filter(move |(_, _, only_wide)| wide || !only_wide)
}

/// The worst of what it runs; of one that is silent, Unknown.
fn cluster_condition(item: &Value) -> String {
    let count = |field: &str| item["amiss"][field].as_u64().unwrap_or_default();
    let of = |word: &str, count: u64| match count {
        1 => crate::condition::shaped(word),
        count => format!("{} ({count})", crate::condition::shaped(word)),
    };
    if item["state"] != "active" {
        String::new()
    } else if item["unknownSince"].is_string() {
        crate::condition::shaped("Unknown")
    } else if !item["amiss"].is_object() {
        "nothing reported yet".to_owned()
    } else if count("failed") > 0 {
        of("Failed", count("failed"))
    } else if count("converging") > 0 {
        of("Converging", count("converging"))
    } else if count("drifted") > 0 {
        format!("{}, {} drifted", crate::condition::shaped("Converged"), count("drifted"))
    } else {
        crate::condition::shaped("Converged")
    }
}

/// Nothing stays green by silence.
fn cluster_status(item: &Value) -> String {
    match item["state"].as_str() {
        Some("active") if item["clonedSince"].is_string() => "cloned".to_owned(),
        Some("active") if item["needsReadmission"] == true => "needs readmission".to_owned(),
        Some("active") if item["unknownSince"].is_string() => {
            format!("offline since {}", moment(&item["unknownSince"]))
        }
        Some("active") if item["held"].is_array() => format!("in contact, {} held", list(&item["held"])),
        Some("active") if item["via"].is_object() => format!("in contact via {}", text(&item["via"]["name"])),
        Some("active") => "in contact".to_owned(),
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}

/// Files and lines of what a problem is about, each once.
fn places(item: &Value) -> String {
    let mut known: Vec<String> = Vec::new();
    for example in item["examples"].as_array().into_iter().flatten() {
        let shown = place(&example["origin"]);
        if !shown.is_empty() && !known.contains(&shown) {
            known.push(shown);
        }
    }
    known.join(", ")
}

fn relay(item: &Value) -> String {
    if item["relay"] == true { "yes".to_owned() } else { String::new() }
}

/// What was changed by hand, or what the reason means here.
fn told(item: &Value) -> String {
    let drift = text(&item["drift"]);
    match drift.is_empty() {
        true => text(&item["message"]),
        false => drift,
    }
}

fn waiting(item: &Value) -> String {
    let waiting = item["waiting"].as_array().into_iter().flatten();
    waiting.map(|one| text(&one["clusterType"])).collect::<Vec<_>>().join(",")
}

/// One line, whatever it holds.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// To the second, as it is in UTC.
pub fn moment(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
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
/// The file and the line alone, where the repository is known or can be asked for.
fn line(value: &Value) -> String {
    match (value["file"].as_str(), value["line"].as_u64()) {
        (Some(file), Some(line)) if line > 0 => format!("{file}:{line}"),
        (file, _) => file.unwrap_or_default().to_owned(),
    }
}

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

pub fn folder(value: &Value) -> String {
    match value.is_object() {
        true => format!("{} {} {}", text(&value["repo"]), text(&value["branch"]), text(&value["path"])),
        false => String::new(),
    }
}

fn short(value: &Value) -> String {
    let commit = text(value);
    commit.get(..10).unwrap_or(&commit).to_owned()
}
