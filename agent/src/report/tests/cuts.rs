//! Power cuts at every operation, lost and broken files, full disks.

use std::io;

use kedge_durable::fake::{Power, every_cut, every_failure};

use super::*;

#[test]
fn a_cut_at_any_operation_keeps_what_was_told_and_no_epoch_is_used_twice() {
    for before in [2, 198] {
        let prepared = Mutex::new(None);
        let tell = |reporter: &mut Reporter, number: i64| {
            let condition = if number % 2 == 0 { Condition::Converged } else { Condition::Converging };
            reporter.tell(&assignment_status("shop", condition, Timestamp(NOON + number)));
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
        reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
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
fn a_full_disk_is_told_to_the_hub_and_followed_by_a_new_epoch() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
    let before = sealed(&mut reporter);
    disk.set_full(true);
    reporter.tell(&assignment_status("shop", failed("DiskFull", "no space"), clock.now()));
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
fn an_operation_that_fails_is_made_good_by_the_next_flush() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        for before in [1, 199] {
            let fill = |disk: &FakeDisk| {
                let (mut reporter, _) = open(disk, &HandClock::at(NOON));
                (0..before).for_each(|number| reporter.fact("step", &number.to_string()));
                reporter.flush().unwrap();
            };
            let failed = every_failure(
                kind,
                fill,
                |disk| {
                    let (mut reporter, _) = Reporter::open(&disk, &paths(), key().public(), HandClock::at(NOON));
                    reporter.fact("step", "1000");
                    let first = reporter.flush();
                    // Only one operation fails: the same reporter goes on.
                    reporter.flush().unwrap();
                    first
                },
                |disk, _| {
                    let status = sealed(&mut open(disk, &HandClock::at(NOON)).0);
                    assert_eq!(status.facts["step"], "1000");
                    assert!(status.warnings.is_empty());
                },
            );
            assert!(failed >= 7, "{failed}");
        }
    }
}
