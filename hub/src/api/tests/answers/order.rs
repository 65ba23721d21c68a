//! Lists over several environments: along the promotion chain on every page, each row once.

use kedge_model::wire::Stream;
use kedge_status::Condition;
use serde_json::{Value, json};

use super::fleet::promote;
use super::{HELLO, Newcomer, Standing, all, failed, follow, join, report};
use crate::api::tests::fixture::Hub;
use crate::api::tests::rollouts::run;

/// The chain is dev, stage, prod; nobody knows `attic` and `zoo`, and in `attic` nobody is left.
const ALONG: [&str; 5] = ["dev", "stage", "prod", "attic", "zoo"];

/// Three drones in each environment, joined in no order; one of each Failed, one is silent; in `attic` they are retired.
async fn fleet(hub: &Hub) {
    promote(hub).await;
    let mut number = 0;
    for environment in ["zoo", "prod", "attic", "dev", "stage"] {
        for (name, standing, condition) in [
            ("c", Standing::Silent, Condition::Converged),
            ("a", Standing::InContact, Condition::Converged),
            ("b", Standing::InContact, failed()),
        ] {
            number += 1;
            let stream = Stream::new(environment, "drone", Stream::ALL);
            let standing = if environment == "attic" { Standing::Retired } else { standing };
            let told = Some(vec![(HELLO, report(condition, "new"))]);
            join(hub, Newcomer { number, name, stream, standing, told }).await;
        }
    }
}

fn rows(items: &[Value], name: &str) -> Vec<(String, String)> {
    let text = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    items.iter().map(|item| (text(item, "environment"), text(item, name))).collect()
}

fn each(environments: &[&str], names: &[&str]) -> Vec<(String, String)> {
    let pairs = |environment: &&str| {
        let pair = |name: &&str| ((*environment).to_owned(), (*name).to_owned());
        names.iter().map(pair).collect::<Vec<_>>()
    };
    environments.iter().flat_map(pairs).collect()
}

async fn clusters_come_along_the_chain_on_pages_of_any_size(hub: Hub) {
    fleet(&hub).await;
    for limit in [1, 2, 3, 4, 100] {
        let found = all(&hub, &hub.viewer, "/clusters", limit).await;
        assert_eq!(rows(&found, "name"), each(&ALONG, &["a", "b", "c"]), "pages of {limit}");
        let silent = all(&hub, &hub.viewer, "/clusters?condition=Unknown&state=active", limit).await;
        assert_eq!(rows(&silent, "name"), each(&["dev", "stage", "prod", "zoo"], &["c"]), "pages of {limit}");
        let retired = all(&hub, &hub.viewer, "/clusters?state=retired", limit).await;
        assert_eq!(rows(&retired, "name"), each(&["attic"], &["a", "b", "c"]), "pages of {limit}");
        let one = all(&hub, &hub.viewer, "/clusters?environment=stage", limit).await;
        assert_eq!(rows(&one, "name"), each(&["stage"], &["a", "b", "c"]), "pages of {limit}");
    }
}

async fn a_page_goes_on_where_the_one_before_ended(hub: Hub) {
    fleet(&hub).await;
    let first = hub.get(&hub.viewer, "/clusters?limit=4").await.ok().body;
    // Whoever is in front of the cursor now was missed by nobody; whoever went is missed by nobody either.
    run(&hub, "DELETE FROM clusters WHERE environment = 'stage'", &[]).await;
    let rest = follow(&hub, &hub.viewer, "/clusters", 2, first["next"].as_str().map(str::to_owned)).await;
    assert_eq!(rows(&rest, "name"), each(&["prod", "attic", "zoo"], &["a", "b", "c"]));
}

async fn conditions_come_along_the_chain_on_pages_of_any_size(hub: Hub) {
    fleet(&hub).await;
    let members = ["dev", "stage", "prod", "zoo"];
    for limit in [1, 2, 3, 100] {
        let found = all(&hub, &hub.viewer, "/conditions", limit).await;
        assert_eq!(rows(&found, "clusterName"), each(&members, &["a", "b", "c"]), "pages of {limit}");
        // From the few exceptions to their clusters, and from those who are silent.
        for (query, name) in [("condition=Failed", "b"), ("condition=Unknown", "c"), ("reality=unknown", "c")] {
            let found = all(&hub, &hub.viewer, &format!("/conditions?{query}"), limit).await;
            assert_eq!(rows(&found, "clusterName"), each(&members, &[name]), "{query}, pages of {limit}");
        }
    }
}

