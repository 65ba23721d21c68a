//! The text as Prometheus reads it, its bounds, and the hub's part of `docs/metrics.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::wire::Timestamp;

use super::gathered::Looked;
use super::own::{Found, Room};
use super::series::MOST_PLACES;
use super::*;
use crate::store::events::Delivery;
use crate::store::figures::{Aged, Figures, Passage, Place, RolloutWord};
use crate::store::test_database;

fn place(environment: &str, ring: &str) -> Place {
    Place { environment: environment.to_owned(), ring: ring.to_owned() }
}

/// Something of everything.
fn example() -> Metrics {
    let metrics = Metrics::new();
    let prod = || "prod".to_owned();
    let aged = Aged { count: 2, oldest: Some(Timestamp(0)) };
    let figures = Figures {
        clusters: BTreeMap::from([((place("prod", "canary"), Presence::Reporting), 73)]),
        assignments: BTreeMap::from([((place("prod", "canary"), Word::Converged), 146)]),
        unknown: BTreeMap::from([(prod(), aged)]),
        drifted: BTreeMap::from([(prod(), 3)]),
        rollouts: BTreeMap::from([((prod(), RolloutWord::Stopped), aged)]),
        rings_stopped: BTreeMap::from([(place("prod", "canary"), aged)]),
        promotions: BTreeMap::from([(prod(), Passage { stuck: true, ..Passage::default() })]),
        quarantined: BTreeMap::from([(prod(), aged)]),
        removals_waiting: BTreeMap::new(),
        problems: BTreeMap::from([(prod(), (1, 4))]),
        database_bytes: 4096,
        term: 7,
        ..Figures::default()
    };
    let delivery = Delivery { name: "ops".to_owned(), sent: 12, ..Delivery::default() };
    let own = Found {
        disks: vec![("data", Room { free: 5, size: 10 })],
        certificates: vec![("authority", Timestamp(i64::MAX / 2))],
    };
    metrics.gathered.put(Looked { figures, deliveries: vec![delivery] }, own);
    metrics
}

