//! What is true of a rollout's clusters now: counts of the exact packages and the members of its rings, looked up once per
//! environment and pass. The lookup follows streams and changed assignments, never clusters. Called by the controller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::rollout::Pinned;
use kedge_hub_types::rollout::Reported;
use kedge_hub_types::rollout::running::Running;
use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::wire::{PackagesKey, Stream};
use kedge_rollout::{Counts, Facts, RingFacts, RingState};

use super::checks::Said as Answers;
use crate::store::status::counts::Members;

/// What clusters say of the same packages.
#[derive(Clone, Debug, Default)]
struct Said {
    counts: Counts,
    /// Of the failed ones, those that run something else: by what they run.
    went_back: BTreeMap<String, u64>,
}

/// Counts and members of one environment at one moment.
#[derive(Clone, Debug, Default)]
pub struct ReportedCounts {
    /// By packages, then by cluster type, ring and assignment.
    reported: HashMap<String, BTreeMap<(String, String, String), Said>>,
    members: HashMap<(String, String), Present>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Present {
    members: u64,
    offline: u64,
}

/// Which names are asked for: those of all rollouts, and what pins put in their place.
pub fn asked<'a>(
    rollouts: impl Iterator<Item = &'a Running>,
    held: &BTreeMap<Stream, Arc<PackedType>>,
    pinned: &Pinned,
) -> BTreeSet<PackagesKey> {
    let mut keys: BTreeSet<PackagesKey> = rollouts
        .flat_map(|running| running.keys.values().flat_map(|places| places.values().flatten()))
        .copied()
        .collect();
    for (stream, below) in pinned {
        let Some(entries) = held.get(stream) else { continue };
        keys.extend(below.keys().filter_map(|assignment| key_of(entries.get(assignment)?)));
    }
    keys
}

impl ReportedCounts {
    pub fn new(reported: Vec<Reported>, members: &[Members]) -> ReportedCounts {
        let mut counts_now = ReportedCounts::default();
        for row in reported {
            let went_back = row.condition == Word::Failed && !row.running.is_empty() && row.running != row.packages;
            let said = counts_now
                .reported
                .entry(row.packages)
                .or_default()
                .entry((row.cluster_type, row.ring, row.assignment))
                .or_default();
            if went_back {
                *said.went_back.entry(row.running).or_default() += row.count;
            }
            match row.condition {
                Word::Converged => said.counts.converged += row.count,
                Word::Converging => said.counts.converging += row.count,
                Word::Failed => said.counts.failed += row.count,
                // Away, or it can't say: offline ones are counted as members.
                Word::Unknown => {}
            }
        }
        for row in members {
            let key = (row.stream.cluster_type.clone(), row.stream.ring.clone());
            let present = counts_now.members.entry(key).or_default();
            let count = u64::try_from(row.count).unwrap_or_default();
            present.members += count;
            if row.presence == Presence::Unknown {
                present.offline += count;
            }
        }
        counts_now
    }

    /// Members of a ring, over all cluster types.
    pub fn members_of(&self, ring: &str) -> u64 {
        self.members.iter().filter(|((_, name), _)| name == ring).map(|(_, present)| present.members).sum()
    }

    /// `keys` are the names under which clusters report what one rollout brings. Who failed and went back to another of them
    /// runs what this rollout brings: what failed there is the other package, which another rollout answers for.
    fn counts(&self, place: (&str, &str, &str), keys: &BTreeSet<PackagesKey>) -> Counts {
        let (cluster_type, ring, assignment) = place;
        let wanted = (cluster_type.to_owned(), ring.to_owned(), assignment.to_owned());
        let names: BTreeSet<String> = keys.iter().map(PackagesKey::to_string).collect();
        let mut sum = Counts::default();
        for name in &names {
            let Some(said) = self.reported.get(name).and_then(|places| places.get(&wanted)) else { continue };
            let runs_ours = said.went_back.iter().filter(|(running, _)| names.contains(*running));
            let others: u64 = runs_ours.map(|(_, count)| count).sum();
            sum.converged += said.counts.converged + others;
            sum.converging += said.counts.converging;
            sum.failed += said.counts.failed - others;
        }
        let present = self.members.get(&(wanted.0, wanted.1)).copied().unwrap_or_default();
        sum.offline = present.offline;
        sum.waiting = present.members.saturating_sub(present.offline).saturating_sub(sum.reached());
        sum
    }
}

/// The facts of one rollout.
pub fn facts(
    running: &Running,
    counts_now: &ReportedCounts,
    held: &BTreeMap<Stream, Arc<PackedType>>,
    pinned: &Pinned,
    mut checks: Answers,
    quarantined: Vec<String>,
) -> Facts {
    let environment = &running.rollout.environment;
    let mut rings = BTreeMap::new();
    for progress in &running.rollout.rings {
        let ring = progress.ring.as_str();
        let known = running.keys.get(ring);
        let count = |item: &kedge_rollout::Item| {
            if item.removes {
                return Counts::default();
            }
            let (cluster_type, assignment) = (item.cluster_type.as_str(), item.assignment.as_str());
            let own = known.and_then(|known| known.get(&(cluster_type.to_owned(), assignment.to_owned())));
            let mut keys: BTreeSet<PackagesKey> = own.cloned().unwrap_or_default();
            // Where a pin holds another version, that one is what should run.
            let stream = Stream::new(environment, cluster_type, ring);
            if pinned.get(&stream).is_some_and(|below| below.contains_key(assignment)) {
                keys.extend(held.get(&stream).and_then(|entries| key_of(entries.get(assignment)?)));
            }
            counts_now.counts((cluster_type, ring, assignment), &keys)
        };
        let counts = running.rollout.items.iter().map(count).collect();
        rings.insert(ring.to_owned(), RingFacts { counts, checks: checks.remove(ring).unwrap_or_default() });
    }
    Facts { rings, quarantined }
}

/// Of a rollout that went back: who still reports what it brought. `wanted` are the states of this moment, with the old content.
pub fn going_back(running: &Running, counts_now: &ReportedCounts, wanted: &BTreeMap<Stream, Arc<PackedType>>) -> Facts {
    let environment = &running.rollout.environment;
    let nothing = BTreeSet::new();
    let mut rings = BTreeMap::new();
    for progress in running.rollout.rings.iter().filter(|progress| progress.state == RingState::Returned) {
        let ring = progress.ring.as_str();
        let count = |item: &kedge_rollout::Item| {
            let place = (item.cluster_type.clone(), item.assignment.clone());
            let mut keys = running.keys.get(ring).and_then(|known| known.get(&place)).unwrap_or(&nothing).clone();
            // What the ring had before is no other content there, or a person pinned it.
            let stream = Stream::new(environment, &item.cluster_type, ring);
            let now = wanted.get(&stream).and_then(|entries| key_of(entries.get(&item.assignment)?));
            if let Some(now) = now {
                keys.remove(&now);
            }
            match item.removes {
                true => Counts::default(),
                false => counts_now.counts((item.cluster_type.as_str(), ring, item.assignment.as_str()), &keys),
            }
        };
        let counts = running.rollout.items.iter().map(count).collect();
        rings.insert(ring.to_owned(), RingFacts { counts, checks: BTreeMap::new() });
    }
    Facts { rings, quarantined: Vec::new() }
}

fn key_of(entry: &PackedEntry) -> Option<PackagesKey> {
    match entry {
        PackedEntry::Apply(packages) => Some(packages.key()),
        PackedEntry::Observe(observation) => Some(observation.key()),
        PackedEntry::Quarantined => None,
    }
}
