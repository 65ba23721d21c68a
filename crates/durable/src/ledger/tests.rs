//! Ledgers on a disk that forgets: every operation of every write is cut, failed, and every byte of a copy is broken.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use super::*;
use crate::disk::{CountingDisk, RealDisk};
use crate::fake::{FakeDisk, Power, every_cut};
use proptest::prelude::*;
use serde::Deserialize;

/// Two halves that belong together: a mixture of two values is seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Value {
    head: u64,
    filling: String,
    tail: u64,
}

const PATH: &str = "/state/memory";

fn value(number: u64) -> Value {
    Value { head: number, filling: "x".repeat(usize::try_from(number % 7).unwrap() * 100), tail: number }
}

fn open(disk: &FakeDisk) -> Result<Opened<Value>, LedgerError> {
    Ledger::open(Arc::new(disk.clone()), Path::new(PATH))
}

/// A disk with the values 1 to so many, each acknowledged.
fn written(disk: &FakeDisk, many: u64) {
    let mut ledger = open(disk).unwrap().ledger;
    (1..=many).for_each(|number| ledger.write(&value(number)).unwrap());
}

fn copy(which: &str) -> PathBuf {
    beside(Path::new(PATH), which)
}

#[test]
fn a_cut_at_any_operation_leaves_the_old_or_the_new_value() {
    for before in 0..4 {
        let checked = every_cut(
            |disk| written(disk, before),
            |disk| Ledger::open(disk, Path::new(PATH))?.ledger.write(&value(before + 1)),
            |disk, power| {
                let read = Ledger::<Value>::read(disk, Path::new(PATH)).unwrap();
                let opened = open(disk).unwrap();
                assert_eq!(read, opened.value);
                let found = opened.value.map_or(0, |value| value.head);
                match power {
                    Power::Cut => assert!(found == before || found == before + 1, "{found} after {before}"),
                    Power::CutAfterwards => assert_eq!(found, before + 1),
                }
                assert!(opened.ledger.sequence() == found, "the sequence is that of the value");
                assert_eq!(open(disk).unwrap().healed, None, "healed once is healed");
                let mut ledger = open(disk).unwrap().ledger;
                ledger.write(&value(99)).unwrap();
                assert_eq!(open(disk).unwrap().value, Some(value(99)));
            },
        );
        assert!(checked > 30, "{checked} disks");
    }
}

#[test]
fn a_cut_while_healing_loses_nothing() {
    for broken in COPIES {
        every_cut(
            |disk| {
                written(disk, 3);
                disk.write(&copy(broken), b"garbage").unwrap();
            },
            |disk| Ledger::<Value>::open(disk, Path::new(PATH)).map(|_| ()),
            |disk, _| assert_eq!(open(disk).unwrap().value, Some(value(3))),
        );
    }
}

#[test]
fn a_cut_while_beginning_again_is_never_a_panic() {
    every_cut(
        |disk| {
            written(disk, 3);
            COPIES.iter().for_each(|which| disk.write(&copy(which), b"garbage").unwrap());
        },
        |disk| Ledger::<Value>::begin_again(disk, Path::new(PATH)).write(&value(7)),
        |disk, power| match (open(disk), power) {
            (Ok(opened), Power::Cut) => assert!(opened.value.is_none_or(|found| found == value(7))),
            (Err(error), Power::Cut) => assert!(matches!(error, LedgerError::Broken { .. }), "{error}"),
            (opened, Power::CutAfterwards) => assert_eq!(opened.unwrap().value, Some(value(7))),
        },
    );
}

#[test]
fn any_operation_that_fails_leaves_a_value_and_the_next_write_succeeds() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for nth in 1..20 {
            let disk = FakeDisk::new();
            written(&disk, 2);
            let mut ledger = open(&disk).unwrap().ledger;
            disk.fail_at(nth, kind);
            let first = ledger.write(&value(3));
            disk.repair();
            let found = Ledger::<Value>::read(&disk, Path::new(PATH)).unwrap().unwrap();
            assert!(found == value(3) || (first.is_err() && found == value(2)));
            ledger.write(&value(4)).unwrap();
            disk.survivors().iter().for_each(|disk| assert_eq!(open(disk).unwrap().value, Some(value(4))));
            // A failed write and then a cut: never an older value than the last acknowledged one.
            let disk = FakeDisk::new();
            written(&disk, 2);
            let mut ledger = open(&disk).unwrap().ledger;
            disk.fail_at(nth, kind);
            _ = ledger.write(&value(3));
            disk.repair();
            for nth in 1..12 {
                let (copy, sequence) = (disk.settled_copy(), ledger.sequence());
                copy.cut_at(nth);
                let mut again = Ledger { disk: Arc::new(copy.clone()), ..open(&disk).unwrap().ledger };
                again.sequence = sequence;
                let done = again.write(&value(4));
                for survivor in copy.survivors() {
                    let found = open(&survivor).unwrap().value.unwrap();
                    assert!([2, 3, 4].contains(&found.head) && (done.is_err() || found.head == 4));
                }
            }
        }
    }
}

