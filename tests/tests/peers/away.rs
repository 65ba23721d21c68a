//! A host that was off for long: meanwhile keys, memberships and versions changed and its certificate ended. Who reaches no hub itself
//! catches up through its peers.

use std::time::Duration;

use kedge_tests::agent::identity::not_after;
use kedge_tests::lab::root_agent::RootAgent;
use kedge_tests::world::cluster::now;

use crate::by_file::rotate;
use crate::hall::{Hall, name};

/// A month goes by in seconds.
const LIFETIME: &str = "certificate_lifetime = \"20s\"";

#[test]
fn a_host_that_was_off_for_a_month_catches_up_through_its_peers_alone() {
    let Some(mut hall) = Hall::start_with(3, |settings| settings.agents.push(LIFETIME.to_owned())) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);
    hall.plant.agents[2].stop();

    for _ in 0..3 {
        rotate(&hall.plant);
    }
    hall.plant.world.kedge.run(["cluster", "set", &name(1), "--relay", "on"]);
    hall.plant.push_app("dev", "version 2");
    hall.await_text(&[0, 1], "version 2");
    hall.plant.push_app("dev", "version 3");
    hall.await_text(&[0, 1], "version 3");
    hall.await_so("its certificate is over", Duration::from_secs(30), |hall| {
        not_after(&certificate(&hall.plant.agents[2])) < now()
    });

    hall.plant.agents[2].start_again();
    hall.await_text(&[2], "version 3");
    hall.await_converged(&[2]);
    hall.await_via(2, 0);
    // What the hub signed with its newest key is believed there.
    let relays = |peers: &serde_json::Value| {
        let peers = peers["peers"].as_array().cloned().unwrap_or_default();
        peers.iter().any(|peer| peer["name"] == name(1) && peer["relay"] == true)
    };
    hall.await_so("it knows the new membership of its neighbour", Duration::from_secs(30), |hall| {
        relays(&hall.peers(2))
    });
    assert!(!hall.plant.agents[2].log().contains("the hub answers"), "it was never reached");
}

/// As it stands in the newer copy of its ledger, or in either: none is renewed there.
fn certificate(agent: &RootAgent) -> String {
    let text = std::fs::read(agent.root().join("var/lib/kedge-agent/identity.a")).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let from = text.find("-----BEGIN CERTIFICATE").expect("a certificate");
    text[from..].split('"').next().unwrap_or_default().replace("\\n", "\n")
}
