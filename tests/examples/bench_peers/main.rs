//! `./tests/bench peers`: fifty real agents in networks of their own behind one uplink of 256 kbit/s. How often a package of 2 MB crosses
//! the uplink, how long until all have it, how long until the hub knows that each runs it; what the site says while nothing happens;
//! and what the part for peers costs in memory. Progress on stderr, one line of JSON on stdout. `KEDGE_BENCH_SCALE` (1 by default)
//! shortens the times for which it is watched, `KEDGE_BENCH_AGENTS` (50) is how many agents there are.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of its own"
)]

mod memory;
mod spread;

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use kedge_tests::lab::site::Site;
use kedge_tests::world::Database;
use kedge_tests::world::plant::{LINE, Plant};

/// Only this host reaches the hub, over this line.
const UPLINK: usize = 0;
const RATE: &str = "256kbit";
/// After the last change, at any scale: documents have gone around (a minute, about 35 kB of each agent), lines that nobody needs are closed.
const SETTLED: f64 = 180.0;
/// Whole rounds of everything that is said now and then.
const WATCHED: f64 = 600.0;
/// Nothing takes so long when all is well.
const LOST: Duration = Duration::from_secs(900);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The site, and the world around it.
struct Hall {
    plant: Plant,
    site: Site,
    hosts: usize,
}

fn main() {
    let number = |name: &str, usual: f64| {
        env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let scale = number("KEDGE_BENCH_SCALE", 1.0);
    let mut hall = Hall::start(number("KEDGE_BENCH_AGENTS", 50.0) as usize);
    let began = Instant::now();
    hall.await_told("all run the first version", |row| row["reality"] == "asDesired");
    eprintln!(
        "{} agents run the first version, known to the hub after {:.1} s",
        hall.hosts,
        began.elapsed().as_secs_f64()
    );

    let spread = spread::measure(&hall);
    eprintln!(
        "2 MB reached all after {:.1} s, {:.3} times its size over the uplink, {:.3} with all reports; the hub knew of each {:.1} s after it \
         changed at the latest",
        spread.seconds, spread.ratio, spread.with_reports, spread.told,
    );

    rest(SETTLED);
    let (before, idle_for) = (hall.traffic(), WATCHED * scale);
    rest(idle_for);
    let after = hall.traffic();
    let per_minute = |bytes: u64| bytes as f64 / hall.hosts as f64 / (idle_for / 60.0);
    let (lan, uplink) = (per_minute(after.lan - before.lan), per_minute(after.uplink - before.uplink));
    eprintln!("idle, a minute and agent: {lan:.0} bytes on the LAN and {uplink:.0} on the uplink");

    let (member, carrier) = memory::measure(&mut hall, scale);
    eprintln!("the part for peers: {member:.2} MiB on a member, {carrier:.2} MiB on the one that carries for all");
    println!(
        "{{\"agents\": {}, \"uplink_ratio\": {:.3}, \"uplink_ratio_with_reports\": {:.3}, \"spread_s\": {:.1}, \"status_s\": {:.1}, \"idle_bytes_per_min\": {:.0}, \
         \"idle_lan_bytes_per_min\": {lan:.0}, \"pss_extra_mib\": {member:.2}, \"pss_extra_uplink_mib\": {carrier:.2}}}",
        hall.hosts,
        spread.ratio,
        spread.with_reports,
        spread.seconds,
        spread.told,
        lan + uplink,
    );
}

/// Bytes with all heads, down to Ethernet's.
struct Traffic {
    /// What each host sent, so that a byte between two of them counts once.
    lan: u64,
    /// Both ways.
    uplink: u64,
}

impl Hall {
    fn start(hosts: usize) -> Hall {
        let mut site = Site::start(hosts).expect("what is missing was said above");
        let here = site.here();
        let plant = Plant::start_with(Database::Sqlite, None, |settings, _| {
            settings.agents_address = Some(here);
            settings.wait = "4m".to_owned();
        });
        let mut plant = plant.expect("what is missing was said above");
        site.lead_to(plant.world.hub.places().agents);
        plant.add_site(&site, "dev", LINE, hosts);
        site.limit_uplink(RATE);
        site.set_uplink(UPLINK, true);
        // Memory is shared by who runs the same file: those that are weighed run one of their own.
        for host in [UPLINK, memory::MEMBER] {
            plant.agents[host].take_own_program();
        }
        plant.agents.iter_mut().for_each(|agent| agent.start_again());
        Hall { plant, site, hosts }
    }

    /// What the hub knows of the application on each host.
    fn rows(&self) -> Vec<serde_json::Value> {
        self.plant.world.api.list(&format!("/api/v1/conditions?environment=dev&clusterType={LINE}"))
    }

    fn await_told(&self, what: &str, so: impl Fn(&serde_json::Value) -> bool) {
        let (began, mut said) = (Instant::now(), Instant::now());
        loop {
            let rows = self.rows();
            let count = rows.iter().filter(|row| row["condition"] == "Converged" && so(row)).count();
            if count == self.hosts {
                return;
            }
            if said.elapsed() > Duration::from_secs(10) {
                eprintln!("{what}: {count} of {} are known to", self.hosts);
                said = Instant::now();
            }
            assert!(began.elapsed() < LOST, "{what}: {count} of {} after {LOST:?}", self.hosts);
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn traffic(&self) -> Traffic {
        let lan = (0..self.hosts).map(|host| self.site.lan_bytes(host).sent).sum();
        Traffic { lan, uplink: self.site.uplink_bytes().total() }
    }
}

fn rest(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
