//! The interfaces on which peers are looked for, and a socket for multicast DNS on each. Who may be talked to is the configuration's
//! to say.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;

use super::{GROUP, PORT};

/// With its first address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    address: Ipv4Addr,
    mask: Ipv4Addr,
}

/// RFC 6762: one that comes from elsewhere was forwarded.
const TTL: u32 = 255;

/// Those that are up, can send to many, and are allowed.
pub fn all(allowed: Option<&[String]>) -> Vec<Interface> {
    let Ok(found) = getifaddrs() else { return Vec::new() };
    let mut first: BTreeMap<String, Interface> = BTreeMap::new();
    for one in found {
        let needed = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING | InterfaceFlags::IFF_MULTICAST;
        let loopback = one.flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let is_allowed = allowed.map_or(!loopback, |allowed| allowed.contains(&one.interface_name));
        if !is_allowed || !(one.flags.contains(needed) || loopback) {
            continue;
        }
        let ip = |storage: Option<nix::sys::socket::SockaddrStorage>| Some(storage?.as_sockaddr_in()?.ip());
        let (Some(address), Some(mask)) = (ip(one.address), ip(one.netmask)) else { continue };
        let name = one.interface_name;
        first.entry(name.clone()).or_insert(Interface { name, address, mask });
    }
    first.into_values().collect()
}

impl Interface {
    /// Hears and speaks on this interface only.
    pub fn open(&self) -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        // Beside avahi, and other agents of this host.
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
        socket.bind_device(Some(self.name.as_bytes()))?;
        socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))))?;
        socket.join_multicast_v4_n(&GROUP, &InterfaceIndexOrAddress::Address(self.address))?;
        socket.set_multicast_if_v4(&self.address)?;
        socket.set_multicast_ttl_v4(TTL)?;
        socket.set_multicast_loop_v4(true)?;
        UdpSocket::from_std(socket.into())
    }

    /// Whether the address is on this link.
    pub fn reaches(&self, other: Ipv4Addr) -> bool {
        let mask = u32::from(self.mask);
        u32::from(self.address) & mask == u32::from(other) & mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_neighbour_is_reached() {
        let interface =
            Interface { name: "eth0".to_owned(), address: [10, 1, 2, 3].into(), mask: [255, 255, 0, 0].into() };
        assert!(interface.reaches([10, 1, 9, 9].into()));
        assert!(!interface.reaches([10, 2, 2, 3].into()));
    }

    #[test]
    fn the_loopback_is_used_only_when_it_is_named() {
        assert!(all(None).iter().all(|interface| interface.name != "lo"));
        assert!(all(Some(&["lo".to_owned()])).iter().all(|interface| interface.name == "lo"));
        assert!(all(Some(&[])).is_empty());
    }
}
