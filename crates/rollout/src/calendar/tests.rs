//! Windows and freezes at the edges: midnight, weekends, changes of the clock.

use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<Instant>().unwrap().as_millisecond())
}

fn window(days: &[u8], from: u16, to: u16, time_zone: &str) -> Window {
    Window { days: days.to_vec(), from, to, time_zone: time_zone.to_owned() }
}

fn freeze(from: &str, to: &str) -> Freeze {
    Freeze {
        from: from.to_owned(),
        to: to.to_owned(),
        time_zone: "Europe/Berlin".to_owned(),
        reason: "holidays".to_owned(),
    }
}

fn until(opening: &Opening) -> Option<Timestamp> {
    match opening {
        Opening::Open => panic!("open"),
        Opening::Closed { until, .. } => *until,
    }
}

#[test]
fn without_windows_it_is_always_open() {
    assert_eq!(opening(&[], &[], at("2026-11-16T12:00:00Z")), Opening::Open);
}

#[test]
fn a_window_is_in_its_own_time_zone_and_its_end_is_outside() {
    let windows = [window(&[1, 2, 3, 4], 9 * 60, 16 * 60, "Europe/Berlin")];
    // Monday, and Berlin is one hour ahead.
    assert_eq!(opening(&windows, &[], at("2026-11-16T08:00:00Z")), Opening::Open);
    assert_eq!(opening(&windows, &[], at("2026-11-16T14:59:59Z")), Opening::Open);
    let early = opening(&windows, &[], at("2026-11-16T07:59:59Z"));
    assert_eq!(until(&early), Some(at("2026-11-16T08:00:00Z")));
    assert_eq!(until(&opening(&windows, &[], at("2026-11-16T15:00:00Z"))), Some(at("2026-11-17T08:00:00Z")));
    let friday = opening(&windows, &[], at("2026-11-20T10:00:00Z"));
    assert_eq!(
        friday,
        Opening::Closed {
            why: "outside its time windows; it opens 2026-11-23T08:00:00Z".to_owned(),
            until: Some(at("2026-11-23T08:00:00Z"))
        }
    );
}

#[test]
fn an_overnight_window_belongs_to_the_day_it_begins() {
    let windows = [window(&[5], 22 * 60, 4 * 60, "UTC")];
    assert_eq!(opening(&windows, &[], at("2026-11-20T23:00:00Z")), Opening::Open);
    assert_eq!(opening(&windows, &[], at("2026-11-21T03:59:00Z")), Opening::Open);
    assert_eq!(until(&opening(&windows, &[], at("2026-11-21T04:00:00Z"))), Some(at("2026-11-27T22:00:00Z")));
    assert_ne!(opening(&windows, &[], at("2026-11-20T03:00:00Z")), Opening::Open);
}

#[test]
fn a_whole_day_reaches_to_midnight() {
    let windows = [window(&[1], 0, 1_440, "UTC")];
    assert_eq!(opening(&windows, &[], at("2026-11-16T23:59:59Z")), Opening::Open);
    assert_ne!(opening(&windows, &[], at("2026-11-17T00:00:00Z")), Opening::Open);
}

#[test]
fn summer_time_moves_the_window() {
    let windows = [window(&[1, 2, 3, 4, 5, 6, 7], 9 * 60, 10 * 60, "Europe/Berlin")];
    assert_eq!(opening(&windows, &[], at("2026-07-01T07:30:00Z")), Opening::Open);
    assert_ne!(opening(&windows, &[], at("2026-07-01T08:30:00Z")), Opening::Open);
    assert_eq!(opening(&windows, &[], at("2026-12-01T08:30:00Z")), Opening::Open);
}

#[test]
fn an_hour_that_is_skipped_or_repeated_is_not_counted_twice() {
    // 2026-03-29: 02:00 becomes 03:00, so 02:30 is first at 01:30 UTC (03:30 there).
    let windows = [window(&[7], 150, 240, "Europe/Berlin")];
    assert_ne!(opening(&windows, &[], at("2026-03-29T01:15:00Z")), Opening::Open);
    assert_eq!(opening(&windows, &[], at("2026-03-29T01:45:00Z")), Opening::Open);
    assert_ne!(opening(&windows, &[], at("2026-03-29T02:00:00Z")), Opening::Open);
    // 2026-10-25: 03:00 becomes 02:00; the window begins with the second 02:30.
    assert_ne!(opening(&windows, &[], at("2026-10-25T00:45:00Z")), Opening::Open);
    assert_eq!(opening(&windows, &[], at("2026-10-25T01:45:00Z")), Opening::Open);
}

#[test]
fn a_freeze_holds_both_its_days_and_says_why() {
    let freezes = [freeze("2026-12-20", "2027-01-03")];
    assert_eq!(opening(&[], &freezes, at("2026-12-19T22:59:59Z")), Opening::Open);
    let frozen = opening(&[], &freezes, at("2026-12-19T23:00:00Z"));
    let Opening::Closed { why, until } = frozen else { panic!("open") };
    assert_eq!(why, "frozen from 2026-12-20 to 2027-01-03 (holidays); it opens 2027-01-03T23:00:00Z");
    assert_eq!(until, Some(at("2027-01-03T23:00:00Z")));
    assert_eq!(opening(&[], &freezes, at("2027-01-03T23:00:00Z")), Opening::Open);
}

#[test]
fn the_next_opening_is_after_the_freeze_and_inside_a_window() {
    let windows = [window(&[1], 600, 660, "Europe/Berlin")];
    let freezes = [freeze("2026-11-16", "2026-11-18"), freeze("2026-11-19", "2026-11-23")];
    assert_eq!(until(&opening(&windows, &freezes, at("2026-11-16T09:30:00Z"))), Some(at("2026-11-30T09:00:00Z")));
    let long = [freeze("2026-11-16", "2027-11-18")];
    assert_eq!(until(&opening(&[], &long, at("2026-11-16T09:30:00Z"))), None);
}

#[test]
fn what_cannot_be_read_is_closed() {
    assert_ne!(opening(&[window(&[1], 0, 1_440, "Atlantis/Harbour")], &[], at("2026-11-16T09:30:00Z")), Opening::Open);
    assert_ne!(opening(&[], &[freeze("yesterday", "2026-11-18")], at("2026-11-16T09:30:00Z")), Opening::Open);
    assert_ne!(opening(&[], &[], Timestamp(i64::MAX)), Opening::Open);
}

proptest! {
    #[test]
    fn it_is_open_when_it_says_it_opens_and_not_before(
        now in 1_700_000_000_000i64..1_900_000_000_000,
        days in proptest::collection::vec(0u8..=9, 0..4),
        from in 0u16..1_500,
        to in 0u16..1_500,
        zone in 0usize..4,
        frozen in 0i64..40,
    ) {
        let zone = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"][zone];
        let windows = [window(&days, from, to, zone)];
        let start = Instant::from_millisecond(now).unwrap().to_zoned(TimeZone::UTC).date();
        let end = start.checked_add(Span::new().days(frozen)).unwrap();
        let freezes = if frozen > 20 { vec![] } else { vec![freeze(&start.to_string(), &end.to_string())] };
        if let Opening::Closed { until: Some(until), .. } = opening(&windows, &freezes, Timestamp(now)) {
            prop_assert!(until.0 > now);
            prop_assert_eq!(opening(&windows, &freezes, until), Opening::Open);
            prop_assert_ne!(opening(&windows, &freezes, Timestamp(until.0 - 1)), Opening::Open);
            let between = Timestamp(now + (until.0 - now) / 2);
            prop_assert_ne!(opening(&windows, &freezes, between), Opening::Open);
        }
    }
}
