//! One step of the chain, from what is true now: what may enter where, what has passed. Called by the hub's leader and by the
//! simulation.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::{EnvironmentPolicy, Promoter};
use kedge_model::wire::Timestamp;

use super::outcome::settle;
use super::{
    Chain, ChainFacts, EnvironmentFacts, MainCommit, Named, OutcomeState, Promotion, PromotionPhase, SKIPPED, Standing,
    is_override, short,
};
use crate::approval::{missing, of_platform, overridden, override_missing};
use crate::calendar::{Opening, opening};
use crate::word::Say;

/// The order of `main`: the newest is 0. What isn't there is older than everything.
struct Order<'a> {
    main: &'a [MainCommit],
    places: BTreeMap<&'a str, usize>,
}

/// One environment, for as long as it is looked at.
struct Gatekeeper<'a> {
    chain: &'a mut Chain,
    rules: &'a EnvironmentPolicy,
    facts: &'a EnvironmentFacts,
    order: &'a Order<'a>,
    now: Timestamp,
}

/// The next value; none: nothing changes. The caller saves it, then makes Git follow. The value it returns is at rest: the same facts
/// at the same time change nothing more.
pub fn promote(chain: &Chain, facts: &ChainFacts, now: Timestamp) -> Option<Chain> {
    let mut next = chain.clone();
    let policy = chain.policy.clone();
    let places = facts.main.iter().enumerate().rev().map(|(place, commit)| (commit.commit.as_str(), place)).collect();
    let order = Order { main: &facts.main, places };
    // An environment may be written before those it comes after.
    for _ in 0..=policy.environments.len() {
        let mut moved = false;
        for rules in &policy.environments {
            let Some(facts) = facts.environments.get(&rules.name) else { continue };
            let before = next.environments.get(&rules.name).cloned();
            Gatekeeper { chain: &mut next, rules, facts, order: &order, now }.look();
            moved |= next.environments.get(&rules.name) != before.as_ref();
        }
        if !moved {
            break;
        }
    }
    (next != *chain).then_some(next)
}

