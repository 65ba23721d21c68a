//! What became of a main commit in an environment, from the rollouts of its platform files. Asked by the promotion module.

use kedge_rollout::chain::{Outcome, OutcomeState, short};
use kedge_rollout::rollout::stop_words;
use kedge_rollout::{Lane, Phase, RolloutId};

use crate::store::rollout::controller::Quarantine;
use crate::store::rollout::{RolloutFilter, StoredRollout};
use crate::store::{Store, StoreError};

/// How many rollouts that took over from each other are followed.
const FOLLOWED: usize = 64;

/// The commit has passed only when nothing of the environment's platform files is on its way, stopped or went back: what it
/// left unchanged belongs to it too.
pub async fn outcome(store: &Store, environment: &str, main: &str) -> Result<Outcome, StoreError> {
    let lane = Lane::Platform.to_string();
    let filter =
        RolloutFilter { environment: Some(environment), lane: Some(&lane), limit: 100, ..RolloutFilter::default() };
    let unfinished = store.rollouts(&RolloutFilter { unfinished: true, ..filter.clone() }).await?;
    let own = store.rollouts(&RolloutFilter { main_commit: Some(main), limit: 1, ..filter }).await?.into_iter().next();
    let begun = own.as_ref().map(|own| own.rollout.created_at);
    let own = follow(store, own).await?;
    let id = own.as_ref().map(|own| own.rollout.id);
    let quarantines = store.quarantines(environment).await?;
    let standing = store.promotion(environment).await?.map(|row| row.standing).unwrap_or_default();
    let (blamed, beside): (Vec<_>, Vec<_>) = quarantines
        .iter()
        .partition(|(_, one)| !one.main.is_empty() && standing.answers_for(main, &one.main, one.since));
    let remark = remark(beside.len());
    let said =
        |rollout: Option<RolloutId>, state| Outcome { commit: main.to_owned(), rollout, state, remark: remark.clone() };
    let compared = store.compared_head(environment).await?;
    // Main was turned back to it: what became of it the first time says nothing until it was read once more.
    let entered = standing.promotion(main).and_then(|known| known.entered_at);
    let is_old = begun.is_none_or(|begun| entered.is_some_and(|entered| begun < entered));
    if compared.as_ref().is_none_or(|compared| compared.main != main) && is_old {
        return Ok(said(None, OutcomeState::Moving));
    }
    if let Some(why) = broken(&blamed, main) {
        return Ok(said(id, OutcomeState::Failed { why }));
    }
    let stopped = unfinished.iter().find_map(|stored| match &stored.rollout.phase {
        Phase::Stopped { ring, why, .. } => {
            let why = format!("rollout {} stopped: {}", stored.rollout.id, stop_words(ring, why));
            Some((stored.rollout.id, why))
        }
        _ => None,
    });
    if let Some((stopped, why)) = stopped {
        return Ok(said(id.or(Some(stopped)), OutcomeState::Failed { why }));
    }
    let waits = store.rollouts_waiting(environment).await?.contains_key(&lane);
    if waits || !unfinished.is_empty() {
        let on_its_way = unfinished.first().map(|stored| stored.rollout.id);
        let yields = unfinished.iter().all(|stored| stored.rollout.yields());
        let state = if yields { OutcomeState::Moving } else { OutcomeState::Held };
        return Ok(said(id.or(on_its_way), state));
    }
    let blocked = store.rollouts_blocked(environment).await?;
    if let Some(blocked) = blocked.iter().find(|blocked| blocked.lane == lane) {
        let why = format!(
            "{}/{} of rollout {} isn't started again until it changes or you run `kedge rollout start`",
            blocked.cluster_type, blocked.assignment, blocked.rollout
        );
        return Ok(said(id.or(Some(blocked.rollout)), OutcomeState::Failed { why }));
    }
    let state = match own.as_ref().map(|own| &own.rollout.phase) {
        None | Some(Phase::Superseded { .. }) => OutcomeState::Unchanged,
        Some(Phase::Complete { .. }) => {
            OutcomeState::Complete { late_failed: own.as_ref().map_or(0, |own| own.rollout.late_failed) }
        }
        Some(Phase::RolledBack { why, .. }) => OutcomeState::Failed { why: why.clone() },
        Some(Phase::Aborted { by, .. }) => OutcomeState::Failed { why: format!("aborted by {by}") },
        Some(Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. }) => OutcomeState::Moving,
    };
    Ok(said(id, state))
}

/// What the commit, or one that it contains and that hasn't passed, put into quarantine.
fn broken(blamed: &[(&String, &Quarantine)], main: &str) -> Option<String> {
    // Its own first: that is what its author can mend.
    let (name, quarantine) = blamed.iter().find(|(_, one)| one.main == main).or(blamed.first())?;
    let since = match quarantine.main == main {
        true => "this commit".to_owned(),
        false => format!("{}, which it contains and which hasn't passed", short(&quarantine.main)),
    };
    let more = match blamed.len() - 1 {
        0 => " is".to_owned(),
        more => format!(" and {more} more are"),
    };
    Some(format!("{name}{more} broken since {since}: {}", quarantine.why))
}

/// What is in quarantine and doesn't count against the commit.
fn remark(beside: usize) -> Option<String> {
    match beside {
        0 => None,
        1 => Some("1 assignment is in quarantine, and not because of this commit".to_owned()),
        more => Some(format!("{more} assignments are in quarantine, and not because of this commit")),
    }
}

/// The one that took over in the end.
async fn follow(store: &Store, own: Option<StoredRollout>) -> Result<Option<StoredRollout>, StoreError> {
    let mut at = own;
    for _ in 0..FOLLOWED {
        let by = match at.as_ref().map(|at| &at.rollout.phase) {
            Some(Phase::Superseded { by, .. }) => *by,
            _ => break,
        };
        match store.rollout(by).await? {
            Some(next) => at = Some(next),
            None => break,
        }
    }
    Ok(at)
}
