//! What each stream of a governed environment should hold: what it holds, with the rollouts' changes in the rings they have
//! reached, other reconcilers' assignments at the head, and pins on top. Pure; called by the controller before it issues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::rollout::change::{Change, Held};
use kedge_hub_types::rollout::running::Running;
use kedge_hub_types::rollout::{NewKey, Pinned};
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::RingState;

use super::head::Head;

#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    pub environment: &'a str,
    /// Of the policy, in its order.
    pub rings: &'a [String],
    pub held: &'a BTreeMap<Stream, Arc<PackedType>>,
    /// None: nothing was packed in this term yet; what is at the head stays as it is.
    pub head: Option<&'a Head>,
    /// In the order of their ids: unfinished ones, those whose states may lag, and those that are still counted.
    pub rollouts: &'a [&'a Running],
    /// What streams hold below pins.
    pub pinned: &'a Pinned,
    pub now: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Composed {
    pub streams: BTreeMap<Stream, Arc<PackedType>>,
    /// Names under which the new content is reported from now on, which weren't known.
    pub keys: Vec<NewKey>,
    /// What is below the pins now.
    pub pinned: Pinned,
}

pub fn compose(inputs: &Inputs<'_>) -> Composed {
    let mut composed = Composed::default();
    for stream in streams(inputs) {
        let base = base(inputs, &stream);
        let entries = overlaid(inputs, &stream, base, &mut composed.pinned);
        composed.streams.insert(stream, entries);
    }
    composed.keys = keys(inputs, &composed);
    composed
}

fn streams(inputs: &Inputs<'_>) -> BTreeSet<Stream> {
    let mut types: BTreeSet<&str> = inputs.held.keys().map(|stream| stream.cluster_type.as_str()).collect();
    types.extend(inputs.head.iter().flat_map(|head| head.types.keys().map(String::as_str)));
    let mut streams: BTreeSet<Stream> = inputs.held.keys().cloned().collect();
    for cluster_type in types {
        streams.extend(inputs.rings.iter().map(|ring| Stream::new(inputs.environment, cluster_type, ring)));
    }
    streams
}

/// What a stream holds. A new ring begins with the content of the ring after it, which is never ahead of it; else of the one
/// before it, or of what the environment had before it had rings.
fn base(inputs: &Inputs<'_>, stream: &Stream) -> Arc<PackedType> {
    if let Some(held) = inputs.held.get(stream) {
        return Arc::clone(held);
    }
    let of = |ring: &str| inputs.held.get(&Stream::new(inputs.environment, &stream.cluster_type, ring));
    let at = inputs.rings.iter().position(|ring| *ring == stream.ring).unwrap_or(inputs.rings.len());
    let (before, after) = inputs.rings.split_at(at);
    let nearest = after.iter().skip(1).chain(before.iter().rev()).map(String::as_str).chain([Stream::ALL]);
    let mut found = nearest.filter_map(|ring| Some((ring, of(ring)?)));
    match found.next() {
        Some((ring, held)) => proven(inputs, stream, ring, held),
        None => Arc::default(),
    }
}

/// The content of another ring, without what hasn't passed there.
fn proven(inputs: &Inputs<'_>, stream: &Stream, ring: &str, held: &Arc<PackedType>) -> Arc<PackedType> {
    let mut entries = Entries::new(held);
    let unpinned = inputs.pinned.get(&Stream { ring: ring.to_owned(), ..stream.clone() });
    for (assignment, below) in unpinned.into_iter().flatten() {
        entries.put(assignment, entry_of(below));
    }
    for running in inputs.rollouts.iter().rev() {
        let unproven = running.ring_state(ring).is_some_and(|state| state.is_new() && state != RingState::Passed);
        for (item, change) in running.items().filter(|(item, _)| unproven && item.cluster_type == stream.cluster_type) {
            let place = (item.cluster_type.clone(), item.assignment.clone());
            if let Some(before) = running.held_before(ring, &place) {
                let undone = change.undo(before, entries.get(&item.assignment));
                entries.put(&item.assignment, undone);
            }
        }
    }
    entries.done()
}

fn overlaid(inputs: &Inputs<'_>, stream: &Stream, base: Arc<PackedType>, pinned: &mut Pinned) -> Arc<PackedType> {
    let none = BTreeMap::new();
    let below = inputs.pinned.get(stream).unwrap_or(&none);
    let mut entries = Entries::new(&base);
    // Under a pin the rollouts go on with what is below it.
    for (assignment, held) in below {
        entries.put(assignment, entry_of(held));
    }
    for running in inputs.rollouts {
        let Some(state) = running.ring_state(&stream.ring) else { continue };
        let lags = running.is_unfinished() || !running.issued;
        if !lags || state == RingState::Waiting {
            continue;
        }
        for (item, change) in running.items().filter(|(item, _)| item.cluster_type == stream.cluster_type) {
            let entry = entries.get(&item.assignment);
            let next = match state {
                RingState::Returned => {
                    let place = (item.cluster_type.clone(), item.assignment.clone());
                    let Some(before) = running.held_before(&stream.ring, &place) else { continue };
                    change.undo(before, entry)
                }
                _ => change.apply(entry),
            };
            entries.put(&item.assignment, next);
        }
    }
    observe(inputs, stream, &mut entries);
    pin(inputs, stream, below, &base, &mut entries, pinned);
    entries.done()
}

