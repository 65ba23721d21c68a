//! Every number is the length of the list behind it, whatever the fleet is like.

use std::collections::BTreeMap;

use kedge_model::wire::Stream;
use kedge_status::{Condition, Report};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{GONE, HELLO, Newcomer, SPY, Standing, all, failed, follow, join, report, wanted};
use crate::api::page;
use crate::api::tests::fixture::Hub;

/// One cluster of a random fleet.
#[derive(Clone, Debug)]
struct Cluster {
    stream: (usize, usize, usize),
    standing: Standing,
    /// By assignment: condition, what runs, drift.
    told: Option<BTreeMap<usize, (u8, usize, bool)>>,
}

const ENVIRONMENTS: [&str; 2] = ["dev", "prod"];
const TYPES: [&str; 2] = ["drone", "large"];
const RINGS: [&str; 2] = [Stream::ALL, "canary"];
const NAMES: [&str; 3] = [HELLO, SPY, GONE];
const WORDS: [&str; 4] = ["converged", "converging", "failed", "unknown"];
const REALITIES: [&str; 4] = ["asDesired", "differs", "drifted", "unknown"];

fn cluster() -> impl Strategy<Value = Cluster> {
    let standing =
        prop_oneof![5 => Just(Standing::InContact), 2 => Just(Standing::Silent), 1 => Just(Standing::Retired)];
    let told = prop::collection::btree_map(0..NAMES.len(), (0..4_u8, 0..3_usize, any::<bool>()), 0..4);
    ((0..2_usize, 0..2_usize, 0..2_usize), standing, prop::option::weighted(0.9, told))
        .prop_map(|(stream, standing, told)| Cluster { stream, standing, told })
}

fn told((condition, running, drift): (u8, usize, bool)) -> Report {
    let condition = match condition {
        0 => Condition::Converged,
        1 => Condition::Converging,
        2 => failed(),
        _ => Condition::Unknown,
    };
    let mut told = report(condition, ["new", "old", "older"][running]);
    told.drift = drift.then(|| "a file was edited".to_owned());
    told
}

async fn settle(hub: &Hub, fleet: &[Cluster]) {
    for table in ["clusters", "documents", "conditions", "counts", "population"] {
        sqlx::query(sqlx::AssertSqlSafe(format!("DELETE FROM {table}"))).execute(hub.store.pool()).await.unwrap();
    }
    for (number, cluster) in fleet.iter().enumerate() {
        let (environment, cluster_type, ring) = cluster.stream;
        let stream = Stream::new(ENVIRONMENTS[environment], TYPES[cluster_type], RINGS[ring]);
        // Some share a name.
        let name = format!("c-{}", number % 5);
        let reports = cluster.told.as_ref();
        let reports = reports.map(|all| all.iter().map(|(name, one)| (NAMES[*name], told(*one))).collect());
        let number = u8::try_from(number).unwrap() + 1;
        let new = Newcomer { number, name: &name, stream, standing: cluster.standing, told: reports };
        join(hub, new).await;
    }
}

/// Counted by hand: assignments on clusters by environment, cluster type and condition.
fn expected(fleet: &[Cluster], own: bool) -> BTreeMap<(&'static str, &'static str, &'static str), u64> {
    let mut counts = BTreeMap::new();
    for cluster in fleet.iter().filter(|cluster| cluster.standing != Standing::Retired) {
        let (environment, cluster_type) = (ENVIRONMENTS[cluster.stream.0], TYPES[cluster.stream.1]);
        for (name, (condition, _, _)) in cluster.told.iter().flatten() {
            let word = if cluster.standing == Standing::Silent { 3 } else { usize::from(*condition) };
            // The team's is hello in dev.
            if !own || (environment == "dev" && NAMES[*name] == HELLO) {
                *counts.entry((environment, cluster_type, WORDS[word])).or_default() += 1;
            }
        }
    }
    counts
}

