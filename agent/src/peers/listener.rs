//! The door for peers: who has a certificate of the fleet may sync and ask for content, within bounds of connections, bytes and time.
//! A task beside the driver, which judges every question; what fails here is tried again and never stops the agent.

mod answer;
mod knocks;
mod line;
mod visits;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use kedge_model::wire::{ClusterId, Digest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::link::HubLink;
use crate::link::mutual::{Mutual, cluster_of};
use crate::swarm::Server;
use answer::Visitor;
use knocks::{Knock, Knocks};
use line::Line;
use visits::Visits;

/// What the driver is asked.
#[derive(Debug)]
pub enum Asked {
    /// A message; no answer ends the connection.
    Sync { from: ClusterId, address: SocketAddr, message: Bytes, reply: oneshot::Sender<Option<Vec<u8>>> },
    /// Whether it may have this content.
    May { from: ClusterId, address: SocketAddr, blob: Digest, reply: oneshot::Sender<bool> },
}

/// Who is let in.
#[derive(Clone)]
pub enum Guard {
    /// Who has a certificate of the fleet.
    Fleet(Arc<HubLink>),
    /// Who shows this key, which is the own one too.
    Own { mutual: Mutual, id: ClusterId },
}

/// What each connection needs.
#[derive(Clone)]
pub struct Door {
    pub guard: Guard,
    pub server: Server,
    pub ask: mpsc::Sender<Asked>,
}

/// Everybody who is here.
#[derive(Clone, Default)]
struct Present(Arc<Mutex<Vec<Weak<Visitor>>>>);

/// More than a site's agents need at once; each costs a task and some 10 KiB, and while it asks hyper's 16 KiB. Those that ask for nothing
/// make room for others.
const MAX_CONNECTIONS: usize = 64;
/// One that was asked to leave does so at once.
const ROOM_WITHIN: Duration = Duration::from_secs(2);
/// Certificates and a few round trips on a LAN.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// A connection is kept so long between two requests.
const IDLE: Duration = Duration::from_secs(6 * 60);
/// All of a request's head, which is one packet, from when the line was last quiet.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// The least that hyper takes.
const BUFFER: usize = 16 * 1024;
const MAX_HEADERS: usize = 24;
/// After a failure to accept.
const PAUSE: Duration = Duration::from_secs(1);

impl Guard {
    fn mutual(&self) -> Option<Mutual> {
        match self {
            Guard::Fleet(link) => link.mutual().ok(),
            Guard::Own { mutual, .. } => Some(mutual.clone()),
        }
    }

    /// Whom the own key stands for.
    pub fn own(&self) -> ClusterId {
        match self {
            Guard::Fleet(link) => link.cluster(),
            Guard::Own { id, .. } => *id,
        }
    }
}

impl Present {
    fn add(&self, visitor: &Arc<Visitor>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(visitor));
    }

    /// Who has asked for nothing the longest goes.
    fn make_room(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = all.iter().filter_map(Weak::upgrade).filter_map(|visitor| Some((visitor.idle_since()?, visitor)));
        if let Some((_, longest)) = idle.min_by_key(|(since, _)| *since) {
            longest.ask_to_leave();
        }
    }
}

/// The wanted place, or a free port beside it: the port is announced anyway.
pub async fn bind(wanted: SocketAddr) -> io::Result<TcpListener> {
    let port_taken = match TcpListener::bind(wanted).await {
        Ok(listener) => return Ok(listener),
        Err(error) => error,
    };
    // A kernel without IPv6, or a port that another program has.
    let any = if wanted.ip().is_unspecified() { Ipv4Addr::UNSPECIFIED.into() } else { wanted.ip() };
    if wanted.is_ipv6() && wanted.ip().is_unspecified() && port_taken.kind() != io::ErrorKind::AddrInUse {
        return TcpListener::bind(SocketAddr::new(any, wanted.port())).await;
    }
    match TcpListener::bind(SocketAddr::new(wanted.ip(), 0)).await {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind(SocketAddr::new(any, 0)).await,
    }
}

