//! `/`: is everything all right? Environments along the way of a change, what moves, what is wrong, what is Unknown.

pub mod column;
pub mod verdict;

use std::collections::BTreeSet;

use askama::Template;
use axum::extract::{Query, State};
use kedge_api::rollouts::RolloutSummary;

use super::past::{self, Past};
use crate::api::ApiState;
use crate::api::fleet::{self, FleetQuery};
use crate::api::history::HistoryQuery;
use crate::api::rollouts::{self, RolloutsQuery};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Text, Tone, When};
use crate::web::{Show, Viewer, WebError, links};

use column::Column;
use verdict::Verdict;

#[derive(Template)]
#[template(path = "fleet.html")]
pub struct Fleet {
    frame: Frame,
    verdict: Verdict,
    main: Option<Main>,
    columns: Vec<Column>,
    moving: Vec<Moving>,
    past: Past,
    first_run: Option<FirstRun>,
}

/// Where a change comes from.
struct Main {
    chip: Chip,
    subject: String,
}

/// A change on its way.
pub struct Moving {
    pub id: u64,
    pub chip: Chip,
    pub link: String,
    pub subject: String,
    pub environment: String,
    pub environment_link: String,
    pub tone: Tone,
    pub state: String,
    pub has_why: bool,
    pub why: Text,
    pub rings: Vec<(String, Text)>,
    pub since: When,
}

/// A hub that nothing is described for.
struct FirstRun {
    platform: bool,
    /// An application team's own.
    workspaces: Vec<String>,
    failing: u64,
}

/// So many changes are shown; the rollouts' page has all.
const MOVING: usize = 8;
const PAST: usize = 10;

pub async fn page(State(state): State<ApiState>, viewer: Viewer) -> Result<Show<Fleet>, WebError> {
    let fleet = fleet::glance(&state, &viewer.caller, &FleetQuery::default()).await?;
    let moving = moving(&state, &viewer, None, MOVING).await?;
    let past = past::of(&state, &viewer, HistoryQuery::default(), PAST, "/history".to_owned()).await?;
    let first_run = fleet.environments.is_empty().then(|| FirstRun {
        platform: viewer.caller.role == Role::Platform,
        workspaces: viewer.caller.workspaces.clone(),
        failing: fleet.repositories.failing,
    });
    let verdict = Verdict::of(&fleet);
    // The newest commit that an environment knows of: what main has become.
    let newest = fleet.environments.first().and_then(|first| {
        let next = first.next.as_ref().map(|next| (next.commit.as_str(), next.subject.as_str()));
        next.or_else(|| {
            Some((first.promoted_commit.as_deref()?, first.promoted_subject.as_deref().unwrap_or_default()))
        })
    });
    let main = newest.map(|(commit, subject)| Main { chip: Chip::new(commit, subject), subject: subject.to_owned() });
    // A commit moves with the foremost of its chips: a key stands once on a page.
    let mut named = BTreeSet::new();
    let mut columns: Vec<Column> = Vec::with_capacity(fleet.environments.len());
    for environment in fleet.environments.iter().rev() {
        columns.push(Column::of(environment, &mut named));
    }
    columns.reverse();
    Ok(Show(Fleet {
        frame: Frame::of(&viewer, "Fleet", Section::Fleet),
        verdict,
        main,
        columns,
        moving,
        past,
        first_run,
    }))
}

/// Rollouts that haven't ended.
pub async fn moving(
    state: &ApiState,
    viewer: &Viewer,
    environment: Option<String>,
    limit: usize,
) -> Result<Vec<Moving>, WebError> {
    let query = RolloutsQuery { unfinished: Some(true), limit: Some(limit), environment, ..RolloutsQuery::default() };
    let listed = rollouts::rollouts(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    Ok(listed.page.items.into_iter().map(Moving::of).collect())
}

impl Moving {
    fn of(rollout: RolloutSummary) -> Moving {
        let tone = match rollout.state.as_str() {
            "Stopped" => Tone::Failed,
            "Paused" => Tone::Unknown,
            _ => Tone::Converging,
        };
        let why = rollout.why;
        let stopped = !why.is_empty();
        let rings = rollout.rings.into_iter().map(|ring| {
            let waits = ring.waits_for.first().filter(|_| ring.state != "passed" && !stopped);
            let word = waits.map_or(ring.state.clone(), |waits| format!("{}: {waits}", ring.state));
            (ring.ring, Text::of(&word))
        });
        Moving {
            chip: Chip::new(&rollout.cause.commit, &rollout.cause.subject).moving(format!("rollout-{}", rollout.id)),
            link: links::rollout(rollout.id),
            environment_link: links::environment(&rollout.environment),
            rings: rings.collect(),
            since: When::of(&rollout.created_at),
            id: rollout.id,
            subject: rollout.cause.subject,
            environment: rollout.environment,
            tone,
            state: rollout.state,
            why: Text::of(&why),
            has_why: stopped,
        }
    }
}
