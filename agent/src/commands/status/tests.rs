//! What a person reads, of ledgers that a test wrote.

#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use crate::clock::Time;
use crate::commands::sample::{at, fine, interrupted, rolled_back, write};
use crate::contact::Contact;
use crate::holds::Writer;
use crate::overview::{Cluster, Hold, Warning};
use kedge_model::wire::{ClusterId, Generation, Stream};

fn joined(mut overview: Overview) -> Overview {
    overview.cluster = Some(Cluster {
        id: ClusterId::of_public_key(&[7; 32]),
        name: "line-4".to_owned(),
        stream: Some(Stream::new("dev", "factory-line", "all")),
        site: None,
        hub: "https://hub.example.com:7481".to_owned(),
    });
    overview
}

#[test]
fn a_host_with_everything_shows_what_runs_and_what_should() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    [fine("hello"), rolled_back("camera"), interrupted("model")].iter().for_each(|record| write(&paths, record));
    Contact::heard(&paths, at(-120), at(-120 + 21_600), at(180)).unwrap();
    let mut overview = joined(Overview::read(&paths).unwrap());
    overview.daemon = Some(17);
    overview.holds = vec![Hold {
        assignment: "hello".to_owned(),
        by: "anna".to_owned(),
        writer: Writer::Technician,
        reason: "lens is being changed".to_owned(),
        since: Time(at(-600)),
        ends_in_seconds: None,
    }];
    overview.assignments.iter_mut().find(|one| one.name == "hello").unwrap().held = true;
    overview.warnings = vec![Warning {
        code: "MassRemoval".to_owned(),
        severity: Severity::Error,
        message: "3 of 4 assignments would go".to_owned(),
        since: Time(at(-5)),
    }];
    insta::assert_snapshot!(text(&overview, at(0)));
    assert_eq!(exit(&overview), Exit::Findings);
}

#[test]
fn a_fresh_host_says_how_to_join() {
    let folder = tempfile::tempdir().unwrap();
    let overview = Overview::read(&Paths::below(folder.path())).unwrap();
    insta::assert_snapshot!(text(&overview, at(0)));
    assert_eq!(exit(&overview), Exit::Findings);
}

#[test]
fn all_converged_is_success_also_without_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, &fine("hello"));
    Contact::heard(&paths, at(-86_400), at(-86_400), at(-86_000)).unwrap();
    Contact::missed(&paths, "no route to host").unwrap();
    let mut overview = joined(Overview::read(&paths).unwrap());
    overview.daemon = Some(17);
    insta::assert_snapshot!(text(&overview, at(0)));
    assert_eq!(exit(&overview), Exit::Success);
}

#[test]
fn an_agent_that_is_not_running_is_said_first_and_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, &fine("hello"));
    Contact::heard(&paths, at(-7200), at(-7200), at(-7000)).unwrap();
    let overview = joined(Overview::read(&paths).unwrap());
    let told = text(&overview, at(0));
    assert!(told.starts_with("The agent isn't running: kedge-agent run, with the same --root\n"), "{told}");
    assert!(told.contains("how it left things, last written 2 h ago"), "{told}");
    assert_eq!(exit(&overview), Exit::Findings);
}

#[test]
fn a_state_that_waits_for_its_turn_is_said_and_nothing_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, &fine("hello"));
    let mut overview = joined(Overview::read(&paths).unwrap());
    overview.daemon = Some(17);
    overview.waits = Some(Generation(12));
    assert!(
        text(&overview, at(0)).contains("\nNext: generation 12 is here and waits for the hub's permit to change\n")
    );
    assert_eq!(exit(&overview), Exit::Success);
}

#[test]
fn a_broken_record_stops_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    [fine("hello"), fine("torn")].iter().for_each(|record| write(&paths, record));
    for copy in ["a", "b"] {
        std::fs::write(paths.records().join(format!("torn.{copy}")), b"torn").unwrap();
    }
    let overview = joined(Overview::read(&paths).unwrap());
    assert_eq!(overview.assignments.len(), 1);
    assert!(text(&overview, at(0)).contains("both copies of"));
    assert_eq!(exit(&overview), Exit::Findings);
}

#[test]
fn the_document_spells_times_and_keys() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    write(&paths, &rolled_back("camera"));
    let overview = Overview::read(&paths).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&overview.assignments).unwrap());
}

#[test]
fn a_long_reason_is_cut_and_says_where_the_rest_is() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    let mut record = rolled_back("camera");
    record.failed.as_mut().unwrap().failure.message = "é".repeat(1000);
    write(&paths, &record);
    let overview = Overview::read(&paths).unwrap();
    let line = reason(&overview.assignments[0]);
    assert!(line.chars().count() < 200 && line.ends_with("… (kedge-agent why camera)"), "{line}");
}
