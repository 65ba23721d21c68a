//! What the pages of assignments and clusters say about rollouts and pins.

use kedge_model::wire::Stream;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::{ring_word, state_word};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::rollout::change::Held;
use crate::store::rollout::RolloutFilter;

/// A rollout that moves, or last moved, something here.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AboutView {
    pub rollout: u64,
    pub lane: String,
    pub state: String,
    /// `canary passed, rest rolling`
    pub rings: String,
    pub commit: String,
    pub subject: String,
    pub author: String,
}

/// What a Pin holds back.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinnedView {
    pub ring: String,
    pub assignment: String,
    /// What comes back when the Pin ends: a version, a commit, or nothing.
    pub below: String,
}

/// So many are looked at, and shown.
const LOOKED_AT: i64 = 50;
const SHOWN: usize = 5;

/// The newest rollouts of an assignment, at most one that has ended for each lane.
pub async fn of_assignment(
    state: &ApiState,
    environment: &str,
    cluster_type: &str,
    assignment: &str,
    workload: &str,
) -> Result<Vec<AboutView>, ApiError> {
    let filter = RolloutFilter {
        environment: Some(environment),
        cluster_type: Some(cluster_type),
        workload: Some(workload),
        limit: LOOKED_AT,
        ..RolloutFilter::default()
    };
    newest(state, &filter, |item| item.cluster_type == cluster_type && item.assignment == assignment, None).await
}

/// Rollouts that haven't ended and move something on the clusters of a stream.
pub async fn of_stream(state: &ApiState, stream: &Stream) -> Result<Vec<AboutView>, ApiError> {
    let filter = RolloutFilter {
        environment: Some(&stream.environment),
        cluster_type: Some(&stream.cluster_type),
        unfinished: true,
        limit: LOOKED_AT,
        ..RolloutFilter::default()
    };
    newest(state, &filter, |item| item.cluster_type == stream.cluster_type, Some(&stream.ring)).await
}

async fn newest(
    state: &ApiState,
    filter: &RolloutFilter<'_>,
    concerns: impl Fn(&kedge_rollout::Item) -> bool,
    ring: Option<&str>,
) -> Result<Vec<AboutView>, ApiError> {
    let (mut shown, mut lanes) = (Vec::new(), Vec::new());
    for stored in state.store.rollouts(filter).await? {
        let rollout = &stored.rollout;
        let lane = rollout.lane.to_string();
        if shown.len() == SHOWN || lanes.contains(&lane) {
            continue;
        }
        let items = state.store.rollout_items(rollout.id).await?;
        if !items.iter().any(|stored| concerns(&stored.item)) {
            continue;
        }
        let rings = rollout.rings.iter().filter(|progress| ring.is_none_or(|ring| ring == progress.ring));
        let rings = rings.map(|progress| format!("{} {}", progress.ring, ring_word(progress.state)));
        shown.push(AboutView {
            rollout: rollout.id.0,
            state: state_word(&rollout.phase).to_owned(),
            rings: rings.collect::<Vec<_>>().join(", "),
            commit: rollout.cause.commit.clone(),
            subject: rollout.cause.subject.clone(),
            author: rollout.cause.author.clone(),
            lane: lane.clone(),
        });
        lanes.push(lane);
    }
    Ok(shown)
}

/// What pins hold back in an environment, where it fits.
pub async fn pinned(
    state: &ApiState,
    environment: &str,
    fits: impl Fn(&Stream, &str) -> bool,
) -> Result<Vec<PinnedView>, ApiError> {
    let mut shown = Vec::new();
    for (stream, below) in state.store.pinned_of(environment).await? {
        for (assignment, held) in below.iter().filter(|(assignment, _)| fits(&stream, assignment)) {
            shown.push(PinnedView { ring: stream.ring.clone(), assignment: assignment.clone(), below: text(held) });
        }
    }
    Ok(shown)
}

fn text(held: &Held) -> String {
    match held {
        Held::Absent => "nothing".to_owned(),
        Held::Observe(_) => "observed".to_owned(),
        Held::Apply(packages) => match &packages.version {
            Some(version) => version.clone(),
            None => packages.workload.commit.clone(),
        },
    }
}
