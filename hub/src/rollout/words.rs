//! What people may say about a rollout: checked against the stored value by any hub, then written for the leader, who takes
//! it within a second. Called by the API; the controller asks for the same obstacles again.

use std::collections::BTreeSet;

use kedge_hub_types::rollout::running::{Place, is_unfinished, place};
use kedge_rollout::{Phase, Refused, RingState, Rollout, RolloutId, Say, Word, hear};

use crate::store::rollout::{BlockedRow, RolloutFilter};
use crate::store::{Store, StoreError, Tx};

/// Typed by what the person can do.
#[derive(Debug, thiserror::Error)]
pub enum SayError {
    #[error("there is no rollout {0}")]
    Unknown(RolloutId),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many newer rollouts of a lane are looked at.
const NEWER: i64 = 200;

/// Whether the word would be taken now. The rollout as it is.
pub async fn check(store: &Store, id: RolloutId, word: &Word) -> Result<Rollout, SayError> {
    let found = store.whole_rollout(id).await?.ok_or(SayError::Unknown(id))?;
    if let Some(refused) = obstacle(store, &found.rollout, &word.say).await? {
        return Err(refused.into());
    }
    hear(&found.rollout, word.clone())?;
    Ok(found.rollout)
}

/// Writes a word that was checked, in the caller's transaction. Its number, by which `Store::word` tells what became of it.
pub async fn say(tx: &mut Tx, rollout: &Rollout, word: &Word) -> Result<i64, StoreError> {
    tx.add_word(&rollout.environment, rollout.id, word).await
}

/// What the value alone doesn't know: newer content that builds on it, or that Git asks for instead.
pub(super) async fn obstacle(store: &Store, rollout: &Rollout, say: &Say) -> Result<Option<Refused>, StoreError> {
    match say {
        Say::Rollback => newer(store, rollout).await,
        Say::Resume if matches!(rollout.phase, Phase::Aborted { .. }) => gone(store, rollout).await,
        _ => Ok(None),
    }
}

/// An aborted one goes on only as a whole.
async fn gone(store: &Store, rollout: &Rollout) -> Result<Option<Refused>, StoreError> {
    let blocked = store.rollouts_blocked(&rollout.environment).await?;
    let places: BTreeSet<Place> =
        blocked.iter().filter(|row| row.rollout == rollout.id).map(BlockedRow::place).collect();
    if rollout.items.iter().all(|item| places.contains(&place(item))) {
        return Ok(None);
    }
    let message = "it was aborted, and Git asks for other content by now: there is nothing to resume".to_owned();
    Ok(Some(Refused { reason: "Ended", message }))
}

async fn newer(store: &Store, rollout: &Rollout) -> Result<Option<Refused>, StoreError> {
    let lane = rollout.lane.to_string();
    let filter = RolloutFilter {
        environment: Some(&rollout.environment),
        lane: Some(&lane),
        limit: NEWER,
        ..RolloutFilter::default()
    };
    let newer = store.rollouts(&filter).await?.into_iter().filter(|other| other.rollout.id > rollout.id);
    for other in newer {
        let other = other.rollout;
        let began = other.rings.iter().any(|ring| ring.state != RingState::Waiting);
        let counts = is_unfinished(&other.phase) || (began && !matches!(other.phase, Phase::RolledBack { .. }));
        if !counts {
            continue;
        }
        let items = store.rollout_items(other.id).await?;
        let shares = items.iter().any(|stored| {
            rollout
                .items
                .iter()
                .any(|item| item.cluster_type == stored.item.cluster_type && item.assignment == stored.item.assignment)
        });
        if !shares {
            continue;
        }
        let message = match is_unfinished(&other.phase) {
            true => format!(
                "rollout {} is newer in the lane {lane} and hasn't ended; abort it or roll it back first",
                other.id
            ),
            false => format!("rollout {} came after it in the lane {lane}; roll that one back first", other.id),
        };
        return Ok(Some(Refused { reason: "NewerRollout", message }));
    }
    Ok(None)
}
