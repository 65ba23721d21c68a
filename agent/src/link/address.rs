//! Where the hub is: `https://host:port`, and a TCP connection to it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;

use super::error::LinkError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Without the brackets of IPv6: the hub's certificate must name it.
    host: String,
    port: u16,
}

/// A thin link needs seconds; a host that is off never answers.
const CONNECT_WITHIN: Duration = Duration::from_secs(15);
/// Resolvers try several servers.
const RESOLVE_WITHIN: Duration = Duration::from_secs(20);
/// Of a name with many addresses so many are tried.
const MAX_ADDRESSES: usize = 4;
const HTTPS: u16 = 443;

impl Address {
    pub fn parse(text: &str) -> Result<Address, LinkError> {
        let wrong = || LinkError::Address(text.chars().take(200).collect());
        let uri: http::Uri = text.trim().parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong());
        }
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let address = Address { host, port: uri.port_u16().unwrap_or(HTTPS) };
        address.server_name()?;
        Ok(address)
    }

    /// Of a peer, which is known by its key and not by a name.
    pub fn of_peer(address: SocketAddr) -> Address {
        Address { host: address.ip().to_string(), port: address.port() }
    }

    /// What the certificate must say.
    pub fn server_name(&self) -> Result<ServerName<'static>, LinkError> {
        ServerName::try_from(self.host.clone()).map_err(|_| LinkError::Address(self.host.clone()))
    }

    pub async fn connect(&self) -> Result<TcpStream, LinkError> {
        let mut last = None;
        for address in self.resolve().await?.into_iter().take(MAX_ADDRESSES) {
            match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => {
                    // Small requests go out at once; a socket that refuses this still works.
                    _ = socket.set_nodelay(true);
                    return Ok(socket);
                }
                Ok(Err(source)) => last = Some(LinkError::Unreachable { hub: self.to_string(), source }),
                Err(_) => last = Some(self.slow("connect", CONNECT_WITHIN)),
            }
        }
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        Err(last.unwrap_or_else(|| LinkError::Unreachable { hub: self.to_string(), source: nowhere() }))
    }

    pub fn slow(&self, step: &'static str, within: Duration) -> LinkError {
        LinkError::Slow { hub: self.to_string(), step, seconds: within.as_secs() }
    }

    async fn resolve(&self) -> Result<Vec<SocketAddr>, LinkError> {
        if let Ok(ip) = self.host.parse() {
            return Ok(vec![SocketAddr::new(ip, self.port)]);
        }
        let lookup = tokio::net::lookup_host((self.host.as_str(), self.port));
        match tokio::time::timeout(RESOLVE_WITHIN, lookup).await {
            Ok(Ok(found)) => Ok(found.collect()),
            Ok(Err(source)) => Err(LinkError::Unreachable { hub: self.to_string(), source }),
            Err(_) => Err(self.slow("resolve", RESOLVE_WITHIN)),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_read_with_and_without_a_port() {
        let shown = |text: &str| Address::parse(text).map(|address| address.to_string()).ok();
        assert_eq!(shown("https://hub.example:7443").as_deref(), Some("hub.example:7443"));
        assert_eq!(shown("https://hub.example/").as_deref(), Some("hub.example:443"));
        assert_eq!(shown("https://[2001:db8::1]:7443").as_deref(), Some("[2001:db8::1]:7443"));
        assert_eq!(shown("https://127.0.0.1:1").as_deref(), Some("127.0.0.1:1"));
    }

    #[test]
    fn what_is_no_address_of_a_hub_is_refused() {
        for text in ["", "hub:7443", "http://hub:1", "https://", "https://hub/path", "https://h?x", "https://a b:1"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in ".{0,100}") {
            _ = Address::parse(&text);
            _ = Address::parse(&format!("https://{text}"));
        }
    }
}
