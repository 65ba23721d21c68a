//! Search: what is found, in which order, and that no text breaks it.

use proptest::prelude::*;
use serde_json::Value;

use super::{Newcomer, Standing, drones, join};
use crate::api::tests::fixture::Hub;

async fn found(hub: &Hub, token: &str, text: &str) -> Vec<(String, String, String)> {
    let text: String = percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let answer = hub.get(token, &format!("/search?q={text}")).await.ok();
    let field = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    let items = answer.body.as_array().unwrap();
    items.iter().map(|item| (field(item, "kind"), field(item, "name"), field(item, "link"))).collect()
}

async fn everything_with_a_name_is_found(hub: Hub) {
    for (number, name) in (1..).zip(["drone", "west-drone-1", "DRONE-7", "100%_odd"]) {
        join(&hub, Newcomer { number, name, stream: drones(), standing: Standing::InContact, told: None }).await;
    }
    let drones = found(&hub, &hub.viewer, "drone").await;
    let kinds: Vec<(&str, &str)> = drones.iter().map(|(kind, name, _)| (kind.as_str(), name.as_str())).collect();
    // Exactly, then at the beginning, then inside.
    assert_eq!(kinds[..2], [("cluster-type", "drone"), ("cluster", "drone")], "{kinds:?}");
    let place = |name: &str| kinds.iter().position(|(_, found)| *found == name).unwrap();
    assert!(place("DRONE-7") < place("west-drone-1"), "{kinds:?}");
    assert!(kinds.contains(&("assignment", "drone/hello-functional-test")));
    assert_eq!(drones[0].2, "/types/dev/drone");
    let hello = found(&hub, &hub.viewer, "hello").await;
    assert_eq!((hello[0].0.as_str(), hello[0].2.as_str()), ("workload", "/workloads/hello"));
    assert!(hello.iter().any(|(kind, ..)| kind == "deployment-target"));
    assert_eq!(found(&hub, &hub.viewer, "dev").await[0].2, "/environments/dev");
    // Signs that a pattern knows are letters here.
    let odd = found(&hub, &hub.viewer, "0%_o").await;
    assert_eq!(odd.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(), ["100%_odd"]);
    assert!(found(&hub, &hub.viewer, "%").await.iter().all(|(_, name, _)| name == "100%_odd"));
    let by_hand = found(&hub, &hub.viewer, "edited by hand").await;
    assert_eq!((by_hand[0].0.as_str(), by_hand[0].1.as_str()), ("problem", "HandEdit"));
    assert!(found(&hub, &hub.viewer, "  ").await.is_empty());
    assert!(found(&hub, &hub.viewer, "unheard-of").await.is_empty());
    let id = &hub.get(&hub.viewer, "/clusters/drone").await.ok().body["id"].as_str().unwrap().to_owned();
    assert_eq!(found(&hub, &hub.viewer, &id[..10]).await[0].1, "drone");
    hub.get(&hub.viewer, "/search?q=a%00b").await.refused(400, "BadText");
    hub.get(&hub.viewer, "/search?q=a&limit=1000").await.refused(400, "BadLimit");
}

async fn a_team_finds_what_is_its_own(hub: Hub) {
    assert!(found(&hub, &hub.team, "spy").await.is_empty());
    assert!(!found(&hub, &hub.viewer, "spy").await.is_empty());
    assert!(!found(&hub, &hub.team, "hello").await.is_empty());
}

on_each_database! {
    everything_with_a_name_is_found,
    a_team_finds_what_is_its_own,
}

#[test]
fn any_text_is_answered_or_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let hub = runtime.block_on(Hub::new());
    proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }, |(text in ".{0,300}")| {
        let sent: String = percent_encoding::utf8_percent_encode(&text, percent_encoding::NON_ALPHANUMERIC).to_string();
        let answer = runtime.block_on(hub.get(&hub.viewer, &format!("/search?q={sent}")));
        prop_assert!(matches!(answer.status.as_u16(), 200 | 400), "{} {}", answer.status, answer.text);
    });
}
