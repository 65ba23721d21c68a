//! After whatever happened, the counts are what a count of everything gives.

use std::collections::BTreeMap;

use kedge_hub_types::status::TakeError;
use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::tally::{Deltas, Weight};
use kedge_hub_types::status::warnings::Warned;
use kedge_model::wire::{Envelope, Generation, Heads, PackagesKey, Stream, Timestamp};
use kedge_status::{Condition, Nonce, Severity, StatusDocument, Warning};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::fleet::{Database, Fleet, Member, failed, member, postgres, relocate, report, sqlite, start, step, stream};
use crate::status::contacts::Contacts;
use crate::status::{Contact, Figures};
use crate::store::now;
use crate::store::status::ConditionFilter;
use crate::store::status::counts::CountFilter;

const CLUSTERS: usize = 4;

#[derive(Clone, Debug)]
enum Happening {
    Tell(usize, Vec<(u8, u8, bool)>),
    Remove(usize, u8),
    /// Raised as an error or as a warning, or over.
    Warn(usize, u8, Option<bool>),
    /// An older document again, or another one of those that were sent.
    Replay(usize, prop::sample::Index),
    Fork(usize, u8),
    Epoch(usize),
    Clone(usize),
    Move(usize, bool),
    Retire(usize),
    Join(usize),
    Silence(usize),
    Contact(usize),
    Wedge(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let cluster = 0..CLUSTERS;
    prop_oneof![
        6 => (cluster.clone(), prop::collection::vec((0..5_u8, 0..4_u8, any::<bool>()), 1..5))
            .prop_map(|(cluster, told)| Happening::Tell(cluster, told)),
        1 => (cluster.clone(), 0..5_u8).prop_map(|(cluster, name)| Happening::Remove(cluster, name)),
        3 => (cluster.clone(), 0..4_u8, any::<Option<bool>>()).prop_map(|(cluster, code, raised)| Happening::Warn(cluster, code, raised)),
        2 => (cluster.clone(), any::<prop::sample::Index>()).prop_map(|(cluster, at)| Happening::Replay(cluster, at)),
        1 => (cluster.clone(), 0..5_u8).prop_map(|(cluster, name)| Happening::Fork(cluster, name)),
        1 => cluster.clone().prop_map(Happening::Epoch),
        1 => cluster.clone().prop_map(Happening::Clone),
        2 => (cluster.clone(), any::<bool>()).prop_map(|(cluster, drone)| Happening::Move(cluster, drone)),
        1 => cluster.clone().prop_map(Happening::Retire),
        2 => cluster.clone().prop_map(Happening::Join),
        2 => cluster.clone().prop_map(Happening::Silence),
        2 => cluster.clone().prop_map(Happening::Contact),
        1 => cluster.prop_map(Happening::Wedge),
    ]
}

/// A member, where it is, and what it sent.
struct Player {
    member: Member,
    place: Option<Stream>,
    epoch: u64,
    sent: Vec<Envelope>,
}

async fn play(fleet: &Fleet, happenings: &[Happening]) {
    let seed: u8 = rand::random::<u8>() / 2;
    let mut players: Vec<Player> = (0..CLUSTERS)
        .map(|number| Player { member: member(seed + number as u8), place: None, epoch: 1, sent: Vec::new() })
        .collect();
    for player in &mut players {
        player.place = Some(stream("drone"));
        fleet.join(&player.member, &stream("drone")).await;
    }
    let contacts = Contacts::default();
    for happening in happenings {
        happen(fleet, &mut players, &contacts, happening).await;
    }
}

async fn happen(fleet: &Fleet, players: &mut [Player], contacts: &Contacts, happening: &Happening) {
    let send = async |player: &mut Player, envelope: Envelope| {
        // Refusals (retired, cloned) are part of the game.
        let _ = fleet.intake.take(Some(&player.member.id), envelope.clone()).await;
        player.sent.push(envelope);
    };
    let contact = async |player: &Player, promise: i64, look_age: u64| {
        let at = now();
        let told = Contact {
            generation: Generation(1),
            look_age,
            check_in_deadline: Timestamp(at.0 + promise),
            heads: Heads::default(),
            carried: None,
        };
        contacts.put(&player.member.id, &told, at);
        step(fleet.store(), contacts, fleet.intake.figures(), at).await.unwrap();
    };
    match happening {
        Happening::Tell(index, told) => {
            let player = &mut players[*index];
            for (name, word, new) in told {
                let condition = match word {
                    0 => Condition::Converged,
                    1 => Condition::Converging,
                    2 => failed(),
                    _ => Condition::Unknown,
                };
                let running = if *new { "new" } else { "old" };
                let report = report(condition, "new", running);
                player.member.document.set_report(&format!("a{name}"), &report).unwrap();
            }
            let envelope = player.member.seal();
            send(player, envelope).await;
        }
        Happening::Remove(index, name) => {
            let player = &mut players[*index];
            player.member.document.remove_report(&format!("a{name}"), now(), 0).unwrap();
            let envelope = player.member.seal();
            if player.member.document.changes() > 0 {
                send(player, envelope).await;
            }
        }
        Happening::Warn(index, code, raised) => {
            let player = &mut players[*index];
            let code = ["DiskLow", "DiskLimit.a0", "DiskLimit.a1", "NobodyKnows"][usize::from(*code)];
            match raised {
                Some(error) => {
                    let severity = if *error { Severity::Error } else { Severity::Warning };
                    let since = Timestamp(now().0 - 1000);
                    let warning = Warning { severity, message: format!("{code} is so"), since, clock: 0 };
                    player.member.document.set_warning(code, &warning).unwrap();
                }
                None => _ = player.member.document.clear_warning(code, now()).unwrap(),
            }
            let envelope = player.member.seal();
            if player.member.document.changes() > 0 {
                send(player, envelope).await;
            }
        }
        Happening::Replay(index, at) => {
            let player = &mut players[*index];
            if !player.sent.is_empty() {
                let envelope = player.sent[at.index(player.sent.len())].clone();
                send(player, envelope).await;
            }
        }
        Happening::Fork(index, name) => {
            let player = &mut players[*index];
            if player.member.document.changes() > 0 {
                let kept = player.member.document.to_bytes(now()).unwrap();
                let mut branch = StatusDocument::from_bytes(&kept).unwrap();
                branch.set_report(&format!("a{name}"), &report(failed(), "new", "fork")).unwrap();
                let envelope = branch.seal(&player.member.key, now(), None).unwrap();
                send(player, envelope).await;
            }
        }
        Happening::Epoch(index) => {
            let player = &mut players[*index];
            player.epoch += 1;
            let nonce = Nonce(rand::random());
            player.member.document = player.member.document.next_epoch(player.epoch, nonce, now()).unwrap();
        }
        Happening::Clone(index) => {
            let player = &mut players[*index];
            let mut other = StatusDocument::new(player.member.key.public(), player.epoch, Nonce(rand::random()));
            other.set_report("a0", &report(failed(), "new", "cloned")).unwrap();
            let envelope = other.seal(&player.member.key, now(), None).unwrap();
            if !player.sent.is_empty() {
                send(player, envelope).await;
            }
        }
        Happening::Move(index, drone) => {
            let player = &mut players[*index];
            let to = stream(if *drone { "drone" } else { "crane" });
            if let Some(from) = player.place.replace(to.clone()) {
                relocate(fleet.store(), &player.member.id, &from, Some(&to)).await;
            } else {
                fleet.join(&player.member, &to).await;
            }
        }
        Happening::Retire(index) => {
            let player = &mut players[*index];
            if let Some(from) = player.place.take() {
                relocate(fleet.store(), &player.member.id, &from, None).await;
            }
        }
        Happening::Join(index) => {
            let player = &mut players[*index];
            if player.place.is_none() {
                player.place = Some(stream("crane"));
                fleet.join(&player.member, &stream("crane")).await;
            }
        }
        Happening::Silence(index) => contact(&players[*index], -20_000, 10).await,
        Happening::Contact(index) => contact(&players[*index], 90_000, 10).await,
        Happening::Wedge(index) => contact(&players[*index], 90_000, 3 * 3600).await,
    }
}

/// Counts everything from the documents, and compares.
async fn compare(fleet: &Fleet) {
    let store = fleet.store();
    let mut expected = Deltas::default();
    let (mut exceptions, mut warnings) = (BTreeMap::new(), BTreeMap::new());
    for row in sqlx::query("SELECT * FROM clusters WHERE state = 'active'").fetch_all(store.pool()).await.unwrap() {
        let stream = Stream::new(
            &row.try_get::<String, _>("environment").unwrap(),
            &row.try_get::<String, _>("cluster_type").unwrap(),
            &row.try_get::<String, _>("ring").unwrap(),
        );
        let id = row.try_get::<String, _>("id").unwrap().parse().unwrap();
        let unknown = row.try_get::<Option<i64>, _>("unknown_since").unwrap().is_some();
        let document = store.document(&id).await.unwrap();
        let prepared = document.map(|stored| Prepared::read(&stored.envelopes, stored.received_at, None).unwrap());
        expected.add(Weight { stream: &stream, tally: prepared.as_ref().map(|prepared| &prepared.tally), unknown });
        let Some(prepared) = prepared else { continue };
        expected.warned(&stream, &Warned::default(), &prepared.warned);
        for (code, row) in prepared.warnings {
            let place = (stream.environment.clone(), stream.cluster_type.clone());
            let told = (row.kind.to_owned(), row.severity.as_str().to_owned(), row.message, row.since);
            warnings.insert((id.to_string(), code), (place, told));
        }
        for (assignment, exception) in prepared.exceptions {
            exceptions.insert((id, assignment), exception);
        }
    }
    let asked = CountFilter { environment: "dev", ..CountFilter::default() };
    let text = |key: Option<PackagesKey>| key.map(|key| key.to_string()).unwrap_or_default();
    let (mut recounted, mut members, mut warned) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (stream, deltas) in expected.0 {
        for (assignment, keys) in deltas.counts {
            for ((packages, running, word), count) in keys {
                let key = (stream.clone(), assignment.clone(), text(packages), text(running), word);
                recounted.insert(key, count);
            }
        }
        for (presence, count) in deltas.population {
            members.insert((stream.clone(), presence), count);
        }
        for ((kind, severity), count) in deltas.warnings {
            warned.insert((stream.cluster_type.clone(), kind, severity.as_str().to_owned()), count);
        }
    }
    let field = |row: &AnyRow, column: &str| row.try_get::<String, _>(column).unwrap();
    let counts = sqlx::query("SELECT * FROM warning_counts WHERE count <> 0").fetch_all(store.pool()).await.unwrap();
    let key = |row: &AnyRow| (field(row, "cluster_type"), field(row, "kind"), field(row, "severity"));
    let counted = counts.iter().map(|row| (key(row), row.try_get::<i64, _>("count").unwrap()));
    assert_eq!(counted.collect::<BTreeMap<_, _>>(), warned);
    let rows = sqlx::query("SELECT * FROM warnings").fetch_all(store.pool()).await.unwrap();
    let row = |row: &AnyRow| {
        let place = (field(row, "environment"), field(row, "cluster_type"));
        let since = row.try_get::<i64, _>("since").unwrap();
        (
            (field(row, "cluster"), field(row, "code")),
            (place, (field(row, "kind"), field(row, "severity"), field(row, "message"), since)),
        )
    };
    assert_eq!(rows.iter().map(row).collect::<BTreeMap<_, _>>(), warnings);
    let counts = store.counts(&asked).await.unwrap().into_iter();
    let counted: BTreeMap<_, _> = counts
        .map(|count| ((count.stream, count.assignment, count.packages, count.running, count.condition), count.count))
        .collect();
    assert_eq!(counted, recounted);
    let population = store.population("dev").await.unwrap().into_iter();
    let populated: BTreeMap<_, _> =
        population.map(|members| ((members.stream, members.presence), members.count)).collect();
    assert_eq!(populated, members);
    let rows = store.conditions(&ConditionFilter { limit: 10_000, ..ConditionFilter::default() }).await.unwrap();
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| ((row.cluster, row.assignment), row.exception)).collect();
    assert_eq!(rows, exceptions);
}

