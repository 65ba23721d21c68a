//! What leaving a stream takes away from a cluster: the rule behind the Membership of a move. Pure; called by whoever
//! signs memberships.

use std::collections::BTreeSet;

use kedge_model::wire::{DesiredState, Membership, Mode};

/// What the next membership lists. An assignment that the new stream's state has is none of both: it is changed in
/// place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parting {
    pub remove: Vec<String>,
    pub unmanage: Vec<String>,
}

/// From the membership before and the newest states of both streams. What an earlier move takes away is listed again:
/// the cluster may have been away since before it.
pub fn parting(before: &Membership, old: Option<&DesiredState>, new: Option<&DesiredState>) -> Parting {
    let named = |state: Option<&DesiredState>, ours: bool| -> BTreeSet<String> {
        let entries = state.map(|state| state.entries.as_slice()).unwrap_or_default();
        let chosen = entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_)) == ours);
        chosen.map(|entry| entry.assignment.clone()).collect()
    };
    let (applied, observed) = (named(new, true), named(new, false));
    let mut unmanage: BTreeSet<String> = before.unmanage.iter().cloned().collect();
    let mut remove: BTreeSet<String> = before.remove.iter().cloned().collect();
    if let Some(old) = old {
        unmanage.extend(old.unmanaged.iter().map(|tombstone| tombstone.assignment.clone()));
        remove.extend(old.removed.iter().map(|tombstone| tombstone.assignment.clone()));
    }
    for assignment in named(old, true) {
        unmanage.remove(&assignment);
        remove.insert(assignment);
    }
    // What another reconciler brings there stays.
    unmanage.extend(remove.intersection(&observed).cloned());
    unmanage.retain(|assignment| !applied.contains(assignment));
    remove.retain(|assignment| !applied.contains(assignment) && !unmanage.contains(assignment));
    Parting { remove: remove.into_iter().collect(), unmanage: unmanage.into_iter().collect() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kedge_model::wire::{ClusterId, Generation, Sequence, Stream, Timestamp};

    use super::*;
    use crate::state::plan;
    use kedge_hub_types::pack::PackedEntry;
    use kedge_hub_types::testing::{observed, ours, packed_type, source};

    fn membership(parting: &Parting) -> Membership {
        Membership {
            cluster: ClusterId::of_public_key(&[1; 32]),
            name: "host".to_owned(),
            stream: Stream::new("dev", "drone", Stream::ALL),
            labels: BTreeMap::new(),
            site: None,
            sequence: Sequence(1),
            issued_at: Timestamp(0),
            remove: parting.remove.clone(),
            unmanage: parting.unmanage.clone(),
            relay: false,
            retired: false,
            requires: Vec::new(),
        }
    }

    fn state(previous: Option<&DesiredState>, entries: &[(&str, PackedEntry)]) -> DesiredState {
        let inputs = plan::Inputs {
            stream: &Stream::new("dev", "drone", Stream::ALL),
            generation: Generation(1),
            packed: &packed_type(entries),
            confirmed: None,
            source: Some(&source("c1")),
            settled: &BTreeSet::new(),
            restarts: &BTreeMap::new(),
        };
        plan::next(previous, &inputs)
    }

    fn drone() -> DesiredState {
        state(None, &[("both", ours("1")), ("drone-only", ours("1")), ("to-flux", ours("1")), ("seen", observed("1"))])
    }

    fn large() -> DesiredState {
        state(None, &[("both", ours("2")), ("large-only", ours("1")), ("to-flux", observed("1"))])
    }

    #[test]
    fn a_move_lists_what_goes_and_what_is_left_unmanaged() {
        let moved = parting(&membership(&Parting::default()), Some(&drone()), Some(&large()));
        assert_eq!((moved.remove, moved.unmanage), (vec!["drone-only".to_owned()], vec!["to-flux".to_owned()]));
    }

    #[test]
    fn a_cluster_that_was_away_for_two_moves_still_learns_what_goes() {
        let first = parting(&membership(&Parting::default()), Some(&drone()), Some(&large()));
        let second = parting(&membership(&first), Some(&large()), None);
        assert_eq!(second.remove, ["both", "drone-only", "large-only"]);
        assert_eq!(second.unmanage, ["to-flux"]);
        let back = parting(&membership(&second), None, Some(&drone()));
        assert_eq!((back.remove, back.unmanage), (vec!["large-only".to_owned()], Vec::new()));
    }

    #[test]
    fn what_the_old_stream_was_still_removing_goes_with_the_move() {
        let old = state(Some(&drone()), &[("both", ours("1")), ("to-flux", observed("1"))]);
        let moved = parting(&membership(&Parting::default()), Some(&old), Some(&large()));
        assert_eq!((moved.remove, moved.unmanage), (vec!["drone-only".to_owned()], vec!["to-flux".to_owned()]));
    }
}
