//! Which ring a cluster belongs to: what the policy in force says of its id and labels. Joins, moves and new labels ask here; the
//! leader's task moves those whose ring is another one because the policy changed.

use std::time::Duration;

use kedge_model::Labels;
use kedge_model::wire::{ClusterId, Stream};
use kedge_rollout::ring_of;

use super::fleet::{Fleet, FleetError};
use crate::rollout::policy::{InForce, Policies};
use crate::store::agents::rings::Placed;
use crate::store::{Store, StoreError, Term};

/// Clusters of one transaction: short enough for others to get their turn.
const PAGE: i64 = 500;
/// What another hub let in by an older policy is found by then; and a database that was away is asked again.
const AGAIN: Duration = Duration::from_secs(60);
/// A policy that is in the database and not in memory yet is waited for.
const NOT_YET: Duration = Duration::from_secs(1);

/// The stream of a cluster in a place. Without a policy for its environment there is one ring.
pub fn stream_of(rules: &InForce, place: &Stream, cluster: &ClusterId, labels: &Labels) -> Stream {
    let ring = rules.get(&place.environment).map_or(Stream::ALL, |policy| ring_of(&policy.rings, cluster, labels));
    Stream::new(&place.environment, &place.cluster_type, ring)
}

/// What the leader's task needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Membership {
    pub fleet: Fleet,
    pub store: Store,
    pub policies: Policies,
}

impl Membership {
    /// Moves clusters to the rings that the policy in force names, for as long as this hub leads.
    pub async fn keep(&self, term: Term) {
        keep(&self.fleet, &self.store, &self.policies, term).await;
    }
}

async fn keep(fleet: &Fleet, store: &Store, policies: &Policies, term: Term) {
    let mut changed = policies.changed();
    let mut failing = false;
    loop {
        changed.mark_unchanged();
        let rules = policies.all();
        let pause = match pass(fleet, store, &rules, term).await {
            Ok(Pass::Done(moved)) => {
                failing = false;
                if moved > 0 {
                    tracing::info!(clusters = moved, "clusters went to other rings, as the policy in force says");
                }
                AGAIN
            }
            Ok(Pass::NotYet) => NOT_YET,
            Err(FleetError::Store(StoreError::Fenced(_))) => return,
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "clusters can't be put into their rings; trying again");
                }
                AGAIN
            }
        };
        let _ = tokio::time::timeout(pause, changed.changed()).await;
    }
}

/// How a pass over all clusters ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// So many were moved.
    Done(usize),
    /// The policy in force isn't known here yet: nobody is moved by a guess.
    NotYet,
}

async fn pass(fleet: &Fleet, store: &Store, rules: &InForce, term: Term) -> Result<Pass, FleetError> {
    match store.policy_in_force().await? {
        // There never was one: rings are as people named them.
        None => return Ok(Pass::Done(0)),
        Some(true) if rules.is_empty() => return Ok(Pass::NotYet),
        Some(_) => {}
    }
    let (mut moved, mut after) = (0, String::new());
    loop {
        let page = store.placed_after(&after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(Pass::Done(moved)) };
        after = last.id.to_string();
        let strays: Vec<&Placed> = page.iter().filter(|one| is_stray(rules, one)).collect();
        if strays.is_empty() {
            continue;
        }
        let mut tx = store.write_as(term).await?;
        for stray in &strays {
            // Read again in the transaction: a person may have moved it since.
            let row = match fleet.active(&mut tx, &stray.id).await {
                Ok(row) => row,
                Err(FleetError::Unknown(_) | FleetError::WrongState(_)) => continue,
                Err(error) => return Err(error),
            };
            let stream = stream_of(rules, &row.stream, &row.id, &row.labels);
            if stream != row.stream {
                fleet.move_to(&mut tx, &stray.id, stream).await?;
                moved += 1;
            }
        }
        tx.commit().await?;
        fleet.refresh().await;
    }
}

fn is_stray(rules: &InForce, one: &Placed) -> bool {
    stream_of(rules, &one.stream, &one.id, &one.labels).ring != one.stream.ring
}

#[cfg(test)]
mod tests;
