//! An entry of the history as a CloudEvent (1.0, JSON, structured mode). Pure: which destination wants it, its type, its
//! subject and its data. Called by `dispatcher`.

use kedge_hub_types::history::{Kind, Recorded, What};
use serde::Serialize;
use serde_json::Value;

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The hub's own address.
    pub address: String,
    /// Before every id: empty, until a backup is restored. The hub that was lost may have told other things under the same
    /// numbers.
    pub era: String,
}

/// The envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CloudEvent<'a> {
    specversion: &'static str,
    pub id: String,
    source: &'a str,
    #[serde(rename = "type")]
    pub kind: String,
    pub subject: String,
    time: String,
    datacontenttype: &'static str,
    data: Data<'a>,
}

/// The entry; what is empty isn't told.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    /// One sentence for people.
    title: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    environment: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    workspace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    workload: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cluster_type: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    ring: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    assignment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<&'a str>,
    /// When the hub heard of it; `time` is when it happened.
    recorded_at: String,
    late: bool,
    detail: &'a Value,
}

/// What every type begins with.
const PREFIX: &str = "dev.kedge";

impl<'a> CloudEvent<'a> {
    pub fn of(entry: &'a Recorded, source: &'a Source) -> CloudEvent<'a> {
        let place = &entry.place;
        CloudEvent {
            specversion: "1.0",
            id: format!("{}{}", source.era, entry.id),
            source: &source.address,
            kind: kind_of(entry),
            subject: subject_of(entry),
            time: moment(entry.at.0),
            datacontenttype: "application/json",
            data: Data {
                title: entry.title(),
                environment: &place.environment,
                workspace: &place.workspace,
                workload: &place.workload,
                cluster_type: &place.cluster_type,
                ring: &place.ring,
                assignment: &place.assignment,
                cluster: place.cluster.map(|cluster| cluster.to_string()),
                cluster_name: entry.cluster_name.as_deref(),
                commit: entry.commit.as_deref(),
                who: entry.who.as_deref(),
                recorded_at: moment(entry.recorded_at.0),
                late: entry.is_late(),
                detail: &entry.detail,
            },
        }
    }
}

/// `dev.kedge.rollout.stopped`, `dev.kedge.assignment.failed`, …
fn kind_of(entry: &Recorded) -> String {
    let noun = match entry.what() {
        Some(What::Ring { .. }) => "ring",
        Some(What::Repository { .. }) => "repository",
        Some(What::Policy { .. }) => "policy",
        _ => match entry.kind {
            Kind::Condition | Kind::Drift => "assignment",
            other => other.as_str(),
        },
    };
    let mut event = entry.event.chars();
    let word: String = event.next().into_iter().flat_map(char::to_lowercase).chain(event).collect();
    format!("{PREFIX}.{noun}.{word}")
}

/// What it is about: events of one subject come in their order.
pub fn subject_of(entry: &Recorded) -> String {
    let place = &entry.place;
    let environment = match place.environment.as_str() {
        "" => "all",
        environment => environment,
    };
    let cluster = || place.cluster.map(|cluster| cluster.to_string()).unwrap_or_default();
    match (entry.kind, entry.what()) {
        (Kind::Rollout, Some(What::Rollout { rollout, .. } | What::Ring { rollout, .. })) => {
            format!("environments/{environment}/rollouts/{rollout}")
        }
        (Kind::Approval, Some(What::Word { about, .. })) => match about.strip_prefix("rollout ") {
            Some(rollout) => format!("environments/{environment}/rollouts/{rollout}"),
            None => format!("environments/{environment}/promotions"),
        },
        (Kind::Promotion, _) => format!("environments/{environment}/promotions"),
        (Kind::Condition | Kind::Drift, _) => {
            format!("environments/{environment}/assignments/{}/{}", place.assignment, cluster())
        }
        (Kind::Cluster, _) => format!("clusters/{}", cluster()),
        (Kind::Problem, Some(What::Repository { url, .. })) => format!("repositories/{url}"),
        (kind, _) => format!("environments/{environment}/{}/{}", kind.as_str(), place.assignment),
    }
}

fn moment(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}
