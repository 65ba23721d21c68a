//! A Delivery: what a reconciler template writes for an assignment that Kedge itself delivers. The defaults are the
//! careful ones.

use std::time::Duration;

/// Where the workload's content is and how it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub source: DeliverySource,
    pub to: Destination,
    /// None: the assignment's own namespace.
    pub namespace: Option<String>,
    pub scope: Scope,
    pub conflicts: Conflicts,
    /// The account that applies on Kubernetes; none: the agent's own.
    pub service_account: Option<String>,
    /// How long a change may take until it is healthy.
    pub timeout: Duration,
    /// How long it must stay healthy before it counts.
    pub soak: Duration,
    pub rollback: Rollback,
    pub drift: Drift,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliverySource {
    pub repo: String,
    pub reference: SourceRef,
    /// Inside the repository; `.` is all of it.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceRef {
    Branch(String),
    Tag(String),
    Commit(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    Kubernetes,
    Host,
}

/// What the objects may be: those of the namespace, or cluster-wide ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Namespace,
    Cluster,
}

/// When somebody else manages a field that we want to set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    #[default]
    Fail,
    Take,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rollback {
    #[default]
    Auto,
    Never,
}

/// What happens to a change that somebody made by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drift {
    #[default]
    Repair,
    Report,
    Ignore,
}

impl Delivery {
    /// Long enough for an image over a slow line; a workload that needs more says so.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
    /// Long enough to see a crash loop.
    pub const DEFAULT_SOAK: Duration = Duration::from_secs(30);
}
