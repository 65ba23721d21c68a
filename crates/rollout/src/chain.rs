//! The way of a commit of `main` from environment to environment. The hub keeps one row per environment; which main commit is in
//! force there follows from `Standing::current`, whatever its branch names.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::rollout::RolloutId;
use crate::word::Word;

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
    /// The branch names a commit that wasn't let in.
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
    /// What it waits for now, each a sentence; for people.
    #[serde(default)]
    pub waits_for: Vec<String>,
    /// Failures that came after it had passed.
    #[serde(default)]
    pub late_failed: u64,
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
    /// What the branch names, and who wrote it; none: no BaseRepo `main`, or it can't be read.
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutcomeState {
    /// Read, published, packed and rolling.
    Moving,
    /// Every ring's gate held.
    Complete {
        late_failed: u64,
    },
    /// It changed nothing here.
    Unchanged,
    Failed {
        why: String,
    },
}

/// So many promotions are kept with an environment.
pub const KEPT: usize = 64;

/// The next value; none: nothing changes.
pub fn promote(chain: &Chain, facts: &ChainFacts, now: Timestamp) -> Option<Chain> {
    let _ = (chain, facts, now);
    None
}

impl Chain {
    /// Whether every environment before this one has passed the commit, or a person overrode that.
    pub fn permits(&self, environment: &str, commit: &str) -> bool {
        let _ = (environment, commit);
        false
    }
}
