//! The simulated hub: reads Git, asks the real code what follows, saves that, then makes the states follow; it may die between any
//! two steps, or be overtaken by another hub without noticing. Keeps nothing in memory between two passes.

mod issue;
mod serve;

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::Promoter;
use kedge_model::wire::Timestamp;
use kedge_rollout::{
    Cause, ChainFacts, CheckFact, EnvironmentFacts, Facts, Item, Lane, Named, Outcome, OutcomeState, Phase,
    PromotionPhase, Rollout, RolloutId, advance, promote, ring_of,
};

use crate::database::{Fenced, Saved};
use crate::git::{name, number};
use crate::plan::SECOND;
use crate::world::{Broken, World};

/// Why a pass ended early.
pub(crate) enum Stop {
    /// It died, or somebody else leads: the next pass begins from what is saved.
    Over,
    Broken(Broken),
}

/// What a lane's head is: its commit, the part it moves, and what each assignment shall hold.
struct Head {
    commit: String,
    main: Option<String>,
    author: usize,
    part: usize,
    to: Vec<(usize, u32)>,
    quarantines: bool,
}

impl World {
    /// One pass of the leader.
    pub(crate) fn lead(&mut self) -> Result<(), Broken> {
        self.dirty = false;
        match self.pass(self.db.term) {
            Ok(()) => Ok(()),
            Err(Stop::Over) => {
                self.dirty = true;
                Ok(())
            }
            Err(Stop::Broken(broken)) => Err(broken),
        }
    }

    fn pass(&mut self, term: u64) -> Result<(), Stop> {
        self.place();
        self.promote(term)?;
        for environment in 0..self.plan.environments() {
            for lane in 0..=self.plan.workloads {
                self.begin(term, environment, lane)?;
                self.advance(term, environment, lane)?;
            }
            self.issue(term, environment)?;
        }
        Ok(())
    }

    /// Between any two steps: death, another hub, a person.
    fn survive(&mut self) -> Result<(), Stop> {
        if self.calm() {
            return Ok(());
        }
        if self.chance.permille(self.plan.faults.death) {
            self.report.deaths += 1;
            self.hub.down_until = self.now + self.chance.between(SECOND, 60 * SECOND);
            self.hub.clock = self.chance.between(-5 * SECOND, 5 * SECOND);
            self.tell(|| "the hub dies".to_owned());
            return Err(Stop::Over);
        }
        if !self.hub.nested && self.chance.permille(self.plan.faults.takeover) {
            self.hub.nested = true;
            self.db.term += 1;
            self.tell(|| "another hub takes over".to_owned());
            let other = self.pass(self.db.term);
            self.hub.nested = false;
            if let Err(Stop::Broken(broken)) = other {
                return Err(Stop::Broken(broken));
            }
        }
        if self.chance.permille(5) {
            self.speak()?;
        }
        Ok(())
    }

    pub(crate) fn hub_now(&self) -> Timestamp {
        Timestamp(self.now + if self.calm() { 0 } else { self.hub.clock })
    }

    /// Clusters whose labels changed go to their ring.
    fn place(&mut self) {
        for cluster in 0..self.db.clusters.len() {
            if !self.db.clusters[cluster].stale {
                continue;
            }
            let rules = self.plan.rules(self.plan.fleet[cluster].environment);
            let row = &mut self.db.clusters[cluster];
            let name = ring_of(&rules.rings, &self.agents[cluster].id, &row.labels);
            let ring = rules.rings.iter().position(|ring| ring.name == name).unwrap_or_default();
            row.stale = false;
            if ring != row.ring {
                let environment = self.plan.fleet[cluster].environment;
                if let Some(permits) = self.db.permits.get_mut(&(environment, row.ring)) {
                    permits.remove(&cluster);
                }
                if let Some(members) = self.db.members.get_mut(&(environment, row.ring)) {
                    *members = members.saturating_sub(1);
                }
                *self.db.members.entry((environment, ring)).or_default() += 1;
                (row.ring, row.sequence, row.served) = (ring, row.sequence + 1, None);
            }
        }
    }

    fn promote(&mut self, term: u64) -> Result<(), Stop> {
        if self.log.len() != self.git.main.len() {
            self.log = self.git.log();
        }
        let mut facts = ChainFacts { main: std::mem::take(&mut self.log), environments: BTreeMap::new() };
        for environment in 0..self.plan.environments() {
            let of =
                EnvironmentFacts { named: self.git.named[environment].clone(), outcome: self.outcome(environment) };
            facts.environments.insert(self.plan.rules(environment).name.clone(), of);
        }
        let next = promote(&self.db.chain, &facts, self.hub_now());
        let still = next.as_ref().and_then(|next| promote(next, &facts, self.hub_now()));
        self.log = facts.main;
        if still.is_some() {
            return Err(Stop::Broken(Broken("promote is not at rest after a step".to_owned())));
        }
        if let Some(next) = next {
            let version = self.db.chain_version;
            self.survive()?;
            if version == self.db.chain_version && term == self.db.term {
                self.check_chain(&next)?;
            }
            self.db.save_chain(term, version, next)?;
            self.survive()?;
        }
        if self.plan.policy.promoter == Promoter::Kedge {
            self.write_branches(term)?;
        }
        Ok(())
    }

