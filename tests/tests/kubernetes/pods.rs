//! The pods that stand by: they get what the cluster runs from the one that works, and a takeover asks the hub for nothing again.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use kedge_tests::lab::kubernetes::decoded;
use kedge_tests::lab::pod_agent::PodAgent;
use kedge_tests::lab::relay::Relay;
use kedge_tests::world::harbour::manifests::Manifests;
use kedge_tests::world::harbour::{CHANGED_WITHIN, CLUSTER_TYPE, Harbour};
use serde_json::Value;

use super::leaders::await_holder;

/// A renewal carries the mark, a look at the Lease brings it, and the packages are small.
const MIRRORED_WITHIN: Duration = Duration::from_secs(30);

/// How often a blob was asked of the hub, by anybody.
fn asked_of_hub(harbour: &Harbour) -> u64 {
    let text = harbour.world.api.ask(Method::GET, "/metrics", None, &[]).text;
    let blobs = text
        .lines()
        .filter(|line| line.starts_with("kedge_hub_http_requests_total{") && line.contains("route=\"blob\""));
    blobs.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64
}

/// The packages that the desired state names.
fn named(harbour: &Harbour) -> BTreeSet<String> {
    let state = harbour.world.api.state("dev", CLUSTER_TYPE, None);
    let entries = state["entries"].as_array().cloned().unwrap_or_default();
    let digest = |entry: &Value, part: &str| Some(entry[part]["digest"].as_str()?.to_owned());
    entries.iter().flat_map(|entry| [digest(entry, "platform"), digest(entry, "workload")]).flatten().collect()
}

/// How many packages are named now that weren't.
fn new_of(harbour: &Harbour, known: &BTreeSet<String>) -> u64 {
    named(harbour).difference(known).count() as u64
}

/// The agent of this number has all that is desired, and says so.
fn await_mirrored(harbour: &Harbour, number: usize) {
    let agent = &harbour.agents[number];
    let has_all = |harbour: &Harbour| {
        named(harbour).iter().all(|digest| agent.has(digest)) && agent.pods().is_some_and(|pods| pods["lacks"] == 0)
    };
    harbour.await_so(&format!("{} has all that the cluster runs", agent.name()), MIRRORED_WITHIN, has_all);
}