/// Other reconcilers read the branch's head in whatever ring.
fn observe(inputs: &Inputs<'_>, stream: &Stream, entries: &mut Entries) {
    let Some(head) = inputs.head else { return };
    let empty = PackedType::new();
    let at_head = head.types.get(&stream.cluster_type).map_or(&empty, |entries| entries);
    for (assignment, entry) in at_head.iter().filter(|(_, entry)| matches!(entry, PackedEntry::Observe(_))) {
        entries.put(assignment, Some(entry.clone()));
    }
    let gone: Vec<String> = entries
        .now()
        .iter()
        .filter(|(name, entry)| matches!(entry, PackedEntry::Observe(_)) && !at_head.contains_key(*name))
        .map(|(name, _)| name.clone())
        .collect();
    for assignment in gone {
        entries.put(&assignment, None);
    }
}

fn pin(
    inputs: &Inputs<'_>,
    stream: &Stream,
    below: &BTreeMap<String, Held>,
    base: &PackedType,
    entries: &mut Entries,
    pinned: &mut Pinned,
) {
    let mut keep = |assignment: &str, entry: Option<&PackedEntry>| {
        pinned.entry(stream.clone()).or_default().insert(assignment.to_owned(), Held::of(entry));
    };
    let Some(head) = inputs.head else {
        // Whether the pins are in force isn't known yet: what they put there stays.
        for assignment in below.keys() {
            keep(assignment, entries.get(assignment));
            entries.put(assignment, base.get(assignment).cloned());
        }
        return;
    };
    let names: Vec<String> = head
        .pins
        .keys()
        .filter(|(cluster_type, _)| *cluster_type == stream.cluster_type)
        .map(|(_, assignment)| assignment.clone())
        .collect();
    for assignment in names {
        let Some(pin) = head.pin(&stream.cluster_type, &assignment, &stream.ring, inputs.now) else { continue };
        let entry = entries.get(&assignment);
        // A pin holds a version of what is there; it brings nothing by itself.
        let Some(PackedEntry::Apply(_)) = entry else { continue };
        let next = Change::workload(&pin.packages).apply(entry);
        keep(&assignment, entry);
        entries.put(&assignment, next);
    }
}

fn keys(inputs: &Inputs<'_>, composed: &Composed) -> Vec<NewKey> {
    let mut found = Vec::new();
    for running in inputs.rollouts.iter().filter(|running| running.watched) {
        for progress in running.rollout.rings.iter().filter(|progress| progress.state.is_new()) {
            let known = running.keys.get(&progress.ring);
            for (item, change) in running.items().filter(|(item, _)| !item.removes) {
                let stream = Stream::new(inputs.environment, &item.cluster_type, &progress.ring);
                let Some(entries) = composed.streams.get(&stream) else { continue };
                let place = (item.cluster_type.clone(), item.assignment.clone());
                let known = known.and_then(|known| known.get(&place));
                let unchanged = inputs.held.get(&stream).is_some_and(|held| Arc::ptr_eq(held, entries));
                if unchanged && known.is_some_and(|known| !known.is_empty()) {
                    continue;
                }
                let key = match entries.get(&item.assignment) {
                    Some(PackedEntry::Apply(packages)) if change.is_in(packages) => packages.key(),
                    Some(PackedEntry::Observe(observation)) if change.observed == Some(observation.key()) => {
                        observation.key()
                    }
                    _ => continue,
                };
                if known.is_none_or(|known| !known.contains(&key)) {
                    found.push(NewKey { rollout: running.id(), ring: progress.ring.clone(), place, key });
                }
            }
        }
    }
    found
}

fn entry_of(held: &Held) -> Option<PackedEntry> {
    match held {
        Held::Absent => None,
        Held::Apply(packages) => Some(PackedEntry::Apply(Arc::clone(packages))),
        Held::Observe(observation) => Some(PackedEntry::Observe(Arc::clone(observation))),
    }
}

/// A stream's entries, copied only when one changes: most streams say what they said.
struct Entries {
    base: Arc<PackedType>,
    changed: Option<PackedType>,
}

impl Entries {
    fn new(base: &Arc<PackedType>) -> Entries {
        Entries { base: Arc::clone(base), changed: None }
    }

    fn now(&self) -> &PackedType {
        self.changed.as_ref().unwrap_or(&self.base)
    }

    fn get(&self, assignment: &str) -> Option<&PackedEntry> {
        self.now().get(assignment)
    }

    fn put(&mut self, assignment: &str, entry: Option<PackedEntry>) {
        if self.get(assignment) == entry.as_ref() {
            return;
        }
        let changed = self.changed.get_or_insert_with(|| (*self.base).clone());
        match entry {
            Some(entry) => changed.insert(assignment.to_owned(), entry),
            None => changed.remove(assignment),
        };
    }

    fn done(self) -> Arc<PackedType> {
        match self.changed {
            Some(changed) if changed != *self.base => Arc::new(changed),
            _ => self.base,
        }
    }
}

#[cfg(test)]
mod tests;
