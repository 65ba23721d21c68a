//! A hundred thousand clusters with ten assignments each: figures of `./tests/bench figures`.

use std::time::Instant;

use crate::api::tests::fixture::Hub;
use crate::store::Backend;

/// One row for each number; the same text on SQLite and PostgreSQL.
const NUMBERS: &str = "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) ";

/// 1 of 50 silent, 1 of 40 failed, 1 of 200 drifted; dev has 1 of 100, and there are 20 cluster types.
async fn fill(hub: &Hub) {
    let hex = match hub.store.backend() {
        Backend::Sqlite => "printf('%08x', i)",
        Backend::Postgres => "lpad(to_hex(i), 8, '0')",
    };
    let id = format!("({hex} || '{}')", "0".repeat(24));
    let bytes = match hub.store.backend() {
        Backend::Sqlite => "x'00'",
        Backend::Postgres => "'\\x00'::bytea",
    };
    let plain = "[\"00000000000000000000000000000001\",\"00000000000000000000000000000001\",\"Converged\",null,[1700000000000,\"1.4.2\"]]";
    let bad = "[\"00000000000000000000000000000001\",\"00000000000000000000000000000002\",\"Failed\",7]";
    let drifted = "[\"00000000000000000000000000000001\",\"00000000000000000000000000000001\",\"Converged\",7]";
    let rest: Vec<String> = (1..10).map(|number| format!("\"a{number}\":{plain}")).collect();
    let rest = rest.join(",");
    let environment = "CASE WHEN i % 100 = 0 THEN 'dev' WHEN i % 100 < 10 THEN 'stage' ELSE 'prod' END";
    let statements = [
        format!(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence, \
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until, unknown_since, \
             look_at, generation, tick) {NUMBERS} SELECT {id}, 'box-' || {hex}, {environment}, 'type-' || (i / 100 % 20), \
             CASE WHEN i % 10 = 0 THEN 'canary' ELSE 'rest' END, '{{}}', {bytes}, '{{}}', 'active', 1, {bytes}, 1, 't', 's', 2, 1, 1, \
             CASE WHEN i % 50 = 7 THEN 1700000000000 + i ELSE NULL END, 1700000000000, 7, 1 FROM n"
        ),
        format!(
            "INSERT INTO documents (cluster, epoch, nonce, heads, received_at, written_at, via, tally, envelopes) {NUMBERS} \
             SELECT {id}, 1, 'n', 'h', 1, 1, NULL, '{{\"a0\":' || CASE WHEN i % 40 = 3 THEN '{bad}' WHEN i % 200 = 11 THEN '{drifted}' \
             ELSE '{plain}' END || ',{rest}}}', {bytes} FROM n"
        ),
        format!(
            "INSERT INTO conditions (cluster, assignment, condition, packages, running, generation, version, reason, message, drift, \
             since, observed_at, corrected) {NUMBERS} SELECT {id}, 'a0', CASE WHEN i % 40 = 3 THEN 'Failed' ELSE 'Converged' END, '1', '2', \
             7, '1.4.1', 'HealthCheck', 'it does not answer', CASE WHEN i % 200 = 11 THEN 'edited' ELSE NULL END, 1, 1, 0 FROM n \
             WHERE i % 40 = 3 OR i % 200 = 11"
        ),
        "INSERT INTO population (environment, cluster_type, ring, presence, count) SELECT environment, cluster_type, ring, \
         CASE WHEN unknown_since IS NULL THEN 'Reporting' ELSE 'Unknown' END, COUNT(*) FROM clusters \
         GROUP BY environment, cluster_type, ring, CASE WHEN unknown_since IS NULL THEN 'Reporting' ELSE 'Unknown' END"
            .to_owned(),
        "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
         SELECT k.environment, k.cluster_type, k.ring, a.name, '00000000000000000000000000000001', \
         CASE WHEN c.condition = 'Failed' THEN '00000000000000000000000000000002' ELSE '00000000000000000000000000000001' END, \
         CASE WHEN k.unknown_since IS NOT NULL THEN 'Unknown' WHEN c.condition = 'Failed' THEN 'Failed' ELSE 'Converged' END, COUNT(*) \
         FROM clusters k CROSS JOIN (SELECT 'a0' AS name UNION SELECT 'a1' UNION SELECT 'a2' UNION SELECT 'a3' UNION SELECT 'a4' \
         UNION SELECT 'a5' UNION SELECT 'a6' UNION SELECT 'a7' UNION SELECT 'a8' UNION SELECT 'a9') a \
         LEFT JOIN conditions c ON c.cluster = k.id AND c.assignment = a.name GROUP BY 1, 2, 3, 4, 5, 6, 7"
            .to_owned(),
    ];
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(hub.store.pool()).await.unwrap();
    }
    if hub.store.backend() == Backend::Postgres {
        // As it does by itself after a while.
        sqlx::query("ANALYZE").execute(hub.store.pool()).await.unwrap();
    }
}

async fn answers_about_a_hundred_thousand_clusters(hub: Hub) {
    let begun = Instant::now();
    fill(&hub).await;
    println!("filled in {:.0?} ({:?})", begun.elapsed(), hub.store.backend());
    let mut slowest = (0, "");
    for path in [
        "/fleet",
        "/fleet?environment=prod",
        "/clusters",
        "/clusters?condition=Unknown&state=active",
        "/clusters?warning=DiskLow&state=active",
        "/problems",
        "/conditions",
        "/conditions?environment=prod&condition=Failed",
        "/conditions?environment=dev&condition=Failed",
        "/conditions?condition=Converged&assignment=a5",
        "/conditions?condition=Unknown",
        "/conditions?environment=dev&condition=Unknown",
        "/conditions?condition=Converging",
        "/conditions?drift=true",
        "/conditions?environment=stage&drift=true",
        "/conditions?reason=HealthCheck&environment=stage",
        "/conditions?reality=differs&environment=prod&clusterType=type-3",
        "/conditions?cluster=box-00000003",
        "/drift",
        "/drift?environment=prod",
        "/search?q=box-0000",
        "/search?q=7f",
        "/search?q=nothing-like-it",
    ] {
        let first = hub.get(&hub.viewer, path).await.ok();
        let begun = Instant::now();
        for _ in 0..5 {
            hub.get(&hub.viewer, path).await.ok();
        }
        let took = begun.elapsed().as_millis() / 5;
        let rows = first.body["items"].as_array().map(Vec::len);
        println!("{took:>5} ms  {path}  {} bytes {rows:?}", first.text.len());
        if took > slowest.0 {
            slowest = (took, path);
        }
    }
    println!("slowest: {slowest:?}");
    println!("FIGURE slowest_answer_{:?} {}", hub.store.backend(), slowest.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn figure_answers_about_a_hundred_thousand_clusters_on_sqlite() {
    answers_about_a_hundred_thousand_clusters(Hub::new().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn figure_answers_about_a_hundred_thousand_clusters_on_postgres() {
    if let Some(hub) = Hub::on_postgres().await {
        answers_about_a_hundred_thousand_clusters(hub).await;
    }
}
