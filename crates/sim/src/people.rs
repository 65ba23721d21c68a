//! People: they say this and that while faults go on, and put things in order afterwards.

use kedge_model::kinds::Promoter;
use kedge_rollout::{Named, Person, Phase, PromotionPhase, RingState, Say, Word, hear, hear_promotion};

use crate::database::Condition;
use crate::git::{Commit, name};
use crate::plan::MINUTE;
use crate::world::{Broken, World};

/// Who waits longer than this for a gate gets a person's override.
const STUCK: i64 = 20 * MINUTE;
/// People who wrote nothing.
const HELPERS: std::ops::Range<usize> = 5..8;
/// So many commits mend a lane that somebody aborted or rolled back.
const MENDS: usize = 64;

impl World {
    /// Somebody says something, fitting or not.
    pub(crate) fn speak(&mut self) -> Result<(), Broken> {
        let environment = self.chance.below(self.plan.environments());
        let who = self.chance.below(4);
        let say = match self.chance.below(20) {
            0..7 => Say::Approve { ring: None },
            7..11 => Say::Resume,
            11..13 => Say::Pause,
            13..15 => Say::Now,
            15..17 => Say::Override { ring: None },
            17 => Say::Abort,
            _ => Say::Rollback,
        };
        if self.chance.permille(600) {
            let lane = self.chance.below(1 + self.plan.workloads);
            self.say(environment, lane, who, say);
        } else {
            let commit = self.chance.permille(300).then(|| name(self.chance.below(self.git.main.len())));
            self.say_promotion(environment, commit.as_deref(), who, say);
        }
        if self.chance.permille(100) {
            // By hand, whatever the hub thinks of it; with an external promoter that is the usual way.
            let commit = name(self.chance.below(self.git.main.len()));
            let at = self.hub_now();
            self.git.named[environment] = Some(Named { commit, by: format!("person-{who}"), at, why: String::new() });
        }
        self.dirty = true;
        Ok(())
    }

    fn word(&self, who: usize, say: Say) -> Word {
        let (who, role) = (format!("person-{who}"), "platform".to_owned());
        let person = Person::new(&who, &[&format!("{who}@example.org")]);
        Word { who, person, role, at: self.hub_now(), reason: "because".to_owned(), say, new_token: false }
    }

    /// Whether the word was taken.
    fn say(&mut self, environment: usize, lane: usize, who: usize, say: Say) -> bool {
        let word = self.word(who, say.clone());
        let Some(saved) = self.db.rollouts[environment][lane].last_mut() else { return false };
        let Ok(next) = hear(&saved.rollout, word) else { return false };
        self.report.overrides += u64::from(matches!(say, Say::Override { .. }));
        saved.rollout = next;
        saved.version += 1;
        self.oracle.words += 1;
        self.dirty = true;
        self.tell(|| format!("person-{who} to lane {lane} of {environment}: {}", say.verb()));
        true
    }

    fn say_promotion(&mut self, environment: usize, commit: Option<&str>, who: usize, say: Say) -> bool {
        let word = self.word(who, say.clone());
        let rules = self.plan.rules(environment);
        let Ok(next) = hear_promotion(&self.db.chain, &rules.name, commit, word) else { return false };
        self.report.overrides += u64::from(matches!(say, Say::Override { .. }));
        self.db.chain = next;
        self.db.chain_version += 1;
        self.oracle.words += 1;
        self.dirty = true;
        self.tell(|| format!("person-{who} to {environment} about {commit:?}: {}", say.verb()));
        true
    }

    /// After the faults: links are whole, people answer what waits for them, and everything gets one more good commit.
    pub(crate) fn help(&mut self) -> Result<(), Broken> {
        if self.git.main.last().is_none_or(|commit| !is_last(commit)) {
            self.git.main.push(last(&self.plan));
            for commits in self.git.sources.iter_mut().chain(&mut self.git.own) {
                commits.push(last(&self.plan));
            }
            for agent in &mut self.agents {
                (agent.off_until, agent.cut_until) = (0, 0);
            }
            (self.hub.down_until, self.hub.clock, self.dirty) = (0, 0, true);
        }
        for environment in 0..self.plan.environments() {
            self.help_promotion(environment);
            for lane in 0..=self.plan.workloads {
                self.help_rollout(environment, lane);
            }
        }
        Ok(())
    }

