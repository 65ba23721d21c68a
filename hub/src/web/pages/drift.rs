//! `/drift`: desired against reality over the whole fleet. What differs comes first; the clusters behind a number are a link away.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::drift::{DriftGroup, RealityCounts, RunningPackages, WantedPackages};
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::drift::{self, DriftQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Filters, Pages};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "drift.html")]
pub struct Drift {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    totals: Vec<Number>,
    calm: bool,
    notes: Vec<String>,
    groups: Vec<Group>,
    pages: Pages,
}

/// A count with the list behind it.
struct Number {
    count: u64,
    word: &'static str,
    link: String,
    /// Colours what needs somebody.
    class: &'static str,
}

/// One assignment of one environment.
struct Group {
    environment: String,
    environment_link: String,
    assignment: String,
    link: String,
    workload: Option<(String, String)>,
    desired: Vec<Wanted>,
    running: Vec<Running>,
    numbers: Vec<Number>,
}

struct Wanted {
    ring: String,
    text: String,
}

struct Running {
    text: String,
    chip: Option<Chip>,
    count: u64,
    link: String,
    unknown: u64,
    /// Why it isn't what should run; empty: it is.
    differs: &'static str,
}

/// The version alone doesn't tell what differs.
pub const OTHER_CONTENT: &str = "other configuration or content";

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Wished {
    environment: String,
    cluster_type: String,
    ring: String,
    workload: String,
    cursor: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wished>, QueryRejection>,
) -> Result<(StatusCode, Show<Drift>), WebError> {
    let wished = query?.0;
    let query = DriftQuery {
        environment: some(&wished.environment),
        cluster_type: some(&wished.cluster_type),
        ring: some(&wished.ring),
        workload: some(&wished.workload),
        limit: Some(ROWS),
        cursor: some(&wished.cursor),
    };
    let (found, wrong, status) = asked::answered(drift::against(&state, &viewer.caller, &query).await)?;
    let view = found.unwrap_or_default();
    let pairs = wished.pairs();
    let page = Drift {
        frame: Frame::of(&viewer, "Drift", Section::Drift),
        filters: Filters::of("/drift")
            .choice("environment", "Environment", &wished.environment, asked::environments(&state, &viewer).await?)
            .choice(
                "clusterType",
                "Cluster type",
                &wished.cluster_type,
                asked::cluster_types(&state, &viewer, &wished.environment).await?,
            )
            .choice("ring", "Ring", &wished.ring, asked::rings(&state, &wished.environment).await?)
            .text("workload", "Workload", &wished.workload, ""),
        wrong,
        calm: view.totals.differs + view.totals.drifted == 0,
        totals: numbers(view.totals, &pairs, true),
        notes: view.notes,
        groups: view.groups.into_iter().map(Group::of).collect(),
        pages: Pages::of("/drift", &pairs, some(&wished.cursor).as_deref(), view.next.as_deref()),
    };
    Ok((status, Show(page)))
}

impl Wished {
    fn pairs(&self) -> [(&'static str, &str); 4] {
        [
            ("environment", &self.environment),
            ("clusterType", &self.cluster_type),
            ("ring", &self.ring),
            ("workload", &self.workload),
        ]
    }
}

fn numbers(counts: RealityCounts, pairs: &[(&str, &str)], all: bool) -> Vec<Number> {
    let of = |count: u64, word: &'static str, reality: &str, class: &'static str| {
        let narrowed: Vec<(&str, &str)> = pairs.iter().copied().chain(std::iter::once(("reality", reality))).collect();
        Number { count, word, link: links::query("/conditions", &narrowed), class }
    };
    let numbers = [
        of(counts.as_desired, "as desired", "asDesired", "converged"),
        of(counts.differs, "run something else", "differs", "converging"),
        of(counts.drifted, "changed by hand", "drifted", "failed"),
        of(counts.unknown, "unknown", "unknown", "unknown"),
    ];
    numbers.into_iter().filter(|number| all || number.count > 0).collect()
}

impl Group {
    fn of(group: DriftGroup) -> Group {
        let target = group.assignment.split_once('/').map_or(group.assignment.as_str(), |(_, target)| target);
        let pairs = [
            ("environment", group.environment.as_str()),
            ("clusterType", group.cluster_type.as_str()),
            ("assignment", target),
        ];
        let mut numbers = numbers(group.reality, &pairs, false);
        for (count, word, class) in [(group.failed, "Failed", "failed"), (group.converging, "Converging", "converging")]
        {
            if count > 0 {
                let narrowed: Vec<(&str, &str)> =
                    pairs.iter().copied().chain(std::iter::once(("condition", word))).collect();
                numbers.push(Number { count, word, link: links::query("/conditions", &narrowed), class });
            }
        }
        let named = |version: &Option<String>, packages: &str| match (version, packages.is_empty()) {
            (Some(version), _) => version.clone(),
            (None, true) => "nothing".to_owned(),
            (None, false) => "no version".to_owned(),
        };
        let desired = match group.rings.is_empty() {
            true => vec![Wanted { ring: String::new(), text: named(&group.desired_version, &group.desired_packages) }],
            false => {
                let ring = |ring: &WantedPackages| Wanted {
                    ring: ring.ring.clone(),
                    text: named(&ring.version, &ring.packages),
                };
                group.rings.iter().map(ring).collect()
            }
        };
        let differs = |running: &RunningPackages| {
            let packages = &running.packages;
            let same = *packages == group.desired_packages || group.rings.iter().any(|ring| ring.packages == *packages);
            match (same, !packages.is_empty() && running.version == group.desired_version) {
                (true, _) => "",
                (false, true) => OTHER_CONTENT,
                (false, false) => "not desired",
            }
        };
        let running = |running: &RunningPackages| Running {
            text: named(&running.version, &running.packages),
            chip: running.commit.as_deref().map(|commit| Chip::new(commit, "")),
            count: running.count,
            link: {
                let reality = if differs(running).is_empty() { "asDesired" } else { "differs" };
                let narrowed: Vec<(&str, &str)> =
                    pairs.iter().copied().chain(std::iter::once(("reality", reality))).collect();
                links::query("/conditions", &narrowed)
            },
            unknown: running.unknown,
            differs: differs(running),
        };
        Group {
            running: group.running.iter().map(running).collect(),
            desired,
            numbers,
            environment_link: links::environment(&group.environment),
            link: links::assignment(&group.environment, &group.assignment),
            workload: group.workload.map(|name| (links::workload(&name), name)),
            environment: group.environment,
            assignment: group.assignment,
        }
    }
}
