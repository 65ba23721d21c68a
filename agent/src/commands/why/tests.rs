//! How a transaction is told, of ledgers that a test wrote.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;
use crate::clock::Time;
use crate::commands::sample::{at, fine, interrupted, rolled_back, write};

fn told(record: &Record, change: impl FnOnce(&mut Overview)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, record);
    let mut overview = Overview::read(&paths).unwrap();
    change(&mut overview);
    let story = tell(&overview, &record.assignment, at(3600)).unwrap();
    text(&overview, &story, at(3600))
}

#[test]
fn a_rollback_is_told_step_by_step_with_what_the_commands_said() {
    insta::assert_snapshot!(told(&rolled_back("camera"), |overview| overview.daemon = Some(1)));
}

#[test]
fn an_interrupted_transaction_goes_on_when_the_agent_starts() {
    insta::assert_snapshot!(told(&interrupted("camera"), |_| ()));
}

#[test]
fn what_never_changed_says_so() {
    insta::assert_snapshot!(told(&fine("hello"), |_| ()));
}

#[test]
fn a_cause_that_passes_is_tried_again_and_a_hold_stops_even_that() {
    let mut record = rolled_back("camera");
    record.failed.as_mut().unwrap().failure = Failure::passing("DpkgLocked", "unattended-upgr holds the lock");
    record.failed.as_mut().unwrap().tries = 3;
    let text = told(&record, |overview| overview.daemon = Some(1));
    assert!(text.contains("next     DpkgLocked is a cause that passes: it is tried again now"), "{text}");
    assert!(text.contains("(tried 3 times, last 59 min ago)"), "{text}");
    let text = told(&record, |overview| {
        overview.holds = vec![Hold {
            assignment: "camera".to_owned(),
            by: "anna".to_owned(),
            writer: Writer::Hub,
            reason: String::new(),
            since: Time(at(0)),
            ends_in_seconds: None,
        }];
    });
    assert!(text.contains("nothing is changed here until kedge unhold CLUSTER camera, at the hub"), "{text}");
}

#[test]
fn both_reasons_of_a_failed_rollback_are_told() {
    let mut record = rolled_back("camera");
    let transaction = record.last.as_mut().unwrap();
    transaction.outcome = Some(Outcome::RollbackFailed {
        first: Failure::new("HealthCheck", "not active"),
        back: Failure::new("DpkgFailed", "no space left"),
    });
    let text = told(&record, |_| ());
    assert!(
        text.contains("first HealthCheck: not active") && text.contains("then DpkgFailed: no space left"),
        "{text}"
    );
}

#[test]
fn an_unknown_name_is_an_error_with_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, &fine("camera-line"));
    let overview = Overview::read(&paths).unwrap();
    let error = tell(&overview, "camera", at(0)).unwrap_err().to_text();
    insta::assert_snapshot!(error, @r"
    Error: there is no assignment `camera` on this host
    Hint: did you mean `camera-line`? Here are: camera-line
    ");
}
