//! Sites of a few nodes: what spreads, who carries, who is dropped, what it costs when nothing happens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

use super::*;
use crate::fixture::{Agent, Net, agent, hub, stream};

fn agents(count: u16) -> Vec<Agent> {
    (1..=count).map(agent).collect()
}

fn all_equal(net: &Net) -> bool {
    let shelves = net.shelves();
    shelves.iter().all(|shelf| *shelf == shelves[0])
}

#[test]
fn strangers_introduce_themselves_and_then_share_everything() {
    let agents = agents(2);
    let mut net = Net::of(&hub(), &agents);
    net.node(&agents[0]).put(agents[0].status(1, 1, 1)).unwrap();
    net.node(&agents[1]).put(hub().state(stream("drone"), 4, &[])).unwrap();
    net.run(20);
    assert!(all_equal(&net), "{:?}", net.shelves());
    assert_eq!(net.shelves()[0].len(), 4);
    assert!(net.told_by(&agents[0]).any(|told| *told == Action::Took(Name::State(stream("drone")))));
}

#[test]
fn news_reach_a_site_of_fifty_within_seconds() {
    let agents = agents(50);
    let mut net = Net::of(&hub(), &agents);
    net.run(300);
    assert!(all_equal(&net));
    net.node(&agents[7]).put(hub().state(stream("drone"), 5, &[])).unwrap();
    net.run(10);
    let name = Name::State(stream("drone"));
    let known = net.nodes.values().filter(|node| node.shelf().version(&name).is_some()).count();
    assert_eq!(known, 50);
}
