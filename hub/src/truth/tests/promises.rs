//! Contacts, broken promises, and a hub that was away.

use kedge_model::wire::{Generation, Heads, Timestamp};
use kedge_status::Condition;
use sqlx::Row as _;

use super::fleet::{Fleet, databases, member, sqlite, start, step, stream};
use crate::store::now;
use crate::store::truth::counts::CountFilter;
use crate::truth::contacts::Contacts;
use crate::truth::tally::{Presence, Word};
use crate::truth::{Carried, Carrier, Contact, Figures, Taken};

fn contact(promise_until: i64, look_age: u64) -> Contact {
    Contact {
        generation: Generation(3),
        look_age,
        promise_until: Timestamp(promise_until),
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
async fn a_broken_promise_is_unknown_since_its_end_and_a_contact_mends_it() {
    for database in databases().await {
        let fleet = start(database).await;
        let mut member = member(1);
        fleet.join(&member, &stream("drone")).await;
        let told = member.tell("shop", Condition::Converged, "new");
        fleet.truth.take(Some(&member.id), told).await.unwrap();
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
    assert_eq!(fleet.truth.take(None, told).await, Ok(Taken::Stored));
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
    fleet.truth.take(Some(&member.id), told).await.unwrap();
    let (contacts, figures) = (Contacts::default(), Figures::default());
    let at = now();
    contacts.put(&member.id, &contact(at.0 + 90_000, 2 * 3600), at);
    step(fleet.store(), &contacts, &figures, at).await.unwrap();
    assert_eq!(fleet.unknown_since(&member.id).await, Some(at.0 - 90 * 60 * 1000));
    assert_eq!(words(&fleet).await, [(Word::Unknown, 1)]);
    let told = member.tell("shop", Condition::Converging, "new");
    assert_eq!(fleet.truth.take(Some(&member.id), told).await, Ok(Taken::Stored));
    assert_eq!(words(&fleet).await, [(Word::Unknown, 1)]);
    contacts.put(&member.id, &contact(at.0 + 90_000, 5), now());
    step(fleet.store(), &contacts, &figures, now()).await.unwrap();
    assert_eq!(words(&fleet).await, [(Word::Converging, 1)]);
    fleet.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promises_that_ended_while_the_hub_was_down_get_that_much_more_time() {
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
    // An hour without a hub: the promise lasts 60 seconds and one hour.
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

        // An older one is nothing, and a shorter promise takes none away.
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
