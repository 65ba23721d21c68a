//! Holds of all writers, believed or not, over power cuts.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod site;

use std::path::Path;

use super::*;
use kedge_durable::fake::{FakeDisk, Power, every_cut, every_failure};

const NOON: Timestamp = Timestamp(1_790_000_000_000);

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn cluster() -> ClusterId {
    ClusterId::of_public_key(key(1).public().as_bytes())
}

fn holds(disk: &FakeDisk) -> Holds {
    Holds::on(Arc::new(disk.clone()), &Paths::below(Path::new("/root")))
}

fn from_hub(sequence: u64, assignments: &[&str]) -> HoldDocument {
    let entry = |assignment: &&str| HoldEntry {
        assignment: (*assignment).to_owned(),
        by: "ada@example.com".to_owned(),
        reason: "audit".to_owned(),
        since: NOON,
    };
    HoldDocument { cluster: cluster(), sequence, written_at: NOON, holds: assignments.iter().map(entry).collect() }
}

fn names(holds: &Holds) -> Vec<String> {
    holds.read().unwrap().iter().map(Held::name).collect()
}

#[test]
fn holds_of_both_writers_are_in_force_together() {
    let holds = holds(&FakeDisk::new());
    assert!(holds.read().unwrap().is_empty());
    holds.hold(&key(1), "shop-prod", "root", "line 3 is\nbeing rebuilt", NOON).unwrap();
    let hub = Envelope::sign(&from_hub(1, &["shop-prod", "db-prod"]), &key(9)).unwrap();
    assert!(holds.take_from_hub(&hub, cluster(), &[key(9).public()]).unwrap());
    assert_eq!(names(&holds), ["technician:shop-prod", "hub:shop-prod", "hub:db-prod"]);
    let held = holds.held().unwrap();
    assert_eq!(held["shop-prod"].len(), 2);
    assert_eq!(held["shop-prod"][0].reason, "line 3 is being rebuilt");
    let (signed, sequence) = holds.documents().unwrap();
    let document: HoldDocument = signed.unwrap().open(&[key(1).public()]).unwrap();
    assert_eq!((document.cluster, document.sequence, sequence), (cluster(), 1, 1));
}

#[test]
fn unhold_says_that_the_hub_still_holds() {
    let holds = holds(&FakeDisk::new());
    let hub = Envelope::sign(&from_hub(4, &["db-prod"]), &key(9)).unwrap();
    holds.take_from_hub(&hub, cluster(), &[key(9).public()]).unwrap();
    holds.hold(&key(1), "db-prod", "bob", "", NOON).unwrap();
    holds.hold(&key(1), "shop-prod", "bob", "", NOON).unwrap();
    let told = holds.unhold(&key(1), "db-prod", NOON).unwrap();
    assert_eq!(
        told.to_string(),
        "db-prod stays held: the hold made on this host is gone, but ada@example.com holds it at the hub (audit); \
         only `kedge unhold` takes that back"
    );
    assert!(
        holds.unhold(&key(1), "db-prod", NOON).unwrap().to_string().contains("there was no hold made on this host")
    );
    assert_eq!(holds.unhold(&key(1), "shop-prod", NOON).unwrap().to_string(), "shop-prod is no longer held");
    assert_eq!(holds.unhold(&key(1), "shop-prod", NOON).unwrap().to_string(), "shop-prod wasn't held");
    assert_eq!(names(&holds), ["hub:db-prod"]);
}

#[test]
fn holding_twice_keeps_since_when_and_counts_documents() {
    let holds = holds(&FakeDisk::new());
    holds.hold(&key(1), "a", "bob", "first", NOON).unwrap();
    holds.hold(&key(1), "a", "eve", "second", Timestamp(NOON.0 + 1)).unwrap();
    let held = holds.read().unwrap();
    assert_eq!((held.len(), &*held[0].by, held[0].since), (1, "eve", NOON));
    let sequence = |holds: &Holds| content(holds.documents().unwrap().0.as_ref()).unwrap().sequence;
    assert_eq!(sequence(&holds), 2);
    holds.hold(&key(1), "a", "eve", "second", Timestamp(NOON.0 + 2)).unwrap();
    assert_eq!(sequence(&holds), 2, "nothing new is nothing to send");
}

