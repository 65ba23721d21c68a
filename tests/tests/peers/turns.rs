//! A site behind one uplink under a policy that lets one cluster change at a time: they get the state from each other at once, and follow
//! it one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use kedge_tests::world::plant::assignment;
use kedge_tests::world::policy::Policy;
use serde_json::Value;

use crate::hall::{Hall, name};

/// Three turns: each is asked for every fifteen seconds, carried within five, and told when it ended.
const ALL_TURNS: Duration = Duration::from_secs(240);
const HOSTS: usize = 3;

/// What a host says of itself.
fn status(hall: &Hall, host: usize) -> Value {
    serde_json::from_str(&hall.on(host, &["status", "-o", "json"]).stdout).unwrap_or_default()
}

fn is_converged(status: &Value) -> bool {
    let assignments = status["assignments"].as_array().cloned().unwrap_or_default();
    assignments.iter().any(|one| one["name"] == assignment("dev") && one["condition"] == "Converged")
}

#[test]
fn hosts_of_a_site_change_one_after_the_other_where_the_policy_says_so() {
    let policy = Policy::chain(&["dev"]).with("dev", &["maxUnavailable: 1"]);
    let Some(mut hall) = Hall::start_under(HOSTS, &policy) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);

    hall.plant.push_app("dev", "version 2");
    // The look at which each was first seen to have begun, and to have come to an end.
    let (mut begun, mut ended): (BTreeMap<usize, usize>, BTreeMap<usize, usize>) = Default::default();
    let (mut look, mut waited) = (0, false);
    hall.await_so("all have it, and the hub knows", ALL_TURNS, |hall| {
        look += 1;
        let has = |host: &usize| hall.plant.text_on(&name(*host)).as_deref() == Some("version 2");
        let now: Vec<usize> = (0..HOSTS).filter(has).collect();
        now.iter().for_each(|host| _ = begun.entry(*host).or_insert(look));
        let said: Vec<Value> = (0..HOSTS).map(|host| status(hall, host)).collect();
        // A host that was just seen to have begun may not have told it yet.
        let over = |host: &&usize| begun[*host] < look && is_converged(&said[**host]);
        let over: Vec<usize> = now.iter().filter(over).copied().collect();
        over.into_iter().for_each(|host| _ = ended.entry(host).or_insert(look));
        let changing: Vec<usize> = now.into_iter().filter(|host| !is_converged(&said[*host])).collect();
        assert!(changing.len() <= 1, "{changing:?} change at once");
        waited |= (0..HOSTS).any(|host| !begun.contains_key(&host) && said[host]["waits"].is_u64());
        ended.len() == HOSTS && (0..HOSTS).all(|host| hall.is_converged(host))
    });
    let mut order: Vec<usize> = (0..HOSTS).collect();
    order.sort_by_key(|host| begun[host]);
    for pair in order.windows(2) {
        assert!(ended[&pair[0]] <= begun[&pair[1]] + 1, "{order:?}: begun {begun:?}, ended {ended:?}");
    }
    assert!(waited, "one that waits for its turn has the state and says so");
}
