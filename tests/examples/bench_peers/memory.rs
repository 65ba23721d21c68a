//! What peers cost in memory: the same agent with them and without, each after a start and the same rest, reached by the hub both times.

use kedge_tests::lab::await_true;

use super::{Hall, LOST, UPLINK, rest};

/// A host that only follows.
pub const MEMBER: usize = 1;

/// After a start: the first polls are over, buffers are given back, everybody has met.
const RESTED: f64 = 180.0;
/// Lines that nobody needs are closed by then.
const LEAST: f64 = 115.0;

/// On a member, and on the one that carries.
pub fn measure(hall: &mut Hall, scale: f64) -> (f64, f64) {
    hall.site.set_uplink(MEMBER, true);
    restart(hall);
    rest((RESTED * scale).max(LEAST));
    let (member, carrier) = (memory(hall, MEMBER), memory(hall, UPLINK));
    assert!(carries(hall, UPLINK) || carries(hall, MEMBER), "one of those that reach the hub carries");
    let swapped = carries(hall, MEMBER);
    for host in [UPLINK, MEMBER] {
        hall.plant.agents[host].write("etc/kedge/agent.toml", "[peers]\nenabled = false\n");
    }
    restart(hall);
    rest((RESTED * scale).max(LEAST));
    let (alone, other) = (memory(hall, MEMBER), memory(hall, UPLINK));
    eprintln!("memory with peers: {member:.2} and {carrier:.2} MiB, without: {alone:.2} and {other:.2} MiB");
    let (member, carrier) = (member - alone, carrier - other);
    if swapped { (carrier, member) } else { (member, carrier) }
}

fn restart(hall: &mut Hall) {
    for host in [UPLINK, MEMBER] {
        let agent = &mut hall.plant.agents[host];
        agent.stop();
        agent.start_again();
    }
    let reached = |hall: &Hall, host: usize| {
        let hub = hall.plant.agents[host].status().map(|status| status["hub"].clone()).unwrap_or_default();
        hub["lastContact"].is_string() && hub["error"].is_null()
    };
    await_true("both reach the hub", LOST, || [UPLINK, MEMBER].iter().all(|host| reached(hall, *host)));
}

fn carries(hall: &Hall, host: usize) -> bool {
    let shown = hall.plant.agents[host].command(&["peers", "-o", "json"]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
    shown["uplink"].is_string() && shown["uplink"] == shown["own"]
}

/// Its share of memory now, in MiB.
fn memory(hall: &mut Hall, host: usize) -> f64 {
    hall.plant.agents[host].memory() as f64 / 1024.0
}
