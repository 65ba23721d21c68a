//! What the head asks of the rings that no rollout brings yet, lane by lane, and whether a new rollout may begin with it.
//! Pure; called by the controller for each new head and whenever a rollout ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::rollout::change::{Change, same_package};
use kedge_hub_types::rollout::running::{Place, Running, place};
use kedge_hub_types::rollout::{Difference, Known};
use kedge_model::wire::{Digest, Packages, Stream};
use kedge_rollout::{Item, Lane, RolloutId};

use super::head::Head;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    pub environment: &'a str,
    /// Of the policy.
    pub rings: &'a [String],
    /// What the streams hold, without pins.
    pub held: &'a BTreeMap<Stream, Arc<PackedType>>,
    pub head: &'a Head,
    pub known: &'a BTreeMap<Place, Known>,
    /// Nobody compared before: what other reconcilers have now is no change.
    pub adopts: bool,
    /// Both parts of these belong to the platform's lane: a rollout of it moves them.
    pub whole: &'a BTreeSet<Place>,
}

/// What to do about a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Nothing,
    /// Begin with these, in the place of those.
    Begin {
        differences: Vec<Difference>,
        supersedes: Vec<RolloutId>,
    },
    /// An older one is too far on its way.
    Wait {
        behind: RolloutId,
        fingerprint: String,
    },
    /// The head doesn't ask for these any more, nor for anything else in their place.
    Drop(Vec<(RolloutId, BTreeSet<Place>)>),
}

/// By lane, each sorted by place.
pub fn differences(asked: &Comparison<'_>) -> BTreeMap<Lane, Vec<Difference>> {
    let mut found: BTreeMap<Lane, Vec<Difference>> = BTreeMap::new();
    let empty = Arc::new(PackedType::new());
    for cluster_type in types(asked) {
        let head = asked.head.types.get(cluster_type).unwrap_or(&empty);
        let in_rings: Vec<&Arc<PackedType>> = asked
            .rings
            .iter()
            .map(|ring| asked.held.get(&Stream::new(asked.environment, cluster_type, ring)).unwrap_or(&empty))
            .collect();
        // What the branch and all rings hold alike is the most.
        if in_rings.iter().all(|held| Arc::ptr_eq(held, head)) {
            continue;
        }
        let mut names: BTreeSet<&String> = head.keys().collect();
        names.extend(in_rings.iter().flat_map(|held| held.keys()));
        for name in names {
            let entries: Vec<Option<&PackedEntry>> = in_rings.iter().map(|held| held.get(name)).collect();
            for (lane, change) in compare(asked, cluster_type, name, head.get(name), &entries) {
                let workload = asked.head.workload(name);
                let item = Item {
                    cluster_type: cluster_type.to_owned(),
                    assignment: name.clone(),
                    workload: asked.known.get(&(cluster_type.to_owned(), name.clone())).map_or(
                        workload.clone(),
                        |known| {
                            if workload == *name { known.origin.workload.clone() } else { workload.clone() }
                        },
                    ),
                    removes: change.removes(),
                };
                found.entry(lane).or_default().push(Difference { item, change });
            }
        }
    }
    found
}

fn types<'a>(asked: &Comparison<'a>) -> BTreeSet<&'a str> {
    let mut types: BTreeSet<&str> = asked.head.types.keys().map(String::as_str).collect();
    let rings: BTreeSet<&str> = asked.rings.iter().map(String::as_str).collect();
    types.extend(
        asked
            .held
            .keys()
            .filter(|stream| rings.contains(stream.ring.as_str()))
            .map(|stream| stream.cluster_type.as_str()),
    );
    types
}