#[test]
fn what_the_hub_did_not_sign_or_what_is_old_changes_nothing() {
    let holds = holds(&FakeDisk::new());
    let keys = [key(9).public()];
    let sign = |document: &HoldDocument, seed| Envelope::sign(document, &key(seed)).unwrap();
    assert!(holds.take_from_hub(&sign(&from_hub(5, &["a"]), 9), cluster(), &keys).unwrap());
    assert!(!holds.take_from_hub(&sign(&from_hub(5, &[]), 9), cluster(), &keys).unwrap());
    assert!(!holds.take_from_hub(&sign(&from_hub(4, &[]), 9), cluster(), &keys).unwrap());
    let forged = holds.take_from_hub(&sign(&from_hub(6, &[]), 1), cluster(), &keys);
    assert!(matches!(forged, Err(HoldError::Forged(_))));
    let mut changed = sign(&from_hub(6, &[]), 9);
    changed.payload[15] ^= 1;
    assert!(matches!(holds.take_from_hub(&changed, cluster(), &keys), Err(HoldError::Forged(_))));
    let other = HoldDocument { cluster: ClusterId::of_public_key(&[7; 32]), ..from_hub(6, &[]) };
    assert!(matches!(holds.take_from_hub(&sign(&other, 9), cluster(), &keys), Err(HoldError::WrongCluster(_))));
    assert_eq!(names(&holds), ["hub:a"]);
    assert!(holds.take_from_hub(&sign(&from_hub(6, &[]), 9), cluster(), &keys).unwrap());
    assert!(names(&holds).is_empty());
    assert!(matches!(holds.hold(&key(1), "a\nb", "bob", "", NOON), Err(HoldError::Name(_))));
}

#[test]
fn a_cut_leaves_the_holds_before_or_after() {
    let hub = Envelope::sign(&from_hub(2, &["b"]), &key(9)).unwrap();
    every_cut(
        |disk| holds(disk).hold(&key(1), "a", "bob", "", NOON).unwrap(),
        |disk| {
            let holds = Holds::on(disk, &Paths::below(Path::new("/root")));
            holds.take_from_hub(&hub, cluster(), &[key(9).public()])?;
            holds.unhold(&key(1), "a", NOON).map(|_| ())
        },
        |disk, power| {
            let found = names(&holds(disk));
            let steps = [vec!["technician:a"], vec!["technician:a", "hub:b"], vec!["hub:b"]];
            match power {
                Power::Cut => assert!(steps.iter().any(|step| *step == found), "{found:?}"),
                Power::CutAfterwards => assert_eq!(found, steps[2]),
            }
        },
    );
}

#[test]
fn a_disk_that_fails_leaves_the_holds_before_or_after() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        every_failure(
            kind,
            |disk| holds(disk).hold(&key(1), "a", "bob", "", NOON).unwrap(),
            |disk| Holds::on(disk, &Paths::below(Path::new("/root"))).hold(&key(1), "b", "bob", "", NOON),
            |disk, done| {
                let found = names(&holds(disk));
                assert!(found.len() == 2 || (!done && found == ["technician:a"]), "{found:?}");
                holds(disk).hold(&key(1), "c", "bob", "", NOON).unwrap();
                assert!(names(&holds(disk)).contains(&"technician:c".to_owned()));
            },
        );
    }
}

#[test]
fn a_command_and_the_daemon_write_in_turn() {
    let place = tempfile::tempdir().unwrap();
    let paths = Paths::below(place.path());
    let hub = |sequence| Envelope::sign(&from_hub(sequence, &["x"]), &key(9)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (1..=10)
                .for_each(|number| Holds::of(&paths).hold(&key(1), &format!("a{number}"), "bob", "", NOON).unwrap());
        });
        scope.spawn(|| {
            for sequence in 1..=10 {
                let taken = Holds::of(&paths).take_from_hub(&hub(sequence), cluster(), &[key(9).public()]);
                assert!(taken.unwrap());
            }
        });
    });
    assert_eq!(Holds::of(&paths).read().unwrap().len(), 11);
    assert_eq!(Holds::of(&paths).documents().unwrap().1, 10);
}
