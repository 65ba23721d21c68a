//! The reporter over restarts, cuts, lost files, full disks and wrong clocks; what the hub would read is read as the hub does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use std::path::Path;
use std::sync::Mutex;

use super::*;
use kedge_durable::CountingDisk;
use kedge_durable::fake::{FakeDisk, Power, every_cut};
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

fn truth(assignment: &str, condition: Condition, at: Timestamp) -> Told {
    Told::Truth {
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
        reporter.tell(&truth("shop", condition, clock.now()));
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
fn nothing_new_is_neither_written_nor_sent() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    let mut round = |generation| {
        clock.pass(60_000);
        reporter.contact(Timestamp(clock.now().0 + 700));
        reporter.fact("kernel", "6.1.0");
        reporter.warn("DiskFull", Severity::Warning, "the disk is nearly full");
        let mut told = truth("shop", Condition::Converged, clock.now());
        if let Told::Truth { generation: of, .. } = &mut told {
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
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    let before = sealed(&mut reporter);
    clock.pass(HOUR);
    let (mut reporter, healed) = open(&disk, &clock);
    assert!(healed.is_empty());
    assert_eq!(reporter.heads(), before.heads());
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    assert_eq!(reporter.heads(), before.heads());
    reporter.tell(&truth("shop", Condition::Converging, clock.now()));
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
        reporter.tell(&truth(&format!("a{number}"), Condition::Converged, Timestamp(NOON)));
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
        reporter.tell(&truth("shop", condition, clock.now()));
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
    reporter.tell(&truth("shop", Condition::Converging, clock.now()));
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    assert!(reporter.shrink().unwrap());
    let status = sealed(&mut reporter);
    assert_eq!((status.epoch, status.changes(), status.reports.len()), (2, 1, 1));
    assert!(!reporter.shrink().unwrap(), "nothing is left to drop");
}

#[test]
fn a_cut_at_any_operation_keeps_what_was_told_and_no_epoch_is_used_twice() {
    for before in [1, 198, 199] {
        let prepared = Mutex::new(None);
        let tell = |reporter: &mut Reporter, number: i64| {
            let condition = if number % 2 == 0 { Condition::Converged } else { Condition::Converging };
            reporter.tell(&truth("shop", condition, Timestamp(NOON + number)));
            reporter.fact("step", &number.to_string());
        };
        let checked = every_cut(
            |disk| {
                let (mut reporter, _) = open(disk, &HandClock::at(NOON));
                (0..before / 2).for_each(|number| tell(&mut reporter, number));
                *prepared.lock().unwrap() = Some(sealed(&mut reporter));
            },
            |disk| {
                let (mut reporter, _) = Reporter::open(&disk, &paths(), key().public(), HandClock::at(NOON));
                tell(&mut reporter, 1_000);
                reporter.flush()?;
                tell(&mut reporter, 1_001);
                reporter.flush()
            },
            |disk, power| {
                let clock = HandClock::at(NOON);
                let (mut reporter, _) = open(disk, &clock);
                let before = prepared.lock().unwrap().clone().unwrap();
                let status = sealed(&mut reporter);
                let step = status.facts.get("step").cloned();
                let expected = [before.facts.get("step").cloned(), Some("1000".to_owned()), Some("1001".to_owned())];
                match power {
                    Power::Cut => assert!(expected.contains(&step), "{step:?}"),
                    Power::CutAfterwards => assert_eq!(step, expected[2]),
                }
                assert!(!status.warnings.contains_key(STATUS_LOST));
                assert!(status.epoch >= before.epoch);
                assert!(status.epoch > before.epoch || status.nonce == before.nonce);
                // Whatever epoch comes next, nobody has seen it.
                let counter = Ledger::<Counter>::read(disk, &kept::epoch_path(&paths())).unwrap().unwrap();
                assert!(reporter.shrink().unwrap() || status.changes() <= 1);
                ["1", "2"].iter().for_each(|more| reporter.fact("more", more));
                assert!(reporter.shrink().unwrap());
                assert!(reporter.heads().epoch > counter.epoch.max(status.epoch));
            },
        );
        assert!(checked > 50, "{checked}");
    }
}

#[test]
fn the_first_write_of_all_survives_or_never_was() {
    every_cut(
        |_| {},
        |disk| {
            let (mut reporter, _) = Reporter::open(&disk, &paths(), key().public(), HandClock::at(NOON));
            reporter.fact("kernel", "6.1");
            reporter.flush()
        },
        |disk, power| {
            let (mut reporter, _) = open(disk, &HandClock::at(NOON));
            let found = reporter.document.facts().contains_key("kernel");
            assert!(found || power == Power::Cut);
            assert!(reporter.heads().epoch >= 1);
        },
    );
}

fn copies(name: &str) -> [std::path::PathBuf; 2] {
    ["a", "b"].map(|which| paths().state().join(format!("{name}.{which}")))
}

#[test]
fn a_lost_document_is_followed_by_a_higher_epoch_and_said() {
    let breakages: [&dyn Fn(&FakeDisk); 2] =
        [&|disk| copies("status").iter().for_each(|path| disk.write(path, b"garbage").unwrap()), &|disk| {
            copies("status").iter().for_each(|path| disk.remove(path).unwrap())
        }];
    for broken in breakages {
        let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
        let (mut reporter, _) = open(&disk, &clock);
        reporter.tell(&truth("shop", Condition::Converged, clock.now()));
        let before = sealed(&mut reporter);
        broken(&disk);
        let (mut reporter, told) = open(&disk, &clock);
        assert_eq!(told.len(), 1);
        let status = sealed(&mut reporter);
        assert!(status.epoch > before.epoch && status.reports.is_empty());
        let warning = &status.warnings[STATUS_LOST].message;
        assert!(warning.starts_with("the status document was lost and began anew as epoch 2: "), "{warning}");
        // The next start has nothing to say of it.
        assert!(!sealed(&mut open(&disk, &clock).0).warnings.contains_key(STATUS_LOST));
    }
}

#[test]
fn one_broken_copy_is_healed_and_told() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let heads = open(&disk, &clock).0.heads();
    disk.write(&copies("status")[0], b"garbage").unwrap();
    disk.write(&copies("epoch")[1], b"").unwrap();
    let (mut reporter, told) = open(&disk, &clock);
    assert!(told.len() == 2 && told.iter().all(|told| told.ends_with("it was healed from the other copy")), "{told:?}");
    assert_eq!(reporter.heads().epoch, heads.epoch);
    assert!(open(&disk, &clock).1.is_empty());
}

#[test]
fn a_lost_counter_is_followed_by_an_epoch_above_any_that_was() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.fact("a", "1");
    reporter.flush().unwrap();
    copies("epoch").iter().for_each(|path| disk.write(path, b"x").unwrap());
    let (mut reporter, told) = open(&disk, &clock);
    assert_eq!((reporter.heads().epoch, told.len()), (1, 1), "the document knows its own");
    for name in ["status", "epoch"] {
        copies(name).iter().for_each(|path| disk.write(path, b"x").unwrap());
    }
    assert_eq!(open(&disk, &clock).0.heads().epoch, u64::try_from(NOON / 1000).unwrap());
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
fn a_full_disk_is_told_to_the_hub_and_followed_by_a_new_epoch() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    let before = sealed(&mut reporter);
    disk.set_full(true);
    reporter.tell(&truth("shop", failed("DiskFull", "no space"), clock.now()));
    assert!(matches!(reporter.flush(), Err(ReportError::Disk(_))));
    let status = sealed(&mut reporter);
    assert_eq!(status.reports["shop"].condition.word(), "Failed");
    assert_eq!(status.epoch, before.epoch);
    disk.set_full(false);
    reporter.flush().unwrap();
    assert_eq!(sealed(&mut reporter).epoch, before.epoch + 1, "the hub was ahead of the disk");
    // On a disk that was full from the start nothing is sent: its epoch could be begun twice.
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    disk.set_full(true);
    let (mut reporter, _) = open(&disk, &clock);
    reporter.fact("a", "1");
    assert!(reporter.seal(&key()).is_err());
    assert_eq!(reporter.heads(), Heads::default());
    disk.set_full(false);
    assert_eq!(reporter.heads().epoch, 1);
}

#[test]
fn a_clock_at_1970_is_corrected_at_contact_and_marked() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(20_000));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&truth("shop", failed("Timeout", ""), clock.now()));
    clock.pass(2 * HOUR);
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    clock.pass(HOUR);
    assert_eq!(true_since(&sealed(&mut reporter), "shop"), (20_000 + 2 * HOUR, false));
    reporter.contact(Timestamp(NOON));
    let status = sealed(&mut reporter);
    assert_eq!(true_since(&status, "shop"), (NOON - HOUR, true));
    assert_eq!(status.written_at_true(), Timestamp(NOON));
    let first = &status.events.events[0];
    assert_eq!(status.true_time(first.clock, first.at), (Timestamp(NOON - 3 * HOUR), true));
}