fn compare(
    asked: &Comparison<'_>,
    cluster_type: &str,
    name: &str,
    head: Option<&PackedEntry>,
    rings: &[Option<&PackedEntry>],
) -> Vec<(Lane, Change)> {
    let place = || (cluster_type.to_owned(), name.to_owned());
    let packages = match head {
        Some(PackedEntry::Quarantined) => return Vec::new(),
        None => {
            let ours = rings.iter().any(|entry| matches!(entry, Some(PackedEntry::Apply(_))));
            return if ours { vec![(Lane::Platform, Change::default())] } else { Vec::new() };
        }
        Some(PackedEntry::Observe(observation)) => {
            let key = observation.key().to_string();
            let before = asked.known.get(&place()).map(|known| known.observed.as_str()).filter(|key| !key.is_empty());
            let same = before.map_or(asked.adopts, |before| before == key);
            return if same { Vec::new() } else { vec![(Lane::Platform, Change::observed(observation))] };
        }
        Some(PackedEntry::Apply(packages)) => packages,
    };
    let held: Vec<&Packages> = rings
        .iter()
        .filter_map(|entry| match entry {
            Some(PackedEntry::Apply(held)) => Some(&**held),
            _ => None,
        })
        .collect();
    let absent = held.len() < rings.len();
    let platform = held
        .iter()
        .any(|held| held.parameters != packages.parameters || !same_package(&held.platform, &packages.platform));
    let workload = held.iter().any(|held| !same_package(&held.workload, &packages.workload));
    if !absent && !platform && !workload {
        return Vec::new();
    }
    let place = place();
    let origin = asked.head.origin(cluster_type, name);
    let moved = asked.known.get(&place).is_some_and(|known| known.is_elsewhere(&origin))
        || held.iter().any(|held| held.workload.repo != packages.workload.repo);
    if absent || moved || asked.whole.contains(&place) {
        return vec![(Lane::Platform, Change::both(packages))];
    }
    let mut found = Vec::new();
    if platform {
        found.push((Lane::Platform, Change::platform(packages)));
    }
    if workload {
        found.push((origin.lane(), Change::workload(packages)));
    }
    found
}

/// What a lane should do about its differences.
pub fn decide(
    lane: &Lane,
    differences: &[Difference],
    unfinished: &[&Running],
    head: &Head,
    rings: &[String],
    is_blocked: impl Fn(&Difference) -> bool,
) -> Decision {
    // Its turn is that of a ring which is gone from the policy: nobody is there to let it go on.
    let stranded = |running: &Running| running.rollout.current().is_some_and(|ring| !rings.contains(&ring.ring));
    let brought = |difference: &Difference| {
        let (cluster_type, name) = (&difference.item.cluster_type, &difference.item.assignment);
        unfinished.iter().filter(|running| !stranded(running)).any(|running| {
            running.change_at(cluster_type, name).is_some_and(|change| change.is_same(&difference.change))
        })
    };
    let fresh: BTreeSet<Place> = differences
        .iter()
        .filter(|difference| !is_blocked(difference) && !brought(difference))
        .map(|difference| place(&difference.item))
        .collect();
    let mine = || unfinished.iter().filter(|running| running.rollout.lane == *lane);
    let stale: Vec<(RolloutId, BTreeSet<Place>)> =
        mine().map(|running| (running.id(), stale(running, head))).filter(|(_, places)| !places.is_empty()).collect();
    if fresh.is_empty() {
        return if stale.is_empty() { Decision::Nothing } else { Decision::Drop(stale) };
    }
    let concerned: Vec<&&Running> = mine()
        .filter(|running| {
            stale.iter().any(|(id, _)| *id == running.id())
                || running.rollout.items.iter().any(|item| fresh.contains(&place(item)))
        })
        .collect();
    let chosen: Vec<Difference> = differences
        .iter()
        .filter(|difference| {
            let item = &difference.item;
            fresh.contains(&place(item))
                || concerned.iter().any(|running| running.change_at(&item.cluster_type, &item.assignment).is_some())
        })
        .cloned()
        .collect();
    match concerned.iter().find(|running| !running.rollout.yields() && !stranded(running)) {
        Some(behind) => Decision::Wait { behind: behind.id(), fingerprint: fingerprint(&chosen) },
        None => {
            Decision::Begin { differences: chosen, supersedes: concerned.iter().map(|running| running.id()).collect() }
        }
    }
}

/// Items of a rollout that the head says otherwise.
fn stale(running: &Running, head: &Head) -> BTreeSet<Place> {
    let asked = |item: &Item, change: &Change| match head.entry(&item.cluster_type, &item.assignment) {
        None => change.removes(),
        Some(PackedEntry::Quarantined) => true,
        Some(PackedEntry::Observe(observation)) => change.observed == Some(observation.key()),
        Some(PackedEntry::Apply(packages)) => change.is_in(packages),
    };
    running.items().filter(|(item, change)| !asked(item, change)).map(|(item, _)| place(item)).collect()
}

fn fingerprint(differences: &[Difference]) -> String {
    let mut all = String::new();
    for difference in differences {
        let item = &difference.item;
        all.push_str(&format!("{}/{} {}\n", item.cluster_type, item.assignment, difference.change.fingerprint()));
    }
    Digest::of(all.as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
