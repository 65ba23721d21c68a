//! Everything that an entry can tell, as it is stored: one variant for each sentence in `title`.

use kedge_model::wire::PackagesKey;
use serde::{Deserialize, Serialize};

use super::Kind;

/// What happened. Fields that others chose are bounded where they come in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "type")]
pub enum What {
    /// An assignment on a cluster is in another condition, runs something else, or is gone (`Removed`).
    Condition {
        condition: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        running: Option<PackagesKey>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        desired: Option<PackagesKey>,
    },
    /// A cluster keeps its newest events only: so many older ones were lost before they could be told.
    Lost {
        count: u64,
    },
    /// What runs was changed by somebody else.
    Drifted {
        drift: String,
    },
    /// It is as it should be again.
    DriftEnded {
        was: String,
    },
    /// The agent put it right, as its event log tells.
    DriftRepaired {
        drift: String,
    },
    /// A new desired state says something else of an assignment.
    Issued {
        generation: u64,
        change: Change,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<String>,
        /// Commits of the packages that moved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        platform: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workload: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        packages: Option<PackagesKey>,
    },
    /// A new desired state that says the same of every assignment.
    Reissued {
        generation: u64,
        assignments: u64,
    },
    /// A commit was read in an environment; how long each step took, and when the commit was made.
    Walked {
        repo: String,
        subject: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made_at: Option<i64>,
        /// The branch's commit that holds it; none: it waits for a person or a merge.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
        steps: Vec<Step>,
    },
    /// A commit that had waited for a person or a merge is on the environment's branch.
    Landed {
        head: String,
        branch: String,
        subject: String,
    },
    /// A commit of ours is on the environment's branch.
    Published {
        /// On the branch.
        published: String,
        branch: String,
        subject: String,
    },
    /// The pull request that asks for it.
    PullRequest {
        state: String,
        branch: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<String>,
    },
    /// A commit of main moves on in an environment.
    Promotion {
        /// `waiting`, `entered`, `passed`, `failed`, `reopened`, `superseded`, `adopted`
        phase: String,
        subject: String,
        author: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rollout: Option<u64>,
    },
    /// An environment's branch names a commit that wasn't let in.
    Refused {
        why: String,
    },
    /// A PromotionPolicy is in `force`, is `waiting`, or `broken`.
    Policy {
        slot: String,
        subject: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reasons: Vec<String>,
    },
    Rollout {
        rollout: u64,
        /// `started`, or the phase.
        phase: String,
        lane: String,
        subject: String,
        /// How many assignments it moves.
        items: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        /// Of the lane.
        commit: String,
    },
    /// A ring of a rollout moves.
    Ring {
        rollout: u64,
        state: String,
        lane: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// A person's word on a rollout, a promotion or the policy.
    Word {
        /// `rollout 7`, `promotion`, `policy`
        about: String,
        say: String,
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ring: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refused: Option<String>,
    },
    Joined {
        name: String,
    },
    Moved {
        from: Box<Spot>,
        to: Box<Spot>,
    },
    /// `retired`, `revoked`, `replaced`
    Left {
        state: String,
    },
    /// It missed its check-in, or its applier is stuck: nothing is known of what it runs.
    Unknown {
        stuck: bool,
    },
    /// It is heard again.
    Back,
    /// Two hosts write with its identity.
    Cloned,
    /// Somebody at an agent holds an assignment, or lets it go again. What people hold at the hub is a write.
    Hold {
        held: bool,
        by: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// A write, as the audit log has it.
    Audit {
        action: String,
        object: String,
        role: String,
        address: String,
        /// `done`, or why it was refused.
        result: String,
        /// Id of the access token.
        token: String,
        detail: serde_json::Value,
    },
    Problem {
        ended: bool,
        code: String,
        severity: String,
        message: String,
        quarantines: bool,
    },
    /// A repository can't be read, or can again.
    Repository {
        failing: bool,
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

/// Why an assignment is Converging, when what it has is put right again.
pub const REPAIR: &str = "Drift";

/// What a desired state does to an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    Added,
    Changed,
    Removed,
    /// No longer managed; it stays.
    Unmanaged,
    Restarted,
}

/// Where a cluster belongs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spot {
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
}

/// A step of a reconciliation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// `read`, `schedule`, `publish`, `pack`, `issue`
    pub name: String,
    pub ended_at: i64,
    pub took_ms: u64,
}

impl What {
    pub fn kind(&self) -> Kind {
        match self {
            What::Condition { .. } | What::Lost { .. } => Kind::Condition,
            What::Drifted { .. } | What::DriftEnded { .. } | What::DriftRepaired { .. } => Kind::Drift,
            What::Issued { .. } | What::Reissued { .. } => Kind::Generation,
            What::Walked { .. } | What::Landed { .. } | What::Published { .. } | What::PullRequest { .. } => {
                Kind::Publish
            }
            What::Promotion { .. } | What::Refused { .. } | What::Policy { .. } => Kind::Promotion,
            What::Rollout { .. } | What::Ring { .. } => Kind::Rollout,
            What::Word { .. } => Kind::Approval,
            What::Joined { .. }
            | What::Moved { .. }
            | What::Left { .. }
            | What::Unknown { .. }
            | What::Back
            | What::Cloned
            | What::Hold { .. } => Kind::Cluster,
            What::Audit { .. } => Kind::Audit,
            What::Problem { .. } | What::Repository { .. } => Kind::Problem,
        }
    }

