//! Every query of every dashboard and alert, asked of a real Prometheus that scraped a real hub and a real agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kedge_tests::lab::inbox::Inbox;
use kedge_tests::lab::port::Port;
use kedge_tests::lab::prometheus::Prometheus;
use kedge_tests::lab::{await_true, http};
use kedge_tests::world::plant::{LINE, MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;
use kedge_tests::world::{Database, SOON};
use serde_json::Value;

use crate::events::destination;
use crate::packaging::{Query, folder, metrics_in, of_dashboards};

/// What the server answers to a query; its result.
fn ask(prometheus: &Prometheus, query: &Query) -> Vec<Value> {
    let mut url = reqwest::Url::parse(&format!("{}/api/v1/query", prometheus.url())).unwrap();
    url.query_pairs_mut().append_pair("query", &query.text);
    let answer: Value = http::client().get(url).send().unwrap().json().unwrap();
    assert_eq!(answer["status"], "success", "{}: {}: {answer}", query.place, query.text);
    answer["data"]["result"].as_array().cloned().unwrap_or_default()
}

/// Names of series that it has.
fn names(prometheus: &Prometheus) -> BTreeSet<String> {
    let url = format!("{}/api/v1/label/__name__/values", prometheus.url());
    let answer: Value = http::client().get(url).send().unwrap().json().unwrap();
    answer["data"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The expressions of the alerts, as Prometheus itself reads them.
fn of_alerts() -> Vec<Query> {
    let text = fs::read_to_string(folder("prometheus").join("kedge.rules.yaml")).unwrap();
    let mut queries = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(expression) = line.trim_start().strip_prefix("expr: ") else { continue };
        let mut whole = expression.trim_start_matches('|').to_owned();
        while let Some(more) = lines.next_if(|next| next.starts_with("          ")) {
            whole = format!("{whole} {}", more.trim());
        }
        queries.push(Query { place: "alert".to_owned(), text: whole });
    }
    queries
}

#[test]
fn every_query_of_dashboards_and_alerts_finds_metrics_that_exist() {
    let inbox = Inbox::start();
    let secrets = tempfile::tempdir().unwrap();
    let policy = Policy::chain(&["dev"]);
    let started = Plant::start_with(Database::Sqlite, Some(&policy), |settings, _| {
        settings.more.push(destination(secrets.path(), "operations", &inbox.url("/")));
    });
    let Some(mut plant) = started else { return };
    plant.add("dev", LINE, "", 2);
    let port = Port::claim();
    let served = port.address();
    let agent = plant.agent("dev-factory-line-1");
    agent.stop();
    agent.write("etc/kedge/agent.toml", &format!("metrics = \"{served}\"\n"));
    agent.start_again();
    plant.await_converged("dev");

    // As `packaging/prometheus/prometheus.yaml` does it: with a token for reading.
    let made = plant.world.person("prometheus", "viewer", &[]);
    let token = made["token"].as_str().unwrap_or_else(|| panic!("{made}"));
    let started = Prometheus::start_with_token(plant.world.hub.places().api, token);
    let Some(hub) = started else { return };
    let Some(host) = Prometheus::start(served) else { return };
    let fleet = r#"sum(kedge_fleet_clusters{environment="dev", presence="reporting"})"#;
    hub.await_value(fleet, 2.0);
    let converged = r#"sum(kedge_fleet_assignments{environment="dev", condition="converged"})"#;
    await_true("the fleet's assignments are converged", MOVED_WITHIN, || hub.query(converged) == [2.0]);
    host.await_value(r#"kedge_agent_assignments{condition="converged"}"#, 1.0);
    host.await_value("kedge_agent_joined", 1.0);
    assert!(host.query(r#"kedge_agent_polls_total{outcome="answered"}"#)[0] >= 1.0);
    assert!(host.query("kedge_agent_contact_age_seconds")[0] < 60.0);
    assert!(host.query("kedge_agent_certificate_left_seconds")[0] > 80.0 * 86_400.0);
    assert!(hub.query("kedge_hub_leader") == [1.0] && hub.query("kedge_hub_database_up") == [1.0]);
    await_true("events were sent", SOON, || hub.query("kedge_fleet_events_sent_total").iter().any(|sent| *sent > 0.0));

    let known: BTreeSet<String> = names(&hub).union(&names(&host)).cloned().collect();
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for query in of_dashboards().into_iter().chain(of_alerts()) {
        for metric in metrics_in(&query.text).difference(&known) {
            missing.insert(metric.clone(), query.place.clone());
        }
        let agents = query.text.contains("kedge_agent_");
        let found = ask(if agents { &host } else { &hub }, &query);
        // A panel that shows nothing on a fleet where something happens is a wrong query; alerts are silent when all is well.
        let quiet = query.place == "alert" || query.text.contains("rate(") || query.text.contains("increase(");
        assert!(quiet || !found.is_empty(), "{}: {} finds nothing", query.place, query.text);
    }
    assert_eq!(missing, BTreeMap::new(), "metrics that nobody serves");
    let silent = of_alerts().iter().filter(|query| !query.text.contains("kedge_agent_")).all(|query| {
        // A new disk may look as if it filled; all else must be well.
        query.text.contains("disk") || ask(&hub, query).is_empty()
    });
    assert!(silent, "an alert fires on a fleet that is well");
    let labels: Vec<Value> =
        ask(&hub, &Query { place: "bound".to_owned(), text: r#"{__name__=~"kedge_.*"}"#.to_owned() });
    let series = labels.iter().filter(|one| one["metric"].to_string().contains("factory-line-1")).count();
    assert_eq!(series, 0, "no series names a cluster");
}