#[test]
fn every_family_is_in_the_text_with_bounded_labels() {
    let metrics = example();
    metrics.leader.set(1);
    metrics.polls.get_or_create(&PollOutcome::News.into()).inc();
    metrics.documents.get_or_create(&DocumentResult::WrongCluster.into()).inc();
    metrics.step(StepName::Pack, std::time::Duration::from_millis(3));
    let missing = Request { route: Route::Read, status: Status::of(http::StatusCode::NOT_FOUND) };
    metrics.requests.get_or_create(&missing).inc();
    let text = metrics.encode().unwrap();
    for line in [
        "kedge_hub_leader 1",
        "kedge_hub_polls_total{outcome=\"news\"} 1",
        "kedge_hub_status_documents_total{result=\"wrong_cluster\"} 1",
        "kedge_hub_http_requests_total{route=\"read\",status=\"4xx\"} 1",
        "kedge_hub_walk_step_seconds_bucket{le=\"0.005\",step=\"pack\"} 1",
        "kedge_hub_database_errors_total{kind=\"refused\"}",
        "kedge_hub_build_info{version=",
        "kedge_hub_disk_free_bytes{folder=\"data\"} 5",
        "kedge_hub_database_size_bytes 4096",
        "kedge_fleet_clusters{environment=\"prod\",ring=\"canary\",presence=\"reporting\"} 73",
        "kedge_fleet_clusters{environment=\"prod\",ring=\"canary\",presence=\"unknown\"} 0",
        "kedge_fleet_assignments{environment=\"prod\",ring=\"canary\",condition=\"converged\"} 146",
        "kedge_fleet_rollouts{environment=\"prod\",state=\"stopped\"} 2",
        "kedge_fleet_rollouts{environment=\"prod\",state=\"active\"} 0",
        "kedge_fleet_ring_rollouts_stopped{environment=\"prod\",ring=\"canary\"} 2",
        "kedge_fleet_promotion_stuck{environment=\"prod\"} 1",
        "kedge_fleet_removals_waiting_oldest_seconds{environment=\"prod\"} 0",
        "kedge_fleet_problems{environment=\"prod\",severity=\"warning\"} 4",
        "kedge_fleet_events_sent_total{destination=\"ops\"} 12",
        "kedge_fleet_leader_term 7",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn a_thousand_rings_that_git_names_make_a_bounded_text() {
    let metrics = Metrics::new();
    let mut figures = Figures::default();
    for number in 0..1000 {
        let place = place(&format!("env-{number}"), "all");
        figures.clusters.insert((place.clone(), Presence::Reporting), 1);
        figures.assignments.insert((place, Word::Failed), 1);
        figures.drifted.insert(format!("env-{number}"), 1);
    }
    metrics.gathered.put(Looked { figures, deliveries: Vec::new() }, Found::default());
    let text = metrics.encode().unwrap();
    let series = |name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    assert_eq!(series("kedge_fleet_clusters{"), (MOST_PLACES + 1) * 3);
    assert_eq!(series("kedge_fleet_assignments{"), (MOST_PLACES + 1) * 4);
    assert_eq!(series("kedge_fleet_drifted_assignments{"), MOST_PLACES + 1);
    assert!(text.contains("kedge_fleet_drifted_assignments{environment=\"other\"} 800"), "{text}");
}

#[tokio::test]
async fn figures_come_from_the_database_and_say_when_it_is_away() {
    let (_folder, store) = test_database::sqlite().await;
    figures_of(&store).await;
    store.close().await;
    let metrics = Metrics::new();
    metrics.gathered.refresh(&store).await;
    let text = metrics.encode().unwrap();
    assert!(text.contains("kedge_hub_database_up 0") && !text.contains("kedge_fleet_"), "{text}");
}

#[tokio::test]
async fn figures_come_from_postgres_too() {
    let Some(store) = test_database::postgres().await else { return };
    figures_of(&store).await;
}

async fn figures_of(store: &crate::store::Store) {
    let mut tx = store.write().await.unwrap();
    for sql in [
        "INSERT INTO population VALUES ('prod', 'drone', 'canary', 'Reporting', 4), ('prod', 'line', 'canary', 'Reporting', 2), \
         ('prod', 'drone', 'canary', 'Unknown', 1)",
        "INSERT INTO counts VALUES ('prod', 'drone', 'canary', 'a', 'p', 'p', 'Converged', 3), \
         ('prod', 'line', 'canary', 'b', 'q', 'q', 'Converged', 2), ('prod', 'drone', 'canary', 'a', 'q', 'p', 'Failed', 1)",
        "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, membership, \
         joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, unknown_since, generation, tick) \
         VALUES ('c1', 'n', 'prod', 'drone', 'canary', '{}', 'k', '{}', 'active', 1, 'm', 1, 't', 's', 2, 1, 1, 60000, 1, 1), \
         ('c2', 'o', 'prod', 'drone', 'canary', '{}', 'k', '{}', 'active', 1, 'm', 1, 't', 's', 2, 1, 1, NULL, 1, 1)",
        "INSERT INTO conditions (cluster, assignment, condition, packages, running, generation, drift, since, observed_at, \
         corrected) VALUES ('c1', 'a', 'Converged', 'p', 'p', 1, 'x', 1, 1, 0), ('c2', 'a', 'Converged', 'p', 'p', 1, 'x', 1, 1, 0)",
        "INSERT INTO promotions VALUES ('prod', '{\"current\":\"c0ffee\",\"promotions\":[{\"commit\":\"c0ffee\",\"subject\":\"\",\
         \"author\":\"\",\"phase\":{\"phase\":\"failed\",\"why\":\"x\"},\"createdAt\":1000,\"enteredAt\":2000}]}', NULL, NULL, 1, 1)",
        "INSERT INTO rollout_quarantines VALUES ('prod', 'drone/a', '', '', 'why', 5000)",
        "INSERT INTO removals_waiting (environment, cluster_type, gone, of_size, since) VALUES ('prod', 'drone', '[]', 3, 5000)",
    ] {
        // PostgreSQL takes text for bytes only when it is told so.
        let sql = match store.backend() {
            crate::store::Backend::Postgres => sql.replace("'{}', 'k'", "'{}', '\\x00'").replace("'m'", "'\\x00'"),
            crate::store::Backend::Sqlite => sql.to_owned(),
        };
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(tx.connection()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let figures = store.figures().await.unwrap();
    assert_eq!(figures.clusters[&(place("prod", "canary"), Presence::Reporting)], 6);
    assert_eq!(figures.assignments[&(place("prod", "canary"), Word::Converged)], 5);
    assert_eq!(figures.unknown["prod"], Aged { count: 1, oldest: Some(Timestamp(60_000)) });
    assert_eq!(figures.drifted["prod"], 1, "what an unknown cluster said isn't counted");
    let passage = figures.promotions["prod"];
    assert!(passage.stuck && passage.open == Some(Timestamp(2000)) && passage.waiting.is_none(), "{passage:?}");
    assert_eq!((figures.quarantined["prod"].count, figures.removals_waiting["prod"].count), (1, 1));
    assert!(figures.database_bytes > 0);
    assert_eq!(figures.history, crate::store::figures::Kept::default());
    let metrics = Metrics::new();
    metrics.gathered.refresh(store).await;
    let text = metrics.encode().unwrap();
    assert!(
        text.contains("kedge_fleet_clusters{environment=\"prod\",ring=\"canary\",presence=\"reporting\"} 6"),
        "{text}"
    );
    assert!(text.contains("kedge_hub_database_up 1"));
}

/// One row of the page.
struct Described {
    name: String,
    kind: String,
    unit: String,
    help: String,
    labels: BTreeSet<String>,
}

/// What the text says of itself.
fn describe(text: &str) -> Vec<Described> {
    let mut all: Vec<Described> = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name), Some(help)) => all.push(Described {
                name: name.to_owned(),
                kind: String::new(),
                unit: String::new(),
                help: help.trim_end_matches('.').to_owned(),
                labels: BTreeSet::new(),
            }),
            (Some("#"), Some("TYPE"), Some(_), Some(kind)) => all.last_mut().unwrap().kind = kind.to_owned(),
            (Some("#"), Some("UNIT"), Some(_), Some(unit)) => all.last_mut().unwrap().unit = unit.to_owned(),
            (Some("#"), ..) => {}
            _ => {
                let Some((_, rest)) = line.split_once('{') else { continue };
                let (labels, _) = rest.rsplit_once('}').unwrap();
                let names = labels.split("\",").map(|label| label.split('=').next().unwrap().to_owned());
                all.last_mut().unwrap().labels.extend(names.filter(|name| name != "le"));
            }
        }
    }
    all
}

/// `KEDGE_UPDATE=1` writes the hub's part anew.
#[test]
fn the_page_of_metrics_is_what_the_code_has() {
    const BEGIN: &str = "<!-- hub: made by a test of kedge-hub -->\n";
    const END: &str = "<!-- end of hub -->\n";
    let mut table = String::from("| metric | type | unit | labels | what it says |\n|---|---|---|---|---|\n");
    for Described { name, kind, unit, help, labels } in describe(&example().encode().unwrap()) {
        let ending = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        table.push_str(&format!("| `{name}{ending}` | {kind} | {unit} | {} | {help} |\n", labels.join(", ")));
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("KEDGE_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
        return;
    }
    assert!(page == made, "docs/metrics.md differs from the code: run this test with KEDGE_UPDATE=1");
}
