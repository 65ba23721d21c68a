//! How changes move: the PromotionPolicy (chain of environments, rings, gates) and the Pin. Every default is the careful one.
//! Serialized as they are frozen at a promotion's start.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Selector;

/// The way of a commit of `main` through environments. On `main`; without one nothing is promoted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromotionPolicy {
    pub promoter: Promoter,
    /// In the order written; each names those before it.
    pub environments: Vec<EnvironmentPolicy>,
}

/// Who writes `base-repo.yaml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Promoter {
    #[default]
    Kedge,
    /// Kalypso's own workflows go on; the hub only gates and sets commit statuses.
    External,
}

/// One environment of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentPolicy {
    pub name: String,
    /// All of them must have passed; written by default as the one before in the list. Empty: a first environment.
    pub after: Vec<String>,
    /// In order, never empty: without any there is one, `all`. The last one takes whoever no other did.
    pub rings: Vec<Ring>,
    pub windows: Vec<Window>,
    pub freezes: Vec<Freeze>,
    pub counts: Counted,
    /// Whether clusters that are away leave a rollout complete.
    pub offline: Offline,
    /// What a failure does that comes after the gate has passed.
    pub late: Late,
    /// So many persons must override a gate, at least one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub override_people: u32,
}

/// A part of an environment's clusters, with the rules under which a change leaves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ring {
    pub name: String,
    pub members: Members,
    pub gate: Gate,
    /// Counted from the last change of what is watched.
    pub soak: Duration,
    /// Before a change enters the ring.
    pub approval: Option<Approval>,
    pub failure: Failure,
    /// Of the ring's clusters, how many may be changing at once.
    pub max_unavailable: Amount,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Members {
    Selected(Selector),
    /// Hundredths of a percent of the fleet, stable by cluster id.
    Share(u32),
    /// Whoever is in no ring before it.
    Rest,
}

/// A number of clusters, or a share of them in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Amount {
    Number(u64),
    Share(u32),
}

/// When a ring lets a change go on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// At least this part of the reached ones is Converged, in hundredths of a percent.
    pub converged: u32,
    /// At least so many were reached: they have the change and aren't away.
    pub reached: Amount,
    /// At most so many Failed.
    pub failed: Amount,
    pub empty: Empty,
    pub checks: Vec<Check>,
}

/// Nobody to ask is never a pass by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Empty {
    #[default]
    Wait,
    Pass,
}

/// A question to something outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub name: String,
    pub probe: Probe,
    /// How often it is asked while the gate is open.
    pub every: Duration,
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    /// A JSON answer whose `pointer` (RFC 6901) holds `equals`, a JSON value as text.
    Http { url: String, pointer: String, equals: String },
    /// A query whose answer is not empty and has no zero.
    Prometheus { url: String, query: String },
    /// A status of the commit on its Git server, by context.
    CommitStatus { context: String },
}

/// People who agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub people: u32,
    /// `platform`, or `application` of the workload's own team.
    pub role: ApproverRole,
    /// The author of the change doesn't count.
    pub not_author: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApproverRole {
    #[default]
    Platform,
    Application,
}

/// What more failures than this do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub budget: Amount,
    pub then: Then,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Then {
    #[default]
    Pause,
    Rollback,
}

/// A time of the week in which changes may begin; none: always.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// 1 is Monday, 7 Sunday; sorted, never empty.
    pub days: Vec<u8>,
    /// Minutes since midnight. An end before the start is on the next day.
    pub from: u16,
    pub to: u16,
    /// A name of the time zone database.
    pub time_zone: String,
}

/// Days on which nothing begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Freeze {
    /// `2026-12-20`, the first day.
    pub from: String,
    /// The last day, which belongs to it.
    pub to: String,
    pub time_zone: String,
    pub reason: String,
}

/// Which part of what changed decides; empty: everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    pub cluster_types: Vec<String>,
    pub workloads: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Offline {
    /// A rollout is complete when all that can be reached have it.
    #[default]
    Complete,
    /// It is complete only when nobody is away.
    Incomplete,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Late {
    #[default]
    Show,
    /// Beyond the failure budget the promotion is open again: nothing further follows from it.
    Reopen,
}

/// One workload in one version or commit on the places it names, until a date. On an environment's branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pin {
    pub workload: String,
    /// A deployment target of it; none: all.
    pub target: Option<String>,
    pub to: PinnedTo,
    /// Empty: every ring.
    pub rings: Vec<String>,
    /// Empty: every cluster type.
    pub cluster_types: Vec<String>,
    /// RFC 3339, an instant; none: until it is deleted.
    pub until: Option<String>,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PinnedTo {
    Version(String),
    Commit(String),
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// All of something, in hundredths of a percent.
pub const WHOLE: u32 = 10_000;

impl Gate {
    pub const CONVERGED: u32 = WHOLE;
    pub const REACHED: Amount = Amount::Share(WHOLE / 2);
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            converged: Gate::CONVERGED,
            reached: Gate::REACHED,
            failed: Amount::Number(0),
            empty: Empty::Wait,
            checks: Vec::new(),
        }
    }
}

impl Default for Failure {
    fn default() -> Failure {
        Failure { budget: Amount::Number(0), then: Then::Pause }
    }
}

impl Ring {
    /// The name of the ring that an environment without rings has.
    pub const ALL: &'static str = "all";
    pub const SOAK: Duration = Duration::from_secs(600);
    pub const MAX_UNAVAILABLE: Amount = Amount::Share(WHOLE / 4);

    /// With careful defaults.
    pub fn new(name: &str, members: Members) -> Ring {
        Ring {
            name: name.to_owned(),
            members,
            gate: Gate::default(),
            soak: Ring::SOAK,
            approval: None,
            failure: Failure::default(),
            max_unavailable: Ring::MAX_UNAVAILABLE,
        }
    }
}

impl EnvironmentPolicy {
    /// With careful defaults: one ring of all clusters.
    pub fn new(name: &str, after: Vec<String>) -> EnvironmentPolicy {
        EnvironmentPolicy {
            name: name.to_owned(),
            after,
            rings: vec![Ring::new(Ring::ALL, Members::Rest)],
            windows: Vec::new(),
            freezes: Vec::new(),
            counts: Counted::default(),
            offline: Offline::default(),
            late: Late::default(),
            override_people: 1,
        }
    }
}

impl PromotionPolicy {
    pub fn environment(&self, name: &str) -> Option<&EnvironmentPolicy> {
        self.environments.iter().find(|environment| environment.name == name)
    }
}

impl Amount {
    /// The least number that is at least this share.
    pub fn at_least(self, of: u64) -> u64 {
        match self {
            Amount::Number(number) => number,
            Amount::Share(share) => of.saturating_mul(u64::from(share)).div_ceil(u64::from(WHOLE)),
        }
    }

    /// The greatest number that is at most this share.
    pub fn at_most(self, of: u64) -> u64 {
        match self {
            Amount::Number(number) => number,
            Amount::Share(share) => of.saturating_mul(u64::from(share)) / u64::from(WHOLE),
        }
    }
}