async fn count(hub: &Hub, token: &str, path: &str) -> u64 {
    let listed = all(hub, token, path, 3).await;
    // The other way along the clusters shows the same.
    let start = json!({"way": "Along", "assignment": null, "member": {
        "stream": {"environment": "", "clusterType": "", "ring": ""}, "name": "", "id": ""}});
    let along = follow(hub, token, path, 4, page::cursor(&start)).await;
    let key = |row: &Value| format!("{} {}", row["cluster"], row["assignment"]);
    let (mut one, mut other): (Vec<_>, Vec<_>) = (listed.iter().map(key).collect(), along.iter().map(key).collect());
    one.sort();
    other.sort();
    assert_eq!(one, other, "{path}");
    let before = one.len();
    one.dedup();
    assert_eq!(before, one.len(), "a row twice: {path}");
    listed.len() as u64
}

fn title(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

async fn compare(hub: &Hub, fleet: &[Cluster], token: &str, own: bool) {
    let view = hub.get(token, "/fleet").await.ok().body;
    let expected = expected(fleet, own);
    let mut total = 0;
    for environment in view["environments"].as_array().unwrap() {
        let name = environment["name"].as_str().unwrap();
        for word in WORDS {
            let number = environment["conditions"][word].as_u64().unwrap();
            let by_hand: u64 =
                expected.iter().filter(|((of, _, is), _)| *of == name && *is == word).map(|(_, n)| n).sum();
            assert_eq!(number, by_hand, "{name} {word}");
            let path = format!("/conditions?environment={name}&condition={}", title(word));
            assert_eq!(number, count(hub, token, &path).await, "{path}");
            total += number;
            for of in environment["types"].as_array().unwrap() {
                let number = of["conditions"][word].as_u64().unwrap();
                let path = format!("{path}&clusterType={}", of["name"].as_str().unwrap());
                assert_eq!(number, count(hub, token, &path).await, "{path}");
            }
            for of in environment["rings"].as_array().unwrap() {
                let number = of["conditions"][word].as_u64().unwrap();
                let path = format!("{path}&ring={}", of["name"].as_str().unwrap());
                assert_eq!(number, count(hub, token, &path).await, "{path}");
            }
        }
        for (field, condition) in [("known", "&condition=Known"), ("unknown", "&condition=Unknown"), ("total", "")] {
            let path = format!("/clusters?environment={name}&state=active{condition}");
            let number = environment["clusters"][field].as_u64().unwrap();
            assert_eq!(number, all(hub, token, &path, 4).await.len() as u64, "{path}");
        }
        let drift = hub.get(token, &format!("/drift?environment={name}")).await.ok().body;
        for word in REALITIES {
            let path = format!("/conditions?environment={name}&reality={word}");
            assert_eq!(drift["totals"][word].as_u64().unwrap(), count(hub, token, &path).await, "{path}");
            let groups = drift["groups"].as_array().unwrap();
            let sum: u64 = groups.iter().map(|group| group[word].as_u64().unwrap()).sum();
            assert_eq!(drift["totals"][word], sum);
            for group in groups {
                let path = format!("{path}&assignment={}", group["assignment"].as_str().unwrap());
                assert_eq!(group[word].as_u64().unwrap(), count(hub, token, &path).await, "{path}");
            }
        }
        let drifted = count(hub, token, &format!("/conditions?environment={name}&drift=true")).await;
        assert_eq!(drift["totals"]["drifted"], drifted);
    }
    assert_eq!(total, count(hub, token, "/conditions").await);
}

fn check(hub: &Hub, runtime: &tokio::runtime::Runtime, cases: u32) {
    runtime.block_on(wanted(hub, 3));
    let mut runner = TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) });
    let outcome = runner.run(&prop::collection::vec(cluster(), 0..14), |fleet| {
        runtime.block_on(async {
            settle(hub, &fleet).await;
            compare(hub, &fleet, &hub.viewer, false).await;
            compare(hub, &fleet, &hub.team, true).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn every_number_is_the_length_of_its_list() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let hub = runtime.block_on(Hub::new());
    check(&hub, &runtime, 24);
}

#[test]
fn every_number_is_the_length_of_its_list_on_postgres() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Some(hub) = runtime.block_on(Hub::on_postgres()) {
        check(&hub, &runtime, 8);
    }
}