    /// A stable word, to filter by.
    pub fn event(&self) -> &str {
        match self {
            What::Condition { condition, .. } => condition,
            What::Lost { .. } => "Lost",
            What::Drifted { .. } => "Drifted",
            What::DriftEnded { .. } => "DriftEnded",
            What::DriftRepaired { .. } => "DriftRepaired",
            What::Issued { change, .. } => change.word(),
            What::Reissued { .. } => "reissued",
            What::Walked { .. } => "walked",
            What::Landed { .. } => "landed",
            What::Published { .. } => "published",
            What::PullRequest { state, .. } => state,
            What::Promotion { phase, .. } | What::Rollout { phase, .. } => phase,
            What::Refused { .. } => "refused",
            What::Policy { slot, .. } => slot,
            What::Ring { state, .. } => state,
            What::Word { say, .. } => say,
            What::Joined { .. } => "joined",
            What::Moved { .. } => "moved",
            What::Left { state } => state,
            What::Unknown { .. } => "unknown",
            What::Back => "back",
            What::Cloned => "cloned",
            What::Hold { held: true, .. } => "held",
            What::Hold { held: false, .. } => "unheld",
            What::Audit { action, .. } => action,
            What::Problem { ended, .. } => {
                if *ended {
                    "ended"
                } else {
                    "appeared"
                }
            }
            What::Repository { failing, .. } => {
                if *failing {
                    "failing"
                } else {
                    "recovered"
                }
            }
        }
    }

    /// What content it is about, to find it by: the packages, or the token of a write.
    pub fn content(&self) -> String {
        match self {
            What::Condition { running, .. } => running.map(|key| key.to_string()).unwrap_or_default(),
            What::Issued { packages, .. } => packages.map(|key| key.to_string()).unwrap_or_default(),
            What::Audit { token, .. } => token.clone(),
            _ => String::new(),
        }
    }
}

impl Change {
    pub fn word(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
            Change::Unmanaged => "unmanaged",
            Change::Restarted => "restarted",
        }
    }
}

impl From<&kedge_model::wire::Stream> for Spot {
    fn from(stream: &kedge_model::wire::Stream) -> Spot {
        Spot {
            environment: stream.environment.clone(),
            cluster_type: stream.cluster_type.clone(),
            ring: stream.ring.clone(),
        }
    }
}
