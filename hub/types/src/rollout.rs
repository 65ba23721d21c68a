//! What the controller of rollouts keeps: which change is in which ring, what was there before, and what it was made of.

pub mod change;
pub mod running;

use std::collections::BTreeMap;

use kedge_model::wire::{PackagesKey, Stream};
use kedge_rollout::{Item, Lane, RolloutId};

use crate::status::tally::Word;
use change::{Change, Held};
use running::Place;

/// An assignment that some ring holds otherwise than the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub item: Item,
    pub change: Change,
}

/// Where an assignment's workload comes from, as its Delivery says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub workload: String,
    pub repo: String,
    pub reference: String,
    pub path: String,
}

/// What was known of an assignment's source when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub origin: Origin,
    /// The head's commit of the workload; empty: none.
    pub commit: String,
    /// Content of another reconciler's assignment that a rollout was last made of; empty: none.
    pub observed: String,
}

/// What comes back when a pin ends.
pub type Pinned = BTreeMap<Stream, BTreeMap<String, Held>>;

/// A name under which clusters of a ring report the new content from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewKey {
    pub rollout: RolloutId,
    pub ring: String,
    pub place: Place,
    pub key: PackagesKey,
}

/// So many clusters report these packages of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub cluster_type: String,
    pub ring: String,
    pub assignment: String,
    pub packages: String,
    /// Empty: nothing.
    pub running: String,
    pub condition: Word,
    pub count: u64,
}

impl Origin {
    pub fn lane(&self) -> Lane {
        Lane::Source { repo: self.repo.clone(), reference: self.reference.clone() }
    }
}

impl Known {
    /// Whether its Delivery names another place now.
    pub fn is_elsewhere(&self, origin: &Origin) -> bool {
        !self.origin.repo.is_empty()
            && (self.origin.repo != origin.repo
                || self.origin.reference != origin.reference
                || self.origin.path != origin.path)
    }
}