async fn clear(database: &Database) {
    for table in ["clusters", "documents", "conditions", "counts", "population", "warnings", "warning_counts"] {
        sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}"))).execute(database.store.pool()).await.unwrap();
    }
}

fn check(database: Database, cases: u32) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let fleet = runtime.block_on(async { start(database).await });
    let mut runner = TestRunner::new(ProptestConfig::with_cases(cases));
    let outcome = runner.run(&prop::collection::vec(happening(), 1..40), |happenings| {
        runtime.block_on(async {
            clear(&fleet.database).await;
            play(&fleet, &happenings).await;
            compare(&fleet).await;
        });
        Ok(())
    });
    outcome.unwrap();
    runtime.block_on(fleet.stop());
}

#[test]
fn counts_are_what_a_full_recount_gives() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let database = runtime.block_on(sqlite());
    check(database, 100);
}

#[test]
fn counts_are_what_a_full_recount_gives_on_postgres() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Some(database) = runtime.block_on(postgres()) {
        check(database, 40);
    }
}

/// Both hubs take documents of the same clusters, write contacts and judge check-in deadlines at once; refusals are tried again, as
/// agents do.
#[tokio::test(flavor = "multi_thread")]
async fn two_hubs_on_one_database_count_together() {
    let Some(database) = postgres().await else { return };
    let other = Database::again(&database);
    let hubs = [start(database).await, start(other).await];
    let mut members: Vec<Member> = (1..=12).map(member).collect();
    for member in &members {
        hubs[0].join(member, &stream("drone")).await;
    }
    for round in 0..6 {
        let mut tasks = tokio::task::JoinSet::new();
        for (index, member) in members.iter_mut().enumerate() {
            let condition = if (round + index) % 3 == 0 { failed() } else { Condition::Converging };
            let first = member.tell(&format!("a{}", index % 2), condition, "old");
            let second = member.tell("shop", Condition::Converged, if round % 2 == 0 { "new" } else { "old" });
            for (hub, envelope) in [(0, second), (1, first)] {
                let (intake, id) = (hubs[hub].intake.clone(), member.id);
                tasks.spawn(async move {
                    while intake.take(Some(&id), envelope.clone()).await == Err(TakeError::Unavailable) {}
                });
            }
        }
        for (hub, fleet) in hubs.iter().enumerate() {
            let (store, ids) = (fleet.store().clone(), members.iter().map(|member| member.id).collect::<Vec<_>>());
            tasks.spawn(async move {
                let (contacts, figures) = (Contacts::default(), Figures::default());
                for (index, id) in ids.iter().enumerate() {
                    let at = now();
                    let promise = if (index + hub + round) % 2 == 0 { 90_000 } else { -20_000 };
                    let told = Contact {
                        generation: Generation(1),
                        look_age: 1,
                        check_in_deadline: Timestamp(at.0 + promise),
                        heads: Heads::default(),
                        carried: None,
                    };
                    contacts.put(id, &told, at);
                }
                while step(&store, &contacts, &figures, now()).await.is_err() {}
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        compare(&hubs[0]).await;
    }
    for hub in hubs {
        hub.stop().await;
    }
}
