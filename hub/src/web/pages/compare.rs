//! `/compare`: two environments, two cluster types, or one at two times, by workload: what differs in workloads, versions and
//! configuration.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use kedge_api::comparisons::{
    ComparedSide, Comparison, ComparisonTotals, KeyComparison, PlacedValue, SideSummary, WorkloadComparison,
};
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::compare::{self, CompareQuery};
use crate::api::objects::{self, ObjectQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Pages, When};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "compare.html")]
pub struct Compare {
    frame: Frame,
    left: String,
    right: String,
    workload: String,
    all: bool,
    /// What may be compared, for the fields.
    known: Vec<String>,
    compared: Option<Compared>,
    /// A side that isn't one: why, and what to do.
    wrong: Option<(String, Option<String>)>,
}

struct Compared {
    left: Side,
    right: Side,
    totals: ComparisonTotals,
    rows: Vec<Row>,
    notes: Vec<String>,
    pages: Pages,
    all_link: String,
    swap_link: String,
}

struct Side {
    name: String,
    link: String,
    at: Option<When>,
    chip: Option<Chip>,
}

/// One workload.
struct Row {
    workload: String,
    link: String,
    same: bool,
    differs: Vec<&'static str>,
    left: Option<Run>,
    right: Option<Run>,
    keys: Vec<Key>,
    unknown: bool,
}

/// What a side runs of a workload.
struct Run {
    versions: Vec<Version>,
    targets: String,
    types: String,
    quarantined: usize,
}

struct Version {
    text: String,
    chip: Option<Chip>,
    /// Where, when a side has several.
    place: String,
}

struct Key {
    key: String,
    left: Vec<Value>,
    right: Vec<Value>,
    redacted: bool,
    place: String,
}

struct Value {
    text: String,
    targets: String,
}

/// So many sides are offered; others are written.
const KNOWN: usize = 100;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    left: String,
    right: String,
    workload: String,
    all: String,
    cursor: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Show<Compare>, WebError> {
    let mut wanted = asked?.0;
    wanted.left = wanted.left.trim().to_owned();
    wanted.right = wanted.right.trim().to_owned();
    let caller = viewer.caller.clone();
    let query = Ok(Query(ObjectQuery { limit: Some(KNOWN), ..ObjectQuery::default() }));
    let types = objects::cluster_types(State(state.clone()), caller.clone(), query).await?.page.items;
    let mut known = asked::environments(&state, &viewer).await?;
    known.extend(types.into_iter().map(|item| format!("{}/{}", item.object.environment, item.object.name)));
    let mut page = Compare {
        frame: Frame::of(&viewer, "Compare", Section::Compare),
        all: wanted.all == "true",
        known,
        compared: None,
        wrong: None,
        left: wanted.left.clone(),
        right: wanted.right.clone(),
        workload: wanted.workload.clone(),
    };
    if wanted.left.is_empty() || wanted.right.is_empty() {
        return Ok(Show(page));
    }
    let query = CompareQuery {
        left: wanted.left.clone(),
        right: wanted.right.clone(),
        workload: some(&wanted.workload),
        differing: Some(!page.all),
        limit: Some(ROWS),
        cursor: some(&wanted.cursor),
    };
    match compare::compare(State(state), caller, Ok(Query(query))).await {
        Ok(view) => page.compared = Some(Compared::of(&wanted, view.0)),
        // The fields stay, so that they can be mended.
        Err(error) if error.status.is_client_error() => page.wrong = Some((error.message, error.hint)),
        Err(error) => return Err(error.into()),
    }
    Ok(Show(page))
}

impl Compared {
    fn of(asked: &Asked, view: Comparison) -> Compared {
        let pairs = [
            ("left", asked.left.as_str()),
            ("right", asked.right.as_str()),
            ("workload", asked.workload.as_str()),
            ("all", asked.all.as_str()),
        ];
        let cursor = Some(asked.cursor.as_str()).filter(|cursor| !cursor.is_empty());
        Compared {
            pages: Pages::of("/compare", &pairs, cursor, view.next.as_deref()),
            all_link: links::query("/compare", &[("left", &asked.left), ("right", &asked.right), ("all", "true")]),
            swap_link: links::query("/compare", &[("left", &asked.right), ("right", &asked.left), ("all", &asked.all)]),
            left: Side::of(view.left),
            right: Side::of(view.right),
            totals: view.totals,
            rows: view.workloads.into_iter().map(Row::of).collect(),
            notes: view.notes,
        }
    }
}

impl Side {
    fn of(side: ComparedSide) -> Side {
        Side {
            link: match &side.cluster_type {
                Some(cluster_type) => links::cluster_type(&side.environment, cluster_type),
                None => links::environment(&side.environment),
            },
            at: When::maybe(side.at.as_deref()),
            chip: side.commit.as_deref().map(|commit| Chip::new(commit, "of the environment's branch")),
            name: match side.cluster_type {
                Some(cluster_type) => format!("{}/{cluster_type}", side.environment),
                None => side.environment,
            },
        }
    }
}

impl Row {
    fn of(one: WorkloadComparison) -> Row {
        let word = |word: &String| match word.as_str() {
            "onlyLeft" | "onlyRight" => "is on one side only",
            "version" => "version",
            "content" => "content of the same version",
            "platform" => "the platform's files",
            "configuration" => "configuration",
            "clusterTypes" => "cluster types",
            "targets" => "targets",
            _ => "something",
        };
        Row {
            link: links::workload(&one.workload),
            same: one.same,
            differs: one.differs.iter().map(word).collect(),
            left: one.left.map(Run::of),
            right: one.right.map(Run::of),
            keys: one.configuration.into_iter().map(Key::of).collect(),
            unknown: one.configuration_unknown,
            workload: one.workload,
        }
    }
}

impl Run {
    fn of(run: SideSummary) -> Run {
        let several = run.versions.len() > 1;
        let versions = run.versions.into_iter().map(|version| Version {
            text: version.version.unwrap_or_else(|| "no version".to_owned()),
            chip: version.commit.as_deref().map(|commit| Chip::new(commit, "")),
            place: match several {
                true => format!("{} in ring {}", version.cluster_types.join(", "), version.rings.join(", ")),
                false => String::new(),
            },
        });
        Run {
            versions: versions.collect(),
            targets: run.targets.join(", "),
            types: run.cluster_types.join(", "),
            quarantined: run.quarantined.len(),
        }
    }
}

impl Key {
    fn of(key: KeyComparison) -> Key {
        let values = |values: Vec<PlacedValue>| {
            let several = values.len() > 1;
            // Rings of one target have different values, or targets do.
            let by_ring = values.windows(2).all(|pair| pair[0].targets == pair[1].targets);
            let value = |one: PlacedValue| Value {
                text: super::assignment::plain(&one.value),
                targets: match (several, by_ring && !one.rings.is_empty()) {
                    (false, _) => String::new(),
                    (true, true) => format!("{} in ring {}", one.targets.join(", "), one.rings.join(", ")),
                    (true, false) => one.targets.join(", "),
                },
            };
            values.into_iter().map(value).collect::<Vec<_>>()
        };
        Key {
            key: key.key,
            left: values(key.left),
            right: values(key.right),
            redacted: key.redacted,
            place: key.cluster_types.join(", "),
        }
    }
}
