//! What becomes of documents: stored, known, older, refused.

use kedge_hub_types::status::TakeError;
use kedge_hub_types::status::tally::Word;
use kedge_model::wire::{Envelope, SigningKey, Timestamp};
use kedge_status::{Condition, Nonce, Report, StatusDocument};

use super::fleet::{databases, failed, member, packages, relocate, report, sqlite, start, stream};
use crate::status::Taken;
use crate::store::now;
use crate::store::status::ConditionFilter;
use crate::store::status::counts::CountFilter;

fn in_dev() -> CountFilter<'static> {
    CountFilter { environment: "dev", ..CountFilter::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_stored_once_and_older_ones_do_no_harm() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        let first = member.tell("shop", Condition::Converging, "old");
        let second = member.tell("shop", Condition::Converged, "new");
        let take = |envelope: &Envelope| fleet.intake.take(Some(&member.id), envelope.clone());
        assert!(fleet.intake.wants(&member.id, &member.document.heads()));
        assert_eq!(take(&second).await, Ok(Taken::Stored));
        assert_eq!(take(&second).await, Ok(Taken::AlreadyKnown));
        assert_eq!(take(&first).await, Ok(Taken::Older));
        assert!(!fleet.intake.wants(&member.id, &member.document.heads()));
        let counts = fleet.store().counts(&in_dev()).await.unwrap();
        assert_eq!(counts.len(), 1);
        assert_eq!((counts[0].condition, counts[0].count), (Word::Converged, 1));
        assert_eq!(counts[0].running, packages("new").to_string());
        let status = fleet.intake.status(&member.id).await.unwrap().unwrap();
        assert_eq!(status.reports["shop"].condition, Condition::Converged);
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_epoch_replaces_and_an_old_epoch_is_older() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let old = member.tell("shop", Condition::Converged, "new");
    member.document = member.document.next_epoch(2, Nonce([9; 16]), now()).unwrap();
    let new = member.tell("shop", failed(), "new");
    assert_eq!(fleet.intake.take(None, new).await, Ok(Taken::Stored));
    assert_eq!(fleet.intake.take(None, old).await, Ok(Taken::Older));
    let rows = fleet.store().conditions(&ConditionFilter { limit: 10, ..ConditionFilter::default() }).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].exception.reason.as_deref(), Some("HealthCheck"));
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clone_is_noticed_and_the_first_document_stays() {
    let fleet = start(sqlite().await).await;
    let mut first = member(1);
    let mut other = member(1);
    other.document = StatusDocument::new(other.key.public(), 1, Nonce([99; 16]));
    fleet.join(&first, &stream("drone")).await;
    assert_eq!(fleet.intake.take(None, first.tell("shop", Condition::Converged, "new")).await, Ok(Taken::Stored));
    let told = other.tell("shop", failed(), "old");
    assert_eq!(fleet.intake.take(None, told).await, Err(TakeError::Cloned(first.id)));
    assert!(fleet.cloned_since(&first.id).await.is_some());
    let status = fleet.intake.status(&first.id).await.unwrap().unwrap();
    assert_eq!(status.reports["shop"].condition, Condition::Converged);
    assert!(!fleet.intake.wants(&first.id, &other.document.heads()));
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_histories_of_one_epoch_are_merged_in_any_order() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        member.tell("shop", Condition::Converged, "new");
        let kept = member.document.to_bytes(now()).unwrap();
        let left = member.tell("cart", failed(), "old");
        let mut branch = StatusDocument::from_bytes(&kept).unwrap();
        branch.set_report("till", &report(Condition::Converging, "new", "old")).unwrap();
        let right = branch.seal(&member.key, now(), None).unwrap();
        assert_eq!(fleet.intake.take(None, left.clone()).await, Ok(Taken::Stored));
        assert_eq!(fleet.intake.take(None, right.clone()).await, Ok(Taken::Stored));
        assert_eq!(fleet.intake.take(None, left).await, Ok(Taken::Older));
        assert_eq!(fleet.intake.take(None, right).await, Ok(Taken::Older));
        let status = fleet.intake.status(&member.id).await.unwrap().unwrap();
        assert_eq!(status.reports.keys().collect::<Vec<_>>(), ["cart", "shop", "till"]);
        assert_eq!(fleet.store().counts(&in_dev()).await.unwrap().len(), 3);
        assert!(!fleet.intake.wants(&member.id, &branch.heads()));
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copied_disk_is_noticed_when_both_have_written_and_one_that_was_put_back_is_none() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    member.tell("shop", Condition::Converged, "new");
    let mut copy = StatusDocument::from_bytes(&member.document.to_bytes(now()).unwrap()).unwrap();
    let mut at = now().0;
    let mut tell = |document: &mut StatusDocument, name: &str| {
        at += 1_000;
        document.set_report(name, &report(Condition::Converging, "new", "old")).unwrap();
        document.seal(&member.key, Timestamp(at), None).unwrap()
    };
    let before = tell(&mut member.document, "cart");
    assert_eq!(fleet.intake.take(None, before).await, Ok(Taken::Stored));
    // As if the disk was put back: the other history never goes on.
    for name in ["till", "door", "lamp"] {
        let told = tell(&mut copy, name);
        assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored));
        assert_eq!(fleet.cloned_since(&member.id).await, None);
    }
    let told = tell(&mut member.document, "oven");
    assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored), "it can't be told who is the copy");
    assert!(fleet.cloned_since(&member.id).await.is_some());
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_the_owners_is_refused() {
    let fleet = start(sqlite().await).await;
    let (mut known, mut stranger) = (member(1), member(2));
    fleet.join(&known, &stream("drone")).await;
    let told = stranger.tell("shop", Condition::Converged, "new");
    assert_eq!(fleet.intake.take(None, told).await, Err(TakeError::UnknownCluster(stranger.id)));

    known.document.set_fact("a", "b", now()).unwrap();
    let forged = known.document.seal(&SigningKey::from_seed(&[3; 32]).unwrap(), now(), None).unwrap();
    assert!(matches!(fleet.intake.take(None, forged).await, Err(TakeError::Forged(_))));

    let mut broken = known.seal();
    let middle = broken.payload.len() - 20;
    broken.payload[middle] ^= 0xff;
    assert!(matches!(fleet.intake.take(None, broken.clone()).await, Err(TakeError::Forged(_))));
    let resigned = Envelope::sign_bytes(&broken.payload_type, broken.payload, &known.key);
    assert!(matches!(fleet.intake.take(None, resigned).await, Err(TakeError::Malformed(_))));

    let huge = Envelope::sign_bytes(kedge_status::PAYLOAD_TYPE, vec![0; 300 * 1024], &known.key);
    assert!(matches!(fleet.intake.take(None, huge).await, Err(TakeError::TooLarge(_))));
    assert!(fleet.store().counts(&in_dev()).await.unwrap().is_empty());
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_cluster_counts_nowhere_and_is_refused() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    assert_eq!(fleet.intake.take(None, member.tell("shop", failed(), "old")).await, Ok(Taken::Stored));
    relocate(fleet.store(), &member.id, &stream("drone"), None).await;
    assert!(fleet.store().counts(&in_dev()).await.unwrap().is_empty());
    assert!(fleet.store().population("dev").await.unwrap().is_empty());
    let told = member.tell("shop", Condition::Converged, "new");
    assert_eq!(fleet.intake.take(None, told).await, Err(TakeError::Retired(member.id)));
    fleet.join(&member, &stream("drone")).await;
    let rows = fleet.store().conditions(&ConditionFilter { limit: 10, ..ConditionFilter::default() }).await.unwrap();
    assert_eq!(rows.len(), 1);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_exceptions_have_rows_and_they_end() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    member.tell("plain", Condition::Converged, "new");
    member.tell("behind", Condition::Converged, "old");
    let told = member.tell("broken", failed(), "old");
    fleet.intake.take(None, told).await.unwrap();
    let asked = ConditionFilter { limit: 10, ..ConditionFilter::default() };
    let names =
        |rows: Vec<crate::store::status::ConditionRow>| rows.into_iter().map(|row| row.assignment).collect::<Vec<_>>();
    assert_eq!(names(fleet.store().conditions(&asked).await.unwrap()), ["behind", "broken"]);
    let only = ConditionFilter {
        cluster: Some(member.id),
        environment: Some("dev".to_owned()),
        cluster_type: Some("drone".to_owned()),
        assignment: Some("broken".to_owned()),
        condition: Some(Word::Failed),
        after: Some((member.id, "behind".to_owned())),
        limit: 1,
    };
    assert_eq!(names(fleet.store().conditions(&only).await.unwrap()), ["broken"]);
    member.document.remove_report("behind", now(), 0).unwrap();
    let told = member.tell("broken", Condition::Converged, "new");
    fleet.intake.take(None, told).await.unwrap();
    assert!(fleet.store().conditions(&asked).await.unwrap().is_empty());
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_a_wrong_clock_are_corrected_and_marked() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let wrong = Report { clock: 1, ..report(failed(), "new", "old") };
    let wrong = Report {
        since: kedge_model::wire::Timestamp(1_000),
        observed_at: kedge_model::wire::Timestamp(1_000),
        ..wrong
    };
    member.document.set_report("shop", &wrong).unwrap();
    let offset = now().0 - 100_000;
    member.document.set_clock(1, offset, now()).unwrap();
    let told = member.seal();
    fleet.intake.take(None, told).await.unwrap();
    let rows = fleet.store().conditions(&ConditionFilter { limit: 1, ..ConditionFilter::default() }).await.unwrap();
    assert_eq!(rows[0].exception.since, offset + 1_000);
    assert!(rows[0].exception.corrected);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_handed_in_before_the_shutdown_is_answered() {
    let fleet = start(sqlite().await).await;
    let mut members: Vec<_> = (1..40).map(member).collect();
    let mut waiting = tokio::task::JoinSet::new();
    for member in &mut members {
        fleet.join(member, &stream("drone")).await;
        let (intake, told) = (fleet.intake.clone(), member.tell("shop", Condition::Converged, "new"));
        waiting.spawn(async move { intake.take(None, told).await });
    }
    fleet.stop.send(true).unwrap();
    let (mut stored, mut refused) = (0, 0);
    while let Some(taken) = waiting.join_next().await {
        match taken.unwrap() {
            Ok(Taken::Stored) => stored += 1,
            Err(TakeError::Unavailable) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(stored + refused, 39);
    let counted: i64 = fleet.store().counts(&in_dev()).await.unwrap().iter().map(|count| count.count).sum();
    assert_eq!(counted, stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_answers_unavailable_and_loses_nothing() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let told = member.tell("shop", Condition::Converged, "new");
    let mut connection = fleet.store().pool().acquire().await.unwrap();
    sqlx::query("ALTER TABLE documents RENAME TO elsewhere").execute(&mut *connection).await.unwrap();
    assert_eq!(fleet.intake.take(None, told.clone()).await, Err(TakeError::Unavailable));
    assert!(fleet.intake.wants(&member.id, &member.document.heads()));
    sqlx::query("ALTER TABLE elsewhere RENAME TO documents").execute(&mut *connection).await.unwrap();
    assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored));
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn assignments_that_a_cluster_does_not_have_are_left_out_but_for_a_few() {
    for database in databases().await {
        let fleet = start(database).await;
        fleet.describe("drone", &["shop", "till"]).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        for name in ["shop", "till", "../../etc", "a\u{202e}b"] {
            member.document.set_report(name, &report(failed(), "new", "old")).unwrap();
        }
        for number in 0..100 {
            member.document.set_report(&format!("x{number}"), &report(failed(), "new", "old")).unwrap();
        }
        let told = member.seal();
        assert_eq!(fleet.intake.take(None, told.clone()).await, Ok(Taken::Stored));
        let filter = ConditionFilter { limit: 500, ..ConditionFilter::default() };
        let rows = fleet.store().conditions(&filter).await.unwrap();
        assert_eq!(rows.len(), 2 + 16);
        assert_eq!(fleet.store().counts(&in_dev()).await.unwrap().len(), 2 + 16);
        let ours = rows.iter().filter(|row| ["shop", "till"].contains(&row.assignment.as_str()));
        assert_eq!(ours.count(), 2);
        assert!(rows.iter().all(|row| !row.assignment.contains(['/', '\u{202e}'])));
        let status = fleet.intake.status(&member.id).await.unwrap().unwrap();
        assert_eq!(status.reports.len(), 2 + 16);
        assert!(status.warnings["ForeignReports"].message.contains("86 assignments"), "{:?}", status.warnings);

        // Git names none of them any more: what the cluster had it still has.
        sqlx::query("DELETE FROM catalog").execute(fleet.store().pool()).await.unwrap();
        let told = member.tell("shop", Condition::Converging, "old");
        assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored));
        let status = fleet.intake.status(&member.id).await.unwrap().unwrap();
        assert!(status.reports.len() == 2 + 16 && status.reports.contains_key("till"));
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_moved_still_reports_what_it_ran_before() {
    let fleet = start(sqlite().await).await;
    let names: Vec<String> = (0..40).map(|number| format!("old{number:02}")).collect();
    fleet.describe("drone", &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    for name in &names {
        member.document.set_report(name, &report(Condition::Converged, "new", "new")).unwrap();
    }
    let told = member.seal();
    fleet.intake.take(None, told).await.unwrap();
    relocate(fleet.store(), &member.id, &stream("drone"), Some(&stream("truck"))).await;
    member.document.remove_report("old39", now(), 0).unwrap();
    let told = member.tell("new", Condition::Converging, "old");
    assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored));
    let status = fleet.intake.status(&member.id).await.unwrap().unwrap();
    assert!(status.reports.len() == 40 && status.warnings.is_empty(), "{:?}", status.warnings);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_no_calendar_has_is_refused() {
    let fleet = start(sqlite().await).await;
    for (number, at) in [(1, i64::MAX), (2, i64::MIN), (3, 400_000_000_000_000)] {
        let mut member = member(number);
        fleet.join(&member, &stream("drone")).await;
        let strange = Report { since: Timestamp(at), ..report(failed(), "new", "old") };
        member.document.set_report("shop", &strange).unwrap();
        let told = member.seal();
        assert!(matches!(fleet.intake.take(None, told).await, Err(TakeError::Malformed(_))), "{at}");
    }
    // Nor one that a clock's correction makes of it.
    let mut member = member(4);
    fleet.join(&member, &stream("drone")).await;
    member.document.set_report("shop", &Report { clock: 1, ..report(failed(), "new", "old") }).unwrap();
    member.document.set_clock(1, i64::MIN / 2, now()).unwrap();
    let told = member.seal();
    assert!(matches!(fleet.intake.take(None, told).await, Err(TakeError::Malformed(_))));
    assert!(fleet.store().counts(&in_dev()).await.unwrap().is_empty());
    fleet.stop().await;
}
