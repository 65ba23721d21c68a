//! `/clusters/{cluster}`: what runs here, since when, when was it last heard, and what happens now?

mod hold;
mod steps;

use askama::Template;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use kedge_api::clusters::{ClusterDetail, WarningSummary};
use kedge_api::conditions::AssignmentCondition;
use kedge_api::desired_states::{DesiredEntry, DesiredStateSummary};
use kedge_api::holds::HoldSummary;
use kedge_api::rollouts::RolloutReference;
use serde::Deserialize;

use super::asked::{ROWS, some};
use super::clusters::Health;
use super::past::{self, Past};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::clusters;
use crate::api::history::HistoryQuery;
use crate::api::states::{self, GenerationQuery};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::said::Facts;
use crate::web::part::{Chip, Pages, Said, Text, When};
use crate::web::{Show, Viewer, WebError, links};

pub use hold::{ask, hold, release};
use steps::Step;

#[derive(Template)]
#[template(path = "cluster.html")]
pub struct Cluster {
    frame: Frame,
    seen: ClusterDetail,
    links: Links,
    health: Health,
    joined: When,
    contact: When,
    via: Option<Via>,
    promise: When,
    /// Its check-in was missed then.
    missed: Option<When>,
    looked_at: Option<When>,
    certificate: When,
    cloned: Option<When>,
    /// It was silent for too long.
    needs_readmission: bool,
    changing: Option<When>,
    desired: Option<Desired>,
    rows: Vec<Row>,
    pages: Pages,
    holds: Vec<Held>,
    warnings: Vec<Warned>,
    rollouts: Vec<Moving>,
    past: Past,
    may_hold: bool,
    may_change: bool,
}

struct Links {
    environment: String,
    cluster_type: String,
    ring: String,
    conditions: String,
    site: String,
}

/// Who brought its last sign of life.
struct Via {
    name: String,
    /// None: a person, with a file, or one that the viewer doesn't see.
    link: Option<String>,
}

/// The state that the cluster should have.
struct Desired {
    generation: u64,
    issued: When,
    commit: Option<Chip>,
    /// The cluster has it.
    accepted: bool,
}

/// What runs of an assignment.
struct Row {
    assignment: String,
    link: String,
    /// None: it should run here, and the cluster hasn't told of it.
    said: Option<Said>,
    message: String,
    drift: String,
    version: String,
    held: bool,
    hold_link: String,
    steps: Vec<Step>,
}

struct Held {
    seen: HoldSummary,
    since: When,
    release_link: String,
}

struct Warned {
    code: String,
    error: bool,
    message: String,
    hint: Text,
    since: When,
}

struct Moving {
    chip: Chip,
    link: String,
    text: String,
}

/// Where the list of what runs begins.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    cursor: String,
}

/// So many entries of the past are shown.
const PAST: usize = 12;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<Show<Cluster>, WebError> {
    let from: usize = query?.0.cursor.parse().unwrap_or_default();
    let Json(mut seen) = clusters::cluster(State(state.clone()), viewer.caller.clone(), name).await?;
    let newest = newest(&state, &viewer, &seen).await?;
    let mut rows = rows(&mut seen, newest.as_ref());
    let next = (rows.len() > from + ROWS).then(|| (from + ROWS).to_string());
    rows = rows.into_iter().skip(from).take(ROWS).collect();
    let link = links::cluster(&seen.cluster.id);
    let history = HistoryQuery { cluster: Some(seen.cluster.id.clone()), ..HistoryQuery::default() };
    let past = past::of(&state, &viewer, history, PAST, links::query("/history", &[("cluster", &seen.cluster.id)]));
    let past = past.await?;
    let cluster = &seen.cluster;
    Ok(Show(Cluster {
        frame: Frame::of(&viewer, &cluster.name, Section::Clusters),
        links: Links::of(&seen),
        health: Health::of(cluster),
        joined: When::of(&cluster.joined_at),
        contact: When::of(&cluster.last_contact),
        via: cluster.via.as_ref().map(|via| Via {
            name: if via.name == "file" { "a file".to_owned() } else { via.name.clone() },
            link: via.cluster.as_deref().map(links::cluster),
        }),
        promise: When::of(&cluster.check_in_deadline),
        missed: cluster.unknown_since.as_deref().map(When::clock),
        looked_at: When::maybe(cluster.looked_at.as_deref()),
        certificate: When::of(&cluster.certificate_until),
        cloned: cluster.cloned_since.as_deref().map(When::clock),
        needs_readmission: cluster.needs_readmission,
        changing: seen.changing_since.as_deref().map(When::clock),
        desired: newest.map(|newest| Desired {
            accepted: accepted(&seen, &newest),
            generation: newest.generation,
            issued: When::of(&newest.created_at),
            commit: newest.source.map(|source| Chip::new(&source.commit, "")),
        }),
        rows,
        pages: Pages::of(&link, &[], (from > 0).then_some("0"), next.as_deref()),
        holds: seen.holds.iter().map(|hold| held(&seen, hold)).collect(),
        warnings: seen.warnings.iter().map(warned).collect(),
        rollouts: seen.rollouts.iter().map(moving).collect(),
        past,
        may_hold: !viewer.caller.only_looks() && cluster.state == "active",
        may_change: viewer.caller.role == Role::Platform && cluster.state == "active",
        seen,
    }))
}

