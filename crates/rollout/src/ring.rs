//! Which ring a cluster belongs to, and how many of a ring may change at once. Called by whoever signs memberships and serves polls.

use kedge_model::Labels;
use kedge_model::kinds::{Amount, Members, Ring, WHOLE};
use kedge_model::wire::{ClusterId, Digest};

/// Before the id in the hash, so that no other use of it lines up with the rings.
const SALT: &str = "kedge ring 1\0";

/// The first ring whose selector matches or into whose share the cluster's id falls; else the last one. Shares add up in the order
/// of the rings, so that a ring that grows from 10 % to 20 % keeps its members.
pub fn ring_of<'a>(rings: &'a [Ring], cluster: &ClusterId, labels: &Labels) -> &'a str {
    let mut place = None;
    let mut shares = 0u32;
    for ring in rings {
        let inside = match &ring.members {
            Members::Selected(selector) => selector.matches(labels),
            Members::Share(share) => {
                shares = shares.saturating_add(*share);
                *place.get_or_insert_with(|| place_of(cluster)) < shares
            }
            Members::Rest => true,
        };
        if inside {
            return &ring.name;
        }
    }
    rings.last().map_or(Ring::ALL, |ring| ring.name.as_str())
}

/// How many of a ring's members may be changing at once: at least one, or nothing would ever move.
pub fn permits(max_unavailable: Amount, members: u64) -> u64 {
    max_unavailable.at_most(members).max(1)
}

/// Where the cluster stands in the fleet, in hundredths of a percent: the same for ever.
fn place_of(cluster: &ClusterId) -> u32 {
    let digest = Digest::of(format!("{SALT}{cluster}").as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_bytes()[..8]);
    let scaled = (u128::from(u64::from_be_bytes(first)) * u128::from(WHOLE)) >> 64;
    u32::try_from(scaled).unwrap_or(WHOLE - 1)
}

#[cfg(test)]
mod tests {
    use kedge_model::Selector;

    use super::*;

    fn cluster(number: u32) -> ClusterId {
        format!("{number:032x}").parse().unwrap()
    }

    fn share(name: &str, percent: u32) -> Ring {
        Ring::new(name, Members::Share(percent * 100))
    }

    fn members(rings: &[Ring], ring: &str) -> Vec<u32> {
        (0..10_000).filter(|number| ring_of(rings, &cluster(*number), &Labels::new()) == ring).collect()
    }

    #[test]
    fn a_share_that_grows_keeps_its_members() {
        let ten = members(&[share("canary", 10), Ring::new("rest", Members::Rest)], "canary");
        let twenty = members(&[share("canary", 20), Ring::new("rest", Members::Rest)], "canary");
        assert!((900..1_100).contains(&ten.len()), "{}", ten.len());
        assert!((1_800..2_200).contains(&twenty.len()), "{}", twenty.len());
        assert!(ten.iter().all(|number| twenty.contains(number)));
    }

    #[test]
    fn shares_add_up_in_order_and_the_last_ring_takes_the_rest() {
        let rings = [share("one", 10), share("two", 20), share("three", 30)];
        let sizes: Vec<usize> = rings.iter().map(|ring| members(&rings, &ring.name).len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 10_000);
        assert!((1_800..2_200).contains(&sizes[1]), "{sizes:?}");
        assert!((6_700..7_300).contains(&sizes[2]), "{sizes:?}");
    }

    #[test]
    fn a_selector_goes_before_a_later_share() {
        let rings =
            [Ring::new("lab", Members::Selected(Selector::label("site", "lab"))), share("all", 100), share("none", 0)];
        let lab = Labels::from([("site".to_owned(), "lab".to_owned())]);
        assert_eq!(ring_of(&rings, &cluster(1), &lab), "lab");
        assert_eq!(ring_of(&rings, &cluster(1), &Labels::new()), "all");
    }

    #[test]
    fn without_rings_there_is_one() {
        assert_eq!(ring_of(&[], &cluster(1), &Labels::new()), Ring::ALL);
    }

    #[test]
    fn the_place_of_a_cluster_is_pinned() {
        let rings: Vec<Ring> = (0..10).map(|number| share(&number.to_string(), 10)).collect();
        let found: String = (0..12).map(|number| ring_of(&rings, &cluster(number), &Labels::new())).collect();
        assert_eq!(found, "224137260921");
    }

    #[test]
    fn at_least_one_may_change() {
        assert_eq!(permits(Amount::Share(2_500), 3), 1);
        assert_eq!(permits(Amount::Share(2_500), 100), 25);
        assert_eq!(permits(Amount::Number(0), 100), 1);
    }
}
