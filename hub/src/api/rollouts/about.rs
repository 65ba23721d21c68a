//! What the pages of assignments and clusters say about rollouts and pins.

use std::sync::Arc;

use kedge_api::rollouts::{PinnedAssignment, RolloutReference};
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::state_word;
use kedge_model::decode::{self, Options};
use kedge_model::kinds::{Pin, PinnedTo};
use kedge_model::wire::Stream;
use kedge_model::{Origin, Source, Spec};

use super::view::{is_settled, ring_word};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::store::api::rollouts::PinFile;
use crate::store::rollout::RolloutFilter;

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
) -> Result<Vec<RolloutReference>, ApiError> {
    let filter = RolloutFilter {
        environment: Some(environment),
        cluster_type: Some(cluster_type),
        workload: Some(workload),
        limit: LOOKED_AT,
        ..RolloutFilter::default()
    };
    newest(state, &filter, |item| item.cluster_type == cluster_type && item.assignment == assignment, None).await
}

/// The newest rollouts of a workload in an environment, at most one that has ended for each lane.
pub async fn of_workload(
    state: &ApiState,
    environment: &str,
    workload: &str,
) -> Result<Vec<RolloutReference>, ApiError> {
    let filter = RolloutFilter {
        environment: Some(environment),
        workload: Some(workload),
        limit: LOOKED_AT,
        ..RolloutFilter::default()
    };
    newest(state, &filter, |item| item.workload == workload, None).await
}

/// Rollouts that haven't ended and move something on the clusters of a stream.
pub async fn of_stream(state: &ApiState, stream: &Stream) -> Result<Vec<RolloutReference>, ApiError> {
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
) -> Result<Vec<RolloutReference>, ApiError> {
    let (mut shown, mut lanes) = (Vec::new(), Vec::new());
    let blocked = state.store.blocked_rollouts().await?;
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
        let rings = rings.map(|progress| format!("{} {}", progress.ring, ring_word(progress)));
        shown.push(RolloutReference {
            rollout: rollout.id.0,
            settled: is_settled(state_word(&rollout.phase), rollout.id, &blocked),
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

/// What pins hold back in an environment, where it fits, and which Pin does.
pub async fn pinned(
    state: &ApiState,
    environment: &str,
    fits: impl Fn(&Stream, &str) -> bool,
) -> Result<Vec<PinnedAssignment>, ApiError> {
    let mut shown = Vec::new();
    let held = state.store.pinned_of(environment).await?;
    if held.is_empty() {
        return Ok(shown);
    }
    let pins: Vec<(PinFile, Pin)> = state.store.pin_files(environment).await?.into_iter().filter_map(read).collect();
    for (stream, below) in held {
        for (assignment, held) in below.iter().filter(|(assignment, _)| fits(&stream, assignment)) {
            let pin = pins.iter().find(|(_, pin)| is_of(pin, &stream, assignment));
            shown.push(PinnedAssignment {
                ring: stream.ring.clone(),
                assignment: assignment.clone(),
                pin: pin.map(|(file, _)| file.name.clone()),
                to: pin.map(|(_, pin)| match &pin.to {
                    PinnedTo::Version(version) => format!("version {version}"),
                    PinnedTo::Commit(commit) => format!("commit {commit}"),
                }),
                until: pin.and_then(|(_, pin)| pin.until.clone()),
                reason: pin.map(|(_, pin)| pin.reason.clone()),
                file: pin.map(|(file, _)| file.file.clone()),
                below: text(held),
            });
        }
    }
    Ok(shown)
}

fn read(file: PinFile) -> Option<(PinFile, Pin)> {
    let source = Source { repo: file.repo.clone(), revision: Some(file.revision.clone()) };
    let origin = Origin { source: Arc::new(source), file: file.file.as_str().into(), line: 0, column: 0 };
    let decoded = decode::objects(&file.text, &origin, &Options::default());
    let pin = decoded.objects.into_iter().find_map(|object| match object.spec {
        Spec::Pin(pin) if object.meta.name == file.name => Some(pin),
        _ => None,
    });
    pin.map(|pin| (file, pin))
}

fn is_of(pin: &Pin, stream: &Stream, assignment: &str) -> bool {
    let named = |list: &[String], name: &str| list.is_empty() || list.iter().any(|one| one == name);
    let target = assignment.strip_prefix(&pin.workload).and_then(|rest| rest.strip_prefix('-'));
    let meant = target.is_some_and(|target| pin.target.as_ref().is_none_or(|named| named == target));
    meant && named(&pin.rings, &stream.ring) && named(&pin.cluster_types, &stream.cluster_type)
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
