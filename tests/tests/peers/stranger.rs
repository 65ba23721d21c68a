//! Somebody on the LAN who speaks as much of the peers' protocol as a test wants: with a certificate of the fleet, of another one, or none.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kedge_agent::identity::key::HostKey;
use kedge_agent::link::mutual::Mutual;
use kedge_model::wire::{Envelope, Sequence};
use kedge_tests::agent::link::{Hub, Link, LinkError, Reply};
use kedge_tests::world::cluster::{Cluster, block_on};
use rustls::ClientConfig;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

#[derive(Clone)]
pub struct Stranger {
    config: Arc<ClientConfig>,
    /// Its membership, as the hub signed it.
    introduction: Option<Envelope>,
}

/// Shows no certificate.
#[derive(Debug)]
struct Nobody;

impl Stranger {
    /// One that the hub knows, or knew.
    pub fn member(cluster: &mut Cluster) -> Stranger {
        let known = std::mem::replace(&mut cluster.agent.membership.sequence, Sequence(0));
        let introduction = cluster.look().unwrap().membership;
        cluster.agent.membership.sequence = known;
        assert!(introduction.is_some(), "the hub tells who it is");
        Stranger { introduction, ..Stranger::with(&cluster.agent.keys.authorities, cluster) }
    }

    /// One of another fleet, that takes the certificates of this one.
    pub fn foreign(authorities: &[String], other: &Cluster) -> Stranger {
        Stranger::with(authorities, other)
    }

    /// One without a certificate.
    pub fn nobody(&self) -> Stranger {
        let mut config = (*self.config).clone();
        config.client_auth_cert_resolver = Arc::new(Nobody);
        Stranger { config: Arc::new(config), introduction: self.introduction.clone() }
    }

    fn with(authorities: &[String], own: &Cluster) -> Stranger {
        let key = HostKey::from_pem(&own.agent.identity.pair().serialize_pem()).expect("a key");
        let mutual = Mutual::new(authorities, &own.agent.certificate, &key).expect("a certificate that fits its key");
        Stranger { config: mutual.client, introduction: None }
    }

    pub fn open(&self, to: IpAddr) -> Result<Link, LinkError> {
        let place = Hub { host: to.to_string(), port: PORT };
        block_on(async { within(Link::open(&place, Arc::clone(&self.config))).await })
    }

    pub fn ask(&self, to: IpAddr, method: &str, path: &str, body: &[u8]) -> Result<Reply, LinkError> {
        let mut link = self.open(to)?;
        block_on(async { within(link.send(method, path, &[], body)).await })
    }

    /// It says who it is, then wants to know everything; the second answer.
    pub fn sync(&self, to: IpAddr) -> Result<Reply, LinkError> {
        let give: Vec<&Envelope> = self.introduction.iter().collect();
        let introduction = serde_json::json!({"version": 1, "give": give}).to_string();
        self.ask(to, "POST", "/peer/v1/sync", introduction.as_bytes())?;
        self.ask(to, "POST", "/peer/v1/sync", br#"{"version":1}"#)
    }
}

impl ResolvesClientCert for Nobody {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        None
    }

    fn has_certs(&self) -> bool {
        false
    }
}

/// Where agents listen.
pub const PORT: u16 = 7443;
/// A LAN answers sooner.
const ANSWER: Duration = Duration::from_secs(20);

async fn within<T>(work: impl Future<Output = Result<T, LinkError>>) -> Result<T, LinkError> {
    tokio::time::timeout(ANSWER, work).await.unwrap_or(Err(LinkError::Closed))
}

/// Connections that are held open and say nothing, opened again as soon as they are closed. Ends when it is dropped.
pub struct Squatters {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Squatters {
    pub fn start(to: Vec<IpAddr>, each: usize) -> Squatters {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let mut held: Vec<(IpAddr, TcpStream)> = Vec::new();
            while !seen.load(Ordering::Relaxed) {
                held.retain(|(_, socket)| is_open(socket));
                for to in &to {
                    let missing = each.saturating_sub(held.iter().filter(|(held, _)| held == to).count());
                    let address = SocketAddr::new(*to, PORT);
                    let opened = (0..missing).map_while(|_| TcpStream::connect_timeout(&address, ANSWER).ok());
                    held.extend(opened.map(|socket| (*to, socket)));
                }
                // Nothing announces that one was closed.
                thread::sleep(Duration::from_millis(50));
            }
        });
        Squatters { over, thread: Some(thread) }
    }
}

fn is_open(socket: &TcpStream) -> bool {
    let asked = socket.set_nonblocking(true).and_then(|()| socket.peek(&mut [0]));
    matches!(asked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

impl Drop for Squatters {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}