fn warned(warning: &WarningSummary) -> Warned {
    Warned {
        code: warning.code.clone(),
        error: warning.severity == "Error",
        message: warning.message.clone(),
        hint: Text::of(&warning.hint.replace('`', "")),
        since: When::clock(&warning.since),
    }
}

fn moving(about: &RolloutReference) -> Moving {
    Moving {
        chip: Chip::new(&about.commit, &about.subject),
        link: links::rollout(about.rollout),
        text: format!("{}: {}, {}", about.subject, about.state, about.rings),
    }
}

fn held(seen: &ClusterDetail, hold: &HoldSummary) -> Held {
    let path = format!("{}/release", links::cluster(&seen.cluster.id));
    Held {
        since: When::clock(&hold.since),
        release_link: links::query(&path, &[("assignment", &hold.assignment)]),
        seen: hold.clone(),
    }
}

/// The newest state of the cluster's stream; none: nothing is issued for it.
async fn newest(
    state: &ApiState,
    viewer: &Viewer,
    seen: &ClusterDetail,
) -> Result<Option<DesiredStateSummary>, WebError> {
    let cluster = &seen.cluster;
    let path = (cluster.environment.clone(), cluster.cluster_type.clone(), cluster.ring.clone());
    let query = Ok(Query(GenerationQuery::default()));
    match states::desired_state(State(state.clone()), viewer.caller.clone(), Ok(Path(path)), query).await {
        Ok(Json(newest)) => Ok(Some(newest)),
        Err(ApiError { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn accepted(seen: &ClusterDetail, newest: &DesiredStateSummary) -> bool {
    u64::try_from(seen.cluster.generation).is_ok_and(|generation| generation >= newest.generation)
}

/// What runs and what should, by name: a row stays where it is whatever becomes of it.
fn rows(seen: &mut ClusterDetail, newest: Option<&DesiredStateSummary>) -> Vec<Row> {
    let mut conditions = std::mem::take(&mut seen.conditions);
    conditions.sort_by(|one, other| one.assignment.cmp(&other.assignment));
    let entries = newest.map(|newest| newest.entries.as_slice()).unwrap_or_default();
    let entry_of = |name: &str| entries.iter().find(|entry| entry.assignment == name);
    let missing: Vec<&DesiredEntry> =
        entries.iter().filter(|entry| !conditions.iter().any(|known| known.assignment == entry.assignment)).collect();
    let mut rows: Vec<Row> =
        missing.iter().map(|entry| row(seen, newest, None, Some(entry), &entry.assignment)).collect();
    rows.extend(
        conditions.iter().map(|condition| {
            row(seen, newest, Some(condition), entry_of(&condition.assignment), &condition.assignment)
        }),
    );
    rows.sort_by(|one, other| one.assignment.cmp(&other.assignment));
    rows
}

fn row(
    seen: &ClusterDetail,
    newest: Option<&DesiredStateSummary>,
    condition: Option<&AssignmentCondition>,
    entry: Option<&DesiredEntry>,
    assignment: &str,
) -> Row {
    let cluster = &seen.cluster;
    let silent = cluster.unknown_since.is_some();
    let full = format!("{}/{assignment}", cluster.cluster_type);
    let hold_path = format!("{}/hold", links::cluster(&cluster.id));
    Row {
        link: links::assignment(&cluster.environment, &full),
        said: condition.map(|condition| Said::of(&facts(condition))),
        // Of a silent one the sentence says what was last heard.
        message: condition.and_then(|condition| condition.message.clone()).filter(|_| !silent).unwrap_or_default(),
        drift: condition.and_then(|condition| condition.drift.clone()).unwrap_or_default(),
        version: entry.and_then(|entry| entry.version.clone()).unwrap_or_default(),
        held: seen.holds.iter().any(|hold| hold.assignment == assignment),
        hold_link: links::query(&hold_path, &[("assignment", assignment)]),
        steps: steps::of(seen, newest, condition, entry),
        assignment: assignment.to_owned(),
    }
}

pub(super) fn facts(condition: &AssignmentCondition) -> Facts<'_> {
    Facts {
        condition: &condition.condition,
        last_known: condition.last_known.as_deref(),
        reason: condition.reason.as_deref(),
        version: condition.version.as_deref(),
        runs: condition.running.is_some(),
        since: some(&condition.since).is_some().then_some(condition.since.as_str()),
    }
}

impl Links {
    fn of(seen: &ClusterDetail) -> Links {
        let cluster = &seen.cluster;
        let stream = [
            ("environment", cluster.environment.as_str()),
            ("clusterType", &cluster.cluster_type),
            ("ring", &cluster.ring),
        ];
        Links {
            environment: links::environment(&cluster.environment),
            cluster_type: links::cluster_type(&cluster.environment, &cluster.cluster_type),
            ring: links::query("/clusters", &stream),
            conditions: links::query("/conditions", &[("cluster", &cluster.id)]),
            site: links::query("/clusters", &[("site", cluster.site.as_deref().unwrap_or_default())]),
        }
    }
}