#[test]
fn starts_at_1970_without_a_contact_keep_their_order_and_are_corrected() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(10_000));
    for start in 0..3 {
        let (mut reporter, _) = open(&disk, &clock);
        clock.pass(HOUR);
        reporter.tell(&truth(&format!("a{start}"), Condition::Converged, clock.now()));
        reporter.flush().unwrap();
        clock.start(10_000);
    }
    let (mut reporter, _) = open(&disk, &clock);
    clock.pass(60_000);
    reporter.contact(Timestamp(NOON));
    let status = sealed(&mut reporter);
    let times: Vec<i64> =
        status.events.events.iter().map(|event| status.true_time(event.clock, event.at).0.0).collect();
    assert_eq!(times, [NOON - 2 * HOUR - 60_000, NOON - HOUR - 60_000, NOON - 60_000]);
}

#[test]
fn six_hours_off_each_way_are_corrected_by_one_register() {
    for wrong in [6 * HOUR, -6 * HOUR] {
        let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON + wrong));
        let (mut reporter, _) = open(&disk, &clock);
        reporter.tell(&truth("shop", Condition::Converged, clock.now()));
        clock.pass(60_000);
        reporter.contact(Timestamp(NOON + 60_000));
        let first = sealed(&mut reporter);
        assert_eq!(true_since(&first, "shop"), (NOON, true));
        clock.pass(HOUR);
        reporter.contact(Timestamp(NOON + 60_000 + HOUR + 1_900));
        assert_eq!(reporter.heads(), first.heads(), "a contact is no heartbeat");
    }
}

