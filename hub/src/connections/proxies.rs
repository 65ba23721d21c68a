//! Whom a request really comes from, when a proxy that the operator named brings it. Nobody else's `X-Forwarded-For` is believed.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderMap;

/// The proxies whose word counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<Network>);

/// `10.0.0.0/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no address and no network")]
pub struct NetworkError;

const HEADER: &str = "x-forwarded-for";
/// A chain of proxies is short; what is longer was made up.
const MAX_HOPS: usize = 32;

impl Proxies {
    pub fn new(networks: Vec<Network>) -> Proxies {
        Proxies(networks)
    }

    pub fn networks(&self) -> impl Iterator<Item = &Network> {
        self.0.iter()
    }

    pub fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// The address that a request comes from. Each proxy adds whom it was asked by at the end: read from there, the first that
    /// isn't a proxy of ours is the client. What stands before it is its own invention.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        if !self.trusts(client) {
            return client;
        }
        let said: Vec<&str> = headers.get_all(HEADER).iter().filter_map(|value| value.to_str().ok()).collect();
        let hops = said.iter().rev().flat_map(|line| line.rsplit(','));
        for hop in hops.take(MAX_HOPS) {
            // What can't be read ends it at the last proxy that is known.
            let Some(address) = parse(hop.trim()) else { return client };
            client = address;
            if !self.trusts(client) {
                return client;
            }
        }
        client
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let shift = 32 - u32::from(self.length);
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let shift = 128 - u32::from(self.length);
                own.to_bits().checked_shr(shift) == other.to_bits().checked_shr(shift)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
        let Some((address, digits)) = text.split_once('/') else {
            let address = text.parse::<IpAddr>().map_err(|_| NetworkError)?.to_canonical();
            return Ok(Network { address, length: bits(address) });
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError)?;
        let length = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let length = length.filter(|length| *length <= bits(address)).ok_or(NetworkError)?;
        Ok(Network { address, length })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// `10.0.0.1`, `10.0.0.1:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`.
fn parse(hop: &str) -> Option<IpAddr> {
    let bare = hop.parse().or_else(|_| hop.trim_matches(['[', ']']).parse()).ok();
    let with_port = || hop.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    bare.or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &[&str], peer: &str, said: &[&str]) -> String {
        let proxies = Proxies::new(proxies.iter().map(|text| text.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        said.iter().for_each(|line| _ = headers.append(HEADER, line.parse().unwrap()));
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_a_proxy_of_ours_is_believed() {
        assert_eq!(client(&[], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.2"], "10.0.0.1", &["1.2.3.4"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.1"], "10.0.0.1", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["10.0.0.0/8"], "::ffff:10.9.9.9", &["1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn what_a_client_made_up_before_itself_is_not_believed() {
        assert_eq!(client(&["10.0.0.1"], "10.0.0.1", &["9.9.9.9, 1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["10.0.0.1"], "10.0.0.1", &["9.9.9.9", "1.2.3.4"]), "1.2.3.4");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &["9.9.9.9, 1.2.3.4, 10.0.0.7"]), "1.2.3.4");
        assert_eq!(client(&["10.0.0.1"], "10.0.0.1", &["1.2.3.4, unknown"]), "10.0.0.1");
        assert_eq!(client(&["10.0.0.1"], "10.0.0.1", &["1.2.3.4,"]), "10.0.0.1");
    }

    #[test]
    fn addresses_come_with_and_without_ports_and_brackets() {
        for said in ["[2001:db8::1]", "[2001:db8::1]:4711", "2001:db8::1"] {
            assert_eq!(client(&["::1"], "::1", &[said]), "2001:db8::1", "{said}");
        }
        assert_eq!(client(&["::1/128"], "::1", &["1.2.3.4:80"]), "1.2.3.4");
    }

    #[test]
    fn networks_hold_what_they_say() {
        let holds = |network: &str, address: &str| -> bool {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("192.168.4.0/22", "192.168.7.255") && !holds("192.168.4.0/22", "192.168.8.0"));
        assert!(holds("2001:db8::/32", "2001:db8:ffff::1") && !holds("2001:db8::/32", "2001:db9::1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "::/129", "proxy", "10.0.0"] {
            assert_eq!(wrong.parse::<Network>(), Err(NetworkError), "{wrong}");
        }
    }
}
