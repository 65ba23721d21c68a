//! `/workloads/{name}`: where a workload runs, in which version, with which configuration, in every environment; its rollout and
//! its teams.

mod values;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use kedge_api::drift::RunningPackages;
use kedge_api::rollouts::RolloutReference;
use kedge_api::workloads::{WorkloadAssignment, WorkloadEnvironment};
use kedge_rollout::RolloutId;

use super::drift::OTHER_CONTENT;
use super::past::{self, Past};
use super::workloads::four;
use crate::api::history::HistoryQuery;
use crate::api::objects::REMOVED;
use crate::api::overview;
use crate::api::{ApiState, rollouts};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Place, Step, Tone, When};
use crate::web::{Show, Viewer, WebError, links, rings};
use values::Values;

#[derive(Template)]
#[template(path = "workload.html")]
pub struct WorkloadPage {
    frame: Frame,
    name: String,
    teams: Vec<(String, String)>,
    /// Left to right.
    columns: Vec<Column>,
    rollouts: String,
    drift: String,
    compare: Option<(String, String)>,
    values: Values,
    past: Past,
}

/// The workload in an environment.
struct Column {
    environment: String,
    link: String,
    bar: Bar,
    labels: Vec<(String, String)>,
    origin: Place,
    stale: Option<When>,
    rollouts: Vec<About>,
    assignments: Vec<Assignment>,
}

/// A target of it on a cluster type.
struct Assignment {
    name: String,
    link: String,
    configuration: String,
    cluster_type: String,
    cluster_type_link: String,
    target: String,
    quarantined: bool,
    /// Git doesn't describe it any more.
    removed: bool,
    /// What should run: one line, or one for each ring.
    desired: Vec<Wanted>,
    running: Vec<Running>,
    bar: Bar,
}

struct Wanted {
    ring: String,
    version: String,
    chip: Option<Chip>,
}

struct Running {
    text: String,
    chip: Option<Chip>,
    count: u64,
    link: String,
    /// Why it isn't what should run; empty: it is.
    differs: &'static str,
}

/// A rollout that moves it, with its rings.
struct About {
    id: u64,
    link: String,
    chip: Chip,
    subject: String,
    word: String,
    tone: Option<Tone>,
    steps: Vec<Step>,
}

/// The newest entries of its history.
const ENTRIES: usize = 8;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    name: Result<Path<String>, PathRejection>,
) -> Result<Show<WorkloadPage>, WebError> {
    let name = name?.0;
    let whole = overview::whole(&state, &viewer.caller, &name).await?;
    let query = HistoryQuery { workload: Some(name.clone()), ..HistoryQuery::default() };
    let past = past::of(&state, &viewer, query, ENTRIES, links::query("/history", &[("workload", &name)])).await?;
    let values = Values::of(&state, &viewer.caller, &whole.environments).await?;
    let mut columns = Vec::new();
    for environment in whole.environments {
        columns.push(column(&state, &viewer, &name, environment).await?);
    }
    let ends = columns.iter().rev().take(2).map(|column| column.environment.as_str()).collect::<Vec<_>>();
    let compare = match ends.as_slice() {
        [right, left] => {
            let link =
                links::query("/compare", &[("left", left), ("right", right), ("workload", &name), ("all", "true")]);
            Some((link, format!("{left} and {right}")))
        }
        _ => None,
    };
    Ok(Show(WorkloadPage {
        frame: Frame::of(&viewer, name.clone(), Section::Workloads),
        teams: whole
            .workspaces
            .into_iter()
            .map(|team| (links::query("/workloads", &[("workspace", &team)]), team))
            .collect(),
        rollouts: links::query("/rollouts", &[("workload", &name)]),
        drift: links::query("/drift", &[("workload", &name)]),
        compare,
        values,
        columns,
        past,
        name,
    }))
}