    /// Git follows what is in force.
    fn write_branches(&mut self, term: u64) -> Result<(), Stop> {
        for environment in 0..self.plan.environments() {
            let standing = self.db.chain.environments.get(&self.plan.rules(environment).name);
            let Some(standing) = standing.filter(|standing| standing.refused.is_none()) else { continue };
            let named = self.git.named[environment].as_ref().map(|named| named.commit.as_str());
            if standing.current.as_deref() != named
                && let Some(commit) = standing.current.clone()
            {
                self.survive()?;
                if term == self.db.term {
                    let at = self.hub_now();
                    self.git.named[environment] =
                        Some(Named { commit, by: "kedge".to_owned(), at, why: String::new() });
                }
            }
        }
        Ok(())
    }

    /// How the commit in force stands in an environment.
    fn outcome(&self, environment: usize) -> Option<Outcome> {
        let standing = self.db.chain.environments.get(&self.plan.rules(environment).name)?;
        let commit = standing.current.clone()?;
        let head = self.head(environment, 0)?;
        let newest = self.db.rollouts[environment][0].last();
        let entered = standing.promotion(&commit).and_then(|promotion| promotion.entered_at);
        match newest {
            Some(saved) if saved.rollout.cause.commit == head.commit => {
                let before = match saved.rollout.phase {
                    Phase::Complete { at } => entered.is_some_and(|entered| at < entered),
                    _ => false,
                };
                let own = saved.rollout.cause.main.as_deref() == Some(commit.as_str());
                let (rollout, state) = match before && !own {
                    true => (None, OutcomeState::Unchanged),
                    false => (Some(saved.rollout.id), saved.rollout.outcome()),
                };
                Some(Outcome { commit, rollout, state, remark: None })
            }
            Some(saved) if !saved.rollout.yields() => {
                Some(Outcome { commit, rollout: None, state: OutcomeState::Held, remark: None })
            }
            _ if self.changes(environment, &head).is_empty() => {
                Some(Outcome { commit, rollout: None, state: OutcomeState::Unchanged, remark: None })
            }
            _ => None,
        }
    }

    /// What a lane should come to.
    fn head(&self, environment: usize, lane: usize) -> Option<Head> {
        if lane == 0 {
            let standing = self.db.chain.environments.get(&self.plan.rules(environment).name)?;
            let main = number(standing.current.as_deref()?);
            let all = self.git.head(environment, main, self.plan.assignments.len());
            let own = self.git.own[environment].len();
            let commit = all.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
            let last = self.git.own[environment].last().unwrap_or(&self.git.main[main]);
            let quarantines = if own > 0 { last.quarantines } else { self.git.main[main].quarantines };
            return Some(Head {
                commit,
                main: Some(name(main)),
                author: self.git.main[main].author,
                part: 0,
                to: all.into_iter().enumerate().collect(),
                quarantines,
            });
        }
        let work = lane - 1;
        let version = self.git.sources[work].len() - 1;
        let places = (0..self.plan.assignments.len()).filter(|place| self.plan.assignments[*place].1 == work);
        let commit = &self.git.sources[work][version];
        Some(Head {
            commit: format!("s{version}"),
            main: None,
            author: commit.author,
            part: 1,
            to: places.map(|place| (place, u32::try_from(version).unwrap_or_default())).collect(),
            quarantines: commit.quarantines,
        })
    }

    /// The assignments that some ring doesn't hold so.
    fn changes(&self, environment: usize, head: &Head) -> Vec<(usize, u32)> {
        let rings = self.plan.rules(environment).rings.len();
        let differs = |(assignment, to): &&(usize, u32)| {
            let kind = self.plan.assignments[*assignment].0;
            let place = self.plan.of_type[kind].iter().position(|known| known == assignment).unwrap_or_default();
            (0..rings).any(|ring| {
                let states = &self.db.states[self.plan.stream(environment, kind, ring)];
                states.last().is_none_or(|state| state[place][head.part] != *to)
            })
        };
        head.to.iter().filter(differs).copied().collect()
    }

