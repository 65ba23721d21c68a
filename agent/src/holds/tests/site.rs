//! Holds of several agents on one cluster: whose count, and that their order doesn't.

use kedge_model::wire::{HubHolds, Lift, Membership, Sequence, SiteHolds, Stream};
use proptest::prelude::*;

use super::*;

fn member(of: &SigningKey, site: &str) -> Membership {
    Membership {
        cluster: ClusterId::of_public_key(of.public().as_bytes()),
        name: "press".to_owned(),
        stream: Stream::new("prod", "drone", Stream::ALL),
        labels: Default::default(),
        site: Some(site.to_owned()),
        sequence: Sequence(1),
        issued_at: NOON,
        remove: Vec::new(),
        unmanage: Vec::new(),
        relay: false,
        retired: false,
        requires: Vec::new(),
    }
}

fn vouched(membership: &Membership) -> Envelope {
    Envelope::sign(membership, &key(9)).unwrap()
}

fn by(writer: &SigningKey, sequence: u64, assignments: &[&str]) -> Envelope {
    let document = from_hub(sequence, assignments);
    Envelope::sign(&SiteHolds { document, key: writer.public(), lasts: Default::default() }, writer).unwrap()
}

fn take(holds: &Holds, envelope: &Envelope, writer: &Membership) -> Result<bool, HoldError> {
    holds.take_from_peer(envelope, &vouched(writer), &member(&key(1), "works"), &[key(9).public()])
}

#[test]
fn what_is_held_is_what_any_writer_holds() {
    let holds = holds(&FakeDisk::new());
    holds.hold(&key(1), "a", "root", "", NOON).unwrap();
    let (second, third) = (key(2), key(3));
    assert!(take(&holds, &by(&second, 1, &["a", "b"]), &member(&second, "works")).unwrap());
    assert!(take(&holds, &by(&third, 7, &["b"]), &member(&third, "works")).unwrap());
    let held = holds.held().unwrap();
    assert_eq!((held["a"].len(), held["b"].len()), (2, 2));
    let names: std::collections::BTreeSet<String> = holds.read().unwrap().iter().map(Held::name).collect();
    assert_eq!(names.len(), 4, "each has a register of its own: {names:?}");
    // The hub is told of the technician's alone: the others' are told by their writers.
    let (technician, _) = holds.documents().unwrap();
    assert_eq!(content(technician.as_ref()).unwrap().holds.len(), 1);
}

#[test]
fn only_members_of_the_site_are_obeyed_and_only_what_is_newer() {
    let holds = holds(&FakeDisk::new());
    let (second, other) = (key(2), key(3));
    let own = member(&second, "works");
    assert!(take(&holds, &by(&second, 2, &["a"]), &own).unwrap());
    assert!(!take(&holds, &by(&second, 2, &[]), &own).unwrap());
    assert!(!take(&holds, &by(&second, 1, &[]), &own).unwrap());
    let refused = |envelope: &Envelope, writer: &Membership| take(&holds, envelope, writer).unwrap_err();
    assert!(matches!(refused(&by(&second, 3, &[]), &member(&second, "mill")), HoldError::NotOfTheSite(_)));
    assert!(matches!(refused(&by(&second, 3, &[]), &member(&other, "works")), HoldError::NotOfTheSite(_)));
    let retired = Membership { retired: true, ..own.clone() };
    assert!(matches!(refused(&by(&second, 3, &[]), &retired), HoldError::NotOfTheSite(_)));
    assert!(matches!(refused(&by(&key(1), 3, &[]), &member(&key(1), "works")), HoldError::NotOfTheSite(_)));
    let forged = Envelope::sign(
        &SiteHolds { document: from_hub(3, &[]), key: second.public(), lasts: Default::default() },
        &other,
    )
    .unwrap();
    assert!(matches!(refused(&forged, &own), HoldError::Forged(_)));
    let unvouched = Envelope::sign(&own, &second).unwrap();
    let site = member(&key(1), "works");
    let taken = holds.take_from_peer(&by(&second, 3, &[]), &unvouched, &site, &[key(9).public()]);
    assert!(matches!(taken, Err(HoldError::Forged(_))));
    let alone = Membership { site: None, ..site };
    let taken = holds.take_from_peer(&by(&second, 3, &[]), &vouched(&own), &alone, &[key(9).public()]);
    assert!(matches!(taken, Err(HoldError::NotOfTheSite(_))));
    let elsewhere = HoldDocument { cluster: ClusterId::of_public_key(&[7; 32]), ..from_hub(3, &[]) };
    let elsewhere =
        Envelope::sign(&SiteHolds { document: elsewhere, key: second.public(), lasts: Default::default() }, &second)
            .unwrap();
    assert!(matches!(refused(&elsewhere, &own), HoldError::WrongCluster(_)));
    let long = "x".repeat(40_000);
    assert!(matches!(refused(&by(&second, 3, &[&long]), &own), HoldError::TooLarge(_)));
    assert_eq!(holds.read().unwrap().len(), 1);
}

