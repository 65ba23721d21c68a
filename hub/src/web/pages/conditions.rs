//! `/conditions`: the list behind every number, one row for each assignment on a cluster.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::conditions::{ConditionSummary, Reality};
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::conditions::{self, ConditionsQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::said::Facts;
use crate::web::part::{Filters, Pages, Said, Tone};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "conditions.html")]
pub struct Conditions {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    rows: Vec<Row>,
    pages: Pages,
    /// The page ended early: there may be more behind it.
    goes_on: bool,
}

struct Row {
    key: String,
    cluster: String,
    cluster_link: String,
    assignment: String,
    assignment_link: String,
    environment: String,
    environment_link: String,
    cluster_type: String,
    type_link: String,
    ring: String,
    said: Said,
    message: String,
    drift: String,
    /// What runs isn't what should.
    differs: bool,
}

/// Filters of the list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    environment: String,
    cluster_type: String,
    ring: String,
    workload: String,
    assignment: String,
    cluster: String,
    condition: String,
    reason: String,
    drift: String,
    reality: String,
    cursor: String,
}

const REALITIES: [(&str, Reality); 4] = [
    ("asDesired", Reality::AsDesired),
    ("differs", Reality::Differs),
    ("drifted", Reality::Drifted),
    ("unknown", Reality::Unknown),
];

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Conditions>), WebError> {
    let wanted = query?.0;
    let listed = match wanted.query() {
        Ok(query) => conditions::list(&state, &viewer.caller, &query).await,
        Err(error) => Err(error),
    };
    let (found, wrong, status) = asked::answered(listed)?;
    let (items, next) = found.map(|listed| (listed.page.items, listed.page.next)).unwrap_or_default();
    let filters = Filters::of("/conditions")
        .choice("condition", "Condition", &wanted.condition, Tone::ALL.map(Tone::word))
        .choice("environment", "Environment", &wanted.environment, asked::environments(&state, &viewer).await?)
        .choice(
            "clusterType",
            "Cluster type",
            &wanted.cluster_type,
            asked::cluster_types(&state, &viewer, &wanted.environment).await?,
        )
        .choice("ring", "Ring", &wanted.ring, asked::rings(&state, &wanted.environment).await?)
        .seldom()
        .choice("reality", "Against desired", &wanted.reality, REALITIES.map(|(word, _)| word))
        .choice("drift", "Drift", &wanted.drift, ["true", "false"])
        .text("workload", "Workload", &wanted.workload, "hello")
        .text("assignment", "Assignment", &wanted.assignment, "drone/hello-test")
        .text("cluster", "Cluster", &wanted.cluster, "name or id")
        .text("reason", "Reason", &wanted.reason, "HealthCheckFailed");
    Ok((
        status,
        Show(Conditions {
            frame: Frame::of(&viewer, "Conditions", Section::Clusters),
            filters,
            wrong,
            goes_on: next.is_some(),
            rows: items.into_iter().map(row).collect(),
            pages: Pages::of("/conditions", &wanted.pairs(), some(&wanted.cursor).as_deref(), next.as_deref()),
        }),
    ))
}

impl Wanted {
    fn pairs(&self) -> [(&'static str, &str); 10] {
        [
            ("environment", &self.environment),
            ("clusterType", &self.cluster_type),
            ("ring", &self.ring),
            ("workload", &self.workload),
            ("assignment", &self.assignment),
            ("cluster", &self.cluster),
            ("condition", &self.condition),
            ("reason", &self.reason),
            ("drift", &self.drift),
            ("reality", &self.reality),
        ]
    }

    fn query(&self) -> Result<ConditionsQuery, ApiError> {
        let drift = match self.drift.as_str() {
            "" => None,
            "true" => Some(true),
            "false" => Some(false),
            other => return Err(ApiError::invalid("BadDrift", format!("`drift` is `true` or `false`, not `{other}`"))),
        };
        let reality = match self.reality.as_str() {
            "" => None,
            word => match REALITIES.iter().find(|(known, _)| *known == word) {
                Some((_, reality)) => Some(*reality),
                None => {
                    let words = REALITIES.map(|(word, _)| word).join(", ");
                    return Err(ApiError::invalid("BadReality", format!("`reality` is one of {words}, not `{word}`")));
                }
            },
        };
        Ok(ConditionsQuery {
            environment: some(&self.environment),
            cluster_type: some(&self.cluster_type),
            ring: some(&self.ring),
            workload: some(&self.workload),
            assignment: some(&self.assignment),
            cluster: some(&self.cluster),
            condition: some(&self.condition),
            reason: some(&self.reason),
            drift,
            reality,
            limit: Some(ROWS),
            cursor: some(&self.cursor),
        })
    }
}

fn row(seen: ConditionSummary) -> Row {
    let full = format!("{}/{}", seen.cluster_type, seen.assignment);
    let said = Said::of(&Facts {
        condition: &seen.condition,
        last_known: seen.last_known.as_deref(),
        reason: seen.reason.as_deref(),
        version: seen.version.as_deref(),
        runs: seen.running.is_some(),
        since: seen.since.as_deref(),
    });
    Row {
        key: format!("{} {}", seen.cluster, seen.assignment),
        cluster_link: links::cluster(&seen.cluster),
        assignment_link: links::assignment(&seen.environment, &full),
        environment_link: links::environment(&seen.environment),
        type_link: links::cluster_type(&seen.environment, &seen.cluster_type),
        // Of a silent one the sentence says what was last heard.
        message: seen.message.filter(|_| said.tone != Tone::Unknown).unwrap_or_default(),
        differs: seen.reality == Reality::Differs && said.tone == Tone::Converged,
        drift: seen.drift.unwrap_or_default(),
        said,
        cluster: seen.cluster_name,
        assignment: seen.assignment,
        environment: seen.environment,
        cluster_type: seen.cluster_type,
        ring: seen.ring,
    }
}