impl Gatekeeper<'_> {
    fn look(&mut self) {
        if !self.chain.environments.contains_key(&self.rules.name) {
            let adopted = self.adopt();
            self.chain.environments.insert(self.rules.name.clone(), adopted);
        }
        let (rules, facts, now) = (self.rules, self.facts, self.now);
        self.change(|standing| settle(standing, rules, facts.outcome.as_ref(), now));
        self.forget_gone();
        for commit in self.candidates() {
            self.expect(&commit);
        }
        self.describe();
        self.enter();
        let refused = self.refuse();
        self.change(|standing| {
            standing.refused = refused;
            standing.trim();
        });
    }

    /// What waits and was taken off main can't come in any more, whoever approved it.
    fn forget_gone(&mut self) {
        let order = self.order;
        let Some(head) = order.main.first() else { return };
        self.change(|standing| {
            for promotion in &mut standing.promotions {
                // Only what main had was ever described.
                let gone = !promotion.author.is_empty() && !order.places.contains_key(promotion.commit.as_str());
                if gone && promotion.phase == PromotionPhase::Waiting {
                    promotion.leave(PromotionPhase::Superseded { by: head.commit.clone() });
                }
            }
        });
    }

    /// The first time: what the branch names stays in force, ungated.
    fn adopt(&self) -> Standing {
        let Some(named) = &self.facts.named else { return Standing::default() };
        let mut promotion = Promotion::waiting(&named.commit, self.now);
        (promotion.phase, promotion.heard) = (PromotionPhase::Adopted, Some(0));
        promotion.entered_at = Some(self.now);
        Standing { current: Some(named.commit.clone()), promotions: vec![promotion], refused: None }
    }

    /// What should be let in: the newest that has passed everywhere before, and what the branch names if that may come.
    fn candidates(&self) -> Vec<String> {
        let newest = match self.rules.after.as_slice() {
            [] => self.order.main.first().map(|commit| commit.commit.clone()),
            [first, ..] => {
                let passed = self.chain.environments.get(first).map(|before| before.promotions.as_slice());
                let passed = passed.unwrap_or_default().iter();
                passed
                    .filter(|promotion| promotion.phase == PromotionPhase::Passed)
                    .map(|promotion| &promotion.commit)
                    .filter(|commit| self.newer(commit) && self.chain.permits(&self.rules.name, commit))
                    .filter(|commit| self.rules.after.iter().all(|before| self.of_this_main(before, commit)))
                    .min_by_key(|commit| self.order.place(commit))
                    .cloned()
            }
        };
        let newest = newest.filter(|commit| self.newer(commit));
        let fresh = |commit: &String| newest.iter().all(|newest| self.order.place(commit) < self.order.place(newest));
        let named = self.facts.named.as_ref().map(|named| named.commit.clone()).filter(|commit| {
            self.newer(commit)
                && self.chain.permits(&self.rules.name, commit)
                && (fresh(commit)
                    || self.chain.policy.promoter == Promoter::External
                    || self.held(commit, None).is_empty())
        });
        if named.as_ref().is_some_and(fresh) {
            return named.into_iter().collect();
        }
        newest.into_iter().chain(named).collect()
    }

    /// Makes sure that it waits, and that older ones that nobody asked for no longer do.
    fn expect(&mut self, commit: &str) {
        let (order, now, external) = (self.order, self.now, self.chain.policy.promoter == Promoter::External);
        let named = self.facts.named.as_ref().map(|named| named.commit.as_str()).filter(|_| external);
        self.change(|standing| {
            if !standing.promotions.iter().any(|known| known.commit == commit && known.phase == PromotionPhase::Waiting)
            {
                standing.promotions.insert(0, Promotion::waiting(commit, now));
            }
            for older in standing.promotions.iter_mut().filter(|known| known.phase == PromotionPhase::Waiting) {
                let asked_for = !older.words.is_empty() || Some(older.commit.as_str()) == named;
                if order.place(&older.commit) > order.place(commit) && !asked_for {
                    older.leave(PromotionPhase::Superseded { by: commit.to_owned() });
                }
            }
        });
    }

    /// What main says of those that wait, and what each would take over.
    fn describe(&mut self) {
        let order = self.order;
        self.change(|standing| {
            let base = standing.base(order);
            for promotion in &mut standing.promotions {
                let Some(place) = order.places.get(promotion.commit.as_str()) else { continue };
                let of_main = &order.main[*place];
                if promotion.author.is_empty() {
                    promotion.subject.clone_from(&of_main.subject);
                    promotion.author.clone_from(&of_main.author);
                }
                if promotion.phase == PromotionPhase::Waiting {
                    let between = order.main.get(place + 1..base.min(order.main.len())).unwrap_or_default();
                    promotion.skipped = between.iter().take(SKIPPED).map(|commit| commit.commit.clone()).collect();
                    let authors: BTreeSet<&String> = between.iter().map(|commit| &commit.author).collect();
                    promotion.authors = authors.into_iter().cloned().collect();
                }
            }
        });
    }

    /// Lets in the newest that nothing holds; the others say what they wait for.
    fn enter(&mut self) {
        let Some(standing) = self.chain.environments.get(&self.rules.name) else { return };
        let waiting = standing.promotions.iter().filter(|promotion| promotion.phase == PromotionPhase::Waiting);
        let mut waiting: Vec<Promotion> = waiting.cloned().collect();
        waiting.sort_by_key(|promotion| self.order.place(&promotion.commit));
        for promotion in waiting {
            let commit = promotion.commit.clone();
            let old = !self.newer(&commit) && self.order.places.contains_key(commit.as_str());
            let why = self.held(&commit, Some(&promotion));
            let (now, order, current) = (self.now, self.order, self.current().map(str::to_owned));
            self.change(|standing| {
                if why.is_empty() {
                    standing.let_in(&commit, order, now);
                } else if let Some(known) = standing.waiting(&commit) {
                    match current {
                        Some(current) if old => known.leave(PromotionPhase::Superseded { by: current }),
                        _ => known.waits_for = why,
                    }
                }
            });
        }
    }

    /// What keeps a commit out.
    fn held(&self, commit: &str, promotion: Option<&Promotion>) -> Vec<String> {
        let mut why = Vec::new();
        if !self.order.places.contains_key(commit) {
            why.push(format!("{} isn't a commit of main", short(commit)));
        } else if !self.newer(commit) {
            why.push(format!("{} is not newer than what is in force", short(commit)));
        }
        why.extend(self.chain.hindrance(&self.rules.name, commit));
        if let Some(outcome) = &self.facts.outcome
            && outcome.state == OutcomeState::Held
            && Some(outcome.commit.as_str()) == self.current()
        {
            why.push(format!("{} is on its way through the rings here", short(&outcome.commit)));
        }
        let named = self.facts.named.as_ref().map(|named| named.commit.as_str());
        if self.chain.policy.promoter == Promoter::External && named != Some(commit) {
            why.push("the workflow that promotes has not written it to the environment's branch".to_owned());
        }
        let words = promotion.map(|promotion| promotion.words.as_slice()).unwrap_or_default();
        if let Some(ring) = self.rules.rings.first()
            && let Some(rule) = &ring.approval
            && !overridden(words, self.rules.override_people, is_override)
        {
            let authors = promotion.map(Promotion::all_authors).unwrap_or_default();
            why.extend(missing(&of_platform(rule), words, &ring.name, &authors));
        }
        why.extend(override_missing(words, self.rules.override_people, is_override));
        if !words.iter().any(|word| word.say == Say::Now)
            && let Opening::Closed { why: closed, .. } = opening(&self.rules.windows, &self.rules.freezes, self.now)
        {
            why.push(closed);
        }
        why
    }

    /// What the branch names and isn't in force, with the reason.
    fn refuse(&self) -> Option<Named> {
        let named = self.facts.named.as_ref()?;
        let standing = self.chain.environments.get(&self.rules.name)?;
        if standing.current.as_deref() == Some(named.commit.as_str()) {
            return None;
        }
        let known = self.order.places.contains_key(named.commit.as_str());
        if known && !self.newer(&named.commit) {
            // The branch follows what was let in; until then it names what was there before.
            let since = self.current().and_then(|commit| standing.promotion(commit)).and_then(|known| known.entered_at);
            if since.is_some_and(|since| named.at <= since) {
                return None;
            }
        }
        let waiting = standing.promotions.iter().find(|promotion| promotion.commit == named.commit);
        let why = self.held(&named.commit, waiting.filter(|promotion| promotion.phase == PromotionPhase::Waiting));
        Some(Named { why: why.join("; "), ..named.clone() })
    }

    fn current(&self) -> Option<&str> {
        self.chain.environments.get(&self.rules.name)?.current.as_deref()
    }

    /// Never back: only what main has after the commit in force. Where people rewrote main and took that one off it: the newest
    /// that both have, and what comes after.
    fn newer(&self, commit: &str) -> bool {
        let Some(place) = self.order.places.get(commit) else { return false };
        let Some(standing) = self.chain.environments.get(&self.rules.name) else { return true };
        match standing.current.as_deref().map(|current| self.order.places.get(current)) {
            Some(Some(current)) => place < current,
            Some(None) => standing.shared_with(self.order).is_none_or(|shared| *place <= shared),
            None => true,
        }
    }

    /// Whether an environment let the commit in after the last one that people took off main since: what it passed before that
    /// belongs to the main that was, and was replaced there.
    fn of_this_main(&self, environment: &str, commit: &str) -> bool {
        let Some(standing) = self.chain.environments.get(environment) else { return true };
        let gone = |known: &&Promotion| !self.order.places.contains_key(known.commit.as_str());
        let gone = standing.promotions.iter().filter(gone).filter_map(|known| known.entered_at).max();
        let entered = standing.promotion(commit).and_then(|known| known.entered_at);
        gone.is_none_or(|gone| entered.is_none_or(|entered| entered >= gone))
    }

    fn change(&mut self, change: impl FnOnce(&mut Standing)) {
        if let Some(standing) = self.chain.environments.get_mut(&self.rules.name) {
            change(standing);
        }
    }
}

