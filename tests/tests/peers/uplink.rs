//! Real agents in network namespaces behind one uplink: found by multicast, carried for, and carried on by another when it dies.

use std::time::Duration;

use kedge_tests::lab::site::Site;
use kedge_tests::world::plant::{LINE, Plant};
use kedge_tests::world::policy::Policy;
use kedge_tests::world::{Database, SOON};

/// Finding each other, a state, content, an application and a status, on a busy machine.
pub const SETTLED: Duration = Duration::from_secs(120);
/// The uplink dies: within a minute another one carries, and the hub hears of all within the next.
const TAKEN_OVER: Duration = Duration::from_secs(150);

/// A plant whose hub is reached over a site's uplinks only, with the boxes joined.
pub fn plant(hosts: usize) -> Option<(Site, Plant)> {
    plant_under(hosts, None)
}

pub fn plant_under(hosts: usize, policy: Option<&Policy>) -> Option<(Site, Plant)> {
    let mut site = Site::start(hosts)?;
    let here = site.here();
    let mut plant = Plant::start_with(Database::Sqlite, policy, |settings, _| settings.agents_address = Some(here))?;
    site.lead_to(plant.world.hub.places().agents);
    plant.add_site(&site, "dev", LINE, hosts);
    Some((site, plant))
}

pub fn name(host: usize) -> String {
    format!("dev-{LINE}-{}", host + 1)
}

/// Through whom the hub last heard of it.
fn via(plant: &Plant, host: usize) -> Option<String> {
    plant.seen(&name(host))["via"]["name"].as_str().map(str::to_owned)
}

pub fn story(plant: &Plant) -> String {
    let agents = plant.agents.iter().map(|agent| {
        let peers = agent.command(&["peers"]).output().map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
        let log = agent.log();
        let last: Vec<&str> = log.lines().rev().take(15).collect();
        format!("{}\n{}\n{}\n", agent.name(), peers.unwrap_or_default(), last.join("\n"))
    });
    agents.collect()
}

#[test]
fn hosts_that_only_one_can_carry_for_converge_and_are_seen_and_another_carries_when_it_dies() {
    let Some((site, mut plant)) = plant(3) else { return };
    site.set_uplink(0, true);
    plant.agents.iter_mut().for_each(|agent| agent.start_again());
    let converged = |plant: &Plant, host: usize| plant.condition(&name(host)) == "Converged";
    kedge_tests::lab::await_or_tell(
        "all three are Converged on the hub",
        SETTLED,
        || story(&plant),
        || (0..3).all(|host| converged(&plant, host)),
    );
    for host in [1, 2] {
        assert_eq!(via(&plant, host).as_deref(), Some(name(0).as_str()), "{}", plant.seen(&name(host)));
        let said = format!("reached via {}", name(0));
        kedge_tests::lab::await_or_tell(
            "its own status says so",
            SOON,
            || story(&plant),
            || {
                let shown = plant.agents[host].command(&["status"]).output().unwrap();
                String::from_utf8_lossy(&shown.stdout).contains(&said)
            },
        );
    }
    assert_eq!(via(&plant, 0), None, "it speaks for itself");

    // The one that carried dies, and another one has a way to the hub.
    plant.agents[0].kill();
    site.set_uplink(2, true);
    plant.agents[2].stop();
    plant.agents[2].start_again();
    kedge_tests::lab::await_or_tell(
        "another one carries",
        TAKEN_OVER,
        || story(&plant),
        || via(&plant, 1).as_deref() == Some(name(2).as_str()) && converged(&plant, 1) && converged(&plant, 2),
    );
}
