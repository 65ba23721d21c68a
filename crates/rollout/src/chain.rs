//! The way of a commit of `main` from environment to environment. The hub keeps one row per environment; which main commit is in
//! force there follows from `Standing::current`, whatever its branch names.

mod hear;
mod outcome;
mod promote;

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::approval::overridden;
use crate::rollout::RolloutId;
use crate::word::{Say, Word};

pub use hear::hear_promotion;
pub use promote::promote;

/// All environments that the policy in force names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    pub policy: Arc<PromotionPolicy>,
    pub environments: BTreeMap<String, Standing>,
}

/// Where one environment is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The main commit in force: the last one that was let in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// The newest first, at most `KEPT`; evidence keeps the rest.
    #[serde(default)]
    pub promotions: Vec<Promotion>,
    /// The branch names a commit that wasn't promoted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Named>,
}

/// One main commit in one environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Promotion {
    pub commit: String,
    pub subject: String,
    pub author: String,
    pub phase: PromotionPhase,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_at: Option<Timestamp>,
    /// The rollout of its platform files here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutId>,
    /// Approvals and overrides.
    #[serde(default)]
    pub words: Vec<Word>,
    /// Commits of main that it took over, the newest first.
    #[serde(default)]
    pub skipped: Vec<String>,
    /// Who wrote those, each once: they wrote a part of what comes in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// What it waits for now, each a sentence; for people.
    #[serde(default)]
    pub waits_for: Vec<String>,
    /// Failures that came after it had passed.
    #[serde(default)]
    pub late_failed: u64,
    /// So many words had been said when it was let in: those count for its entry, later ones for its gate here. None: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<usize>,
    /// It changed nothing here: nothing to observe, waits for a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
    /// What didn't count against it when it was looked at last, and should be known all the same; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum PromotionPhase {
    /// For approval, a window, or the one before it.
    Waiting,
    /// Let in: the branch shall name it, and the environment reads it.
    Entered,
    /// Its gate held: it may go on.
    Passed,
    /// A quarantine or failures beyond the budget.
    Failed {
        why: String,
    },
    /// Passed, and failures came later.
    Reopened {
        why: String,
    },
    Superseded {
        by: String,
    },
    /// What the environment ran before there was a policy.
    Adopted,
}

/// A commit that an environment's branch names, and who wrote that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Named {
    pub commit: String,
    pub by: String,
    pub at: Timestamp,
    /// What hasn't passed where; a sentence.
    pub why: String,
}

/// What is true now, for the whole chain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainFacts {
    /// Of `main`, the newest first.
    pub main: Vec<MainCommit>,
    /// One that can't be read now isn't there, and stays as it is.
    pub environments: BTreeMap<String, EnvironmentFacts>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainCommit {
    pub commit: String,
    pub subject: String,
    pub author: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// What the branch names, and who wrote it; none: it has no BaseRepo `main`.
    pub named: Option<Named>,
    /// What became of the main commit in force.
    pub outcome: Option<Outcome>,
}

/// How the platform's rollout of a main commit stands in an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub commit: String,
    pub rollout: Option<RolloutId>,
    pub state: OutcomeState,
    /// What doesn't count against it and should be known all the same: assignments that others broke. For people.
    pub remark: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeState {
    /// Read, published, packed and rolling; newer content may take its place.
    Moving,
    /// Rolling beyond its first ring, or paused: nothing takes its place until it ends.
    Held,
    /// Every ring's gate held.
    Complete {
        late_failed: u64,
    },
    /// It changed nothing here since the last commit that passed; while that one's or any later change still rolls, that is `Moving`.
    Unchanged,
    Failed {
        why: String,
    },
}

/// Digits of a commit in a sentence.
const SHORT: usize = 12;
/// So many promotions are kept with an environment.
pub const KEPT: usize = 64;
/// So many names of skipped commits are kept with a promotion.
pub const SKIPPED: usize = 256;

impl Chain {
    /// No environment stands anywhere yet: the first `promote` adopts what their branches name.
    pub fn new(policy: Arc<PromotionPolicy>) -> Chain {
        Chain { policy, environments: BTreeMap::new() }
    }

    /// Whether every environment before this one has passed the commit, or a person overrode that.
    pub fn permits(&self, environment: &str, commit: &str) -> bool {
        self.hindrance(environment, commit).is_none()
    }

