//! What others ask of a rollout: where it is, whether newer content may follow, whether clusters may be served now.

use kedge_model::kinds::{Approval, Ring};
use kedge_model::wire::Timestamp;

use super::{Facts, Lane, Phase, Progress, RingState, Rollout, RolloutId};
use crate::approval::of_platform;
use crate::calendar::{Opening, opening};
use crate::chain::OutcomeState;
use crate::gate::{Counts, Sight};
use crate::word::Say;

impl Progress {
    /// Its states have the old content again, and its clusters haven't all got them.
    pub fn is_going_back(&self) -> bool {
        self.state == RingState::Returned && !self.waits_for.is_empty()
    }
}

impl Rollout {
    /// Whether newer content may take its place: it has ended or stopped, or is in its first ring still and nobody paused it.
    pub fn yields(&self) -> bool {
        match self.phase {
            Phase::Active => self.rings.iter().skip(1).all(|ring| ring.state == RingState::Waiting),
            Phase::Paused { .. } => false,
            _ => true,
        }
    }

    /// Whether nothing moves it any more but a person's `Rollback`, or failures that come late.
    pub fn ended(&self) -> bool {
        !matches!(self.phase, Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. })
    }

    /// The first ring that hasn't passed.
    pub fn current(&self) -> Option<&Progress> {
        self.rings.iter().find(|ring| ring.state != RingState::Passed)
    }

    pub fn ring(&self, name: &str) -> Option<&Progress> {
        self.rings.iter().find(|ring| ring.ring == name)
    }

    /// Newer content took its place. None: it had ended already, and stays as it is.
    pub fn superseded(&self, by: RolloutId, now: Timestamp) -> Option<Rollout> {
        (!self.ended()).then(|| Rollout { phase: Phase::Superseded { by, at: now }, ..self.clone() })
    }

    /// Why no further cluster of the ring may get the new content now; none: it may. What has passed is served at any time, also
    /// to those who return late.
    pub fn closed(&self, ring: &str, now: Timestamp) -> Option<String> {
        let progress = self.ring(ring)?;
        if !matches!(progress.state, RingState::Rolling | RingState::Stopped) {
            return None;
        }
        match &self.phase {
            Phase::Paused { by, .. } => Some(format!("paused by {by}")),
            Phase::Stopped { why, .. } => Some(why.clone()),
            Phase::Active => self.shut(now),
            _ => None,
        }
    }

    /// Whether it was rolled back and some cluster has its content still, as far as was looked.
    pub fn is_going_back(&self) -> bool {
        matches!(self.phase, Phase::RolledBack { .. }) && self.rings.iter().any(Progress::is_going_back)
    }

    /// How it stands, for the main commit that caused it.
    pub fn outcome(&self) -> OutcomeState {
        match &self.phase {
            Phase::Complete { .. } => OutcomeState::Complete { late_failed: self.late_failed },
            Phase::Active | Phase::Paused { .. } if self.yields() => OutcomeState::Moving,
            Phase::Active | Phase::Paused { .. } => OutcomeState::Held,
            Phase::Stopped { why, .. } => OutcomeState::Failed { why: why.clone() },
            Phase::RolledBack { why, .. } => OutcomeState::Failed { why: format!("rolled back: {why}") },
            Phase::Aborted { by, .. } => OutcomeState::Failed { why: format!("aborted by {by}") },
            Phase::Superseded { by, .. } => OutcomeState::Failed { why: format!("superseded by rollout {by}") },
        }
    }

    /// Who paused or aborted it, with the reason that was given.
    pub fn halted_by(&self) -> Option<String> {
        let (by, wanted) = match &self.phase {
            Phase::Paused { by, .. } => (by, Say::Pause),
            Phase::Aborted { by, .. } => (by, Say::Abort),
            _ => return None,
        };
        let word = self.words.iter().rev().find(|word| word.say == wanted && word.who == *by);
        Some(match word.map(|word| word.reason.trim()).filter(|reason| !reason.is_empty()) {
            Some(reason) => format!("{by}: {reason}"),
            None => by.clone(),
        })
    }

    /// Windows and freezes, unless a person said `Now`.
    pub(super) fn shut(&self, now: Timestamp) -> Option<String> {
        if self.words.iter().any(|word| word.say == Say::Now) {
            return None;
        }
        match opening(&self.policy.windows, &self.policy.freezes, now) {
            Opening::Open => None,
            Opening::Closed { why, .. } => Some(why),
        }
    }

    /// The rules of a ring, as they were when the rollout began.
    pub(super) fn rules(&self, ring: &str) -> Option<&Ring> {
        self.policy.rings.iter().find(|rules| rules.name == ring)
    }

    /// Who must agree before a ring begins.
    pub fn approval(&self, ring: &str) -> Option<Approval> {
        let rule = self.rules(ring)?.approval.as_ref()?;
        Some(if self.lane == Lane::Platform { of_platform(rule) } else { rule.clone() })
    }

    /// What a ring's gate looks at; none: the facts don't say yet.
    pub(super) fn sights<'a>(&'a self, facts: &Facts, ring: &str) -> Option<Vec<Sight<'a>>> {
        let counts = &facts.rings.get(ring)?.counts;
        (counts.len() == self.items.len()).then(|| self.counted(counts).collect())
    }

    /// The items that the policy counts, with their numbers.
    pub(super) fn counted<'a>(&'a self, counts: &[Counts]) -> impl Iterator<Item = Sight<'a>> {
        let counted = &self.policy.counts;
        let wanted = |list: &[String], name: &String| list.is_empty() || list.contains(name);
        self.items
            .iter()
            .zip(counts)
            .filter(move |(item, _)| {
                !item.removes
                    && wanted(&counted.cluster_types, &item.cluster_type)
                    && wanted(&counted.workloads, &item.workload)
            })
            .map(|(item, counts)| Sight {
                cluster_type: &item.cluster_type,
                assignment: &item.assignment,
                counts: *counts,
            })
    }
}
