//! What must hold, asked after every step by whoever made it. It knows what happened from its own notes, not from the hub's.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::{Empty, WHOLE};
use kedge_model::wire::Timestamp;
use kedge_rollout::{Chain, Facts, Phase, Promotion, PromotionPhase, RingState, Rollout, Say};

use crate::database::{Condition, State};
use crate::git::number;
use crate::world::{Broken, World};

/// Its own notes.
#[derive(Debug)]
pub struct Oracle {
    /// Everything that was ever signed, by stream.
    issued: Vec<Vec<State>>,
    /// The last generation that each cluster took, by stream.
    taken: BTreeMap<(usize, usize), u64>,
    /// Commits that an environment let pass, by the environment's name.
    passed: BTreeMap<String, BTreeSet<String>>,
    /// Words that were acknowledged to people.
    pub words: u64,
}

impl Oracle {
    /// Knows what was there at the beginning.
    pub fn new(states: &[Vec<State>]) -> Oracle {
        Oracle { issued: states.to_vec(), taken: BTreeMap::new(), passed: BTreeMap::new(), words: 0 }
    }

    pub fn issued(&self, stream: usize, generation: u64) -> Option<&State> {
        self.issued.get(stream)?.get(usize::try_from(generation).ok()?.checked_sub(1)?)
    }

    /// Numbers only grow, one by one, and none is signed twice.
    pub fn issue(&mut self, stream: usize, generation: u64, state: &State) -> Result<(), Broken> {
        let list = &mut self.issued[stream];
        if generation != list.len() as u64 + 1 {
            return Err(Broken(format!("stream {stream}: generation {generation} after {}", list.len())));
        }
        list.push(state.clone());
        Ok(())
    }

    pub fn check_generation(&mut self, cluster: usize, stream: usize, before: u64, after: u64) -> Result<(), Broken> {
        let last = self.taken.insert((cluster, stream), after).unwrap_or_default();
        if after <= before || after <= last {
            return Err(Broken(format!("cluster {cluster} went back from generation {} to {after}", last.max(before))));
        }
        Ok(())
    }
}

impl World {
    /// No environment ahead of those before it; never back; what counts as passed has passed.
    pub(crate) fn check_chain(&mut self, next: &Chain) -> Result<(), Broken> {
        for environment in 0..self.plan.environments() {
            let rules = self.plan.rules(environment);
            let name = &rules.name;
            let Some(standing) = next.environments.get(name) else { continue };
            let before = self.db.chain.environments.get(name);
            // Of a commit that came twice, the newest counts.
            let newest =
                |one: &&Promotion| standing.promotion(&one.commit).is_some_and(|known| std::ptr::eq(known, *one));
            for promotion in standing.promotions.iter().filter(newest) {
                let was = before.and_then(|before| before.promotion(&promotion.commit)).map(|one| &one.phase);
                if was != Some(&promotion.phase) {
                    self.tell(|| format!("{name}: {} is {:?}", promotion.commit, promotion.phase));
                }
                if promotion.phase == PromotionPhase::Passed && was != Some(&PromotionPhase::Passed) {
                    let words = &promotion.words[promotion.heard.unwrap_or_default()..];
                    let by_person =
                        words.iter().any(|word| matches!(word.say, Say::Override { .. } | Say::Approve { .. }));
                    let by_policy = rules.rings.iter().all(|ring| ring.gate.empty == Empty::Pass);
                    let complete = self.db.rollouts[environment][0].last().is_some_and(|saved| {
                        matches!(saved.rollout.phase, Phase::Complete { .. })
                            && saved.rollout.rings.iter().all(|ring| ring.passed_at.is_some())
                    });
                    if !(by_person || by_policy || complete) {
                        return Err(Broken(format!("{} passed {name} without its gate", promotion.commit)));
                    }
                    self.oracle.passed.entry(name.clone()).or_default().insert(promotion.commit.clone());
                } else if promotion.phase != PromotionPhase::Passed && was == Some(&PromotionPhase::Passed) {
                    self.oracle.passed.entry(name.clone()).or_default().remove(&promotion.commit);
                }
            }
        }
        for environment in 0..self.plan.environments() {
            self.check_entry(environment, next)?;
        }
        let said = |chain: &Chain| -> usize {
            chain.environments.values().flat_map(|standing| &standing.promotions).map(|one| one.words.len()).sum()
        };
        if said(next) < said(&self.db.chain) {
            return Err(Broken("a person's word on a promotion was lost".to_owned()));
        }
        Ok(())
    }

