//! A connection to a peer: TCP, TLS both ways, and the key that says who answered. The driver and downloads dial.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use kedge_model::wire::ClusterId;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::link::LinkError;
use crate::link::address::Address;
use crate::link::connection::{Connection, Limits, of_tls};
use crate::link::mutual::{Mutual, cluster_of};

/// An open connection, and whose it is.
#[derive(Debug)]
pub struct Line {
    pub cluster: ClusterId,
    pub address: SocketAddr,
    pub connection: Connection,
}

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It isn't where it was said to be.
    #[error("{address} is {found}, not {wanted}")]
    Another { address: SocketAddr, found: ClusterId, wanted: ClusterId },
    #[error("no address of {0} is known")]
    Nowhere(ClusterId),
}

/// On a LAN, with a lost packet; who needs longer isn't worth the wait. With the times below and `pace::UPLINK_EVERY` another one
/// carries within a minute after the uplink's power was cut.
const CONNECT_WITHIN: Duration = Duration::from_secs(4);
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// The most that a message has.
pub const MAX_MESSAGE: usize = 1024 * 1024;
/// A small question is answered at once, or the other one is gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(6);
/// Bytes a second of the slowest radio link on which messages are given time.
const THIN: usize = 32 * 1024;
/// A full answer over such a link.
const BODY_WITHIN: Duration = Duration::from_secs(32);

/// Who answers there.
pub async fn dial(mutual: &Mutual, address: SocketAddr) -> Result<Line, LinkError> {
    let name = Address::of_peer(address);
    let socket = match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
        Ok(Ok(socket)) => socket,
        Ok(Err(source)) => return Err(LinkError::Unreachable { hub: name.to_string(), source }),
        Err(_) => return Err(name.slow("connect", CONNECT_WITHIN)),
    };
    // Small requests go out at once; a socket that refuses this still works.
    _ = socket.set_nodelay(true);
    // Nobody looks at the name.
    let connecting =
        TlsConnector::from(mutual.client.clone()).connect(ServerName::IpAddress(address.ip().into()), socket);
    let stream = match tokio::time::timeout(HANDSHAKE_WITHIN, connecting).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(of_tls(&name, error)),
        Err(_) => return Err(name.slow("agree on a secure connection", HANDSHAKE_WITHIN)),
    };
    let cluster = cluster_of(stream.get_ref().1.peer_certificates())
        .ok_or(LinkError::Settings(rustls::Error::General("a certificate without a key of ours".to_owned())))?;
    let connection = Connection::over(&name, stream).await?;
    Ok(Line { cluster, address, connection })
}

/// A line to this one, at the first of its addresses where it answers.
pub async fn dial_to(mutual: &Mutual, wanted: ClusterId, addresses: &[SocketAddr]) -> Result<Line, DialError> {
    let mut last = DialError::Nowhere(wanted);
    for address in addresses {
        match dial(mutual, *address).await {
            Ok(line) if line.cluster == wanted => return Ok(line),
            Ok(line) => last = DialError::Another { address: *address, found: line.cluster, wanted },
            Err(error) => last = error.into(),
        }
    }
    Err(last)
}

impl Line {
    /// A message and its answer.
    pub async fn sync(&mut self, message: Bytes) -> Result<Bytes, LinkError> {
        let sending = Duration::from_secs((message.len() / THIN) as u64);
        let limits = Limits { head: ANSWER_WITHIN + sending, body: BODY_WITHIN, answer: MAX_MESSAGE };
        self.connection.post("/peer/v1/sync", message, limits).await.map_err(|failed| failed.error)
    }
}
