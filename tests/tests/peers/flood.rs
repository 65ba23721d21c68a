//! Ten thousand announcements on the LAN.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use kedge_agent::peers::mdns::hash_of;
use kedge_agent::peers::mdns::packet::{Announcement, announcement};
use kedge_model::wire::ClusterId;

use crate::hall::Hall;

const COUNT: u32 = 10_000;
/// Of a table that is bounded, in KiB.
const MOST_GROWTH: u64 = 4 * 1024;

#[test]
fn ten_thousand_announcements_cost_little_memory_and_a_newcomer_is_found_among_them() {
    let Some(mut hall) = Hall::start(3) else { return };
    hall.site.set_uplink(0, true);
    (0..2).for_each(|host| hall.plant.agents[host].start_again());
    hall.await_converged(&[0, 1]);
    let before: Vec<u64> = (0..2).map(|host| hall.plant.agents[host].memory()).collect();

    let socket = UdpSocket::bind(SocketAddr::new(hall.site.enter_lan(), 0)).unwrap();
    let group = SocketAddr::from((Ipv4Addr::new(224, 0, 0, 251), 5353));
    for number in 0..COUNT {
        let mut key = [7; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let (cluster, port) = (ClusterId::of_public_key(&key), 1024 + (number % 60_000) as u16);
        let said = Announcement { cluster, site: hash_of("hall-7"), port, stays: true };
        socket.send_to(&announcement(&said), group).unwrap();
        if number == COUNT / 2 {
            hall.plant.agents[2].start_again();
        }
        // As fast as they are read: what is dropped on the way costs nobody anything.
        if number % 100 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    hall.await_converged(&[2]);
    hall.plant.push_app("dev", "version 2");
    hall.await_text(&[0, 1, 2], "version 2");
    for (host, before) in before.into_iter().enumerate() {
        let after = hall.plant.agents[host].memory();
        println!("host {host} had {before} KiB and has {after}");
        assert!(after <= before + MOST_GROWTH, "host {host} had {before} KiB and has {after}");
    }
}
