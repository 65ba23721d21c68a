//! Who carries for the site, what goes up, and how fast another takes over.

use kedge_model::wire::Membership;

use super::*;
use crate::pace::{MINUTE, UPLINK_ANSWERS};

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
    carried.flatten().map(|sign| Presence::open(sign).unwrap().cluster()).collect()
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
    // And it stays so, though the dead one had reached the hub a moment ago.
    for _ in 0..60 {
        run(&mut net, &[next], 1);
        assert_eq!(uplinks(&net), [Some(next.id); 9]);
    }
}

#[test]
fn who_only_follows_finds_out_within_seconds_that_another_one_carries() {
    let agents = agents(3);
    let mut net = Net::of(&hub(), &agents);
    run(&mut net, &[&agents[0], &agents[1]], 180);
    let chosen = uplinks(&net)[0].unwrap();
    let (dead, next) = if chosen == agents[0].id { (&agents[0], &agents[1]) } else { (&agents[1], &agents[0]) };
    agents.iter().for_each(|agent| net.cut(dead, agent));
    net.nodes.remove(&dead.id);
    let mut took = [0; 2];
    for second in 1..=60 {
        run(&mut net, &[next], 1);
        let knows = [next, &agents[2]].map(|agent| net.nodes[&agent.id].uplink() == Some(next.id));
        for (took, knows) in took.iter_mut().zip(knows) {
            *took = if *took == 0 && knows { second } else { *took };
        }
    }
    assert!(took[0] > 0 && took[1] > 0 && took[1] <= took[0] + 10, "{took:?}");
}

#[test]
fn an_uplink_that_hangs_is_not_waited_for() {
    let agents = agents(3);
    let mut net = Net::of(&hub(), &agents);
    run(&mut net, &[&agents[0], &agents[1]], 180);
    let chosen = uplinks(&net)[2].unwrap();
    let next = if chosen == agents[0].id { agents[1].id } else { agents[0].id };
    let (mut now, mut open) = (net.now, None);
    let node = net.node(&agents[2]);
    while open.is_none() {
        now = now.max(node.wake());
        for action in node.tick(now) {
            match action {
                Action::Send { to, .. } if to == chosen => open = Some(now),
                Action::Send { to, .. } => _ = node.failed(to, now),
                _ => {}
            }
        }
    }
    let late = Timestamp(open.unwrap().0 + UPLINK_ANSWERS);
    assert!(node.wake() <= late && node.uplink() == Some(chosen));
    node.tick(late);
    assert_eq!(node.uplink(), Some(next));
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

/// Of these that say they reach the hub, one that isn't chosen. Whether the others tell the truth can't be seen.
fn not_chosen<'a>(net: &Net, carriers: &'a [Agent]) -> &'a Agent {
    let chosen = uplinks(net)[0].unwrap();
    carriers.iter().rfind(|agent| agent.id != chosen).unwrap()
}

#[test]
fn the_hub_hears_of_all_where_only_one_of_five_carriers_tells_the_truth() {
    let agents = agents(12);
    let mut net = Net::of(&hub(), &agents);
    let carriers: Vec<&Agent> = agents[..5].iter().collect();
    run(&mut net, &carriers, 20 * MINUTE / 1_000);
    let honest = not_chosen(&net, &agents[..5]);
    let mut heard: BTreeMap<ClusterId, Timestamp> = BTreeMap::new();
    for minute in 0..90 {
        if minute % 2 == 0 {
            let now = net.now.0 - crate::fixture::START.0;
            agents[5..].iter().for_each(|agent| net.node(agent).presence(agent.presence(now)));
        }
        run(&mut net, &carriers, MINUTE / 1_000);
        heard.extend(carried(&net, honest).into_iter().map(|cluster| (cluster, net.now)));
        net.told.clear();
        for agent in agents[5..].iter().filter(|_| minute >= 12) {
            let silent = heard.get(&agent.id).map(|heard| net.now.0 - heard.0);
            assert!(silent.is_some_and(|silent| silent <= 12 * MINUTE), "minute {minute}: {silent:?}");
        }
    }
}

#[test]
fn holds_get_past_an_uplink_that_swallows_them() {
    let agents = agents(6);
    let mut net = Net::of(&hub(), &agents);
    let carriers = [&agents[0], &agents[1]];
    run(&mut net, &carriers, 120);
    let honest = not_chosen(&net, &agents[..2]);
    let uploads = |net: &Net| net.told_by(honest).filter(|told| matches!(told, Action::Upload(_))).count();
    for writer in [honest, &agents[3]] {
        net.node(writer).put(writer.status(1, 1, 1)).unwrap();
    }
    net.node(honest).put(honest.holds(&agents[5], 1)).unwrap();
    run(&mut net, &carriers, 7);
    assert_eq!(uploads(&net), 1, "its own soon");
    net.node(&agents[3]).put(agents[3].holds(&agents[4], 1)).unwrap();
    for at in [0, 2, 4] {
        net.node(&agents[3]).presence(agents[3].presence((at + 10) * MINUTE));
        run(&mut net, &carriers, 2 * MINUTE / 1_000);
    }
    assert_eq!(uploads(&net), 2, "another's with its sign of life, once");
}

#[test]
fn who_reached_the_hub_is_told_of_for_ten_minutes_and_its_own_word_counts_more() {
    let agents = agents(3);
    let mut net = Net::of(&hub(), &agents);
    net.run(60);
    let tell = |net: &mut Net, about: &Agent, seconds: u64| {
        let message = Message { reachable: vec![(about.id, seconds)], ..Message::default() };
        let now = net.now;
        net.node(&agents[0]).heard(agents[1].id, message, now);
        let view = net.nodes[&agents[0].id].peers().find(|peer| peer.cluster == about.id).cloned().unwrap();
        view.contact.map(|contact| (now.0 - contact.0) / 1_000)
    };
    assert_eq!(tell(&mut net, &agents[2], 5), None, "it said lately that it doesn't");
    agents[..2].iter().for_each(|agent| net.cut(agent, &agents[2]));
    net.run(120);
    assert_eq!(tell(&mut net, &agents[2], 600), None);
    assert_eq!(tell(&mut net, &agents[2], 599), None, "that was before its own word");
    assert_eq!(tell(&mut net, &agents[2], 100), Some(100), "long ago for an uplink, not for a second carrier");
    assert_eq!(net.nodes[&agents[0].id].uplink(), None);
    assert_eq!(tell(&mut net, &agents[2], 30), Some(30));
    assert_eq!(tell(&mut net, &agents[2], 40), Some(30), "the newer counts");
    assert_eq!(net.nodes[&agents[0].id].uplink(), Some(agents[2].id));
    net.run(400);
    assert_eq!(net.nodes[&agents[0].id].uplink(), None);
}