impl Order<'_> {
    fn place(&self, commit: &str) -> usize {
        self.places.get(commit).copied().unwrap_or(usize::MAX)
    }
}

impl Standing {
    fn waiting(&mut self, commit: &str) -> Option<&mut Promotion> {
        let mut all = self.promotions.iter_mut();
        all.find(|promotion| promotion.commit == commit && promotion.phase == PromotionPhase::Waiting)
    }

    /// The newest commit of main that has been here, or was taken over on the way. None: nothing of it is known to have been.
    fn shared_with(&self, order: &Order<'_>) -> Option<usize> {
        let been = self.promotions.iter().filter(|promotion| promotion.phase != PromotionPhase::Waiting);
        let commits = been.flat_map(|promotion| std::iter::once(&promotion.commit).chain(&promotion.skipped));
        commits.filter_map(|commit| order.places.get(commit.as_str()).copied()).min()
    }

    /// What lies after this place is taken over: the newest commit that passed here; if none did, what came before everything that
    /// was on its way here.
    fn base(&self, order: &Order<'_>) -> usize {
        let on_main = self.promotions.iter().filter_map(|promotion| {
            let place = order.places.get(promotion.commit.as_str())?;
            Some((*place, &promotion.phase))
        });
        let done = on_main.clone().filter(|(_, phase)| {
            matches!(phase, PromotionPhase::Passed | PromotionPhase::Adopted | PromotionPhase::Reopened { .. })
        });
        let oldest = on_main.map(|(place, _)| place + 1).max().unwrap_or_default();
        done.map(|(place, _)| place).min().unwrap_or(oldest)
    }

    /// In force from now on. What was and hadn't passed, and what waited and is older, is taken over.
    fn let_in(&mut self, commit: &str, order: &Order<'_>, now: Timestamp) {
        for promotion in &mut self.promotions {
            match promotion.phase {
                PromotionPhase::Waiting if promotion.commit == commit => {
                    promotion.leave(PromotionPhase::Entered);
                    (promotion.entered_at, promotion.heard) = (Some(now), Some(promotion.words.len()));
                }
                PromotionPhase::Waiting if order.place(&promotion.commit) < order.place(commit) => {}
                PromotionPhase::Waiting
                | PromotionPhase::Entered
                | PromotionPhase::Failed { .. }
                | PromotionPhase::Reopened { .. } => {
                    promotion.leave(PromotionPhase::Superseded { by: commit.to_owned() });
                }
                PromotionPhase::Passed | PromotionPhase::Adopted | PromotionPhase::Superseded { .. } => {}
            }
        }
        self.current = Some(commit.to_owned());
    }
}

impl Promotion {
    fn leave(&mut self, phase: PromotionPhase) {
        self.phase = phase;
        self.waits_for.clear();
        self.empty = false;
    }
}
