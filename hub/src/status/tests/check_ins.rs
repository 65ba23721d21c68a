//! Contacts, missed check-ins, and a hub that was away.

use std::sync::{Arc, Mutex};

use kedge_hub_types::status::Carrier;
use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::wire::{Generation, Heads, Timestamp};
use kedge_status::{Condition, Nonce};
use sqlx::Row as _;

use super::fleet::{Fleet, databases, member, sqlite, start, step, stream};
use crate::status::contacts::Contacts;
use crate::status::{Carried, Contact, Figures, Taken};
use crate::store::now;
use crate::store::status::counts::CountFilter;

fn contact(check_in_deadline: i64, look_age: u64) -> Contact {
    Contact {
        generation: Generation(3),
        look_age,
        check_in_deadline: Timestamp(check_in_deadline),
        heads: Heads::default(),
        carried: None,
    }
}

async fn words(fleet: &Fleet) -> Vec<(Word, i64)> {
    let asked = CountFilter { environment: "dev", ..CountFilter::default() };
    let counts = fleet.store().counts(&asked).await.unwrap();
    counts.into_iter().map(|count| (count.condition, count.count)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missed_check_in_is_unknown_since_its_deadline_and_the_next_one_ends_that() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        let told = member.tell("shop", Condition::Converged, "new");
        fleet.intake.take(Some(&member.id), told).await.unwrap();
        let (contacts, figures) = (Contacts::default(), Figures::default());
        let at = now();
        contacts.put(&member.id, &contact(at.0 - 20_000, 10), at);
        step(fleet.store(), &contacts, &figures, at).await.unwrap();
        assert_eq!(fleet.unknown_since(&member.id).await, Some(at.0 - 20_000));
        assert_eq!(words(&fleet).await, [(Word::Unknown, 1)]);
        let population = fleet.store().population("dev").await.unwrap();
        assert_eq!((population[0].presence, population[0].count), (Presence::Unknown, 1));

        contacts.put(&member.id, &contact(at.0 + 90_000, 10), now());
        step(fleet.store(), &contacts, &figures, now()).await.unwrap();
        assert_eq!(fleet.unknown_since(&member.id).await, None);
        assert_eq!(words(&fleet).await, [(Word::Converged, 1)]);
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_document_brings_a_silent_cluster_back() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let at = now();
    contacts.put(&member.id, &contact(at.0 - 20_000, 10), at);
    step(fleet.store(), &contacts, &figures, at).await.unwrap();
    assert!(fleet.unknown_since(&member.id).await.is_some());
    let told = member.tell("shop", Condition::Converged, "new");
    assert_eq!(fleet.intake.take(None, told).await, Ok(Taken::Stored));
    assert_eq!(fleet.unknown_since(&member.id).await, None);
    assert_eq!(words(&fleet).await, [(Word::Converged, 1)]);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wedged_applier_is_unknown_although_it_polls() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let told = member.tell("shop", Condition::Converged, "new");
    fleet.intake.take(Some(&member.id), told).await.unwrap();
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let at = now();
    contacts.put(&member.id, &contact(at.0 + 90_000, 2 * 3600), at);
    step(fleet.store(), &contacts, &figures, at).await.unwrap();
    assert_eq!(fleet.unknown_since(&member.id).await, Some(at.0 - 90 * 60 * 1000));
    assert_eq!(words(&fleet).await, [(Word::Unknown, 1)]);
    let told = member.tell("shop", Condition::Converging, "new");
    assert_eq!(fleet.intake.take(Some(&member.id), told).await, Ok(Taken::Stored));
    assert_eq!(words(&fleet).await, [(Word::Unknown, 1)]);
    contacts.put(&member.id, &contact(at.0 + 90_000, 5), now());
    step(fleet.store(), &contacts, &figures, now()).await.unwrap();
    assert_eq!(words(&fleet).await, [(Word::Converging, 1)]);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn check_ins_that_were_due_while_the_hub_was_down_get_that_much_more_time() {
    let database = sqlite().await;
    let store = database.store.clone();
    let member = member(1);
    super::fleet::join(&store, &member.key, &member.id, &stream("drone")).await;
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let start = now();
    contacts.put(&member.id, &contact(start.0 + 60_000, 10), start);
    step(&store, &contacts, &figures, start).await.unwrap();
    let since = async || {
        let found = sqlx::query_scalar::<_, Option<i64>>("SELECT unknown_since FROM clusters");
        found.fetch_one(store.pool()).await.unwrap()
    };
    // An hour without a hub: the deadline is 60 seconds and one hour away.
    let mut at = start.0 + 3_600_000;
    while at < start.0 + 3_660_000 + 5_000 {
        step(&store, &contacts, &figures, Timestamp(at)).await.unwrap();
        assert_eq!(since().await, None);
        at += 10_000;
    }
    step(&store, &contacts, &figures, Timestamp(at)).await.unwrap();
    assert_eq!(since().await, Some(start.0 + 3_660_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn contacts_wait_while_the_database_is_away() {
    let database = sqlite().await;
    let store = database.store.clone();
    let member = member(1);
    super::fleet::join(&store, &member.key, &member.id, &stream("drone")).await;
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let at = now();
    contacts.put(&member.id, &contact(at.0 + 90_000, 10), at);
    sqlx::query("ALTER TABLE clusters RENAME TO elsewhere").execute(store.pool()).await.unwrap();
    assert!(step(&store, &contacts, &figures, at).await.is_err());
    sqlx::query("ALTER TABLE elsewhere RENAME TO clusters").execute(store.pool()).await.unwrap();
    step(&store, &contacts, &figures, at).await.unwrap();
    let found = sqlx::query_scalar::<_, i64>("SELECT promise_until FROM clusters");
    assert_eq!(found.fetch_one(store.pool()).await.unwrap(), at.0 + 90_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_carried_sign_of_life_counts_from_when_it_was_said() {
    for database in databases().await {
        // Without the hub's own tasks: they would judge at the same time.
        let store = database.store.clone();
        let (member, carrier) = (member(1), member(2));
        super::fleet::join(&store, &member.key, &member.id, &stream("drone")).await;
        let (contacts, figures) = (Contacts::default(), Figures::default());
        let by = Carrier::Cluster(carrier.id);
        let row = async || {
            let query = sqlx::query("SELECT last_contact, promise_until, via FROM clusters WHERE id = $1");
            let row = query.bind(member.id.to_string()).fetch_one(store.pool()).await.unwrap();
            let via: Option<String> = row.try_get("via").unwrap();
            (row.try_get::<i64, _>("last_contact").unwrap(), row.try_get::<i64, _>("promise_until").unwrap(), via)
        };
        let unknown_since = async || {
            let query = sqlx::query_scalar::<_, Option<i64>>("SELECT unknown_since FROM clusters WHERE id = $1");
            query.bind(member.id.to_string()).fetch_one(store.pool()).await.unwrap()
        };
        let carried = async |said: i64, until: i64| {
            let told = Contact { carried: Some(Carried { at: Timestamp(said), by }), ..contact(until, 10) };
            contacts.put(&member.id, &told, Timestamp(said));
            step(&store, &contacts, &figures, now()).await.unwrap();
        };
        let at = now().0;
        contacts.put(&member.id, &contact(at - 600_000, 10), Timestamp(at - 900_000));
        step(&store, &contacts, &figures, Timestamp(at)).await.unwrap();
        assert_eq!(unknown_since().await, Some(at - 600_000));

        // Long on its way: it lived later than was known, and is silent all the same.
        carried(at - 700_000, at - 300_000).await;
        assert_eq!(unknown_since().await, Some(at - 300_000));
        assert_eq!(row().await, (at - 700_000, at - 300_000, Some(carrier.id.to_string())));

        // A fresh one brings it back.
        carried(at - 20_000, at + 340_000).await;
        assert_eq!(unknown_since().await, None);
        assert_eq!(row().await, (at - 20_000, at + 340_000, Some(carrier.id.to_string())));

        // An older one is nothing, and an earlier deadline takes no time away.
        carried(at - 60_000, at + 300_000).await;
        assert_eq!(row().await.0, at - 20_000);
        carried(at - 10_000, at + 1_000).await;
        assert_eq!((row().await.0, row().await.1), (at - 10_000, at + 340_000));

        // Itself again: nobody carries for it any more.
        contacts.put(&member.id, &contact(at + 90_000, 10), now());
        step(&store, &contacts, &figures, now()).await.unwrap();
        assert_eq!((row().await.1, row().await.2), (at + 90_000, None));
    }
}

#[test]
fn what_waits_is_not_replaced_by_what_others_carried_earlier() {
    let (contacts, member) = (Contacts::default(), member(1));
    let carried = Carried { at: Timestamp(5), by: Carrier::File };
    contacts.put(&member.id, &contact(90, 10), Timestamp(10));
    contacts.put(&member.id, &Contact { carried: Some(carried), ..contact(50, 10) }, Timestamp(5));
    let (_, waiting) = contacts.take(10).remove(0);
    assert_eq!((waiting.at, waiting.via), (Timestamp(10), None));
}

/// What is logged.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_beat_that_could_not_be_written_says_nothing_of_hubs_that_were_away() {
    let database = sqlite().await;
    let store = &database.store;
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let at = now();
    step(store, &contacts, &figures, at).await.unwrap();
    // As on a full disk: each statement goes through, and the commit doesn't.
    for sql in [
        "CREATE TABLE room (id INTEGER PRIMARY KEY)",
        "CREATE TABLE wanted (room INTEGER REFERENCES room (id) DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TRIGGER full_disk AFTER UPDATE ON meta BEGIN INSERT INTO wanted VALUES (1); END",
    ] {
        sqlx::query(sql).execute(store.pool()).await.unwrap();
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let text = || String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    for seconds in [60, 62, 64] {
        step(store, &contacts, &figures, Timestamp(at.0 + seconds * 1000)).await.unwrap_err();
    }
    assert!(!text().contains("alive"), "{}", text());
    sqlx::query("DROP TRIGGER full_disk").execute(store.pool()).await.unwrap();
    for seconds in [66, 68] {
        step(store, &contacts, &figures, Timestamp(at.0 + seconds * 1000)).await.unwrap();
    }
    assert_eq!(text().matches("no hub wrote that it is alive").count(), 1, "{}", text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_speaks_of_an_older_document_than_the_hub_has_is_marked() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        member.tell("shop", Condition::Converged, "new");
        let real = member.document.heads();
        // As somebody writes who has the key.
        member.document = member.document.next_epoch(2, Nonce([66; 16]), now()).unwrap();
        let forged = member.tell("shop", Condition::Converged, "new");
        assert_eq!(fleet.intake.take(Some(&member.id), forged).await, Ok(Taken::Stored));
        let (contacts, figures, at) = (Contacts::default(), Figures::default(), now());
        let poll = async |heads: &Heads, after: i64, carried: bool| {
            let said = Timestamp(at.0 + after);
            let carried = carried.then_some(Carried { at: said, by: Carrier::File });
            let told = Contact { heads: heads.clone(), carried, ..contact(said.0 + 90_000, 10) };
            contacts.put(&member.id, &told, said);
        };
        let judge = async |after: i64| {
            step(fleet.store(), &contacts, &figures, Timestamp(at.0 + after)).await.unwrap();
            fleet.cloned_since(&member.id).await
        };
        poll(&real, 0, false).await;
        assert_eq!(judge(1_000).await, None, "it may have been on its way when the document came");
        poll(&real, 100_000, true).await;
        assert_eq!(judge(100_000).await, None, "the clock of who was carried for may be ahead");
        poll(&real, 119_000, false).await;
        poll(&member.document.heads(), 120_000, false).await;
        assert_eq!(judge(120_000).await, Some(at.0 + 120_000), "the forger's own polls hide nothing");
        fleet.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_on_to_a_new_epoch_is_never_marked() {
    let fleet = start(sqlite().await).await;
    let mut member = member(1);
    fleet.join(&member, &stream("drone")).await;
    let (contacts, figures, mut at) = (Contacts::default(), Figures::default(), now().0);
    for epoch in 2..6 {
        let before = member.document.heads();
        member.document = member.document.next_epoch(epoch, Nonce([epoch as u8; 16]), now()).unwrap();
        let told = member.tell("shop", Condition::Converged, "new");
        fleet.intake.take(Some(&member.id), told).await.unwrap();
        for heads in [before, member.document.heads()] {
            at += 60_000;
            contacts.put(&member.id, &Contact { heads, ..contact(at + 90_000, 10) }, Timestamp(at));
            step(fleet.store(), &contacts, &figures, Timestamp(at)).await.unwrap();
        }
    }
    assert_eq!(fleet.cloned_since(&member.id).await, None);
    fleet.stop().await;
}