/// For as long as somebody listens to what is asked.
pub async fn serve(listener: TcpListener, door: Door) {
    let (room, visits) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), Visits::default());
    let (present, knocks) = (Present::default(), Knocks::default());
    let mut visitors = tokio::task::JoinSet::new();
    while !door.ask.is_closed() {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, address)) => {
                    let Some(knock) = knocks.enter(address.ip().to_canonical()) else { continue };
                    if room.available_permits() == 0 {
                        present.make_room();
                    }
                    // Who finds it full comes again later, by its own back-off.
                    let seat = tokio::time::timeout(ROOM_WITHIN, Arc::clone(&room).acquire_owned()).await;
                    let Ok(Ok(seat)) = seat else { continue };
                    let (door, visits, present) = (door.clone(), visits.clone(), present.clone());
                    visitors.spawn(async move {
                        welcome(socket, (address, knock), door, visits, present).await;
                        drop(seat);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "no connection of a peer can be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = visitors.join_next() => {}
            () = door.ask.closed() => break,
        }
    }
}

/// Most visitors stay for hours and ask for little: what only their first second needs is freed after it.
async fn welcome(
    socket: TcpStream,
    (address, knock): (SocketAddr, Knock),
    door: Door,
    visits: Visits,
    present: Present,
) {
    let Some(stream) = Box::pin(shake_hands(socket, address, door.guard.mutual())).await else { return };
    drop(knock);
    let Some(cluster) = cluster_of(stream.get_ref().1.peer_certificates()) else { return };
    // The pods of the own cluster share its key: each is one by its address.
    let pod = (cluster == door.guard.own()).then(|| address.ip());
    let Some(visit) = visits.enter((cluster, pod)) else {
        tracing::debug!(%cluster, "a peer has connections enough");
        return;
    };
    let visitor = Arc::new(Visitor::new(cluster, address, door, visit));
    present.add(&visitor);
    let mut line = Line::new(stream, Arc::clone(&visitor));
    loop {
        let ended = tokio::select! {
            ended = serve_while_busy(line, &visitor) => ended,
            () = visitor.overdue() => return tracing::debug!(%cluster, "a slow peer was cut off"),
            () = visitor.asked_to_leave() => return tracing::debug!(%cluster, "an idle peer made room for another"),
        };
        // How it ended is the other side's to know.
        let Some(rested) = ended else { return };
        tokio::select! {
            woken = tokio::time::timeout(IDLE, rested.woken()) => if woken.is_err() { return },
            () = visitor.asked_to_leave() => return tracing::debug!(%cluster, "an idle peer made room for another"),
        }
        line = rested;
    }
}

/// Until nothing is asked for a while; the line is gone when its other side is.
async fn serve_while_busy(line: Line, visitor: &Arc<Visitor>) -> Option<Line> {
    let service = service_fn(|request| {
        let visitor = Arc::clone(visitor);
        Box::pin(async move { Ok::<_, std::convert::Infallible>(visitor.answer(request).await) })
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        // Whoever asks every half minute all day has a clock.
        .auto_date_header(false)
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER)
        .max_headers(MAX_HEADERS)
        .serve_connection(line, service);
    let parts = Box::pin(connection.without_shutdown()).await.ok()?;
    parts.io.rested()
}

async fn shake_hands(
    socket: TcpStream,
    address: SocketAddr,
    mutual: Option<Mutual>,
) -> Option<Box<TlsStream<TcpStream>>> {
    _ = socket.set_nodelay(true);
    match tokio::time::timeout(HANDSHAKE_WITHIN, TlsAcceptor::from(mutual?.server).accept(socket)).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) => {
            tracing::debug!(%address, %error, "a stranger was turned away");
            None
        }
        Err(_) => None,
    }
}
