//! `/rollouts`: the promotion chain with its rings as a picture that moves, and the list of all rollouts.

mod chain;

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::page::Page;
use kedge_api::promotions::PromotionPolicySummary;
use kedge_api::rollouts::RolloutSummary;
use serde::Deserialize;

use super::asked::{self, ROWS, some};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::page::Listed;
use crate::api::promotions;
use crate::api::rollouts::{self, RolloutsQuery};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Filters, Pages, Tone, When};
use crate::web::{Show, Viewer, WebError, links, rings};
use chain::Column;

#[derive(Template)]
#[template(path = "rollouts.html")]
pub struct Rollouts {
    frame: Frame,
    /// Left to right; empty when the list is narrowed.
    chain: Vec<Column>,
    /// The newest commit of `main` that the hub knows.
    main: Option<(Chip, String)>,
    /// A looser policy that waits for an approval, or a broken one.
    policy_waits: bool,
    policy_broken: Vec<String>,
    governed: bool,
    platform: bool,
    filters: Filters,
    wrong: Option<ApiError>,
    rows: Vec<Row>,
    pages: Pages,
}

/// A rollout in the list.
struct Row {
    id: u64,
    link: String,
    state: String,
    tone: Option<Tone>,
    why: String,
    environment: String,
    environment_link: String,
    chip: Chip,
    subject: String,
    lane: String,
    moves: usize,
    rings: String,
    updated: When,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Asked {
    environment: String,
    state: String,
    workload: String,
    cluster_type: String,
    lane: String,
    source_commit: String,
    main_commit: String,
    unfinished: String,
    cursor: String,
}

/// What the state of a rollout may be.
const STATES: [&str; 7] = ["Active", "Paused", "Stopped", "Complete", "RolledBack", "Aborted", "Superseded"];
pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<(StatusCode, Show<Rollouts>), WebError> {
    let wanted = asked?.0;
    let caller = &viewer.caller;
    let mut names = asked::environments(&state, &viewer).await?;
    // An application team isn't told of the platform's promotion.
    let promotions = match caller.role {
        Role::Application => None,
        _ => Some(promotions::promotions(State(state.clone()), caller.clone()).await?.0),
    };
    if let Some(promotions) = &promotions {
        let place = |name: &String| promotions.items.iter().position(|item| item.environment == *name);
        names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
    }
    let narrowed = wanted.narrowed();
    let chain = match narrowed || !wanted.cursor.is_empty() {
        true => Vec::new(),
        false => chain::columns(&state, caller, &names, promotions.as_ref()).await?,
    };
    let first = promotions.as_ref().and_then(|all| all.items.iter().find(|item| item.after.is_empty()));
    let newest = first.and_then(|item| item.promotions.first());
    let listed = rollouts::rollouts(State(state), viewer.caller.clone(), Ok(Query(wanted.query()))).await;
    let (listed, wrong, status) = asked::answered(listed)?;
    let listed = listed.unwrap_or_else(|| Listed { page: Page::default(), tick: 0 });
    let broken = |policy: &PromotionPolicySummary| policy.reasons.clone();
    let page = Rollouts {
        wrong,
        frame: Frame::of(&viewer, "Rollouts", Section::Rollouts),
        chain,
        main: newest.map(|newest| (Chip::new(&newest.commit, &newest.subject), newest.subject.clone())),
        policy_waits: promotions.as_ref().is_some_and(|all| all.waiting.is_some()),
        policy_broken: promotions.as_ref().and_then(|all| all.broken.as_ref()).map(broken).unwrap_or_default(),
        governed: promotions.as_ref().is_none_or(|all| all.policy.is_some()),
        platform: viewer.caller.role == Role::Platform,
        filters: wanted.filters(&names),
        pages: wanted.pages(&listed),
        rows: listed.page.items.into_iter().map(row).collect(),
    };
    Ok((status, Show(page)))
}

impl Asked {
    fn query(&self) -> RolloutsQuery {
        RolloutsQuery {
            environment: some(&self.environment),
            lane: some(&self.lane),
            state: some(&self.state),
            unfinished: some(&self.unfinished).map(|text| text == "true"),
            workload: some(&self.workload),
            cluster_type: some(&self.cluster_type),
            source_commit: some(&self.source_commit),
            main_commit: some(&self.main_commit),
            limit: Some(ROWS),
            cursor: some(&self.cursor),
            ..RolloutsQuery::default()
        }
    }

    fn pairs(&self) -> [(&'static str, &str); 8] {
        [
            ("environment", &self.environment),
            ("state", &self.state),
            ("workload", &self.workload),
            ("clusterType", &self.cluster_type),
            ("lane", &self.lane),
            ("sourceCommit", &self.source_commit),
            ("mainCommit", &self.main_commit),
            ("unfinished", &self.unfinished),
        ]
    }

    fn narrowed(&self) -> bool {
        self.pairs().iter().any(|(_, value)| !value.is_empty())
    }

    fn filters(&self, environments: &[String]) -> Filters {
        let mut filters = Filters::of("/rollouts")
            .choice("environment", "Environment", &self.environment, environments)
            .choice("state", "State", &self.state, STATES)
            .text("workload", "Workload", &self.workload, "")
            .text("clusterType", "Cluster type", &self.cluster_type, "");
        // What only links ask for is shown when it narrows the list.
        let rare = [
            ("lane", "Lane", &self.lane),
            ("sourceCommit", "Commit of the source", &self.source_commit),
            ("mainCommit", "Commit of main", &self.main_commit),
            ("unfinished", "Not ended", &self.unfinished),
        ];
        for (name, label, value) in rare.into_iter().filter(|(.., value)| !value.is_empty()) {
            filters = filters.text(name, label, value, "");
        }
        filters
    }

    fn pages(&self, listed: &Listed<RolloutSummary>) -> Pages {
        let cursor = Some(self.cursor.as_str()).filter(|cursor| !cursor.is_empty());
        Pages::of("/rollouts", &self.pairs(), cursor, listed.page.next.as_deref())
    }
}

fn row(view: RolloutSummary) -> Row {
    let rings: Vec<String> = view.rings.iter().map(|ring| format!("{} {}", ring.ring, ring.state)).collect();
    Row {
        id: view.id,
        link: links::rollout(view.id),
        tone: rings::tone_of_rollout(&view.state, view.settled),
        state: rings::said(&view.state).to_owned(),
        why: view.why,
        environment_link: links::environment(&view.environment),
        environment: view.environment,
        chip: Chip::new(&view.cause.commit, &view.cause.subject),
        subject: view.cause.subject,
        lane: lane(&view.lane),
        moves: view.moves,
        rings: rings.join(", "),
        updated: When::of(&view.updated_at),
    }
}

/// The platform's files, or an application's source without the address of its server.
pub fn lane(lane: &str) -> String {
    let Some((repo, reference)) = lane.rsplit_once('@').filter(|_| lane != "platform") else {
        return lane.to_owned();
    };
    let name = repo.trim_end_matches('/').rsplit('/').next().unwrap_or(repo);
    format!("{}@{reference}", name.strip_suffix(".git").unwrap_or(name))
}