#[test]
fn only_so_many_writers_are_kept_and_those_who_hold_nothing_make_room() {
    let holds = holds(&FakeDisk::new());
    let writer = |seed: usize| key(u8::try_from(20 + seed).unwrap());
    let taken = |seed, names: &[&str]| take(&holds, &by(&writer(seed), 1, names), &member(&writer(seed), "works"));
    for seed in 0..MAX_WRITERS {
        assert!(taken(seed, &["a"]).unwrap());
    }
    assert!(matches!(taken(MAX_WRITERS, &["b"]), Err(HoldError::TooManyWriters)));
    assert!(take(&holds, &by(&writer(3), 2, &[]), &member(&writer(3), "works")).unwrap());
    assert!(taken(MAX_WRITERS, &["b"]).unwrap());
    assert_eq!(holds.read().unwrap().len(), MAX_WRITERS);
}

#[test]
fn a_technician_sets_aside_what_nobody_takes_back() {
    let holds = holds(&FakeDisk::new());
    let (second, own) = (key(2), member(&key(2), "works"));
    take(&holds, &by(&second, 1, &["a", "b"]), &own).unwrap();
    let told = holds.unhold(&key(1), "a", NOON).unwrap();
    assert_eq!(
        told.to_string(),
        "a stays held: there was no hold made on this host; ada@example.com holds it from there (audit); \
         `kedge-agent unhold --cluster` takes that back there, `kedge-agent unhold a --peers` sets it aside here"
    );
    assert_eq!(holds.unhold_with_peers(&key(1), "a", NOON).unwrap().to_string(), "a is no longer held");
    assert_eq!(holds.held().unwrap().into_keys().collect::<Vec<_>>(), ["b"]);
    // The same said again with other things stays set aside; said anew it counts.
    take(&holds, &by(&second, 2, &["a", "c"]), &own).unwrap();
    assert_eq!(holds.held().unwrap().into_keys().collect::<Vec<_>>(), ["c"]);
    let mut again = from_hub(3, &["a"]);
    again.holds[0].since = Timestamp(NOON.0 + 1);
    let again =
        Envelope::sign(&SiteHolds { document: again, key: second.public(), lasts: Default::default() }, &second)
            .unwrap();
    take(&holds, &again, &own).unwrap();
    assert_eq!(holds.held().unwrap().into_keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn what_is_held_on_others_is_signed_and_counted_per_target() {
    let holds = holds(&FakeDisk::new());
    let (one, other) = (cluster(), ClusterId::of_public_key(&[7; 32]));
    holds.hold_on(&key(2), one, "a", "anna@gate", "lens", DAY, NOON).unwrap();
    holds.hold_on(&key(2), other, "a", "anna@gate", "", DAY, NOON).unwrap();
    holds.hold_on(&key(2), one, "b", "anna@gate", "", DAY, NOON).unwrap();
    assert!(holds.unhold_on(&key(2), one, "a", NOON).unwrap());
    assert!(!holds.unhold_on(&key(2), one, "a", NOON).unwrap());
    let documents =
        || holds.outgoing().unwrap().iter().map(|envelope| SiteHolds::open(envelope).unwrap()).collect::<Vec<_>>();
    let found = documents();
    let sequence = |of: ClusterId| found.iter().find(|holds| holds.document.cluster == of).unwrap().document.sequence;
    assert_eq!((sequence(one), sequence(other), found.len()), (3, 1, 2));
    let elsewhere = holds.elsewhere().unwrap();
    assert!(elsewhere.iter().any(|held| held.cluster == one && held.entry.assignment == "b") && elsewhere.len() == 2);
    assert!(holds.read().unwrap().is_empty(), "nothing of it is held here");
    // The target obeys what came of it.
    let target = Holds::on(Arc::new(FakeDisk::new()), &Paths::below(Path::new("/root")));
    for envelope in holds.outgoing().unwrap() {
        _ = take(&target, &envelope, &member(&key(2), "works"));
    }
    assert_eq!(target.held().unwrap().into_keys().collect::<Vec<_>>(), ["b"]);
    // A host that joined again is another writer.
    holds.hold_on(&key(3), one, "c", "anna@gate", "", DAY, NOON).unwrap();
    let found = documents();
    assert_eq!((found.len(), found[0].document.sequence, found[0].key), (1, 1, key(3).public()));
}

#[test]
fn a_cut_leaves_a_peers_holds_before_or_after() {
    let own = member(&key(2), "works");
    every_cut(
        |disk| _ = take(&holds(disk), &by(&key(2), 1, &["a"]), &own).unwrap(),
        |disk| {
            let holds = Holds::on(disk, &Paths::below(Path::new("/root")));
            take(&holds, &by(&key(2), 2, &["b"]), &own).map(|_| ())
        },
        |disk, power| {
            let found: Vec<String> = holds(disk).held().unwrap().into_keys().collect();
            assert!(found == ["b"] || (power == Power::Cut && found == ["a"]), "{found:?}");
        },
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_order_and_repetition_of_documents_ends_in_the_same_holds(
        mut order in prop::collection::vec((2_u8..5, 1_u64..6), 1..24).prop_shuffle(),
    ) {
        let name = |writer: u8, sequence: u64| format!("{writer}-{}", sequence % 3);
        let fill = |order: &[(u8, u64)]| {
            let holds = holds(&FakeDisk::new());
            for (writer, sequence) in order {
                let signer = key(*writer);
                let envelope = by(&signer, *sequence, &[&name(*writer, *sequence)]);
                take(&holds, &envelope, &member(&signer, "works")).unwrap();
            }
            holds.read().unwrap()
        };
        let found = fill(&order);
        let newest: BTreeMap<u8, u64> = order.iter().fold(BTreeMap::new(), |mut newest, (writer, sequence)| {
            let known = newest.entry(*writer).or_insert(0);
            *known = (*known).max(*sequence);
            newest
        });
        let mut expected: Vec<String> = newest.iter().map(|(writer, sequence)| name(*writer, *sequence)).collect();
        let mut names: Vec<String> = found.iter().map(|held| held.assignment.clone()).collect();
        expected.sort();
        names.sort();
        prop_assert_eq!(names, expected);
        order.reverse();
        prop_assert_eq!(fill(&order), found.clone());
        order.sort_unstable();
        prop_assert_eq!(fill(&order), found);
    }

    #[test]
    fn any_bytes_of_a_peer_change_nothing(payload in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
        let holds = holds(&FakeDisk::new());
        let nonsense = Envelope::sign_bytes(<HoldDocument as kedge_model::wire::Payload>::TYPE, payload, &key(2));
        prop_assert!(take(&holds, &nonsense, &member(&key(2), "works")).is_err());
        let mut changed = by(&key(2), 1, &["a"]);
        let at = at.index(changed.payload.len());
        changed.payload[at] ^= 1;
        prop_assert!(take(&holds, &changed, &member(&key(2), "works")).is_err());
        prop_assert!(holds.read().unwrap().is_empty());
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

fn for_days(writer: &SigningKey, sequence: u64, assignment: &str, days: u64) -> Envelope {
    let lasts = [(assignment.to_owned(), days * DAY.as_secs())].into();
    let document = from_hub(sequence, &[assignment]);
    Envelope::sign(&SiteHolds { document, key: writer.public(), lasts }, writer).unwrap()
}

#[test]
fn a_hold_from_elsewhere_ends_after_its_time_and_one_on_the_spot_never() {
    let holds = holds(&FakeDisk::new());
    let (second, own) = (key(2), member(&key(2), "works"));
    holds.hold(&key(1), "here", "root", "", NOON).unwrap();
    take(&holds, &by(&second, 1, &["a"]), &own).unwrap();
    assert!(holds.count(Duration::ZERO, None).unwrap().is_empty());
    for _ in 0..5 {
        assert!(holds.count(DAY, None).unwrap().is_empty());
    }
    // A day before its end it is told.
    let soon = holds.count(DAY, None).unwrap();
    assert_eq!((soon.len(), soon[0].ends_in), (1, Some(DAY)));
    assert_eq!(names(&holds).len(), 2);
    assert!(holds.count(DAY, None).unwrap().is_empty());
    assert_eq!(names(&holds), ["technician:here"]);
    holds.count(DAY * 10_000, None).unwrap();
    assert_eq!(names(&holds), ["technician:here"]);
    // Held anew, its time begins again.
    let mut again = from_hub(2, &["a"]);
    again.holds[0].since = Timestamp(NOON.0 + 1);
    let again =
        Envelope::sign(&SiteHolds { document: again, key: second.public(), lasts: Default::default() }, &second);
    take(&holds, &again.unwrap(), &own).unwrap();
    assert_eq!(names(&holds).len(), 2);
}

#[test]
fn nobody_holds_from_elsewhere_for_ever() {
    let holds = holds(&FakeDisk::new());
    let (second, own) = (key(2), member(&key(2), "works"));
    take(&holds, &for_days(&second, 1, "a", 1_000_000), &own).unwrap();
    holds.count(Duration::ZERO, None).unwrap();
    holds.count(SiteHolds::LASTS_AT_MOST, None).unwrap();
    assert!(names(&holds).is_empty());
}

#[test]
fn time_is_counted_and_a_clock_that_is_set_changes_nothing() {
    let holds = holds(&FakeDisk::new());
    let (second, own) = (key(2), member(&key(2), "works"));
    take(&holds, &for_days(&second, 1, "a", 3), &own).unwrap();
    let hub = |days: i64| Some(Timestamp(NOON.0 + days * 24 * 3_600_000));
    let left = |holds: &Holds| holds.read().unwrap().first().and_then(|held| held.ends_in);
    holds.count(Duration::ZERO, hub(0)).unwrap();
    // Two days of running without the hub, which then says the same: counted once.
    holds.count(DAY, hub(0)).unwrap();
    holds.count(DAY, hub(2)).unwrap();
    assert_eq!(left(&holds), Some(DAY));
    // The hub's clock was wrong and is set back: nothing ends, and nothing lasts for ever.
    holds.count(Duration::ZERO, hub(-400)).unwrap();
    assert_eq!(left(&holds), Some(DAY));
    holds.count(DAY / 2, hub(-400)).unwrap();
    assert_eq!(left(&holds), Some(DAY / 2));
    // The host was off: the hub knows how long.
    holds.count(Duration::ZERO, hub(-398)).unwrap();
    assert!(names(&holds).is_empty());
}

#[test]
fn the_hub_lifts_what_another_agent_holds() {
    let holds = holds(&FakeDisk::new());
    let (second, third) = (key(2), key(3));
    let id = |key: &SigningKey| ClusterId::of_public_key(key.public().as_bytes());
    take(&holds, &by(&second, 4, &["a", "b"]), &member(&second, "works")).unwrap();
    take(&holds, &by(&third, 1, &["a"]), &member(&third, "works")).unwrap();
    holds.hold(&key(1), "a", "root", "", NOON).unwrap();
    let lift = |writer, assignment: Option<&str>, through| Lift {
        writer,
        assignment: assignment.map(str::to_owned),
        through,
        since: None,
        by: "ben".to_owned(),
        reason: "stolen".to_owned(),
        at: NOON,
    };
    let lifting = |sequence, lifted| HubHolds { document: from_hub(sequence, &[]), lifted };
    let from_hub = |document: &HubHolds, seed| {
        holds.take_from_hub(&Envelope::sign(document, &key(seed)).unwrap(), cluster(), &[key(9).public()])
    };
    let one = lifting(1, vec![lift(id(&second), Some("a"), 4)]);
    assert!(matches!(from_hub(&one, 2), Err(HoldError::Forged(_))), "nobody but the hub");
    assert!(from_hub(&one, 9).unwrap());
    let third_a = format!("peer-{}:a", id(&third));
    assert_eq!(
        names(&holds).iter().filter(|name| name.ends_with(":a")).collect::<Vec<_>>(),
        ["technician:a", &third_a]
    );
    assert_eq!(holds.held().unwrap()["b"].len(), 1);
    // Everything of a writer, whatever it says later.
    let all = vec![lift(id(&second), None, Lift::EVERYTHING), lift(id(&third), None, Lift::EVERYTHING)];
    assert!(from_hub(&lifting(2, all), 9).unwrap());
    take(&holds, &by(&second, 5, &["a", "b", "c"]), &member(&second, "works")).unwrap();
    assert_eq!(names(&holds), ["technician:a"], "what was said on the spot stands");
}
