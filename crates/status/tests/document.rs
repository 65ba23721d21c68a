//! A document as an agent writes it and others read it: what makes a change, what doesn't, epochs, clocks, merges.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use kedge_model::wire::{Digest, Envelope, Generation, PackagesKey, SigningKey, Timestamp};
use kedge_status::event::MAX_EVENTS;
use kedge_status::{
    Change, Condition, Hold, Limits, Nonce, ReadError, Report, Severity, StatusDocument, Warning, read, read_all,
};
use proptest::prelude::*;

const NONCE: Nonce = Nonce([7; 16]);

fn key() -> SigningKey {
    SigningKey::from_seed(&[1; 32]).unwrap()
}

fn packages(name: &str) -> PackagesKey {
    PackagesKey::of_observed(&Digest::of(name.as_bytes()))
}

fn report(condition: Condition, running: &str, at: i64) -> Report {
    Report {
        desired: Some(packages("new")),
        generation: Generation(3),
        running: Some(packages(running)),
        version: Some("1.2.3".to_owned()),
        condition,
        since: Timestamp(at),
        observed_at: Timestamp(at),
        drift: None,
        clock: 0,
    }
}

fn failed(reason: &str) -> Condition {
    Condition::Failed { reason: reason.to_owned(), message: "two of three pods are ready".to_owned() }
}

fn seal(document: &mut StatusDocument) -> Envelope {
    document.seal(&key(), Timestamp(99_000), None).unwrap()
}

#[test]
fn what_is_written_is_what_is_read() {
    let mut document = StatusDocument::new(key().public(), 4, NONCE);
    let warning = Warning {
        severity: Severity::Error,
        message: "the disk is nearly full".to_owned(),
        since: Timestamp(5),
        clock: 0,
    };
    let hold = Hold {
        assignment: "shop-prod".to_owned(),
        by: "ada".to_owned(),
        reason: "line 3 is being rebuilt".to_owned(),
        since: Timestamp(6),
        clock: 0,
    };
    document.set_report("shop-prod", &report(Condition::Converged, "new", 1_000)).unwrap();
    document.set_report("cart-prod", &report(failed("HealthCheck"), "old", 2_000)).unwrap();
    document.set_fact("kernel", "6.1", Timestamp(3)).unwrap();
    document.set_warning("DiskFull", &warning).unwrap();
    document.show_hold("hold-1", &hold).unwrap();
    let status = read(&seal(&mut document), &Limits::default()).unwrap();
    assert_eq!(status.cluster.key_id(), key().id());
    assert_eq!((status.epoch, status.nonce, status.changes()), (4, NONCE, 5));
    assert_eq!(status.heads(), document.heads());
    assert_eq!(status.reports["shop-prod"], report(Condition::Converged, "new", 1_000));
    assert_eq!(status.reports["cart-prod"].condition, failed("HealthCheck"));
    assert_eq!(status.facts["kernel"], "6.1");
    assert_eq!(status.warnings["DiskFull"], warning);
    assert_eq!(status.holds["hold-1"], hold);
    assert!(status.contains(&document.heads().heads));
    assert!(!status.contains(&["0123456789abcdef"]));
}

#[test]
fn the_same_fact_seen_again_writes_nothing() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    let first = report(Condition::Converged, "new", 1_000);
    assert_eq!(document.set_report("a", &first).unwrap(), Change::Written);
    let heads = document.heads();
    let later = Report { observed_at: Timestamp(9_000), ..first };
    assert_eq!(document.set_report("a", &later).unwrap(), Change::Same);
    assert_eq!(document.set_fact("kernel", "6.1", Timestamp(1)).unwrap(), Change::Written);
    assert_eq!(document.set_fact("kernel", "6.1", Timestamp(2)).unwrap(), Change::Same);
    assert_eq!(document.remove_report("never-there", Timestamp(3), 0).unwrap(), Change::Same);
    assert_eq!(document.clear_warning("none", Timestamp(3)).unwrap(), Change::Same);
    assert_eq!(document.changes(), 2);
    assert_ne!(document.heads(), heads);
}

