//! Who carries for the site, what goes up, and how fast another takes over.

use kedge_model::wire::Membership;

use super::*;
use crate::pace::MINUTE;

/// Some reach the hub, and it stays so while time passes.
fn run(net: &mut Net, reach: &[&Agent], seconds: i64) {
    for _ in 0..seconds {
        let now = net.now;
        for agent in reach {
            net.node(agent).reach(Some(now));
        }
        net.run(1);
    }
}

fn uplinks(net: &Net) -> Vec<Option<ClusterId>> {
    net.nodes.values().map(Node::uplink).collect()
}

fn carried(net: &Net, by: &Agent) -> Vec<ClusterId> {
    let carried = net.told_by(by).filter_map(|told| match told {
        Action::Carry(signs) => Some(signs),
        _ => None,
    });
    carried.flatten().map(|sign| Presence::open(sign).unwrap().cluster).collect()
}

#[test]
fn all_choose_the_same_of_those_that_reach_the_hub() {
    let agents = agents(8);
    let mut net = Net::of(&hub(), &agents);
    run(&mut net, &[], 120);
    assert_eq!(uplinks(&net), [None; 8]);
    run(&mut net, &[&agents[2], &agents[3], &agents[4]], 180);
    let chosen = uplinks(&net)[0].unwrap();
    assert!(agents[2..5].iter().any(|agent| agent.id == chosen));
    assert_eq!(uplinks(&net), [Some(chosen); 8]);
    let relay = Membership { relay: true, ..membership(&agents[3], 2) };
    net.node(&agents[0]).put(hub().sign(&relay)).unwrap();
    run(&mut net, &[&agents[2], &agents[3], &agents[4]], 180);
    assert_eq!(uplinks(&net), [Some(agents[3].id); 8]);
    run(&mut net, &[], 180);
    assert_eq!(uplinks(&net), [None; 8]);
}

#[test]
fn who_is_told_to_carry_never_does_not() {
    let agents = agents(2);
    let mut net = Net::of(&hub(), &agents);
    net.node(&agents[0]).settings.carries = false;
    run(&mut net, &[&agents[0]], 120);
    assert_eq!(uplinks(&net), [None; 2]);
}

#[test]
fn the_uplink_brings_signs_of_life_and_documents_up() {
    let agents = agents(5);
    let mut net = Net::of(&hub(), &agents);
    run(&mut net, &[&agents[0]], 60);
    net.told.clear();
    for agent in &agents[1..] {
        net.node(agent).presence(agent.presence(1));
        net.node(agent).put(agent.status(1, 1, 1)).unwrap();
    }
    net.node(&agents[2]).put(agents[2].holds(&agents[3], 1)).unwrap();
    run(&mut net, &[&agents[0]], 15);
    let mut brought = carried(&net, &agents[0]);
    brought.sort();
    let mut others: Vec<ClusterId> = agents[1..].iter().map(|agent| agent.id).collect();
    others.sort();
    assert_eq!(brought, others, "each once");
    let uploads = net.told_by(&agents[0]).filter(|told| matches!(told, Action::Upload(_))).count();
    assert_eq!(uploads, 5, "four documents and a hold");
    assert!(agents[1..].iter().all(|agent| carried(&net, agent).is_empty()));
    // What didn't reach the hub is carried again, and what it lacks is brought again.
    let signs = net.told_by(&agents[0]).find_map(|told| match told {
        Action::Carry(signs) => Some(signs.clone()),
        _ => None,
    });
    let now = net.now;
    net.told.clear();
    net.node(&agents[0]).not_carried(&signs.unwrap(), now);
    net.node(&agents[0]).lacks(agents[1].id);
    run(&mut net, &[&agents[0]], 30);
    assert!(!carried(&net, &agents[0]).is_empty());
    let again = net.told_by(&agents[0]).filter(|told| matches!(told, Action::Upload(_))).count();
    assert_eq!(again, 1);
}

#[test]
fn another_takes_over_within_a_minute_when_the_uplink_dies() {
    let agents = agents(10);
    let mut net = Net::of(&hub(), &agents);
    run(&mut net, &[&agents[0], &agents[1]], 180);
    let chosen = uplinks(&net)[0].unwrap();
    let (dead, next) = if chosen == agents[0].id { (&agents[0], &agents[1]) } else { (&agents[1], &agents[0]) };
    agents.iter().for_each(|agent| net.cut(dead, agent));
    net.nodes.remove(&dead.id);
    let alive: Vec<&Agent> = agents.iter().filter(|agent| agent.id != dead.id).collect();
    for agent in &alive {
        net.node(agent).presence(agent.presence(2));
    }
    net.told.clear();
    run(&mut net, &[next], 60);
    assert_eq!(uplinks(&net), [Some(next.id); 9]);
    assert_eq!(carried(&net, next).len(), 8);
}

#[test]
fn signs_of_life_find_their_way_through_another() {
    // The first reaches the hub, the last sees only the one between them.
    let agents = agents(3);
    let mut net = Net::of(&hub(), &agents);
    net.cut(&agents[0], &agents[2]);
    run(&mut net, &[&agents[0]], 120);
    net.node(&agents[2]).presence(agents[2].presence(5));
    run(&mut net, &[&agents[0]], 6 * MINUTE / 1_000);
    assert!(carried(&net, &agents[0]).contains(&agents[2].id));
}

#[test]
fn a_turn_that_the_hub_gave_the_uplink_finds_its_cluster_through_another() {
    let agents = agents(3);
    let mut net = Net::of(&hub(), &agents);
    net.cut(&agents[0], &agents[2]);
    run(&mut net, &[&agents[0]], 120);
    net.told.clear();
    net.node(&agents[0]).put(hub().turn(&agents[2], 4, 1)).unwrap();
    run(&mut net, &[&agents[0]], 15);
    let took = Action::Took(Name::Turn(agents[2].id));
    assert!(net.told_by(&agents[2]).any(|told| *told == took));
}

#[test]
fn peers_that_fail_are_asked_less_and_less() {
    let agents = agents(2);
    let mut net = Net::of(&hub(), &agents);
    net.cut(&agents[0], &agents[1]);
    net.run(3_600);
    assert!(net.messages < 60, "{} messages in an hour", net.messages);
    let view = net.nodes[&agents[0].id].peers().next().unwrap().clone();
    assert!(view.failures > 3 && view.heard.is_none());
    net.cut.clear();
    net.run(700);
    assert!(all_equal(&net));
}
