//! What the hubs have saved: it survives their death. Every write of a leader carries its term, every row its version.

use std::collections::BTreeMap;

use kedge_model::Labels;
use kedge_rollout::{Chain, Counts, Facts, RingFacts, RingState, Rollout};

use crate::plan::Plan;

/// Both packages of an assignment: the platform's and the application's.
pub type Content = [u32; 2];
/// What a stream holds, by the assignments of its type.
pub type State = Vec<Content>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Converged,
    Converging,
    Failed,
}

#[derive(Clone, Debug)]
pub struct Database {
    pub term: u64,
    pub chain: Chain,
    pub chain_version: u64,
    /// By environment and lane (0 is the platform's, the others are sources); the newest last.
    pub rollouts: Vec<Vec<Vec<Saved>>>,
    pub next_rollout: u64,
    /// By stream; the generation of a state is its place and one.
    pub states: Vec<Vec<State>>,
    pub clusters: Vec<Row>,
    /// Who may be changing and to which generation, by environment and ring.
    pub permits: BTreeMap<(usize, usize), BTreeMap<usize, u64>>,
    /// How many clusters a ring has, by environment and ring.
    pub members: BTreeMap<(usize, usize), u64>,
}

/// A rollout with what it moves.
#[derive(Clone, Debug)]
pub struct Saved {
    pub rollout: Rollout,
    pub version: u64,
    /// The assignment of each item, and what it shall hold.
    pub to: Vec<(usize, u32)>,
    /// 0: the platform's part, 1: the application's.
    pub part: usize,
    pub quarantines: bool,
    /// By ring: what its streams held for each item before it started.
    pub before: Vec<Option<Vec<u32>>>,
    /// By ring and type: the first generation with the new content.
    pub first: BTreeMap<(usize, usize), u64>,
}

#[derive(Clone, Debug)]
pub struct Row {
    pub joined: bool,
    pub labels: Labels,
    /// Its labels changed: which ring it belongs to has to be looked up.
    pub stale: bool,
    pub ring: usize,
    pub sequence: u64,
    /// The version of the last document that was taken.
    pub version: u64,
    pub stream: usize,
    pub generation: u64,
    pub entries: Vec<(Content, Condition)>,
    /// Until then its word counts.
    pub promise: i64,
    /// The stream and generation that was served last, until its end was reported.
    pub served: Option<(usize, u64)>,
}

/// A write that came too late: another term, or somebody wrote in between.
#[derive(Clone, Copy, Debug)]
pub struct Fenced;

impl Database {
    pub fn save_chain(&mut self, term: u64, version: u64, chain: Chain) -> Result<(), Fenced> {
        if term != self.term || version != self.chain_version {
            return Err(Fenced);
        }
        self.chain = chain;
        self.chain_version += 1;
        Ok(())
    }

    /// With what the rings that start now held before.
    pub fn save_rollout(
        &mut self,
        (environment, lane): (usize, usize),
        term: u64,
        version: u64,
        rollout: Rollout,
        plan: &Plan,
    ) -> Result<(), Fenced> {
        let started = |saved: &Saved, ring: usize| {
            saved.before[ring].is_none() && rollout.rings[ring].state != RingState::Waiting
        };
        let Some(saved) = self.rollouts[environment][lane].last() else { return Err(Fenced) };
        if term != self.term || version != saved.version || saved.rollout.id != rollout.id {
            return Err(Fenced);
        }
        let rings: Vec<usize> = (0..rollout.rings.len()).filter(|ring| started(saved, *ring)).collect();
        let before: Vec<(usize, Vec<u32>)> =
            rings.into_iter().map(|ring| (ring, self.held(plan, environment, ring, saved))).collect();
        if let Some(saved) = self.rollouts[environment][lane].last_mut() {
            before.into_iter().for_each(|(ring, held)| saved.before[ring] = Some(held));
            saved.rollout = rollout;
            saved.version += 1;
        }
        Ok(())
    }

    /// What a ring's streams hold now for each item.
    fn held(&self, plan: &Plan, environment: usize, ring: usize, saved: &Saved) -> Vec<u32> {
        let of_item = |(assignment, _): &(usize, u32)| {
            let kind = plan.assignments[*assignment].0;
            let place = plan.of_type[kind].iter().position(|known| known == assignment).unwrap_or_default();
            self.states[plan.stream(environment, kind, ring)].last().map_or(0, |state| state[place][saved.part])
        };
        saved.to.iter().map(of_item).collect()
    }

    /// The status of a rollout: one look over the clusters of its environment.
    pub fn facts(&self, plan: &Plan, environment: usize, saved: &Saved, now: i64) -> Facts {
        let rules = plan.rules(environment);
        let mut counts = vec![vec![Counts::default(); saved.to.len()]; rules.rings.len()];
        for (row, place) in self.clusters.iter().zip(&plan.fleet) {
            if !row.joined || place.environment != environment {
                continue;
            }
            for (item, (assignment, to)) in saved.to.iter().enumerate() {
                let (kind, _) = plan.assignments[*assignment];
                if kind != place.cluster_type {
                    continue;
                }
                let position = plan.of_type[kind].iter().position(|known| known == assignment);
                let entry = position.and_then(|position| row.entries.get(position));
                let counts = &mut counts[row.ring][item];
                match entry {
                    _ if row.promise < now => counts.offline += 1,
                    Some((content, condition)) if content[saved.part] == *to => match condition {
                        Condition::Converged => counts.converged += 1,
                        Condition::Converging => counts.converging += 1,
                        Condition::Failed => counts.failed += 1,
                    },
                    _ => counts.waiting += 1,
                }
            }
        }
        let rings = rules.rings.iter().zip(counts);
        let rings = rings.map(|(ring, counts)| (ring.name.clone(), RingFacts { counts, checks: BTreeMap::new() }));
        Facts { rings: rings.collect(), quarantined: Vec::new() }
    }
}
