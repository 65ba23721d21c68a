//! `/clusters`: who is in the fleet, and is it well?

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::clusters::{ClusterSummary, IssueCounts};
use kedge_hub_types::status::warnings;
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use super::fleet::verdict::counted;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::clusters::{self, ClustersQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Filters, Pages, State as Word, Tone, When};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "clusters.html")]
pub struct Clusters {
    frame: Frame,
    filters: Filters,
    wrong: Option<ApiError>,
    rows: Vec<Row>,
    pages: Pages,
    /// For the platform team: how a cluster comes in.
    may_join: bool,
}

struct Row {
    id: String,
    name: String,
    link: String,
    environment: String,
    environment_link: String,
    cluster_type: String,
    type_link: String,
    ring: String,
    ring_link: String,
    health: Health,
    /// `active`, or what became of it.
    state: String,
    contact: When,
    /// Who brought its last sign of life; empty: itself.
    via: String,
    agent: String,
}

/// How a cluster is, in one line.
pub struct Health {
    /// None: it isn't a member any more.
    pub word: Option<Word>,
    pub since: Option<When>,
    pub rest: &'static str,
    /// What isn't as it should be, each with the list behind it.
    pub amiss: Vec<(String, String)>,
}

/// Filters of the list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Wanted {
    environment: String,
    cluster_type: String,
    ring: String,
    condition: String,
    state: String,
    site: String,
    warning: String,
    name_prefix: String,
    label_selector: String,
    cursor: String,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Clusters>), WebError> {
    let wanted = query?.0;
    let listed = clusters::clusters(State(state.clone()), viewer.caller.clone(), Ok(Query(wanted.query()))).await;
    let (found, wrong, status) = asked::answered(listed)?;
    let (items, next) = found.map(|(_, listed)| (listed.page.items, listed.page.next)).unwrap_or_default();
    let filters = Filters::of("/clusters")
        .choice("environment", "Environment", &wanted.environment, asked::environments(&state, &viewer).await?)
        .choice(
            "clusterType",
            "Cluster type",
            &wanted.cluster_type,
            asked::cluster_types(&state, &viewer, &wanted.environment).await?,
        )
        .choice("ring", "Ring", &wanted.ring, asked::rings(&state, &wanted.environment).await?)
        .choice("condition", "Contact", &wanted.condition, ["Known", "Unknown"])
        .text("namePrefix", "Name begins with", &wanted.name_prefix, "line-7")
        .seldom()
        .choice("state", "Membership", &wanted.state, ["active", "retired", "revoked", "replaced"])
        .choice("warning", "Warning", &wanted.warning, warnings::kinds())
        .text("labelSelector", "Labels", &wanted.label_selector, "hall=7,!spare")
        .text("site", "Site", &wanted.site, "north");
    Ok((
        status,
        Show(Clusters {
            frame: Frame::of(&viewer, "Clusters", Section::Clusters),
            filters,
            wrong,
            rows: items.into_iter().map(row).collect(),
            pages: Pages::of("/clusters", &wanted.pairs(), some(&wanted.cursor).as_deref(), next.as_deref()),
            may_join: viewer.caller.platform("joining").is_ok(),
        }),
    ))
}

impl Wanted {
    fn pairs(&self) -> [(&'static str, &str); 9] {
        [
            ("environment", &self.environment),
            ("clusterType", &self.cluster_type),
            ("ring", &self.ring),
            ("condition", &self.condition),
            ("state", &self.state),
            ("site", &self.site),
            ("warning", &self.warning),
            ("namePrefix", &self.name_prefix),
            ("labelSelector", &self.label_selector),
        ]
    }

    fn query(&self) -> ClustersQuery {
        ClustersQuery {
            environment: some(&self.environment),
            cluster_type: some(&self.cluster_type),
            ring: some(&self.ring),
            state: some(&self.state),
            site: some(&self.site),
            condition: some(&self.condition),
            warning: some(&self.warning),
            name_prefix: some(&self.name_prefix),
            label_selector: some(&self.label_selector),
            limit: Some(ROWS),
            cursor: some(&self.cursor),
            after: None,
            wait: None,
        }
    }
}

impl Health {
    pub fn of(cluster: &ClusterSummary) -> Health {
        let counts = cluster.issues.unwrap_or_default();
        let silent = cluster.unknown_since.is_some();
        // A silent cluster's rows are all Unknown: what was last heard isn't a list of its own.
        let link = |pair: (&str, &str)| {
            let pair = if silent { ("condition", "Unknown") } else { pair };
            links::query("/conditions", &[("cluster", &cluster.id), pair])
        };
        let numbers = [
            (counts.failed, "Failed", link(("condition", "Failed"))),
            (counts.converging, "Converging", link(("condition", "Converging"))),
            (counts.drifted, "drifted", link(("drift", "true"))),
        ];
        let told = numbers.into_iter().filter(|(count, ..)| *count > 0).enumerate();
        let numbers = told.map(|(place, (count, word, link))| match (place, silent) {
            // Its word stands before it already.
            (0, false) if word != "drifted" => (counted(count, "assignment"), link),
            _ => (format!("{count} {word}"), link),
        });
        let amiss: Vec<(String, String)> = numbers.collect();
        let since = cluster.unknown_since.as_deref().map(When::clock);
        let (word, rest) = match (cluster.state.as_str(), silent, cluster.issues) {
            ("active", true, None) => (Tone::Unknown.state("offline"), "; it has never reported"),
            ("active", true, Some(_)) if amiss.is_empty() => {
                (Tone::Unknown.state("offline"), "; last known: all Converged")
            }
            ("active", true, Some(_)) => (Tone::Unknown.state("offline"), "; last known: "),
            ("active", false, None) => (Tone::Unknown.state("joined, and nothing is reported yet"), ""),
            ("active", false, Some(IssueCounts { failed: 1.., .. })) => (Tone::Failed.state(""), ""),
            ("active", false, Some(IssueCounts { converging: 1.., .. })) => (Tone::Converging.state(""), ""),
            ("active", false, Some(_)) => (Tone::Converged.state(""), ""),
            _ => return Health { word: None, since: None, rest: "", amiss: Vec::new() },
        };
        Health { word: Some(word), since, rest, amiss }
    }
}

fn row(cluster: ClusterSummary) -> Row {
    let stream = [
        ("environment", cluster.environment.as_str()),
        ("clusterType", &cluster.cluster_type),
        ("ring", &cluster.ring),
    ];
    Row {
        link: links::cluster(&cluster.id),
        environment_link: links::environment(&cluster.environment),
        type_link: links::cluster_type(&cluster.environment, &cluster.cluster_type),
        ring_link: links::query("/clusters", &stream),
        health: Health::of(&cluster),
        contact: When::of(&cluster.last_contact),
        via: cluster.via.map(|via| via.name).unwrap_or_default(),
        id: cluster.id,
        name: cluster.name,
        environment: cluster.environment,
        cluster_type: cluster.cluster_type,
        ring: cluster.ring,
        state: cluster.state,
        agent: cluster.facts.agent_version,
    }
}
