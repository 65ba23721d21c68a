//! The head that rings are compared with: what was packed, and what the walk knows of how it came about.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::wire::{Packages, PlatformSource, Timestamp};
use kedge_rollout::Lane;

use crate::pack::{Packed, PackedEntry, PackedType};

/// What the walk knows beside the packages.
#[derive(Clone, Debug, Default)]
pub struct Occasion {
    /// The main commit that the branch's head was made from. None: there is none, or the branch lags behind it.
    pub main: Option<String>,
    /// First line and author of the newest commit that was read.
    pub subject: String,
    pub author: String,
    /// Workloads by their targets' full names.
    pub workloads: BTreeMap<String, String>,
    /// Assignments that can't be rendered, as `type/name`, and why.
    pub quarantined: BTreeMap<String, String>,
}

/// A head with its occasion.
#[derive(Clone, Debug)]
pub struct Head {
    pub source: PlatformSource,
    pub types: BTreeMap<String, Arc<PackedType>>,
    pub main: Option<String>,
    pub subject: String,
    pub author: String,
    /// Rendered or packed: neither.
    pub quarantined: BTreeMap<String, String>,
    pub pins: Pins,
    origins: BTreeMap<String, BTreeMap<String, Origin>>,
    workloads: BTreeMap<String, String>,
}

/// Where an assignment's workload comes from, as its Delivery says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub workload: String,
    pub repo: String,
    pub reference: String,
    pub path: String,
}

/// By cluster type and assignment.
pub type Pins = BTreeMap<(String, String), Vec<PinnedContent>>;

/// Content that a Pin puts on rings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedContent {
    pub name: String,
    /// Empty: every ring.
    pub rings: Vec<String>,
    pub packages: Arc<Packages>,
    pub until: Option<Timestamp>,
}

impl Head {
    pub fn new(packed: &Packed, occasion: &Occasion) -> Head {
        let mut quarantined = occasion.quarantined.clone();
        for (cluster_type, entries) in &packed.types {
            let stuck = entries.iter().filter(|(_, entry)| **entry == PackedEntry::Quarantined);
            quarantined.extend(stuck.map(|(name, _)| (format!("{cluster_type}/{name}"), String::new())));
        }
        for problem in packed.problems.iter().filter(|problem| problem.is_error()) {
            if let Some(why) = problem.assignment.as_ref().and_then(|name| quarantined.get_mut(name))
                && why.is_empty()
            {
                why.clone_from(&problem.message);
            }
        }
        Head {
            source: packed.source.clone(),
            types: packed.types.clone(),
            main: occasion.main.clone(),
            subject: occasion.subject.clone(),
            author: occasion.author.clone(),
            quarantined,
            pins: Pins::new(),
            origins: BTreeMap::new(),
            workloads: occasion.workloads.clone(),
        }
    }

    pub fn entry(&self, cluster_type: &str, assignment: &str) -> Option<&PackedEntry> {
        self.types.get(cluster_type)?.get(assignment)
    }

    pub fn origin(&self, cluster_type: &str, assignment: &str) -> Origin {
        if let Some(origin) = self.origins.get(cluster_type).and_then(|origins| origins.get(assignment)) {
            return origin.clone();
        }
        let repo = match self.entry(cluster_type, assignment) {
            Some(PackedEntry::Apply(packages)) => packages.workload.repo.clone(),
            _ => String::new(),
        };
        Origin { workload: self.workload(assignment), repo, reference: String::new(), path: String::new() }
    }

    /// The workload's name; of an assignment that is gone from the schedule, the assignment's.
    pub fn workload(&self, assignment: &str) -> String {
        self.workloads.get(assignment).cloned().unwrap_or_else(|| assignment.to_owned())
    }

    /// Pins that are in force for a ring.
    pub fn pin(&self, cluster_type: &str, assignment: &str, ring: &str, now: Timestamp) -> Option<&PinnedContent> {
        let pins = self.pins.get(&(cluster_type.to_owned(), assignment.to_owned()))?;
        pins.iter().find(|pin| {
            pin.until.is_none_or(|until| now < until)
                && (pin.rings.is_empty() || pin.rings.iter().any(|named| named == ring))
        })
    }
}

impl Origin {
    pub fn lane(&self) -> Lane {
        Lane::Source { repo: self.repo.clone(), reference: self.reference.clone() }
    }
}