    /// A new rollout, if the lane has new content and the present one yields.
    fn begin(&mut self, term: u64, environment: usize, lane: usize) -> Result<(), Stop> {
        let Some(head) = self.head(environment, lane) else { return Ok(()) };
        let newest = self.db.rollouts[environment][lane].last();
        if newest.is_some_and(|saved| saved.rollout.cause.commit == head.commit || !saved.rollout.yields()) {
            return Ok(());
        }
        let to = self.changes(environment, &head);
        if to.is_empty() {
            return Ok(());
        }
        let rules = self.plan.rules(environment);
        let items: Vec<Item> = to
            .iter()
            .map(|(assignment, _)| {
                let (kind, work) = self.plan.assignments[*assignment];
                let workload = format!("work-{work}");
                let assignment = format!("{workload}-{}", rules.name);
                Item { cluster_type: self.plan.types[kind].name.clone(), assignment, workload, removes: false }
            })
            .collect();
        let cause = Cause {
            main: head.main.clone(),
            author: format!("person-{} <p{}@example.com>", head.author, head.author),
            ..Cause::of_commit(&head.commit)
        };
        let id = RolloutId(self.db.next_rollout);
        let of = match lane {
            0 => Lane::Platform,
            work => Lane::Source { repo: format!("work-{}", work - 1), reference: "main".to_owned() },
        };
        let now = self.hub_now();
        let rollout = Rollout::new(id, &rules.name, of, cause, Arc::new(rules.clone()), items.into(), now)
            .with_words(&self.entry_words(environment, &head));
        let before = vec![None; rules.rings.len()];
        let version = newest.map(|saved| saved.version);
        self.survive()?;
        let newest = self.db.rollouts[environment][lane].last_mut();
        if term != self.db.term || newest.as_ref().map(|saved| saved.version) != version {
            return Err(Stop::Over);
        }
        if let Some(saved) = newest
            && let Some(superseded) = saved.rollout.superseded(id, now)
        {
            saved.rollout = superseded;
            saved.version += 1;
        }
        self.tell(|| format!("{}: rollout {id} of lane {lane} to {}", self.plan.rules(environment).name, head.commit));
        let (part, quarantines) = (head.part, head.quarantines);
        let saved = Saved { rollout, version: 0, to, part, quarantines, before, first: BTreeMap::new() };
        self.db.rollouts[environment][lane].push(saved);
        self.db.next_rollout += 1;
        self.report.rollouts += 1;
        self.survive()
    }

    /// What people said when the main commit was let in, for its own rollout.
    fn entry_words(&self, environment: usize, head: &Head) -> Vec<kedge_rollout::Word> {
        let standing = self.db.chain.environments.get(&self.plan.rules(environment).name);
        let promotion = head.main.as_deref().and_then(|main| standing.and_then(|standing| standing.promotion(main)));
        let entered = promotion.filter(|one| one.phase == PromotionPhase::Entered && one.rollout.is_none());
        entered.map(|promotion| promotion.words.clone()).unwrap_or_default()
    }

    fn advance(&mut self, term: u64, environment: usize, lane: usize) -> Result<(), Stop> {
        let Some(saved) = self.db.rollouts[environment][lane].last() else { return Ok(()) };
        if saved.rollout.ended() && !matches!(saved.rollout.phase, Phase::Complete { .. }) {
            return Ok(());
        }
        let now = self.hub_now();
        let facts = self.db.facts(&self.plan, environment, saved, now.0);
        let quarantined = saved.quarantines;
        let facts = self.ask(facts, environment, quarantined);
        let Some(saved) = self.db.rollouts[environment][lane].last() else { return Ok(()) };
        let Some(next) = advance(&saved.rollout, &facts, now) else { return Ok(()) };
        if let Some(still) = advance(&next, &facts, now) {
            let what = format!("advance is not at rest after a step: {next:?} becomes {still:?}");
            return Err(Stop::Broken(Broken(what)));
        }
        let version = saved.version;
        self.survive()?;
        let fenced = match self.db.rollouts[environment][lane].last() {
            Some(saved) => saved.version != version || term != self.db.term,
            None => true,
        };
        if !fenced {
            self.check_rollout(environment, lane, &next, &facts, now)?;
        }
        let plan = &self.plan;
        self.db.save_rollout((environment, lane), term, version, next, plan)?;
        self.survive()
    }

    /// Quarantines and external checks.
    fn ask(&mut self, mut facts: Facts, environment: usize, quarantined: bool) -> Facts {
        if quarantined {
            facts.quarantined.push("quarantined".to_owned());
        }
        let at = self.hub_now();
        for ring in &self.plan.policy.environments[environment].rings {
            for check in &ring.gate.checks {
                let ok = self.now >= self.plan.calm || !self.chance.permille(50);
                if let Some(of_ring) = facts.rings.get_mut(&ring.name) {
                    of_ring.checks.insert(check.name.clone(), CheckFact { ok, said: "no".to_owned(), at });
                }
            }
        }
        facts
    }
}

impl From<Fenced> for Stop {
    fn from(_: Fenced) -> Stop {
        Stop::Over
    }
}

impl From<Broken> for Stop {
    fn from(broken: Broken) -> Stop {
        Stop::Broken(broken)
    }
}