#[test]
fn a_removed_assignment_is_gone_and_its_end_is_told() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    document.set_report("a", &report(Condition::Converged, "new", 1_000)).unwrap();
    document.remove_report("a", Timestamp(2_000), 0).unwrap();
    let status = read(&seal(&mut document), &Limits::default()).unwrap();
    assert!(status.reports.is_empty());
    let told: Vec<_> = status.events.events.iter().map(|event| (event.number, event.condition.as_str())).collect();
    assert_eq!(told, [(1, "Converged"), (2, "Removed")]);
}

#[test]
fn a_new_epoch_has_the_values_and_the_events_and_one_change() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    for round in 0..200 {
        assert!(!document.needs_new_epoch());
        let condition = if round % 2 == 0 { Condition::Converging } else { Condition::Converged };
        document.set_report("a", &report(condition, "new", round)).unwrap();
    }
    assert!(document.needs_new_epoch());
    let old = read(&seal(&mut document), &Limits::default()).unwrap();
    let mut next = document.next_epoch(2, Nonce([8; 16]), Timestamp(5)).unwrap();
    assert_eq!((next.changes(), next.epoch()), (1, 2));
    let new = read(&seal(&mut next), &Limits::default()).unwrap();
    assert_eq!((new.reports, new.events), (old.reports, old.events));
    assert_ne!(new.nonce, old.nonce);
}

#[test]
fn a_document_kept_on_disk_goes_on_as_another_actor() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    document.set_report("a", &report(Condition::Converging, "old", 1_000)).unwrap();
    let kept = document.to_bytes(Timestamp(1)).unwrap();
    let mut again = StatusDocument::from_bytes(&kept).unwrap();
    assert_eq!((again.heads(), again.changes()), (document.heads(), 1));
    again.set_report("a", &report(Condition::Converged, "new", 2_000)).unwrap();
    document.set_report("b", &report(Condition::Converged, "new", 3_000)).unwrap();
    let both = read_all(&[&seal(&mut document), &seal(&mut again)], &Limits::default()).unwrap();
    assert_eq!(both.reports["a"].condition, Condition::Converged);
    assert_eq!((both.reports.len(), both.changes()), (2, 3));
}

#[test]
fn the_oldest_events_are_dropped_and_counted() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    for round in 0..250 {
        document.set_report("a", &report(failed(&format!("Reason{round}")), "old", round)).unwrap();
    }
    let events = read(&seal(&mut document), &Limits::default()).unwrap().events;
    assert_eq!((events.dropped, events.events.len()), (50, MAX_EVENTS));
    assert_eq!(events.events.front().unwrap().number, 51);
    assert_eq!(events.next_number(), 251);
}

#[test]
fn a_wrong_clock_is_corrected_and_marked() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    document.set_report("a", &Report { clock: 1, ..report(Condition::Converged, "new", 1_000) }).unwrap();
    document.set_clock(1, 1_700_000_000_000, Timestamp(2_000)).unwrap();
    document.set_clock(2, 400, Timestamp(2_000)).unwrap();
    let status = read(&seal(&mut document), &Limits::default()).unwrap();
    assert_eq!(status.true_time(1, Timestamp(1_000)), (Timestamp(1_700_000_001_000), true));
    assert_eq!(status.true_time(2, Timestamp(1_000)), (Timestamp(1_000), false));
    assert_eq!(status.true_time(3, Timestamp(1_000)), (Timestamp(1_000), false));
}