    fn help_promotion(&mut self, environment: usize) {
        let Some(standing) = self.db.chain.environments.get(&self.plan.rules(environment).name).cloned() else {
            return;
        };
        if let Some(promotion) = standing.promotions.iter().find(|one| one.phase == PromotionPhase::Waiting) {
            for who in HELPERS {
                self.say_promotion(environment, Some(&promotion.commit), who, Say::Approve { ring: None });
            }
            if !promotion.words.iter().any(|word| word.say == Say::Now) && self.now > self.plan.calm + STUCK {
                self.say_promotion(environment, Some(&promotion.commit), 1, Say::Now);
            }
        }
        if let Some(current) = standing.current.as_deref()
            && standing.promotion(current).is_some_and(|promotion| promotion.empty)
        {
            for who in HELPERS {
                self.say_promotion(environment, Some(current), who, Say::Approve { ring: None });
            }
        }
        let commit = match self.plan.policy.promoter {
            Promoter::External => Some(name(self.git.main.len() - 1)),
            Promoter::Kedge => standing.current.filter(|_| standing.refused.is_some()),
        };
        if let Some(commit) = commit
            && self.git.named[environment].as_ref().is_none_or(|named| named.commit != commit)
        {
            let at = self.hub_now();
            self.git.named[environment] = Some(Named { commit, by: "person-0".to_owned(), at, why: String::new() });
            self.dirty = true;
        }
    }

    fn help_rollout(&mut self, environment: usize, lane: usize) {
        let Some(saved) = self.db.rollouts[environment][lane].last() else { return };
        let rollout = saved.rollout.clone();
        match &rollout.phase {
            Phase::Paused { .. } => drop(self.say(environment, lane, 1, Say::Resume)),
            Phase::Stopped { .. } => {
                let tried = rollout.words.iter().any(|word| word.say == Say::Resume);
                let say = if tried { Say::Override { ring: None } } else { Say::Resume };
                self.say(environment, lane, 1, say);
            }
            Phase::Active => {
                let Some(ring) = rollout.current() else { return };
                if ring.state == RingState::Waiting || ring.empty {
                    for who in HELPERS {
                        self.say(environment, lane, who, Say::Approve { ring: None });
                    }
                }
                let since = ring.started_at.map_or(rollout.created_at.0, |at| at.0).max(self.plan.calm);
                if self.now > since + STUCK {
                    let say = if ring.state == RingState::Waiting { Say::Now } else { Say::Override { ring: None } };
                    self.say(environment, lane, 1, say);
                }
            }
            // Somebody ended it: only new content helps.
            Phase::RolledBack { .. } | Phase::Aborted { .. } => self.mend(environment, lane),
            Phase::Complete { .. } | Phase::Superseded { .. } => {}
        }
    }

    fn mend(&mut self, environment: usize, lane: usize) {
        let commits = match lane {
            0 => &mut self.git.main,
            work => &mut self.git.sources[work - 1],
        };
        let Some(saved) = self.db.rollouts[environment][lane].last() else { return };
        let newest = match lane {
            0 => saved.rollout.cause.main.as_deref() == Some(name(commits.len() - 1).as_str()),
            _ => saved.rollout.cause.commit == format!("s{}", commits.len() - 1),
        };
        if newest && commits.len() < MENDS {
            commits.push(last(&self.plan));
            self.dirty = true;
        }
    }

    /// Everything that can be complete is.
    pub(crate) fn at_rest(&self) -> bool {
        self.unrest().is_empty()
    }

    /// What isn't at rest.
    pub(crate) fn unrest(&self) -> String {
        let head = name(self.git.main.len() - 1);
        for environment in 0..self.plan.environments() {
            let rules = self.plan.rules(environment);
            let standing = self.db.chain.environments.get(&rules.name);
            let promotion = standing.and_then(|standing| standing.promotion(&head));
            if promotion.is_none_or(|promotion| promotion.phase != PromotionPhase::Passed) {
                return format!("{} has not passed {head}: {standing:?}", rules.name);
            }
            for (lane, rollouts) in self.db.rollouts[environment].iter().enumerate() {
                if let Some(saved) = rollouts.last().filter(|one| !matches!(one.rollout.phase, Phase::Complete { .. }))
                {
                    let (phase, rings) = (&saved.rollout.phase, &saved.rollout.rings);
                    return format!("{} lane {lane} is {phase:?}: {rings:?}", rules.name);
                }
            }
        }
        for (cluster, (agent, row)) in self.agents.iter().zip(&self.db.clusters).enumerate() {
            let place = &self.plan.fleet[cluster];
            let stream = self.plan.stream(place.environment, place.cluster_type, row.ring);
            let newest = self.db.states[stream].len() as u64;
            let converged = row.entries.iter().all(|(_, condition)| *condition == Condition::Converged);
            if agent.stream != Some(stream)
                || agent.generation() != newest
                || !converged
                || row.version != agent.version
            {
                return format!("cluster {cluster} is at {} of {newest}: {:?}", agent.generation(), row.entries);
            }
        }
        String::new()
    }
}

/// The commit that ends it all: good, and by somebody who approves nothing.
fn last(plan: &crate::plan::Plan) -> Commit {
    Commit { author: LAST, ..Commit::good(plan) }
}

fn is_last(commit: &Commit) -> bool {
    commit.author == LAST
}

const LAST: usize = 9;
