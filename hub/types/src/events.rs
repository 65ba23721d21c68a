//! What a destination of events can ask for: kinds of entries of the history, by the words that people write.

use crate::history::{Kind, Recorded, What};

/// What a destination can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// Rollouts and their rings.
    Rollout,
    /// An assignment failed on a cluster, was quarantined, or a repository can't be read.
    Failure,
    /// What runs was changed by somebody else, and that it is mended.
    Drift,
    /// Commits of main from environment to environment.
    Promotion,
    /// What people said about rollouts and promotions.
    Approval,
    /// Clusters that join, move, leave, fall silent and come back.
    Cluster,
    /// Every change of a condition; many.
    Condition,
}

impl EventKind {
    pub const ALL: [(&'static str, EventKind); 7] = [
        ("rollout", EventKind::Rollout),
        ("failure", EventKind::Failure),
        ("drift", EventKind::Drift),
        ("promotion", EventKind::Promotion),
        ("approval", EventKind::Approval),
        ("cluster", EventKind::Cluster),
        ("condition", EventKind::Condition),
    ];
    /// What a destination gets that says nothing else.
    pub const DEFAULT: [EventKind; 3] = [EventKind::Rollout, EventKind::Failure, EventKind::Drift];

    pub fn as_str(self) -> &'static str {
        EventKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(word, _)| word)
    }

    /// Whether it covers this entry.
    pub fn covers(self, entry: &Recorded) -> bool {
        let drifts = matches!(entry.event.as_str(), "Drifted" | "DriftEnded" | "DriftRepaired");
        match self {
            EventKind::Rollout => entry.kind == Kind::Rollout,
            EventKind::Promotion => entry.kind == Kind::Promotion,
            EventKind::Approval => entry.kind == Kind::Approval,
            EventKind::Cluster => entry.kind == Kind::Cluster,
            EventKind::Condition => entry.kind == Kind::Condition && !drifts,
            // Before it was a kind of its own, it was one of conditions.
            EventKind::Drift => entry.kind == Kind::Drift || (entry.kind == Kind::Condition && drifts),
            EventKind::Failure => match entry.kind {
                Kind::Condition => entry.event == "Failed",
                Kind::Problem => match entry.what() {
                    Some(What::Problem { quarantines, .. }) => quarantines,
                    Some(What::Repository { .. }) => true,
                    _ => false,
                },
                _ => false,
            },
        }
    }
}
