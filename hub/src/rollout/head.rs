//! The head that rings are compared with: what was packed, and what the reconciler knows of how it came about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::rollout::Origin;
use kedge_hub_types::rollout::change::Change;
use kedge_model::wire::{PlatformSource, Timestamp};
use kedge_scheduler::Redaction;

use crate::pack;
use crate::pack::{Packed, Pinned};
use crate::store::history::Owner;
use crate::store::rollout::BlockedRow;

/// What the reconciler knows beside the packages.
#[derive(Clone, Debug, Default)]
pub struct Occasion {
    /// The main commit that the branch's head was made from. None: there is none, or the branch lags behind it.
    pub main: Option<String>,
    /// The main commit that was read, whether the branch has all of it yet or not.
    pub read: Option<String>,
    /// First line and author of the newest commit that was read.
    pub subject: String,
    pub author: String,
    /// That commit, unless it is `main`: an application's, or one of the environment's own branch.
    pub subject_of: Option<String>,
    /// Workloads by their targets' full names.
    pub workloads: BTreeMap<String, String>,
    /// Their workspaces.
    pub workspaces: BTreeMap<String, String>,
    /// Assignments that can't be rendered, as `type/name`, files of main that can't be used, and why.
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
    pub subject_of: Option<String>,
    /// The main commit that was read; `main` once the branch has all of it.
    pub read: Option<String>,
    /// Rendered or packed: neither.
    pub quarantined: BTreeMap<String, String>,
    /// Those of them that could be rendered: what the branch holds of them can't be packed.
    pub unpacked: BTreeSet<String>,
    /// By cluster type and assignment; the first that fits a ring counts.
    pub pins: BTreeMap<(String, String), Vec<Pinned>>,
    origins: BTreeMap<String, Arc<BTreeMap<String, pack::Origin>>>,
    workloads: BTreeMap<String, String>,
}

impl Occasion {
    /// Whose each target is.
    pub fn owners(&self) -> impl Iterator<Item = (String, Owner)> + '_ {
        self.workloads.iter().map(|(target, workload)| {
            let workspace = self.workspaces.get(target).cloned().unwrap_or_default();
            (target.clone(), Owner { workload: workload.clone(), workspace })
        })
    }
}

impl Head {
    pub fn new(packed: &Packed, occasion: &Occasion) -> Head {
        let mut quarantined = occasion.quarantined.clone();
        let mut unpacked = BTreeSet::new();
        for (cluster_type, entries) in &packed.types {
            let stuck = entries.iter().filter(|(_, entry)| **entry == PackedEntry::Quarantined);
            for name in stuck.map(|(name, _)| format!("{cluster_type}/{name}")) {
                if !quarantined.contains_key(&name) {
                    quarantined.insert(name.clone(), String::new());
                    unpacked.insert(name);
                }
            }
        }
        for problem in packed.problems.iter().filter(|problem| problem.is_error()) {
            if let Some(why) = problem.assignment.as_ref().and_then(|name| quarantined.get_mut(name))
                && why.is_empty()
            {
                // Addresses of repositories may hold passwords.
                *why = Redaction::default().sentence(&problem.message, []);
            }
        }
        Head {
            source: packed.source.clone(),
            types: packed.types.clone(),
            main: occasion.main.clone(),
            read: occasion.main.clone().or_else(|| occasion.read.clone()),
            subject: occasion.subject.clone(),
            author: occasion.author.clone(),
            subject_of: occasion.subject_of.clone(),
            quarantined,
            unpacked,
            pins: packed.pinned.clone(),
            origins: packed.origins.clone(),
            workloads: occasion.workloads.clone(),
        }
    }

    pub fn entry(&self, cluster_type: &str, assignment: &str) -> Option<&PackedEntry> {
        self.types.get(cluster_type)?.get(assignment)
    }

    pub fn origin(&self, cluster_type: &str, assignment: &str) -> Origin {
        let workload = self.workload(assignment);
        match self.origins.get(cluster_type).and_then(|origins| origins.get(assignment)) {
            Some(pack::Origin { repo, reference, path }) => {
                Origin { workload, repo: repo.clone(), reference: reference.clone(), path: path.clone() }
            }
            None => Origin { workload, repo: String::new(), reference: String::new(), path: String::new() },
        }
    }

    /// Whether the branch has the content of a blocked change, in whatever parts it moved.
    pub fn asks_for(&self, row: &BlockedRow) -> bool {
        let changes = match self.entry(&row.cluster_type, &row.assignment) {
            // It can't be told now.
            Some(PackedEntry::Quarantined) => return true,
            Some(PackedEntry::Apply(packages)) => {
                vec![Change::platform(packages), Change::workload(packages), Change::both(packages)]
            }
            Some(PackedEntry::Observe(observation)) => vec![Change::observed(observation)],
            None => vec![Change::default()],
        };
        changes.iter().any(|change| change.fingerprint() == row.fingerprint)
    }

    /// The workload's name; of an assignment that is gone from the schedule, the assignment's.
    pub fn workload(&self, assignment: &str) -> String {
        self.workloads.get(assignment).cloned().unwrap_or_else(|| assignment.to_owned())
    }

    /// Pins that are in force for a ring.
    pub fn pin(&self, cluster_type: &str, assignment: &str, ring: &str, now: Timestamp) -> Option<&Pinned> {
        let pins = self.pins.get(&(cluster_type.to_owned(), assignment.to_owned()))?;
        pins.iter().find(|pin| is_in_force(pin, ring, now))
    }

    /// The head of a cluster type as a ring without rollouts has it: with its pins.
    pub fn pinned_type(&self, cluster_type: &str, ring: &str, now: Timestamp) -> Option<Arc<PackedType>> {
        let mut entries = Arc::clone(self.types.get(cluster_type)?);
        for (named, assignment) in self.pins.keys().filter(|(named, _)| named == cluster_type) {
            let Some(pin) = self.pin(named, assignment, ring, now) else { continue };
            let Some(entry @ PackedEntry::Apply(_)) = entries.get(assignment) else { continue };
            if let Some(next) = Change::workload(&pin.packages).apply(Some(entry)) {
                Arc::make_mut(&mut entries).insert(assignment.clone(), next);
            }
        }
        Some(entries)
    }

    /// Whether a pin ends by itself.
    pub fn has_deadline(&self, now: Timestamp) -> bool {
        self.pins.values().flatten().any(|pin| pin.until.is_some_and(|until| now < until))
    }
}

/// Whether a pin fits a ring and its time.
fn is_in_force(pin: &Pinned, ring: &str, now: Timestamp) -> bool {
    pin.until.is_none_or(|until| now < until) && (pin.rings.is_empty() || pin.rings.iter().any(|named| named == ring))
}