async fn a_team_walks_its_own_environments_along_the_chain(hub: Hub) {
    fleet(&hub).await;
    for environment in ["zoo", "prod"] {
        run(
            &hub,
            "INSERT INTO catalog SELECT kind, $1, name, parent, workspace, state, labels, body, detail, content, note, digest, \
             updated_at, tick FROM catalog WHERE kind = 'assignment' AND environment = 'dev' AND name LIKE 'drone/hello-%'",
            &[environment],
        )
        .await;
    }
    let own = ["dev", "prod", "zoo"];
    for limit in [1, 2, 100] {
        let found = all(&hub, &hub.team, "/clusters", limit).await;
        assert_eq!(rows(&found, "name"), each(&own, &["a", "b", "c"]), "pages of {limit}");
        for (query, names) in [("", ["a", "b", "c"].as_slice()), ("?condition=Failed", &["b"])] {
            let found = all(&hub, &hub.team, &format!("/conditions{query}"), limit).await;
            assert_eq!(rows(&found, "clusterName"), each(&own, names), "{query}, pages of {limit}");
        }
    }
}

async fn changes_are_all_there_and_along_the_chain(hub: Hub) {
    fleet(&hub).await;
    let tick = hub.store.current_tick().await.unwrap();
    let nothing = hub.get(&hub.viewer, &format!("/clusters?after={tick}")).await.ok().body;
    assert_eq!(nothing["items"], json!([]));
    run(&hub, "UPDATE clusters SET tick = (SELECT value + 1 FROM ticks WHERE id = 1) WHERE name = 'b'", &[]).await;
    run(&hub, "UPDATE ticks SET value = value + 1 WHERE id = 1", &[]).await;
    let changed = hub.get(&hub.viewer, &format!("/clusters?after={tick}&wait=5s")).await.ok().body;
    assert_eq!(rows(changed["items"].as_array().unwrap(), "name"), each(&ALONG, &["b"]));
    let one = hub.get(&hub.viewer, &format!("/clusters?after={tick}&wait=5s&environment=prod")).await.ok().body;
    assert_eq!(rows(one["items"].as_array().unwrap(), "name"), each(&["prod"], &["b"]));
}

async fn desired_states_and_what_is_found_come_along_the_chain(hub: Hub) {
    fleet(&hub).await;
    for environment in ["zoo", "prod", "stage"] {
        for cluster_type in ["drone", "large"] {
            hub.state_of(environment, cluster_type, 1, 5000, &json!([])).await;
        }
    }
    for limit in [1, 2, 100] {
        let found = all(&hub, &hub.viewer, "/desired-states?clusterType=drone", limit).await;
        let environments: Vec<&str> = found.iter().map(|one| one["environment"].as_str().unwrap()).collect();
        assert!(environments.ends_with(&["stage", "prod", "zoo"]), "{environments:?}, pages of {limit}");
        let found = all(&hub, &hub.viewer, "/desired-states", limit).await;
        let ours: Vec<Value> = found.into_iter().filter(|one| one["environment"] != "dev").collect();
        assert_eq!(
            rows(&ours, "clusterType"),
            each(&["stage", "prod", "zoo"], &["drone", "large"]),
            "pages of {limit}"
        );
    }
    let found = hub.get(&hub.viewer, "/search?q=a").await.ok().body;
    let is_named = |one: &&Value| one["kind"] == "cluster" && one["name"] == "a";
    let clusters: Vec<&Value> = found.as_array().unwrap().iter().filter(is_named).collect();
    let environments: Vec<&str> = clusters.iter().map(|one| one["environment"].as_str().unwrap()).collect();
    assert_eq!(environments, ALONG);
}

on_each_database! {
    clusters_come_along_the_chain_on_pages_of_any_size,
    a_page_goes_on_where_the_one_before_ended,
    conditions_come_along_the_chain_on_pages_of_any_size,
    a_team_walks_its_own_environments_along_the_chain,
    changes_are_all_there_and_along_the_chain,
    desired_states_and_what_is_found_come_along_the_chain,
}
