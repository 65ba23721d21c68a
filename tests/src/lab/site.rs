//! A site: hosts with a network of their own each (`ip netns`), on one LAN (a bridge that multicast crosses) that leads nowhere else.
//! Beside it each host may have an uplink to this machine, where the hub is; it is plugged and pulled by the test. All uplinks share
//! one line, which can be made thin. Everything has a name of this test's own and goes with it.

mod traffic;

pub use traffic::Traffic;

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::Uid;

use super::relay::Relay;
use super::skip;

#[derive(Debug)]
pub struct Site {
    name: String,
    /// Of the third byte of its addresses.
    number: u8,
    hosts: usize,
    /// What passes between the site and the hub.
    pub cable: Option<Relay>,
}

static NEXT: AtomicU32 = AtomicU32::new(0);
/// Of a network's addresses one is this machine's.
const MOST: usize = 250;

impl Site {
    /// So many hosts, none with an uplink. Without root the test is marked as skipped and there is none.
    pub fn start(hosts: usize) -> Option<Site> {
        if !Uid::effective().is_root() {
            skip("a site of network namespaces needs root");
            return None;
        }
        if Command::new("ip").arg("-V").output().is_err() {
            skip("there is no `ip` (package iproute2)");
            return None;
        }
        assert!(hosts <= MOST, "{hosts} hosts have no addresses");
        make_room_for_neighbours();
        let sites = NEXT.fetch_add(1, Ordering::Relaxed);
        let site = Site { name: format!("k{}{sites}", process::id()), number: free_number(), hosts, cable: None };
        for bridge in [site.lan(), site.other_lan(), site.wan()] {
            ip(&["link", "add", &bridge, "type", "bridge"]);
            ip(&["link", "set", &bridge, "up"]);
        }
        // Else the bridge would answer for this machine, past the line.
        ip(&["link", "set", &site.wan(), "arp", "off"]);
        let (near, far) = (site.uplink(), site.outside_of_uplink());
        ip(&["link", "add", &near, "type", "veth", "peer", "name", &far]);
        ip(&["link", "set", &far, "master", &site.wan(), "up"]);
        ip(&["link", "set", &near, "up"]);
        ip(&["addr", "add", &format!("{}/24", site.here()), "dev", &near]);
        for host in 0..hosts {
            let namespace = site.namespace(host);
            ip(&["netns", "add", &namespace]);
            ip(&["-n", &namespace, "link", "set", "lo", "up"]);
            site.connect(host, "l", "lan0", &site.lan(), &format!("{}/24", site.address(host)));
            site.connect(host, "w", "wan0", &site.wan(), &format!("10.214.{}.{}/24", site.number, host + 2));
            site.set_uplink(host, false);
        }
        Some(site)
    }

    /// Where hosts with an uplink reach this machine.
    pub fn here(&self) -> IpAddr {
        Ipv4Addr::new(10, 214, self.number, 1).into()
    }

    /// Leads from there to the hub.
    pub fn lead_to(&mut self, hub: SocketAddr) {
        self.cable = Some(Relay::start(SocketAddr::new(self.here(), hub.port()), hub));
    }

    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Where a host is on the LAN.
    pub fn address(&self, host: usize) -> IpAddr {
        Ipv4Addr::new(10, 215, self.number, host as u8 + 2).into()
    }

    /// This machine is on the LAN too from now on, as a stranger's would be; its address there.
    pub fn enter_lan(&self) -> IpAddr {
        let own = Ipv4Addr::new(10, 215, self.number, 1);
        ip(&["addr", "replace", &format!("{own}/24"), "dev", &self.lan()]);
        own.into()
    }

    /// The name of a host's network.
    pub fn namespace(&self, host: usize) -> String {
        format!("{}h{host}", self.name)
    }

    /// Plugs the uplink of a host, or pulls it.
    pub fn set_uplink(&self, host: usize, plugged: bool) {
        ip(&["-n", &self.namespace(host), "link", "set", "wan0", if plugged { "up" } else { "down" }]);
    }

    /// These hosts have a LAN of their own from now on.
    pub fn split(&self, hosts: &[usize]) {
        hosts.iter().for_each(|host| ip(&["link", "set", &self.outside(*host, "l"), "master", &self.other_lan()]));
    }

    /// One LAN for all.
    pub fn heal(&self) {
        (0..self.hosts).for_each(|host| ip(&["link", "set", &self.outside(host, "l"), "master", &self.lan()]));
    }

    fn connect(&self, host: usize, letter: &str, inside: &str, bridge: &str, address: &str) {
        let (namespace, outside) = (self.namespace(host), self.outside(host, letter));
        ip(&["link", "add", &outside, "type", "veth", "peer", "name", inside, "netns", &namespace]);
        ip(&["link", "set", &outside, "master", bridge, "up"]);
        ip(&["-n", &namespace, "addr", "add", address, "dev", inside]);
        ip(&["-n", &namespace, "link", "set", inside, "up"]);
    }

    fn lan(&self) -> String {
        format!("{}lan", self.name)
    }

    fn other_lan(&self) -> String {
        format!("{}lan2", self.name)
    }

    fn wan(&self) -> String {
        format!("{}wan", self.name)
    }

    /// The line that all uplinks share: this machine's end, and that of the hosts.
    fn uplink(&self) -> String {
        format!("{}u", self.name)
    }

    fn outside_of_uplink(&self) -> String {
        format!("{}v", self.name)
    }

    fn outside(&self, host: usize, letter: &str) -> String {
        format!("{}{letter}{host}", self.name)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.cable = None;
        // A namespace takes its cables with it; what isn't there needn't go.
        for host in 0..self.hosts {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(host)]).output();
        }
        for link in [self.uplink(), self.lan(), self.other_lan(), self.wan()] {
            let _ = Command::new("ip").args(["link", "del", &link]).output();
        }
    }
}

/// A network that no site of the moment has.
fn free_number() -> u8 {
    let taken = Command::new("ip").args(["-o", "addr", "show"]).output().unwrap();
    let taken = String::from_utf8_lossy(&taken.stdout).into_owned();
    let numbers = (0..250).map(|further| ((process::id() + further) % 250 + 1) as u8);
    numbers.into_iter().find(|number| !taken.contains(&format!(" 10.214.{number}.1/"))).expect("one is free")
}

/// All networks of a kernel share one table of neighbours, and its usual bound is less than fifty hosts that know each other.
fn make_room_for_neighbours() {
    for (which, most) in [("gc_thresh3", 65_536), ("gc_thresh2", 32_768)] {
        let path = format!("/proc/sys/net/ipv4/neigh/default/{which}");
        let now = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u32>().ok());
        if now.is_some_and(|now| now < most) {
            // Where it can't be raised small sites still work.
            _ = fs::write(&path, most.to_string());
        }
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let ran = Command::new("ip").args(arguments).output().unwrap();
    assert!(ran.status.success(), "ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&ran.stderr));
}
