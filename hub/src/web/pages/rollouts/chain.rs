//! The promotion chain from left to right: which commit of `main` is where, what moves through the rings, what waits for whom.

use std::collections::BTreeSet;

use axum::extract::{Query, State};
use kedge_api::promotions::{EnvironmentPromotion, PromotionList, PromotionSummary};
use kedge_api::rollouts::RolloutSummary;
use kedge_rollout::RolloutId;

use crate::api::answer::ApiError;
use crate::api::rollouts::{self, RolloutsQuery};
use crate::api::{ApiState, Caller};
use crate::web::part::{Chip, Step, Tone, When};
use crate::web::{links, rings};

/// An environment, as the way of a change passes it.
pub struct Column {
    pub environment: String,
    pub link: String,
    /// Of its promotions; none: no policy governs it, or it isn't the viewer's business.
    pub promotions: Option<String>,
    pub promoted: Option<Promoted>,
    pub waiting: Option<Promoted>,
    pub notes: Vec<String>,
    pub lanes: Vec<Lane>,
    /// More rollouts that haven't ended.
    pub more: Option<String>,
}

/// A commit of `main` in an environment.
pub struct Promoted {
    pub chip: Chip,
    pub subject: String,
    pub word: String,
    pub tone: Option<Tone>,
    pub when: When,
    pub waits_for: Vec<String>,
}

/// A rollout with its rings.
pub struct Lane {
    pub id: u64,
    pub link: String,
    pub title: String,
    pub chip: Chip,
    pub subject: String,
    pub word: String,
    pub tone: Option<Tone>,
    pub when: When,
    pub why: String,
    pub steps: Vec<Step>,
}

/// So many rollouts of an environment are drawn.
const DRAWN: usize = 4;
/// So many environments are drawn; the list below has all.
const COLUMNS: usize = 12;

pub async fn columns(
    state: &ApiState,
    caller: &Caller,
    names: &[String],
    promotions: Option<&PromotionList>,
) -> Result<Vec<Column>, ApiError> {
    let mut columns = Vec::new();
    let mut moving = Moving::default();
    // From the right: a commit's chip moves with the foremost place that it has reached.
    for name in names.iter().take(COLUMNS).rev() {
        let standing = promotions.and_then(|all| all.items.iter().find(|item| item.environment == *name));
        columns.push(column(state, caller, name, standing, &mut moving).await?);
    }
    columns.reverse();
    Ok(columns)
}

async fn column(
    state: &ApiState,
    caller: &Caller,
    name: &str,
    standing: Option<&EnvironmentPromotion>,
    moving: &mut Moving,
) -> Result<Column, ApiError> {
    let of = |unfinished: bool, limit: usize| {
        let query = RolloutsQuery {
            environment: Some(name.to_owned()),
            unfinished: Some(unfinished),
            limit: Some(limit),
            ..RolloutsQuery::default()
        };
        rollouts::rollouts(State(state.clone()), caller.clone(), Ok(Query(query)))
    };
    let listed = of(true, DRAWN).await?.page;
    let more = listed.next.map(|_| links::query("/rollouts", &[("environment", name), ("unfinished", "true")]));
    // Where nothing moves, the last one says what the rings have passed.
    let shown = if listed.items.is_empty() { of(false, 1).await?.page.items } else { listed.items };
    let mut lanes = Vec::new();
    for view in shown {
        lanes.extend(lane(state, caller, view, moving).await?);
    }
    let find = |wanted: &dyn Fn(&PromotionSummary) -> bool| {
        standing.and_then(|standing| standing.promotions.iter().find(|promotion| wanted(promotion)))
    };
    let current = standing.and_then(|standing| standing.current.as_deref());
    let promoted = find(&|promotion| Some(promotion.commit.as_str()) == current);
    let waiting = find(&|promotion| promotion.state == "Waiting" && Some(promotion.commit.as_str()) != current);
    let refused = standing.and_then(|standing| standing.refused.as_ref());
    let refused = refused.map(|refused| {
        let short = crate::web::part::chip::short(&refused.commit);
        format!("its branch names {short}, by {}, which isn't followed: {}", refused.by, refused.why)
    });
    Ok(Column {
        environment: name.to_owned(),
        link: links::environment(name),
        promotions: standing.map(|_| links::promotion(name)),
        promoted: promoted.map(|promotion| Promoted::of(promotion, moving)),
        waiting: waiting.map(|promotion| Promoted::of(promotion, moving)),
        notes: standing.and_then(|standing| standing.trouble.clone()).into_iter().chain(refused).collect(),
        lanes,
        more,
    })
}

async fn lane(
    state: &ApiState,
    caller: &Caller,
    view: RolloutSummary,
    moving: &mut Moving,
) -> Result<Option<Lane>, ApiError> {
    let Some(stored) = state.store.rollout(RolloutId(view.id)).await? else { return Ok(None) };
    let whole = rollouts::find(state, caller, RolloutId(view.id)).await?.detail;
    let steps = rings::steps(state, caller, &stored.rollout, &whole, rings::Look::Glance).await?;
    let key = format!("{}-{}", view.lane, view.cause.commit);
    Ok(Some(Lane {
        id: view.id,
        link: links::rollout(view.id),
        title: super::lane(&view.lane),
        chip: moving.chip(&view.cause.commit, &view.cause.subject, &key),
        word: rings::said(&view.state).to_owned(),
        tone: rings::tone_of_rollout(&view.state, view.settled),
        when: When::of(view.ended_at.as_deref().unwrap_or(&view.updated_at)),
        subject: view.cause.subject,
        why: view.why,
        steps,
    }))
}

impl Promoted {
    pub fn of(promotion: &PromotionSummary, moving: &mut Moving) -> Promoted {
        let at = promotion.passed_at.as_deref().or(promotion.entered_at.as_deref()).unwrap_or(&promotion.created_at);
        let mut waits_for = promotion.waits_for.clone();
        waits_for.extend(Some(promotion.why.clone()).filter(|why| !why.is_empty()));
        Promoted {
            chip: moving.chip(&promotion.commit, &promotion.subject, &promotion.commit),
            subject: promotion.subject.clone(),
            word: rings::said(&promotion.state).to_owned(),
            tone: rings::tone_of(&promotion.state),
            when: When::of(at),
            waits_for,
        }
    }
}

/// Chips that move, each key once on a page.
#[derive(Default)]
pub struct Moving(BTreeSet<String>);

impl Moving {
    fn chip(&mut self, commit: &str, subject: &str, key: &str) -> Chip {
        let chip = Chip::new(commit, subject);
        if self.0.insert(key.to_owned()) { chip.moving(key) } else { chip }
    }
}