#[test]
fn a_full_disk_leaves_the_old_value_and_no_rubbish() {
    let disk = FakeDisk::new();
    written(&disk, 2);
    let mut ledger = open(&disk).unwrap().ledger;
    disk.set_full(true);
    assert!(matches!(ledger.write(&value(3)), Err(LedgerError::Io { action: "written", .. })));
    assert_eq!(open(&disk).unwrap().value, Some(value(2)));
    assert_eq!(disk.list(Path::new("/state")).unwrap(), [copy("a"), copy("b")]);
    // A copy that breaks meanwhile doesn't keep anybody from reading the other.
    disk.set_full(false);
    disk.write(&copy("a"), b"garbage").unwrap();
    disk.set_full(true);
    let opened = open(&disk).unwrap();
    assert_eq!(opened.value, Some(value(2)));
    assert!(opened.healed.unwrap().contains("can't be healed from the other copy yet"));
}

#[test]
fn leftovers_of_a_cut_are_ignored_and_go() {
    let disk = FakeDisk::new();
    written(&disk, 1);
    let newer = encode(900, &serde_json::to_vec(&value(9)).unwrap());
    disk.write(&copy("a.new"), &newer).unwrap();
    disk.write(&copy("b.new"), b"half of").unwrap();
    let opened = open(&disk).unwrap();
    assert_eq!((opened.value, opened.healed), (Some(value(1)), None));
    assert_eq!(disk.list(Path::new("/state")).unwrap(), [copy("a"), copy("b")]);
}

#[test]
fn a_write_costs_three_syncs() {
    let place = tempfile::tempdir().unwrap();
    let disk = Arc::new(CountingDisk::new(Arc::new(RealDisk)));
    let path = place.path().join("state/memory");
    let mut ledger = Ledger::open(Arc::<CountingDisk>::clone(&disk), &path).unwrap().ledger;
    ledger.write(&value(1)).unwrap();
    ledger.write(&value(2)).unwrap();
    assert_eq!(disk.syncs(), 6);
    let opened = Ledger::<Value>::open(Arc::new(RealDisk), &path).unwrap();
    assert_eq!((opened.value, opened.healed, opened.ledger.sequence()), (Some(value(2)), None, 2));
    opened.ledger.remove().unwrap();
    assert_eq!(Ledger::<Value>::read(&RealDisk, &path).unwrap(), None);
    assert!(RealDisk.list(&place.path().join("state")).unwrap().is_empty());
}

#[test]
fn every_flipped_bit_of_either_copy_is_healed_and_told() {
    let disk = FakeDisk::new();
    written(&disk, 1);
    let whole = disk.read(&copy("a"), 10_000).unwrap();
    for which in COPIES {
        for bit in 0..whole.len() * 8 {
            let mut broken = whole.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            disk.write(&copy(which), &broken).unwrap();
            let opened = open(&disk).unwrap();
            assert_eq!(opened.value, Some(value(1)));
            let told = opened.healed.unwrap();
            assert!(told.contains(&format!("memory.{which}: the checksum doesn't fit")), "{told}");
            assert_eq!(disk.read(&copy(which), 10_000).unwrap(), whole);
        }
    }
}

