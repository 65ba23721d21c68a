//! Each promise, broken on purpose: the simulation notices.

use std::sync::Arc;

use kedge_model::kinds::{EnvironmentPolicy, Members, Ring};
use kedge_rollout::{Cause, Lane, RolloutId};

use super::*;
use crate::database::Saved;
use crate::plan::Plan;

/// A world in the middle of a run, with one rollout in its first ring.
fn world() -> World {
    let mut world = World::new(Plan::draw(3, 10), false);
    world.lead().unwrap();
    let mut policy = EnvironmentPolicy::new("dev", Vec::new());
    policy.rings = vec![Ring::new("r0", Members::Share(1)), Ring::new("r1", Members::Rest)];
    let cause = Cause::of_commit("c");
    let policy = Arc::new(policy);
    let rollout = Rollout::new(RolloutId(9), "dev", Lane::Platform, cause, policy, Arc::new([]), Timestamp(0));
    let (to, before) = (Vec::new(), vec![None, None]);
    let saved = Saved { rollout, version: 0, to, part: 0, quarantines: false, before, first: BTreeMap::new() };
    world.db.rollouts[0][0].push(saved);
    world
}

#[test]
fn an_environment_ahead_of_the_one_before_is_noticed() {
    let mut world = world();
    let mut next = world.db.chain.clone();
    let second = world.plan.rules(1).name.clone();
    next.environments.get_mut(&second).unwrap().current = Some("m7".to_owned());
    let broken = world.check_chain(&next).unwrap_err();
    assert!(broken.0.contains("m7, which dev has not passed"), "{broken:?}");
}

#[test]
fn a_commit_that_passes_without_its_gate_is_noticed() {
    let mut world = world();
    let mut next = world.db.chain.clone();
    let first = world.plan.rules(0).name.clone();
    let rings = &mut Arc::make_mut(&mut world.plan.policy).environments[0].rings;
    rings.iter_mut().for_each(|ring| ring.gate.empty = Empty::Wait);
    let standing = next.environments.get_mut(&first).unwrap();
    standing.promotions[0].phase = PromotionPhase::Passed;
    assert!(world.check_chain(&next).unwrap_err().0.ends_with("passed dev without its gate"));
}

#[test]
fn a_ring_ahead_of_its_order_is_noticed() {
    let mut world = world();
    let mut next = world.db.rollouts[0][0].last().unwrap().rollout.clone();
    next.rings[1].state = RingState::Rolling;
    let broken = world.check_rollout(0, 0, &next, &Facts::default(), Timestamp(0)).unwrap_err();
    assert!(broken.0.contains("ring r1 is ahead of its order"), "{broken:?}");
}

#[test]
fn a_ring_that_passes_with_nobody_to_observe_is_noticed() {
    let mut world = world();
    let mut next = world.db.rollouts[0][0].last().unwrap().rollout.clone();
    (next.rings[0].state, next.rings[0].passed_at) = (RingState::Passed, Some(Timestamp(0)));
    assert!(world.check_rollout(0, 0, &next, &Facts::default(), Timestamp(0)).is_err());
}

#[test]
fn a_state_that_nobody_decided_on_is_noticed() {
    let world = world();
    let mut state = world.db.states[0].last().unwrap().clone();
    state[0][1] += 1;
    assert!(world.check_state(0, 0, 0, &state).unwrap_err().0.contains("nobody decided"));
}

#[test]
fn generations_that_go_back_and_facts_that_are_lost_are_noticed() {
    let mut world = world();
    let state = world.db.states[0].last().unwrap().clone();
    assert!(world.oracle.issue(0, 1, &state).is_err());
    assert!(world.oracle.check_generation(0, 0, 0, 2).is_ok());
    assert!(world.oracle.check_generation(0, 0, 0, 2).is_err());
    world.agents[0].acknowledged = 5;
    assert!(world.check_acknowledged(0).is_err());
    world.agents[0].entries = vec![([77, 77], Condition::Converged)];
    assert!(world.check_converged(0).is_err());
}

#[test]
fn too_many_that_change_at_once_are_noticed() {
    let mut world = world();
    for cluster in 0..10 {
        let kind = world.plan.fleet[cluster].cluster_type;
        world.plan.fleet[cluster].environment = 0;
        let row = &mut world.db.clusters[cluster];
        (row.ring, row.promise, row.served) = (0, 10, Some((world.plan.stream(0, kind, 0), 1)));
    }
    assert!(world.check_permits(0, 0, 10, 0).is_ok());
    assert!(world.check_permits(0, 0, 9, 0).is_err());
}