    fn check_entry(&self, environment: usize, next: &Chain) -> Result<(), Broken> {
        let rules = self.plan.rules(environment);
        let name = &rules.name;
        let Some(before) = self.db.chain.environments.get(name) else { return Ok(()) };
        let Some(after) = next.environments.get(name) else { return Err(Broken(format!("{name} is forgotten"))) };
        if after.current == before.current {
            return Ok(());
        }
        let Some(commit) = &after.current else { return Err(Broken(format!("{name} lost what it runs"))) };
        self.tell(|| format!("{name}: {commit} is let in"));
        if before.current.as_ref().is_some_and(|before| number(before) >= number(commit)) {
            return Err(Broken(format!("{name} went back from {:?} to {commit}", before.current)));
        }
        let overridden = after.promotion(commit).is_some_and(|promotion| {
            promotion.words.iter().any(|word| matches!(word.say, Say::Override { .. }) && !word.reason.is_empty())
        });
        for earlier in &rules.after {
            let passed = self.oracle.passed.get(earlier).is_some_and(|passed| passed.contains(commit));
            if !passed && !overridden {
                return Err(Broken(format!("{name} took {commit}, which {earlier} has not passed")));
            }
        }
        Ok(())
    }

    /// Rings in their order, gates and soaks by the numbers, no word lost.
    pub(crate) fn check_rollout(
        &mut self,
        environment: usize,
        lane: usize,
        next: &Rollout,
        facts: &Facts,
        now: Timestamp,
    ) -> Result<(), Broken> {
        let Some(saved) = self.db.rollouts[environment][lane].last() else { return Ok(()) };
        let before = &saved.rollout;
        if next.words.len() < before.words.len() {
            return Err(Broken(format!("rollout {}: a person's word was lost", next.id)));
        }
        for (place, ring) in next.rings.iter().enumerate() {
            let was = before.rings[place].state;
            let began = was == RingState::Waiting && ring.state != RingState::Waiting;
            if began && next.rings[..place].iter().any(|earlier| earlier.passed_at.is_none()) {
                return Err(Broken(format!("rollout {}: ring {} is ahead of its order", next.id, ring.ring)));
            }
            if before.rings[place].passed_at.is_none() && ring.passed_at.is_some() {
                self.check_pass(next, place, facts, now)?;
            }
        }
        if before.phase != next.phase {
            self.tell(|| format!("{}: rollout {} is {:?}", next.environment, next.id, next.phase));
        }
        Ok(())
    }

    fn check_pass(&self, next: &Rollout, place: usize, facts: &Facts, now: Timestamp) -> Result<(), Broken> {
        let (ring, rules) = (&next.rings[place], &next.policy.rings[place]);
        let said = &next.words[ring.heard..];
        let by_person = said.iter().any(|word| match &word.say {
            Say::Override { ring: Some(name) } | Say::Approve { ring: Some(name) } => *name == ring.ring,
            _ => false,
        });
        if by_person {
            return Ok(());
        }
        let broken =
            |what: &str| Err(Broken(format!("rollout {}: ring {} passed {what}: {ring:?}", next.id, ring.ring)));
        let counts = facts.rings.get(&ring.ring).map(|facts| facts.counts.as_slice()).unwrap_or_default();
        if counts != ring.counts {
            return broken("with other numbers than the truth");
        }
        let counted = |item: &kedge_rollout::Item| {
            let wanted = &next.policy.counts.workloads;
            wanted.is_empty() || wanted.contains(&item.workload)
        };
        let seen: Vec<_> =
            next.items.iter().zip(counts).filter(|(item, _)| counted(item)).map(|(_, one)| one).collect();
        if seen.iter().all(|one| one.members() == 0) {
            return if rules.gate.empty == Empty::Pass { Ok(()) } else { broken("with nobody to observe") };
        }
        if seen.iter().all(|one| one.reached() == 0) {
            return broken("with nobody reached");
        }
        let share = u64::from(rules.gate.converged);
        if seen.iter().any(|one| one.converged * u64::from(WHOLE) < share * one.reached()) {
            return broken("below its converged share");
        }
        let soaked = ring.steady_since.is_some_and(|since| now.0 - since.0 >= rules.soak.as_millis() as i64);
        if soaked { Ok(()) } else { broken("without its soak") }
    }