async fn column(
    state: &ApiState,
    viewer: &Viewer,
    workload: &str,
    environment: WorkloadEnvironment,
) -> Result<Column, WebError> {
    let name = environment.name;
    let mut rollouts = Vec::new();
    for about in environment.rollouts {
        rollouts.push(rollout(state, viewer, about).await?);
    }
    let pairs = [("environment", name.as_str()), ("workload", workload)];
    Ok(Column {
        link: links::environment(&name),
        bar: four(environment.conditions).bar("/conditions", &pairs),
        labels: environment.workload.labels.into_iter().collect(),
        origin: Place::of(&environment.workload.origin),
        stale: When::maybe(environment.workload.stale_since.as_deref()),
        rollouts,
        assignments: environment.assignments.into_iter().map(|one| Assignment::of(&name, one)).collect(),
        environment: name,
    })
}

/// What moves is drawn with its rings; what has ended is a line.
async fn rollout(state: &ApiState, viewer: &Viewer, about: RolloutReference) -> Result<About, WebError> {
    let id = RolloutId(about.rollout);
    let unfinished = matches!(about.state.as_str(), "Active" | "Paused" | "Stopped");
    let steps = match state.store.rollout(id).await? {
        Some(stored) if unfinished => {
            let whole = rollouts::find(state, &viewer.caller, id).await?.detail;
            rings::steps(state, &viewer.caller, &stored.rollout, &whole, rings::Look::Glance).await?
        }
        _ => Vec::new(),
    };
    Ok(About {
        id: about.rollout,
        link: links::rollout(about.rollout),
        chip: Chip::new(&about.commit, &about.subject),
        subject: about.subject,
        word: rings::said(&about.state).to_owned(),
        tone: rings::tone_of_rollout(&about.state, about.settled),
        steps,
    })
}

impl Assignment {
    fn of(environment: &str, one: WorkloadAssignment) -> Assignment {
        let link = links::assignment(environment, &one.name);
        let pairs = [
            ("environment", environment),
            ("clusterType", one.cluster_type.as_str()),
            ("assignment", one.target.as_str()),
        ];
        let packages: Vec<&str> = one.desired.iter().map(|wanted| wanted.packages.as_str()).collect();
        let same = packages.windows(2).all(|pair| pair.first() == pair.last());
        let shown = if same { one.desired.iter().take(1) } else { one.desired.iter().take(usize::MAX) };
        let desired = shown.map(|wanted| Wanted {
            ring: if same { String::new() } else { wanted.ring.clone() },
            version: match (&wanted.version, wanted.packages.is_empty()) {
                (Some(version), _) => version.clone(),
                (None, true) => "nothing".to_owned(),
                (None, false) => "no version".to_owned(),
            },
            chip: wanted.commit.as_deref().map(|commit| Chip::new(commit, "")),
        });
        // As the rings stand beside it; what none of them should run comes last, the most frequent first.
        let mut reported: Vec<&RunningPackages> = one.running.iter().collect();
        let place = |running: &RunningPackages| packages.iter().position(|wanted| *wanted == running.packages);
        reported.sort_by_key(|running| place(running).unwrap_or(packages.len()));
        let running = reported.into_iter().map(|running| {
            let wanted = packages.contains(&running.packages.as_str());
            let reality = if wanted { "asDesired" } else { "differs" };
            let same_version = one.desired.iter().any(|wanted| wanted.version == running.version);
            let all: Vec<(&str, &str)> = pairs.iter().copied().chain(std::iter::once(("reality", reality))).collect();
            Running {
                text: match (&running.version, running.packages.is_empty()) {
                    (Some(version), _) => version.clone(),
                    (None, true) => "nothing".to_owned(),
                    (None, false) => "no version".to_owned(),
                },
                chip: running.commit.as_deref().map(|commit| Chip::new(commit, "")),
                count: running.count,
                link: links::query("/conditions", &all),
                differs: match (wanted, same_version && !running.packages.is_empty()) {
                    (true, _) => "",
                    (false, true) => OTHER_CONTENT,
                    (false, false) => "not desired",
                },
            }
        });
        Assignment {
            configuration: format!("{link}#configuration"),
            cluster_type_link: links::cluster_type(environment, &one.cluster_type),
            desired: desired.collect(),
            running: running.collect(),
            bar: four(one.conditions).bar("/conditions", &pairs),
            quarantined: one.state == "quarantined",
            removed: one.state == REMOVED,
            name: one.name.clone(),
            cluster_type: one.cluster_type.clone(),
            target: one.target.clone(),
            link,
        }
    }
}