    /// Which environment before this one hasn't passed the commit; a sentence.
    pub fn hindrance(&self, environment: &str, commit: &str) -> Option<String> {
        let Some(rules) = self.policy.environment(environment) else {
            return Some(format!("the policy doesn't name the environment {environment}"));
        };
        let own = self.environments.get(environment).and_then(|standing| standing.promotion(commit));
        if own.is_some_and(|promotion| promotion.overridden_before(rules.override_people)) {
            return None;
        }
        rules.after.iter().find_map(|before| {
            let phase = self.environments.get(before).and_then(|standing| standing.promotion(commit));
            let how = match phase.map(|promotion| &promotion.phase) {
                Some(PromotionPhase::Passed) => return None,
                None => "it has never been there".to_owned(),
                Some(PromotionPhase::Waiting) => "it waits to enter".to_owned(),
                Some(PromotionPhase::Entered) => "its gate doesn't hold yet".to_owned(),
                Some(PromotionPhase::Failed { why }) => format!("it failed: {why}"),
                Some(PromotionPhase::Reopened { why }) => format!("it is open again: {why}"),
                Some(PromotionPhase::Superseded { by }) => format!("superseded by {}", short(by)),
                Some(PromotionPhase::Adopted) => {
                    "it ran there before there was a policy, and was never gated".to_owned()
                }
            };
            Some(format!("{} hasn't passed {before}: {how}", short(commit)))
        })
    }
}

impl Standing {
    /// The promotion of a commit; the newest, if it came twice.
    pub fn promotion(&self, commit: &str) -> Option<&Promotion> {
        self.promotions.iter().find(|promotion| promotion.commit == commit)
    }

    /// Whether a commit answers for what an earlier one (or itself) broke here: it contains it, and nothing that contains it has
    /// passed since. Who took over from whom says that, rather than the order of `main`, which people may rewrite.
    pub fn answers_for(&self, commit: &str, broke: &str, since: Timestamp) -> bool {
        let mut at = broke;
        // Each step leads to one that came later.
        for _ in 0..=self.promotions.len() {
            if at == commit {
                return true;
            }
            let came = |known: &&Promotion| known.commit == at && known.phase != PromotionPhase::Waiting;
            match self.promotions.iter().find(came).map(|known| &known.phase) {
                Some(PromotionPhase::Superseded { by }) => at = by,
                Some(PromotionPhase::Entered | PromotionPhase::Failed { .. }) => return true,
                Some(_) => return false,
                None => break,
            }
        }
        // It came so long ago that it is forgotten.
        let passed = self.promotions.iter().filter(|known| known.phase == PromotionPhase::Passed);
        !passed.filter_map(|known| known.passed_at).any(|at| at >= since)
    }

    /// What nobody needs any more goes first: never what is in force or on its way, nor the last that passed.
    fn trim(&mut self) {
        while self.promotions.len() > KEPT {
            let newest = self.promotions.iter().position(|promotion| promotion.phase == PromotionPhase::Passed);
            let current = self.current.as_deref();
            let spare = |(place, promotion): &(usize, &Promotion)| {
                Some(promotion.commit.as_str()) != current
                    && Some(*place) != newest
                    && !matches!(promotion.phase, PromotionPhase::Waiting | PromotionPhase::Entered)
            };
            let over = |promotion: &Promotion| !matches!(promotion.phase, PromotionPhase::Passed);
            let mut spares = self.promotions.iter().enumerate().filter(spare).rev().peekable();
            let last = spares.peek().map(|(place, _)| *place);
            let place = spares.find(|(_, promotion)| over(promotion)).map(|(place, _)| place).or(last);
            match place {
                Some(place) => drop(self.promotions.remove(place)),
                None => self.promotions.truncate(KEPT),
            }
        }
    }
}

impl Promotion {
    /// A commit that is to go in; `promote` fills in what main says of it.
    fn waiting(commit: &str, now: Timestamp) -> Promotion {
        Promotion {
            commit: commit.to_owned(),
            subject: String::new(),
            author: String::new(),
            phase: PromotionPhase::Waiting,
            created_at: now,
            entered_at: None,
            passed_at: None,
            rollout: None,
            words: Vec::new(),
            skipped: Vec::new(),
            authors: Vec::new(),
            waits_for: Vec::new(),
            late_failed: 0,
            heard: None,
            empty: false,
            remark: None,
        }
    }

    /// Enough persons let it in before the environments before it had passed it.
    pub fn overridden_before(&self, needed: u32) -> bool {
        let said = self.words.get(..self.heard.unwrap_or(self.words.len())).unwrap_or(&self.words);
        overridden(said, needed, is_override)
    }

    /// Enough persons said that its gate here counts as passed.
    pub fn overridden_here(&self, needed: u32) -> bool {
        overridden(self.said_here(), needed, is_override)
    }

    /// Whoever wrote a part of what comes in.
    fn all_authors(&self) -> Vec<&str> {
        std::iter::once(&self.author).chain(&self.authors).map(String::as_str).collect()
    }

    /// What was said since it was let in.
    fn said_here(&self) -> &[Word] {
        self.heard.and_then(|heard| self.words.get(heard..)).unwrap_or_default()
    }
}

fn is_override(say: &Say) -> bool {
    matches!(say, Say::Override { .. })
}

/// As people read it.
pub fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

#[cfg(test)]
mod tests;
