//! Sites of a few nodes: what spreads, who carries, who is dropped, what it costs when nothing happens.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod carrying;
mod chaos;
mod misbehaving;

use kedge_model::wire::{Digest, Envelope, KeyState, Membership};

use super::*;
use crate::fixture::{Agent, Net, agent, hub, key_set, membership, signing, stream};

fn agents(count: u16) -> Vec<Agent> {
    (1..=count).map(agent).collect()
}

fn all_equal(net: &Net) -> bool {
    let stores = net.stores();
    stores.iter().all(|store| *store == stores[0])
}

fn know(net: &Net, name: &Name) -> usize {
    net.nodes.values().filter(|node| node.store().version(name).is_some()).count()
}

#[test]
fn strangers_introduce_themselves_and_then_share_everything() {
    let agents = agents(2);
    let mut net = Net::of(&hub(), &agents);
    net.node(&agents[0]).put(agents[0].status(1, 1, 1)).unwrap();
    net.node(&agents[1]).put(hub().state(stream("drone"), 4, &[])).unwrap();
    net.run(20);
    assert!(all_equal(&net), "{:?}", net.stores());
    assert_eq!(net.stores()[0].len(), 4);
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
    assert_eq!(know(&net, &Name::State(stream("drone"))), 50);
}

#[test]
fn an_idle_site_costs_little_and_not_the_square_of_its_size() {
    for count in [10, 50] {
        let agents = agents(count);
        let mut net = Net::of(&hub(), &agents);
        // What it once looked for isn't said to it for ever.
        let blob = Digest::of(b"shop");
        net.node(&agents[0]).put(hub().state(stream("drone"), 1, &[blob])).unwrap();
        net.run(600);
        agents.iter().for_each(|agent| net.node(agent).have([blob].into()));
        net.node(&agents[0]).want(vec![blob]);
        for _ in 0..60 {
            let now = net.now;
            net.node(&agents[0]).reach(Some(now));
            net.run(10);
            net.node(&agents[0]).want(Vec::new());
        }
        assert!(all_equal(&net));
        (net.bytes, net.messages) = (0, 0);
        for _ in 0..60 {
            let now = net.now;
            net.node(&agents[0]).reach(Some(now));
            net.run(10);
        }
        let per_minute = |sum: usize| sum / 10 / usize::from(count);
        let (bytes, messages) = (per_minute(net.bytes), per_minute(net.messages));
        assert!(messages <= 2, "{count}: {messages} exchanges a minute");
        assert!(bytes < 250, "{count}: {bytes} bytes a minute, both ways");
    }
}

#[test]
fn a_host_that_was_off_for_a_month_catches_up_with_keys_and_all() {
    let (hub, agents) = (hub(), agents(4));
    let next = signing(61_000);
    let second = key_set(2, &[(&hub.key, KeyState::Active), (&next, KeyState::Announced)]);
    let third = key_set(3, &[(&hub.key, KeyState::Retired), (&next, KeyState::Active)]);
    let mut net = Net::of(&hub, &agents[..3]);
    for envelope in [
        Envelope::sign(&second, &hub.key).unwrap(),
        Envelope::sign(&third, &hub.key).unwrap(),
        Envelope::sign(&membership(&agents[1], 2), &next).unwrap(),
        hub.state(stream("drone"), 9, &[]),
    ] {
        net.node(&agents[0]).put(envelope).unwrap();
    }
    net.run(60);
    net.nodes.insert(agents[3].id, hub.node(&agents[3]));
    net.node(&agents[3]).put(hub.member(&agents[1])).unwrap();
    net.meet();
    net.run(60);
    assert!(all_equal(&net), "{:?}", net.stores());
    assert_eq!(net.node(&agents[3]).store().keys().version, 3);
    assert!(!net.told.iter().any(|(_, told)| matches!(told, Action::Dropped { .. })), "{:?}", net.told);
}

