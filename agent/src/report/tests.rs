//! The reporter over restarts, cuts, lost files, full disks and wrong clocks; what the hub would read is read as the hub does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod clocks;
mod cuts;
mod hub;

use std::path::Path;
use std::sync::Mutex;

use super::*;
use kedge_durable::CountingDisk;
use kedge_durable::fake::FakeDisk;
use kedge_model::wire::{Digest, Generation, PackagesKey};
use kedge_status::{Limits, Status};

const HOUR: i64 = 3_600_000;
const NOON: i64 = 1_790_000_000_000;

/// A clock that a test sets.
#[derive(Debug)]
struct HandClock(Mutex<Hands>);

#[derive(Clone, Debug)]
struct Hands {
    wall: i64,
    uptime: i64,
    boot: u32,
}

impl HandClock {
    fn at(wall: i64) -> Arc<HandClock> {
        Arc::new(HandClock(Mutex::new(Hands { wall, uptime: 5_000, boot: 1 })))
    }

    fn pass(&self, milliseconds: i64) {
        let mut hands = self.0.lock().unwrap();
        hands.wall += milliseconds;
        hands.uptime += milliseconds;
    }

    /// Somebody sets it.
    fn set(&self, wall: i64) {
        self.0.lock().unwrap().wall = wall;
    }

    /// The host starts, with this on its clock.
    fn start(&self, wall: i64) {
        let mut hands = self.0.lock().unwrap();
        *hands = Hands { wall, uptime: 3_000, boot: hands.boot + 1 };
    }
}

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.lock().unwrap().wall)
    }

    fn uptime(&self) -> Option<Duration> {
        Some(Duration::from_millis(self.0.lock().unwrap().uptime.try_into().unwrap()))
    }

    fn boot(&self) -> Option<String> {
        Some(self.0.lock().unwrap().boot.to_string())
    }
}

fn key() -> SigningKey {
    SigningKey::from_seed(&[5; 32]).unwrap()
}

fn paths() -> Paths {
    Paths::below(Path::new("/root"))
}

fn open(disk: &FakeDisk, clock: &Arc<HandClock>) -> (Reporter, Vec<String>) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Reporter::open(&disk, &paths(), key().public(), Arc::<HandClock>::clone(clock))
}

fn packages(name: &str) -> PackagesKey {
    PackagesKey::of_observed(&Digest::of(name.as_bytes()))
}

fn failed(reason: &str, message: &str) -> Condition {
    Condition::Failed { reason: reason.to_owned(), message: message.to_owned() }
}

fn assignment_status(assignment: &str, condition: Condition, at: Timestamp) -> Told {
    Told::AssignmentStatus {
        assignment: assignment.to_owned(),
        desired: Some(packages("v1")),
        generation: Generation(7),
        running: Some(packages("v1")),
        version: Some("1.0".to_owned()),
        condition,
        drift: None,
        at,
    }
}

/// As the hub reads it.
fn sealed(reporter: &mut Reporter) -> Status {
    let envelope = reporter.seal(&key()).unwrap();
    let status = kedge_status::read(&envelope, &Limits::default()).unwrap();
    assert_eq!(status.heads(), reporter.heads());
    status
}

/// When an assignment's condition began, in the hub's time, and whether that is marked as corrected.
fn true_since(status: &Status, assignment: &str) -> (i64, bool) {
    let report = &status.reports[assignment];
    let (at, corrected) = status.true_time(report.clock, report.since);
    (at.0, corrected)
}

#[test]
fn an_age_is_kept_while_word_and_reason_stay() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, healed) = open(&disk, &clock);
    assert!(healed.is_empty());
    let mut say = |condition: Condition| {
        reporter.tell(&assignment_status("shop", condition, clock.now()));
        clock.pass(60_000);
        let report = sealed(&mut reporter).reports.remove("shop").unwrap();
        ((report.since.0 - NOON) / 60_000, (report.observed_at.0 - NOON) / 60_000)
    };
    assert_eq!(say(Condition::Converging), (0, 0));
    assert_eq!(say(Condition::Converging), (0, 0));
    assert_eq!(say(failed("HealthCheck", "port 80")), (2, 2));
    assert_eq!(say(failed("HealthCheck", "port 81")), (2, 3));
    assert_eq!(say(failed("Timeout", "port 81")), (4, 4));
    assert_eq!(say(Condition::Converged), (5, 5));
    let events: Vec<String> = sealed(&mut reporter).events.events.iter().map(|event| event.condition.clone()).collect();
    assert_eq!(events, ["Converging", "Failed", "Failed", "Failed", "Converged"]);
}

#[test]
fn a_warning_is_in_the_status_document_as_long_as_it_lasts() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    let before = sealed(&mut reporter);
    assert!(before.warnings.is_empty());
    let low = |message: &str| Told::Warning {
        code: "DiskLow".to_owned(),
        severity: Severity::Error,
        message: message.to_owned(),
    };
    let raised = clock.now();
    reporter.tell(&low("less than 32 MiB of the disk are free"));
    let told = sealed(&mut reporter);
    assert_ne!(told.heads(), before.heads(), "the hub asks for it at the next poll");
    clock.pass(60_000);
    reporter.tell(&low("less than 32 MiB of the disk are free"));
    assert_eq!(reporter.heads(), told.heads(), "the same again costs nothing");
    reporter.tell(&low("less than 16 MiB of the disk are free"));
    let worse = sealed(&mut reporter).warnings["DiskLow"].clone();
    assert_eq!((worse.since, worse.severity), (raised, Severity::Error), "it is one warning, as old as it is");
    assert_eq!(worse.message, "less than 16 MiB of the disk are free");
    reporter.tell(&Told::WarningOver { code: "DiskLow".to_owned() });
    assert!(sealed(&mut reporter).warnings.is_empty());
}

