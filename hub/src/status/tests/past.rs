//! What history learns from documents: each event once, at its true time, in its own day.

use kedge_hub_types::history::{Day, Kind, Recorded, What};
use kedge_model::wire::Timestamp;
use kedge_status::{Condition, Nonce, StatusDocument};

use super::fleet::{Fleet, databases, failed, member, report, sqlite, start, step, stream};
use crate::status::contacts::Contacts;
use crate::status::{Contact, Figures, Taken};
use crate::store::history::page::{HistoryFilter, Reader};
use crate::store::now;

const HOUR: i64 = 3_600_000;

/// The newest first.
async fn told(fleet: &Fleet, kind: Kind) -> Vec<Recorded> {
    let filter = HistoryFilter { kinds: vec![kind], limit: 500, ..HistoryFilter::default() };
    fleet.store().history_page(&Reader::All, &filter).await.unwrap().0
}

fn words(told: &[Recorded]) -> Vec<&str> {
    told.iter().map(|one| one.event.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_past_that_comes_late_is_in_its_own_days_and_each_event_is_taken_once() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        let at = |ago: i64| Timestamp(now().0 - ago);
        let say = |document: &mut StatusDocument, condition: Condition, ago: i64| {
            let mut said = report(condition, "new", "new");
            (said.since, said.observed_at) = (at(ago), at(ago));
            document.set_report("shop-x", &said).unwrap();
        };
        say(&mut member.document, Condition::Converging, 75 * HOUR);
        say(&mut member.document, failed(), 50 * HOUR);
        let envelope = member.seal();
        assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::Stored));
        say(&mut member.document, Condition::Converged, HOUR / 60);
        let envelope = member.seal();
        assert_eq!(fleet.intake.take(None, envelope.clone()).await, Ok(Taken::Stored));
        assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::AlreadyKnown));

        let told = told(&fleet, Kind::Condition).await;
        assert_eq!(words(&told), ["Converged", "Failed", "Converging"]);
        assert_eq!(told.iter().map(Recorded::is_late).collect::<Vec<_>>(), [false, true, true]);
        assert!(told.iter().all(|one| !one.corrected && one.place.assignment == "drone/shop-x"));
        let days: Vec<Day> = fleet.store().history_days().await.unwrap().iter().map(|row| row.day).collect();
        assert!(days.contains(&Day::of(at(75 * HOUR))) && days.contains(&Day::of(at(50 * HOUR))));
        let Some(What::Condition { reason, message, .. }) = told[1].what() else { panic!("{told:?}") };
        assert_eq!((reason.as_deref(), message.as_deref()), (Some("HealthCheck"), Some("one of two units runs")));
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_in_the_future_is_now_and_marked() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let mut said = report(Condition::Converged, "new", "new");
    said.since = Timestamp(now().0 + 400 * 24 * HOUR);
    member.document.set_report("shop-x", &said).unwrap();
    let envelope = member.seal();
    fleet.intake.take(None, envelope).await.unwrap();
    let told = told(&fleet, Kind::Condition).await;
    assert!(told[0].corrected && told[0].at <= now(), "{told:?}");
    assert_eq!(fleet.store().history_days().await.unwrap().len(), 1);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_is_corrected_and_one_that_nobody_knows_is_when_it_was_heard() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let at = now();
    let mut said = report(Condition::Converged, "new", "new");
    (said.since, said.clock) = (Timestamp(20_000), 7);
    member.document.set_report("shop-x", &said).unwrap();
    (said.since, said.clock) = (Timestamp(30_000), 8);
    member.document.set_report("till-x", &said).unwrap();
    member.document.set_clock(7, at.0 - 5 * HOUR - 20_000, at).unwrap();
    let envelope = member.seal();
    fleet.intake.take(None, envelope).await.unwrap();
    let told = told(&fleet, Kind::Condition).await;
    let names: Vec<&str> = told.iter().map(|one| one.place.assignment.as_str()).collect();
    assert_eq!(names, ["drone/till-x", "drone/shop-x"]);
    assert!(told.iter().all(|one| one.corrected));
    assert_eq!(told[1].at, Timestamp(at.0 - 5 * HOUR));
    assert!(told[0].at >= at);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_begins_anew_is_told_again_and_what_a_cluster_forgot_is_counted() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    for turn in 0..3 {
        member.tell("shop-x", if turn % 2 == 0 { Condition::Converging } else { failed() }, "old");
    }
    let envelope = member.seal();
    fleet.intake.take(None, envelope).await.unwrap();
    assert_eq!(told(&fleet, Kind::Condition).await.len(), 3);
    // Two hundred are kept: of 250 more, 50 are lost.
    for turn in 0..250 {
        member.tell("shop-x", if turn % 2 == 0 { Condition::Converged } else { failed() }, "old");
    }
    member.document = member.document.next_epoch(2, Nonce([2; 16]), now()).unwrap();
    let envelope = member.seal();
    assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::Stored));
    let all = told(&fleet, Kind::Condition).await;
    assert_eq!(all.len(), 3 + 200 + 1);
    let lost = all.iter().find_map(|one| match one.what() {
        Some(What::Lost { count }) => Some(count),
        _ => None,
    });
    assert_eq!(lost, Some(50));

    member.document = StatusDocument::new(member.key.public(), 3, Nonce([3; 16]));
    let envelope = member.tell("till-x", Condition::Converged, "new");
    assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::Stored));
    assert_eq!(told(&fleet, Kind::Condition).await.len(), 3 + 200 + 1 + 1);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_told_when_it_begins_and_when_it_ends() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let mut said = report(Condition::Converged, "new", "new");
    for drift in [None, Some("etc/app.conf differs"), Some("etc/app.conf differs"), None] {
        said.drift = drift.map(str::to_owned);
        said.observed_at = now();
        member.document.set_report("shop-x", &said).unwrap();
        let envelope = member.seal();
        fleet.intake.take(None, envelope).await.unwrap();
    }
    let told = told(&fleet, Kind::Drift).await;
    let drift: Vec<&str> = words(&told).into_iter().filter(|word| word.starts_with("Drift")).collect();
    assert_eq!(drift, ["DriftEnded", "Drifted"]);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_was_over_before_the_hub_heard_of_it_is_told() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let edited = Some("/etc/app.conf\nwas edited");
    let turns = [
        (Condition::Converged, None),
        (Condition::Converged, edited),
        (Condition::Converging, edited),
        (Condition::Converged, None),
    ];
    for (turn, (condition, drift)) in turns.into_iter().enumerate() {
        let mut said = report(condition, "new", "new");
        said.drift = drift.map(str::to_owned);
        member.document.set_report("shop-x", &said).unwrap();
        if turn == 0 {
            let envelope = member.seal();
            fleet.intake.take(None, envelope).await.unwrap();
        }
    }
    let envelope = member.seal();
    fleet.intake.take(None, envelope).await.unwrap();
    let drift = told(&fleet, Kind::Drift).await;
    assert_eq!(words(&drift), ["DriftRepaired"]);
    assert!(drift[0].title().contains("drifted and was repaired"), "{}", drift[0].title());
    assert!(drift[0].title().ends_with(": /etc/app.conf was edited"), "{}", drift[0].title());
    let conditions = told(&fleet, Kind::Condition).await;
    assert_eq!(words(&conditions), ["Converged", "Converging", "Converged"]);
    assert!(conditions[1].title().contains("is being repaired"), "{}", conditions[1].title());
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_check_in_and_its_end_are_told_at_their_times() {
    for database in databases().await {
        let fleet = start(database).await;
        let member = member(1);
        fleet.join(&member, &stream("drone")).await;
        let (contacts, figures, at) = (Contacts::default(), Figures::default(), now());
        let contact = |until: i64| Contact {
            generation: kedge_model::wire::Generation(1),
            look_age: 10,
            check_in_deadline: Timestamp(until),
            heads: kedge_model::wire::Heads::default(),
            carried: None,
        };
        contacts.put(&member.id, &contact(at.0 - 20_000), at);
        step(fleet.store(), &contacts, &figures, at).await.unwrap();
        contacts.put(&member.id, &contact(at.0 + 90_000), now());
        step(fleet.store(), &contacts, &figures, now()).await.unwrap();
        let told = told(&fleet, Kind::Cluster).await;
        assert_eq!(words(&told), ["back", "unknown"]);
        assert_eq!(told[1].at, Timestamp(at.0 - 20_000));
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_invents_news_fills_no_history() {
    let fleet = start(sqlite().await).await;
    fleet.describe("drone", &["shop-x"]).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    for turn in 0..6 {
        let mut said = report(Condition::Converged, "new", "new");
        said.drift = (turn % 2 == 0).then(|| "differs".to_owned());
        for name in (0..300).map(|number| format!("x{number}")).chain(["shop-x".to_owned()]) {
            member.document.set_report(&name, &said).unwrap();
        }
        member.document = member.document.next_epoch(turn + 2, Nonce([turn as u8; 16]), now()).unwrap();
        let envelope = member.seal();
        assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::Stored));
    }
    let drift = told(&fleet, Kind::Drift).await;
    assert!(drift.iter().any(|one| one.place.assignment == "drone/shop-x"));
    assert!(drift.len() <= 6 * 17, "{}", drift.len());
    let conditions = told(&fleet, Kind::Condition).await;
    assert!(conditions.iter().all(|one| ["drone/shop-x", ""].contains(&one.place.assignment.as_str())));
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_takes_only_so_much_of_one_cluster_and_says_so() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    for turn in 0..6 {
        for number in 0..200 {
            let condition = if turn % 2 == 0 { failed() } else { Condition::Converging };
            member.document.set_report(&format!("x{number}"), &report(condition, "new", "old")).unwrap();
        }
        member.document = member.document.next_epoch(turn + 2, Nonce([turn as u8; 16]), now()).unwrap();
        let envelope = member.seal();
        assert_eq!(fleet.intake.take(None, envelope).await, Ok(Taken::Stored), "what is true is taken all the same");
    }
    let entries: i64 = fleet.store().history_days().await.unwrap().iter().map(|row| row.entries).sum();
    assert!((500..600).contains(&entries), "{entries}");
    let lost = told(&fleet, Kind::Condition).await.iter().any(|one| matches!(one.what(), Some(What::Lost { .. })));
    assert!(lost);
    fleet.stop().await;
}
