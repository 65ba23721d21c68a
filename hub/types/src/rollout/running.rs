//! A rollout as the controller holds it: the value that `crates/rollout` moves, and what the hub knows of each of its items.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::wire::PackagesKey;
use kedge_rollout::{Cause, Item, Phase, RingState, Rollout, RolloutId};

use super::change::{Change, Held};

/// Cluster type and assignment.
pub type Place = (String, String);

/// By ring, then by place.
pub type PerRing<T> = BTreeMap<String, BTreeMap<Place, T>>;

#[derive(Clone, Debug)]
pub struct Running {
    pub rollout: Rollout,
    /// In the order of the items.
    pub changes: Vec<Change>,
    /// Waited for this lane and were taken over by this one, the newest first.
    pub skipped: Vec<Cause>,
    /// What rings held before they began.
    pub before: PerRing<Held>,
    /// Under which names clusters report the new content.
    pub keys: PerRing<BTreeSet<PackagesKey>>,
    /// The desired states say what the value says.
    pub issued: bool,
    /// Facts can still change it.
    pub watched: bool,
}

impl Running {
    pub fn new(rollout: Rollout, changes: Vec<Change>) -> Running {
        Running {
            rollout,
            changes,
            skipped: Vec::new(),
            before: PerRing::new(),
            keys: PerRing::new(),
            issued: false,
            watched: true,
        }
    }

    pub fn id(&self) -> RolloutId {
        self.rollout.id
    }

    pub fn is_unfinished(&self) -> bool {
        is_unfinished(&self.rollout.phase)
    }

    pub fn items(&self) -> impl Iterator<Item = (&Item, &Change)> {
        self.rollout.items.iter().zip(&self.changes)
    }

    pub fn change_at(&self, cluster_type: &str, assignment: &str) -> Option<&Change> {
        let at = self.rollout.items.binary_search_by(|item| {
            (item.cluster_type.as_str(), item.assignment.as_str()).cmp(&(cluster_type, assignment))
        });
        self.changes.get(at.ok()?)
    }

    pub fn ring_state(&self, ring: &str) -> Option<RingState> {
        self.rollout.rings.iter().find(|progress| progress.ring == ring).map(|progress| progress.state)
    }

    pub fn held_before(&self, ring: &str, place: &Place) -> Option<&Held> {
        self.before.get(ring)?.get(place)
    }

    /// The version of an assignment that the first ring to begin held before.
    pub fn version_before(&self, item: &Item) -> Option<String> {
        let place = place(item);
        let held = self.rollout.rings.iter().find_map(|progress| self.held_before(&progress.ring, &place))?;
        match held {
            Held::Apply(packages) => packages.version.clone(),
            Held::Absent | Held::Observe(_) => None,
        }
    }

    /// Somebody newer moves these: they are no longer this one's.
    pub fn take_out(&mut self, places: &BTreeSet<Place>) {
        let stays: Vec<bool> = self.rollout.items.iter().map(|item| !places.contains(&place(item))).collect();
        let kept = |index: usize| stays.get(index).copied().unwrap_or_default();
        for progress in &mut self.rollout.rings {
            if progress.counts.len() == stays.len() {
                let mut index = 0;
                progress.counts.retain(|_| {
                    index += 1;
                    kept(index - 1)
                });
            }
        }
        let items: Vec<Item> = self
            .rollout
            .items
            .iter()
            .enumerate()
            .filter(|(index, _)| kept(*index))
            .map(|(_, item)| item.clone())
            .collect();
        let mut index = 0;
        self.changes.retain(|_| {
            index += 1;
            kept(index - 1)
        });
        self.rollout.items = Arc::from(items);
        self.before.values_mut().for_each(|held| held.retain(|place, _| !places.contains(place)));
        self.keys.values_mut().for_each(|keys| keys.retain(|place, _| !places.contains(place)));
    }
}

pub fn place(item: &Item) -> Place {
    (item.cluster_type.clone(), item.assignment.clone())
}

pub fn is_unfinished(phase: &Phase) -> bool {
    matches!(phase, Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. })
}

/// The word that people filter by.
pub fn state_word(phase: &Phase) -> &'static str {
    match phase {
        Phase::Active => "Active",
        Phase::Paused { .. } => "Paused",
        Phase::Stopped { .. } => "Stopped",
        Phase::Complete { .. } => "Complete",
        Phase::RolledBack { .. } => "RolledBack",
        Phase::Aborted { .. } => "Aborted",
        Phase::Superseded { .. } => "Superseded",
    }
}
