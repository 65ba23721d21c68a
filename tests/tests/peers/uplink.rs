//! Real agents in network namespaces behind one uplink: found by multicast, carried for, and carried on by another when it dies.

use std::time::Duration;

use kedge_tests::lab::root_agent::RootAgent;
use kedge_tests::world::SOON;

use crate::hall::{Hall, name};

/// The uplink dies: within a minute another one carries, and the hub hears of all within the next.
const PLUGGED_IN: Duration = Duration::from_secs(150);
/// The next one reaches the hub already.
const TAKEN_OVER: Duration = Duration::from_secs(60);

#[test]
fn hosts_that_only_one_can_carry_for_converge_and_are_seen_and_another_carries_when_it_dies() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.run(&[0]);
    hall.await_converged(&[0, 1, 2]);
    for host in [1, 2] {
        hall.await_via(host, 0);
        let said = format!("reached via {}", name(0));
        hall.await_so("its own status says so", SOON, |hall| hall.on(host, &["status"]).stdout.contains(&said));
    }
    assert_eq!(hall.via(0), None, "it speaks for itself");

    // The one that carried dies, and another one gets a way to the hub.
    hall.plant.agents[0].kill();
    hall.site.set_uplink(2, true);
    hall.plant.agents[2].stop();
    hall.plant.agents[2].start_again();
    hall.await_so("another one carries", PLUGGED_IN, |hall| {
        hall.via(1).as_deref() == Some(name(2).as_str()) && hall.is_converged(1) && hall.is_converged(2)
    });
}

#[test]
fn the_next_that_reaches_the_hub_carries_within_a_minute_when_the_uplink_dies_or_hangs() {
    let Some(mut hall) = Hall::start(4) else { return };
    hall.run(&[0, 1, 2]);
    hall.await_converged(&[0, 1, 2, 3]);
    let mut carriers: Vec<String> = Vec::new();
    let mut took = Vec::new();
    let ends: [Option<fn(&mut RootAgent)>; 3] = [None, Some(RootAgent::kill), Some(RootAgent::freeze)];
    for end in ends {
        if let (Some(end), Some(last)) = (end, carriers.last()) {
            end(hall.plant.agent(last));
        }
        let mut next = None;
        let passed = hall.await_so("another one carries, and the hub and the carried know", TAKEN_OVER, |hall| {
            next = hall.via(3).filter(|via| !carriers.contains(via) && hall.carrier_seen_by(3).as_ref() == Some(via));
            next.is_some()
        });
        carriers.extend(next);
        took.push(passed);
    }
    println!("{carriers:?} carried after {took:?}");
    assert!(hall.is_converged(3), "{}", hall.plant.seen(&name(3)));
}
