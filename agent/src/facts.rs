//! What this host knows of itself, for late binding: its cluster's name and labels, its architecture, its address. Run gathers it
//! before a goal is made. Reads `/proc/net`; sends nothing.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use kedge_model::wire::Membership;
use nix::ifaddrs::getifaddrs;

use crate::command;
use crate::goal::HostFacts;
use crate::paths::Paths;

/// dpkg answers from its own program text.
const LIMIT: Duration = Duration::from_secs(10);
const ROUTES: &str = "/proc/net/route";
const ROUTES_6: &str = "/proc/net/ipv6_route";
/// A route that is up.
const UP: u32 = 1;

pub fn gather(membership: &Membership, paths: &Paths) -> HostFacts {
    HostFacts {
        cluster_name: membership.name.clone(),
        labels: membership.labels.clone(),
        arch: architecture(paths),
        ip: address(),
    }
}

/// As Debian calls it.
fn architecture(paths: &Paths) -> String {
    let asked = paths.is_host().then(|| command::run("dpkg", &["--print-architecture"], &[], LIMIT));
    match asked {
        Some(Ok(output)) if output.ok() && !output.stdout.trim().is_empty() => output.stdout.trim().to_owned(),
        _ => built_for().to_owned(),
    }
}

fn built_for() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "armhf",
        "x86" => "i386",
        other => other,
    }
}

/// Of the interface that the default route leaves by; version 4 before version 6.
fn address() -> Option<String> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let of = |interface: String, fits: fn(&IpAddr) -> bool| {
        let addresses = getifaddrs().ok()?.filter(|item| item.interface_name == interface);
        let mut found = addresses.filter_map(|item| {
            let storage = item.address?;
            let four = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            four.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        });
        found.find(fits).map(|address| address.to_string())
    };
    let four = default_interface(&read(ROUTES)).and_then(|interface| of(interface, IpAddr::is_ipv4));
    four.or_else(|| default_interface_6(&read(ROUTES_6)).and_then(|interface| of(interface, is_global_6)))
}

/// Link-local addresses mean nothing without their interface.
fn is_global_6(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if !six.is_unicast_link_local() && !six.is_loopback())
}

/// `/proc/net/route`: the default route with the lowest metric.
fn default_interface(table: &str) -> Option<String> {
    let routes = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [interface, destination, _, flags, _, _, metric, mask, ..] = fields.as_slice() else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let any = u32::from(Ipv4Addr::UNSPECIFIED);
        let fits = hex(destination)? == any && hex(mask)? == any && hex(flags)? & UP != 0;
        fits.then_some((metric.parse::<u32>().ok()?, (*interface).to_owned()))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, interface)| interface)
}

/// `/proc/net/ipv6_route`, the same.
fn default_interface_6(table: &str) -> Option<String> {
    let routes = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [destination, prefix, _, _, _, metric, _, _, flags, interface] = fields.as_slice() else { return None };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok();
        let is_any = destination.bytes().all(|b| b == b'0') && hex(prefix)? == 0;
        let fits = is_any && hex(flags)? & UP != 0 && *interface != "lo";
        fits.then_some((hex(metric)?, (*interface).to_owned()))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, interface)| interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_default_route_with_the_lowest_metric_counts() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
            eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
            tun0\t00000000\t0100000A\t0000\t0\t0\t1\t00000000\t0\t0\t0\n\
            eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        assert_eq!(default_interface(table).as_deref(), Some("eth0"));
        assert_eq!(default_interface("Iface\n"), None);
    }

    #[test]
    fn a_default_route_of_version_6_is_found() {
        let zero = "0".repeat(32);
        let line = |metric: &str, interface: &str, flags: &str| {
            format!(
                "{zero} 00 {zero} 00 fe800000000000000000000000000001 {metric} 00000001 00000000 {flags} {interface}\n"
            )
        };
        let table = line("ffffffff", "lo", "00200200") + &line("00000400", "eth0", "00450003");
        assert_eq!(default_interface_6(&table).as_deref(), Some("eth0"));
    }

    #[test]
    fn an_architecture_is_always_known() {
        assert!(!architecture(&Paths::below(std::path::Path::new("/nowhere"))).is_empty());
    }

    proptest! {
        #[test]
        fn no_table_panics(table in any::<String>()) {
            let _ = default_interface(&table);
            let _ = default_interface_6(&table);
        }
    }
}
