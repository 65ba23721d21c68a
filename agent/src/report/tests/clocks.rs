//! Wrong clocks: 1970, hours off, set while it runs. Times are read as the hub corrects them.

use super::*;

#[test]
fn a_clock_at_1970_is_corrected_at_contact_and_marked() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(20_000));
    let (mut reporter, _) = open(&disk, &clock);
    reporter.tell(&assignment_status("shop", failed("Timeout", ""), clock.now()));
    clock.pass(2 * HOUR);
    reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
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
        reporter.tell(&assignment_status(&format!("a{start}"), Condition::Converged, clock.now()));
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
        reporter.tell(&assignment_status("shop", Condition::Converged, clock.now()));
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
    reporter.tell(&assignment_status("shop", Condition::Converging, clock.now()));
    reporter.tell(&assignment_status("db", Condition::Converged, clock.now()));
    reporter.warn("DiskFull", Severity::Warning, "90 %");
    clock.pass(HOUR);
    clock.set(NOON + HOUR);
    // Drift is new, the condition isn't: its age goes on in the new clock's time.
    let Told::AssignmentStatus { assignment, desired, generation, running, version, condition, at, .. } =
        assignment_status("shop", Condition::Converging, clock.now())
    else {
        panic!("a truth")
    };
    let drift = Some("a file was edited".to_owned());
    reporter.tell(&Told::AssignmentStatus { assignment, desired, generation, running, version, condition, drift, at });
    reporter.tell(&assignment_status("db", Condition::Converged, clock.now()));
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
    reporter.tell(&assignment_status("shop", Condition::Converged, seen));
    assert_eq!(sealed(&mut reporter).reports["shop"].since, Timestamp(NOON - 1_000));
}

#[test]
fn weeks_offline_are_told_at_their_times_in_one_document() {
    let (disk, clock) = (FakeDisk::new(), HandClock::at(NOON));
    let (mut reporter, _) = open(&disk, &clock);
    for day in 0..40_i64 {
        let condition = if day % 2 == 0 { failed("Timeout", "slow") } else { Condition::Converged };
        reporter.tell(&assignment_status("shop", condition, clock.now()));
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