#[test]
fn a_jump_begins_a_new_clock_and_ages_go_on() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON - 6 * HOUR));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&truth("shop", Condition::Converging, clock.now()));
    reporter.tell(&truth("db", Condition::Converged, clock.now()));
    reporter.warn("DiskFull", Severity::Warning, "90 %");
    clock.pass(HOUR);
    clock.set(NOON + HOUR);
    // Drift is new, the condition isn't: its age goes on in the new clock's time.
    let Told::Truth { assignment, desired, generation, running, version, condition, at, .. } =
        truth("shop", Condition::Converging, clock.now())
    else {
        panic!("a truth")
    };
    let drift = Some("a file was edited".to_owned());
    reporter.tell(&Told::Truth { assignment, desired, generation, running, version, condition, drift, at });
    reporter.tell(&truth("db", Condition::Converged, clock.now()));
    reporter.warn("DiskFull", Severity::Warning, "95 %");
    reporter.contact(Timestamp(NOON + HOUR));
    let status = sealed(&mut reporter);
    let shop = &status.reports["shop"];
    assert_eq!((shop.since, shop.observed_at, shop.clock), (Timestamp(NOON), Timestamp(NOON + HOUR), 2));
    assert_eq!(true_since(&status, "db"), (NOON, true), "told by the clock that was wrong, and not written again");
    assert_eq!(status.warnings["DiskFull"].since, Timestamp(NOON));
    let last = status.events.events.back().unwrap();
    assert_eq!(last.condition, "Converged");
}

#[test]
fn what_was_seen_just_before_a_jump_is_told_in_the_new_time() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(5_000));
    let (mut reporter, _) = open(&disk, &clock);
    let seen = clock.now();
    clock.pass(1_000);
    clock.set(NOON);
    reporter.tell(&truth("shop", Condition::Converged, seen));
    assert_eq!(sealed(&mut reporter).reports["shop"].since, Timestamp(NOON - 1_000));
}

#[test]
fn weeks_offline_are_told_at_their_times_in_one_document() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    for day in 0..40_i64 {
        let condition = if day % 2 == 0 { failed("Timeout", "slow") } else { Condition::Converged };
        reporter.tell(&truth("shop", condition, clock.now()));
        reporter.flush().unwrap();
        clock.pass(24 * HOUR);
        if day % 7 == 0 {
            let now = clock.now().0;
            clock.start(now);
            reporter = open(&disk, &clock).0;
        }
    }
    reporter.contact(clock.now());
    let envelope = reporter.seal(&key()).unwrap();
    assert!(envelope.payload.len() < 8_000, "{} bytes", envelope.payload.len());
    let status = kedge_status::read(&envelope, &Limits::default()).unwrap();
    let times: Vec<i64> = status
        .events
        .events
        .iter()
        .map(|event| (status.true_time(event.clock, event.at).0.0 - NOON) / 24 / HOUR)
        .collect();
    assert_eq!(times, (0..40).collect::<Vec<_>>());
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
fn the_age_of_the_last_look_does_not_follow_the_wall_clock() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    clock.pass(90_000);
    assert_eq!(reporter.look_age(), 90);
    reporter.tell(&Told::Looked { at: clock.now() });
    clock.set(0);
    clock.pass(5_000);
    assert_eq!(reporter.look_age(), 5);
}

#[test]
fn commands_read_what_was_told_without_changing_anything() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    assert!(read(&disk, &paths()).unwrap().is_none());
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&truth("shop", Condition::Converged, clock.now()));
    reporter.tell(&truth("old", Condition::Converged, clock.now()));
    reporter.tell(&Told::Gone { assignment: "old".to_owned(), at: clock.now() });
    reporter.flush().unwrap();
    let before = disk.operations();
    let shown = read(&disk, &paths()).unwrap().unwrap();
    assert_eq!((shown.reports.len(), shown.events.events.len()), (1, 3));
    assert_eq!(shown.here(1, Timestamp(NOON)), Timestamp(NOON));
    assert_eq!(disk.operations(), before);
}