    /// What a stream holds comes from a rollout whose earlier rings have passed, and from no main commit that isn't in force.
    pub(crate) fn check_state(&self, environment: usize, kind: usize, ring: usize, next: &State) -> Result<(), Broken> {
        let rules = self.plan.rules(environment);
        let stream = self.plan.stream(environment, kind, ring);
        let Some(last) = self.db.states[stream].last() else { return Ok(()) };
        let current = self.db.chain.environments.get(&rules.name).and_then(|standing| standing.current.clone());
        let newest = current.as_deref().map(number).unwrap_or_default();
        for (place, (old, new)) in last.iter().zip(next).enumerate() {
            for part in (0..2).filter(|part| old[*part] != new[*part]) {
                let assignment = self.plan.of_type[kind][place];
                if part == 0 && (new[0] / crate::git::OWN) as usize > newest {
                    return Err(Broken(format!("{} holds a commit of main that was not let in: {new:?}", rules.name)));
                }
                let mut lanes = self.db.rollouts[environment].iter().filter_map(|lane| lane.last());
                let moved = lanes.any(|saved| {
                    let item =
                        saved.to.iter().position(|(known, _)| *known == assignment).filter(|_| saved.part == part);
                    let progress = &saved.rollout.rings[ring];
                    item.is_some_and(|item| match progress.state {
                        RingState::Waiting => false,
                        RingState::Returned => saved.before[ring].as_ref().is_some_and(|old| old[item] == new[part]),
                        _ => {
                            let in_order =
                                saved.rollout.rings[..ring].iter().all(|earlier| earlier.passed_at.is_some());
                            saved.to[item].1 == new[part] && in_order
                        }
                    })
                });
                if !moved {
                    return Err(Broken(format!("{} ring {ring}: nobody decided on {new:?}", rules.name)));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn check_permits(&self, environment: usize, ring: usize, limit: u64, now: i64) -> Result<(), Broken> {
        let rows = self.db.clusters.iter().zip(&self.plan.fleet);
        let changing = rows.filter(|(row, place)| {
            let stream = self.plan.stream(environment, place.cluster_type, ring);
            place.environment == environment
                && row.ring == ring
                && row.promise >= now
                && row.served.is_some_and(|(served, _)| served == stream)
        });
        let changing = changing.count() as u64;
        if changing > limit {
            let name = &self.plan.rules(environment).name;
            return Err(Broken(format!("{name} ring {ring}: {changing} change at once, at most {limit} may")));
        }
        Ok(())
    }

    pub(crate) fn check_acknowledged(&self, cluster: usize) -> Result<(), Broken> {
        let (agent, row) = (&self.agents[cluster], &self.db.clusters[cluster]);
        if agent.acknowledged > row.version {
            let what = format!("cluster {cluster}: version {} was acknowledged and is lost", agent.acknowledged);
            return Err(Broken(what));
        }
        Ok(())
    }

    /// Whatever runs was signed, in exactly that generation.
    pub(crate) fn check_converged(&self, cluster: usize) -> Result<(), Broken> {
        let agent = &self.agents[cluster];
        let taken =
            agent.generations.iter().filter_map(|(stream, generation)| self.oracle.issued(*stream, *generation));
        let taken: Vec<&State> = taken.collect();
        for (place, (content, condition)) in agent.entries.iter().enumerate() {
            let signed = taken.iter().any(|state| state.get(place) == Some(content));
            if *condition == Condition::Converged && !signed {
                return Err(Broken(format!("cluster {cluster} converged to {content:?}, which nobody signed")));
            }
        }
        Ok(())
    }

    /// All of it once more, at the end.
    pub(crate) fn check_everything(&self) -> Result<(), Broken> {
        for cluster in 0..self.agents.len() {
            self.check_acknowledged(cluster)?;
            self.check_converged(cluster)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