#[test]
fn both_broken_is_a_clear_error_and_can_be_begun_again() {
    let disk = FakeDisk::new();
    written(&disk, 5);
    disk.write(&copy("a"), b"").unwrap();
    disk.write(&copy("b"), b"kedge-1\n").unwrap();
    let told = open(&disk).unwrap_err().to_string();
    assert_eq!(
        told,
        "both copies of /state/memory are broken: /state/memory.a: the checksum doesn't fit; \
         /state/memory.b: the checksum doesn't fit"
    );
    let mut ledger = Ledger::<Value>::begin_again(Arc::new(disk.clone()), Path::new(PATH));
    ledger.write(&value(1)).unwrap();
    assert_eq!(open(&disk).unwrap().value, Some(value(1)));
    assert!(disk.list(Path::new("/state")).unwrap().contains(&copy("b.broken")));
    // Whole, but not ours: the numbers go on.
    let mut other = Ledger::<String>::begin_again(Arc::new(disk.clone()), Path::new(PATH));
    other.write(&"text".to_owned()).unwrap();
    assert!(matches!(open(&disk), Err(LedgerError::Json { .. })));
    assert!(Ledger::<Value>::begin_again(Arc::new(disk), Path::new(PATH)).sequence() >= 2);
}

#[test]
fn a_copy_alone_and_a_missing_one_are_told_apart() {
    let disk = FakeDisk::new();
    written(&disk, 2);
    disk.remove(&copy("b")).unwrap();
    assert_eq!(open(&disk).unwrap().healed.unwrap(), "/state/memory.b was missing; it was healed from the other copy");
    disk.remove(&copy("b")).unwrap();
    disk.write(&copy("a"), b"x").unwrap();
    assert!(open(&disk).unwrap_err().to_string().contains("/state/memory.b was missing"));
}

#[test]
fn a_value_over_the_bound_is_refused_and_the_old_one_stays() {
    let disk = FakeDisk::new();
    written(&disk, 1);
    let mut ledger = open(&disk).unwrap().ledger;
    let large = Value { filling: "x".repeat(MAX_LEDGER), ..value(2) };
    assert!(matches!(ledger.write(&large), Err(LedgerError::TooLarge { .. })));
    assert_eq!(open(&disk).unwrap().value, Some(value(1)));
}

proptest! {
    #[test]
    fn any_bytes_as_copies_are_read_or_refused(a in prop::collection::vec(any::<u8>(), 0..200), b in prop::collection::vec(any::<u8>(), 0..200)) {
        let disk = FakeDisk::new();
        disk.make_folder(Path::new("/state")).unwrap();
        disk.write(&copy("a"), &a).unwrap();
        disk.write(&copy("b"), &b).unwrap();
        let refused = matches!(open(&disk), Err(LedgerError::Broken { .. }));
        prop_assert!(refused);
    }

    #[test]
    fn garbage_and_truncation_are_healed(
        garbage in prop::collection::vec(any::<u8>(), 0..400),
        cut in prop::option::of(any::<prop::sample::Index>()),
        second in any::<bool>(),
    ) {
        let disk = FakeDisk::new();
        written(&disk, 4);
        let which = COPIES[usize::from(second)];
        let whole = disk.read(&copy(which), 10_000).unwrap();
        let broken = cut.map_or(garbage, |at| whole[..at.index(whole.len())].to_vec());
        disk.write(&copy(which), &broken).unwrap();
        let opened = open(&disk).unwrap();
        prop_assert_eq!(opened.value, Some(value(4)));
        prop_assert!(opened.healed.is_some());
        prop_assert_eq!(disk.read(&copy(which), 10_000).unwrap(), whole);
    }

    /// Writes, cuts and breakages in any order: what was acknowledged last is never lost.
    #[test]
    fn a_long_life_with_cuts_never_goes_back(cuts in prop::collection::vec((1..14_u64, any::<prop::sample::Index>()), 1..12)) {
        let mut disk = FakeDisk::new();
        let (mut acknowledged, mut next, mut sequence) = (0, 1, 0);
        for (nth, survivor) in cuts {
            disk.cut_at(nth);
            if let Ok(opened) = open(&disk) {
                let mut ledger = opened.ledger;
                while ledger.write(&value(next)).is_ok() {
                    acknowledged = next;
                    next += 1;
                }
            }
            let survivors = disk.survivors();
            disk = survivors[survivor.index(survivors.len())].clone();
            let opened = open(&disk).unwrap();
            let found = opened.value.map_or(0, |value| value.head);
            prop_assert!(found == acknowledged || found == next, "{} of {}", found, acknowledged);
            prop_assert!(opened.ledger.sequence() >= sequence);
            (acknowledged, next, sequence) = (found, next.max(found + 1), opened.ledger.sequence());
        }
    }
}