#[test]
fn two_halves_that_heal_are_one_again() {
    let agents = agents(6);
    let mut net = Net::of(&hub(), &agents);
    for one in &agents[..3] {
        agents[3..].iter().for_each(|other| net.cut(one, other));
    }
    net.node(&agents[0]).put(hub().state(stream("drone"), 2, &[])).unwrap();
    net.node(&agents[5]).put(agents[5].status(1, 1, 1)).unwrap();
    net.run(900);
    assert_eq!((know(&net, &Name::State(stream("drone"))), know(&net, &Name::Status(agents[5].id))), (3, 3));
    net.cut.clear();
    net.run(900);
    assert!(all_equal(&net));
    assert_eq!(know(&net, &Name::State(stream("drone"))), 6);
}

#[test]
fn only_relays_and_followers_get_a_state() {
    let (hub, agents) = (hub(), agents(4));
    let mut net = Net { now: crate::fixture::START, ..Net::default() };
    let press = |of: &Agent| Membership { stream: stream("press"), ..membership(of, 2) };
    for agent in &agents {
        net.nodes.insert(agent.id, hub.node(agent));
    }
    net.node(&agents[1]).put(hub.sign(&press(&agents[1]))).unwrap();
    net.node(&agents[2]).put(hub.sign(&Membership { relay: true, ..membership(&agents[2], 2) })).unwrap();
    net.meet();
    net.run(120);
    let blob = Digest::of(b"press");
    net.node(&agents[2]).put(hub.state(stream("press"), 1, &[blob])).unwrap();
    net.node(&agents[0]).put(hub.state(stream("drone"), 1, &[Digest::of(b"drone")])).unwrap();
    net.run(120);
    let holds = |name: &str| {
        let name = Name::State(stream(name));
        let has = |agent: &&Agent| net.nodes[&agent.id].store().version(&name).is_some();
        agents.iter().filter(has).map(|agent| agent.id).collect::<Vec<_>>()
    };
    assert_eq!(holds("press"), [agents[1].id, agents[2].id]);
    assert_eq!(holds("drone"), [agents[0].id, agents[2].id, agents[3].id]);
    let relay = &net.nodes[&agents[2].id];
    assert!(relay.may_have(&agents[1].id, &blob) && !relay.may_have(&agents[0].id, &blob));
    // And yet they are in step: the digest covers what both may have.
    let (one, other) = (&net.nodes[&agents[0].id], &net.nodes[&agents[1].id]);
    assert_eq!(one.store().digest(&agents[1].id), other.store().digest_of(&agents[0].id));
}

#[test]
fn content_is_found_where_it_is_and_not_shown_to_those_who_may_not_have_it() {
    let (hub, agents) = (hub(), agents(5));
    let mut net = Net::of(&hub, &agents);
    let (blob, secret) = (Digest::of(b"shop"), Digest::of(b"another stream's"));
    net.node(&agents[0]).put(hub.state(stream("drone"), 1, &[blob])).unwrap();
    net.run(60);
    net.node(&agents[1]).want(vec![blob, secret]);
    net.run(1);
    assert!(net.node(&agents[1]).holders(&blob).is_empty());
    net.node(&agents[0]).have([blob, secret].into_iter().collect());
    net.run(20);
    assert_eq!(net.node(&agents[1]).holders(&blob), [agents[0].id]);
    assert!(net.node(&agents[1]).holders(&secret).is_empty());
    net.node(&agents[1]).want(Vec::new());
    assert!(net.node(&agents[1]).holders(&blob).is_empty());
}

#[test]
fn ten_thousand_peers_are_a_bounded_table() {
    let mut node = hub().node(&agent(1));
    let mut seed = [0_u8; 32];
    for number in 0_u32..10_000 {
        seed[..4].copy_from_slice(&number.to_be_bytes());
        node.found(ClusterId::of_public_key(&seed), crate::fixture::START);
    }
    assert_eq!(node.peers().count(), MAX_PEERS);
    assert!(node.tick(crate::fixture::START).len() <= crate::pace::MAX_IN_FLIGHT);
}