#[test]
fn a_document_signed_by_another_key_is_refused() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    document.set_fact("a", "b", Timestamp(1)).unwrap();
    let other = SigningKey::from_seed(&[2; 32]).unwrap();
    let stolen = document.seal(&other, Timestamp(1), None).unwrap();
    assert!(matches!(read(&stolen, &Limits::default()), Err(ReadError::Signature(_))));
    let mut renamed = stolen;
    renamed.signatures = seal(&mut document).signatures;
    renamed.payload.pop();
    assert!(matches!(read(&renamed, &Limits::default()), Err(ReadError::Signature(_))));
}

#[test]
fn a_long_message_is_cut_and_a_bad_name_is_refused() {
    let mut document = StatusDocument::new(key().public(), 1, NONCE);
    let long = Condition::Failed { reason: "Long".to_owned(), message: format!("a\0{}", "ä".repeat(5_000)) };
    document.set_report("a", &report(long, "old", 1)).unwrap();
    assert!(document.set_report("a\nb", &report(Condition::Converged, "old", 1)).is_err());
    assert!(document.set_report("", &report(Condition::Converged, "old", 1)).is_err());
    let status = read(&seal(&mut document), &Limits::default()).unwrap();
    let Condition::Failed { message, .. } = &status.reports["a"].condition else { panic!("failed") };
    assert!(message.len() <= 1024 && !message.contains('\0'));
}

#[test]
fn a_word_or_a_field_of_a_newer_agent_is_no_harm() {
    let newer = r#"{"condition":"Meditating","since":1,"observedAt":2,"mood":"calm"}"#;
    let read: Report = serde_json::from_str(newer).unwrap();
    assert_eq!(read.condition, Condition::Unknown);
}

#[derive(Clone, Debug)]
enum Step {
    Report(u8, u8, i64),
    Remove(u8),
    Fact(u8, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..6_u8, 0..4_u8, 0..1_000_i64).prop_map(|(name, word, at)| Step::Report(name, word, at)),
        (0..6_u8).prop_map(Step::Remove),
        (0..3_u8, 0..3_u8).prop_map(|(name, value)| Step::Fact(name, value)),
    ];
    prop::collection::vec(step, 0..25)
}

fn follow(document: &mut StatusDocument, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Report(name, word, at) => {
                let condition = match word {
                    0 => Condition::Converged,
                    1 => Condition::Converging,
                    2 => failed("Step"),
                    _ => Condition::Unknown,
                };
                document.set_report(&format!("a{name}"), &report(condition, "old", *at)).unwrap();
            }
            Step::Remove(name) => {
                document.remove_report(&format!("a{name}"), Timestamp(5), 0).unwrap();
            }
            Step::Fact(name, value) => {
                document.set_fact(&format!("f{name}"), &value.to_string(), Timestamp(5)).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn merging_gives_the_same_in_any_order(start in steps(), left in steps(), right in steps(), third in steps()) {
        let mut base = StatusDocument::new(key().public(), 1, NONCE);
        base.set_fact("start", "1", Timestamp(0)).unwrap();
        follow(&mut base, &start);
        let kept = base.to_bytes(Timestamp(1)).unwrap();
        let sealed: Vec<Envelope> = [left, right, third].iter().enumerate().map(|(index, steps)| {
            let mut branch = StatusDocument::from_bytes(&kept).unwrap();
            follow(&mut branch, steps);
            branch.seal(&key(), Timestamp(10 + index as i64), None).unwrap()
        }).collect();
        let [a, b, c] = [&sealed[0], &sealed[1], &sealed[2]];
        let limits = Limits::default();
        let whole = read_all(&[a, b, c], &limits).unwrap();
        prop_assert_eq!(&whole, &read_all(&[c, b, a], &limits).unwrap());
        prop_assert_eq!(&whole, &read_all(&[b, a, c], &limits).unwrap());
        prop_assert_eq!(&whole, &read_all(&[b, a, a, c, b], &limits).unwrap());
        for one in [a, b, c] {
            prop_assert!(whole.contains(&read(one, &limits).unwrap().heads().heads));
        }
    }
}