#[test]
fn one_that_takes_over_has_the_packages_from_the_leader_and_fetches_only_what_is_new() {
    let Some(mut harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    await_holder(&harbour, 0);
    harbour.await_converged("shop");
    let before = asked_of_hub(&harbour);
    assert!(before >= 2, "both packages came from the hub: {before}");

    harbour.add_agent();
    await_mirrored(&harbour, 1);
    assert_eq!(asked_of_hub(&harbour), before, "nothing came from the hub");
    let stands_by = harbour.agents[1].pods().unwrap();
    assert_eq!(
        (&stands_by["role"], &stands_by["leader"]),
        (&"standsBy".into(), &"kedge-agent-0".into()),
        "{stands_by:#}"
    );
    harbour.await_so("the leader shows who asked", MIRRORED_WITHIN, |harbour| {
        harbour.agents[0].pods().is_some_and(|pods| pods["asked"][0]["address"] == "127.0.0.1")
    });

    // What comes while it stands by comes to it too, fetched once for both.
    let known = named(&harbour);
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    await_mirrored(&harbour, 1);
    let (asked, new) = (asked_of_hub(&harbour), new_of(&harbour, &known));
    assert_eq!((asked, new >= 1), (before + new, true), "each new package once");

    harbour.agents[0].kill();
    await_holder(&harbour, 1);
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    harbour.await_so("it repairs", CHANGED_WITHIN, |harbour| harbour.version("shop", "web").as_deref() == Some("2"));
    assert_eq!(asked_of_hub(&harbour), asked, "a repair needs nothing");
    // Another platform package with the same workload: that one is applied from what was mirrored.
    let known = named(&harbour);
    harbour.push_setting("shop", "GREETING", "after the takeover");
    harbour.await_converged("shop");
    let new = new_of(&harbour, &known);
    assert_eq!((asked_of_hub(&harbour), new >= 1), (asked + new, true), "only what is new");
    let leads = harbour.agents[1].pods().unwrap();
    assert_eq!(leads["role"], "leads", "{leads:#}");
}

#[test]
fn a_leader_with_wrong_bytes_is_refused_and_the_hub_is_asked_after_the_takeover() {
    let Some(mut harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    await_holder(&harbour, 0);
    harbour.await_converged("shop");
    let entry = harbour.entry("shop").unwrap();
    let workload = entry["workload"]["digest"].as_str().unwrap().to_owned();
    let object = harbour.agents[0].root().join("var/lib/kedge-agent/objects").join(workload.replace(':', "-"));
    let length = fs::metadata(&object).unwrap().len();
    fs::remove_file(&object).unwrap();
    fs::write(&object, vec![b'x'; usize::try_from(length).unwrap()]).unwrap();

    harbour.add_agent();
    harbour.await_so("it says what the leader did", MIRRORED_WITHIN, |harbour| {
        harbour.agents[1].pods().is_some_and(|pods| pods["trouble"].as_str().is_some_and(|why| why.contains(&workload)))
    });
    assert!(!harbour.agents[1].has(&workload));
    assert_eq!(harbour.agents[1].command(&["peers"]).status().unwrap().code(), Some(3));

    harbour.agents[0].kill();
    await_holder(&harbour, 1);
    harbour.push_setting("shop", "GREETING", "after the takeover");
    harbour.await_converged("shop");
    assert!(harbour.agents[1].has(&workload), "it came from the hub");
}

/// Where the agent of this number lets caches in.
fn cache_door(harbour: &Harbour, number: usize) -> SocketAddr {
    let mut found = None;
    harbour.await_so("caches are let in", MIRRORED_WITHIN, |harbour| {
        let log = harbour.agents[number].log();
        let line = log.lines().rfind(|line| line.contains("caches of the cluster are let in"));
        found = line.and_then(|line| line.split_once("address=")?.1.split_whitespace().next()?.parse().ok());
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn a_cache_without_any_right_gives_the_next_agent_what_its_node_lacks() {
    let Some(mut harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    await_holder(&harbour, 0);
    harbour.await_converged("shop");
    let workload = harbour.entry("shop").unwrap()["workload"]["digest"].as_str().unwrap().to_owned();

    // What its pod has: the agents' address, and the key that the agent made.
    let path = format!("/api/v1/namespaces/{}/secrets/kedge-cache", harbour.own_namespace());
    let secret = harbour.kubernetes.await_object(&path, "it is made", |_| true);
    let key = ["tls.crt", "tls.key"].map(|name| (name, decoded(&secret["data"][name])));
    // Agents of other tests may have the usual port.
    let service = Relay::start(SocketAddr::from(([127, 0, 0, 1], 0)), cache_door(&harbour, 0));
    let before = asked_of_hub(&harbour);
    let mut cache =
        PodAgent::prepare_cache("cache-0", &service.address().to_string(), &key).expect("the program was there");
    cache.start();
    let kept = |cache: &PodAgent| cache.has(&workload) && cache.pods().is_some_and(|pods| pods["lacks"] == 0);
    harbour.await_so("the cache has what the cluster runs", MIRRORED_WITHIN, |_| kept(&cache));
    assert_eq!(asked_of_hub(&harbour), before, "nothing came from the hub");
    assert!(cache.command(&["status", "--alive"]).status().unwrap().success(), "its probe is content");
    let state = cache.root().join("var/lib/kedge-agent");
    let names: Vec<String> =
        fs::read_dir(state).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.starts_with("identity") || name.starts_with("memory")), "{names:?}");

    // The agent's node is lost, and another agent begins on one that has nothing.
    harbour.agents[0].kill();
    harbour.add_agent();
    await_holder(&harbour, 1);
    let address = service.address();
    drop(service);
    let _service = Relay::start(address, cache_door(&harbour, 1));
    harbour.await_so("the cache found it", MIRRORED_WITHIN, |harbour| {
        harbour.agents[1].log().contains("a cache of the cluster is here")
    });
    assert!(!harbour.agents[1].has(&workload));
    let (asked, known) = (asked_of_hub(&harbour), named(&harbour));
    harbour.push_setting("shop", "GREETING", "from the cache");
    harbour.await_converged("shop");
    assert_eq!(asked_of_hub(&harbour), asked + new_of(&harbour, &known), "only what is new came from the hub");
    assert!(harbour.agents[1].has(&workload) && harbour.agents[1].log().contains("it came from a cache"));
}
