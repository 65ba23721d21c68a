//! Where the agent's numbers are served: on this host only. The configuration names it, and `metrics` serves there.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Where the numbers are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// On the loopback only.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    /// `127.0.0.1:7481` or `unix:/run/kedge-agent/metrics.sock`; what other hosts could reach is refused.
    pub fn of(text: &str) -> Option<Endpoint> {
        if let Some(path) = text.strip_prefix("unix:") {
            return path.starts_with('/').then(|| Endpoint::Unix(PathBuf::from(path)));
        }
        text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback()).map(Endpoint::Tcp)
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(address) => write!(f, "http://{address}/metrics"),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