#[test]
fn nothing_new_is_neither_written_nor_sent() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    let mut round = |generation| {
        clock.pass(60_000);
        reporter.contact(Timestamp(clock.now().0 + 700));
        reporter.fact("kernel", "6.1.0");
        reporter.warn("DiskFull", Severity::Warning, "the disk is nearly full");
        let mut told = assignment_status("shop", Condition::Converged, clock.now());
        if let Told::AssignmentStatus { generation: of, .. } = &mut told {
            *of = Generation(generation);
        }
        reporter.tell(&told);
        reporter.tell(&Told::Looked { at: clock.now() });
        reporter.clear_warning("NeverRaised");
        reporter.flush().unwrap();
        (reporter.heads(), disk.operations())
    };
    let first = round(7);
    assert_eq!(round(7), first);
    assert_eq!(round(8), first, "a generation that asks for the same is no news");
}

#[test]
fn a_restart_goes_on_where_it_was_as_a_new_actor() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    let before = sealed(&mut reporter);
    clock.pass(HOUR);
    let (mut reporter, healed) = open(&disk, &clock);
    assert!(healed.is_empty());
    assert_eq!(reporter.heads(), before.heads());
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    assert_eq!(reporter.heads(), before.heads());
    reporter.tell(&assignment_status("shop", Condition::Converging, clock.now()));
    let after = sealed(&mut reporter);
    assert!(after.contains(&before.heads().heads));
    assert_eq!((after.epoch, after.nonce), (before.epoch, before.nonce));
}

#[test]
fn many_tells_cost_one_write() {
    let counting = Arc::new(CountingDisk::new(Arc::new(FakeDisk::new())));
    let disk: Arc<dyn Disk> = Arc::<CountingDisk>::clone(&counting);
    let clock = HandClock::at(NOON);
    let (mut reporter, _) = Reporter::open(&disk, &paths(), key().public(), clock);
    reporter.flush().unwrap();
    let before = counting.syncs();
    for number in 0..20 {
        reporter.tell(&assignment_status(&format!("a{number}"), Condition::Converged, Timestamp(NOON)));
    }
    reporter.flush().unwrap();
    reporter.flush().unwrap();
    assert_eq!(counting.syncs() - before, 3);
}

#[test]
fn two_hundred_changes_are_an_epoch() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    let mut epochs = Vec::new();
    for number in 0..450_i64 {
        clock.pass(1_000);
        let condition = if number % 2 == 0 { Condition::Converged } else { Condition::Converging };
        reporter.tell(&assignment_status("shop", condition, clock.now()));
        let status = sealed(&mut reporter);
        assert!(status.changes() < 200);
        epochs.push(status.epoch);
    }
    epochs.dedup();
    assert_eq!(epochs, [1, 2, 3]);
    let status = sealed(&mut open(&disk, &clock).0);
    assert_eq!((status.epoch, status.events.dropped), (3, 250));
}

#[test]
fn a_document_that_is_too_large_is_begun_anew_once() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", Condition::Converging, clock.now()));
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    assert!(reporter.shrink().unwrap());
    let status = sealed(&mut reporter);
    assert_eq!((status.epoch, status.changes(), status.reports.len()), (2, 1, 1));
    assert!(!reporter.shrink().unwrap(), "nothing is left to drop");
}

#[test]
fn a_new_identity_begins_anew_without_a_warning() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    open(&disk, &clock).0.flush().unwrap();
    let other = SigningKey::from_seed(&[6; 32]).unwrap();
    let shared: Arc<dyn Disk> = Arc::new(disk);
    let (mut reporter, told) = Reporter::open(&shared, &paths(), other.public(), clock);
    assert!(told.is_empty() && reporter.document.warnings().is_empty());
    reporter.fact("a", "1");
    let status = kedge_status::read(&reporter.seal(&other).unwrap(), &Limits::default()).unwrap();
    assert_eq!(status.cluster, ClusterId::of_public_key(other.public().as_bytes()));
}

#[test]
fn holds_are_shown_as_they_are() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    let held = |writer, assignment: &str| Held {
        assignment: assignment.to_owned(),
        by: "ada".to_owned(),
        reason: String::new(),
        since: Timestamp(NOON),
        writer,
        ends_in: None,
    };
    reporter.holds(&[held(Writer::Technician, "shop"), held(Writer::Hub, "shop")]);
    let status = sealed(&mut reporter);
    assert_eq!(status.holds.keys().collect::<Vec<_>>(), ["hub:shop", "technician:shop"]);
    assert_eq!((status.holds["hub:shop"].clock, status.holds["technician:shop"].clock), (0, 1));
    clock.start(NOON + HOUR);
    let (mut reporter, _) = open(&disk, &clock);
    reporter.holds(&[held(Writer::Technician, "shop")]);
    let status = sealed(&mut reporter);
    assert_eq!(status.holds.len(), 1);
    assert_eq!(status.holds["technician:shop"].clock, 1, "the clock that told it");
    let shown = read(&disk, &paths()).unwrap().unwrap();
    assert_eq!(shown.holds, status.holds);
}

#[test]
fn commands_read_what_was_told_without_changing_anything() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    assert!(read(&disk, &paths()).unwrap().is_none());
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    reporter.tell(&assignment_status("old", Condition::Converged, clock.now()));
    reporter.tell(&Told::Gone { assignment: "old".to_owned(), at: clock.now() });
    reporter.flush().unwrap();
    let before = disk.operations();
    let shown = read(&disk, &paths()).unwrap().unwrap();
    assert_eq!((shown.reports.len(), shown.events.events.len()), (1, 3));
    assert_eq!(shown.here(1, Timestamp(NOON)), Timestamp(NOON));
    assert_eq!(disk.operations(), before);
}
