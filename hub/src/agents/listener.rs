//! The listener of `/agent/v1`: takes connections up to a bound, makes each a TLS and then an HTTP/1.1 connection in one task,
//! and at the end lets answers under way finish. Owns the handshake's configuration and keeps it fresh.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::route::{self, Caller};
use super::tls::{self, TlsError};
use super::{AgentService, Counted};
use crate::connections::guard::Guarded;
use crate::connections::shares::{Bounds, Owner, Share};
use crate::metrics::At;

/// The configuration of the next handshake.
type Current = Arc<RwLock<Arc<ServerConfig>>>;

/// What a connection takes as long as it lives: of all, for whose end the hub waits; and of its address or its cluster.
type Place = (OwnedSemaphorePermit, Share);

/// A handshake is a few round trips; slower is idle or hostile.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// From the end of an answer to the end of the next request's head. A poll's `next` stays below it.
const HEAD_WITHIN: Duration = Duration::from_secs(45);
/// The same without a certificate: who joins does it at once.
const STRANGERS_HEAD_WITHIN: Duration = Duration::from_secs(10);
/// An agent has a few; a link that breaks every few seconds leaves some behind that the hub hasn't missed yet.
const PER_CLUSTER: u32 = 128;
/// What one address has of all connections before they show a certificate, as a divisor: many agents are behind one router.
const STRANGERS: usize = 8;
/// A small hub still takes a rack that joins at once.
const LEAST_STRANGERS: usize = 32;
/// Requests have five headers; the rest of the buffer is for the path.
const MAX_HEADERS: usize = 32;
/// The least that hyper takes.
const BUFFER: usize = 8 * 1024;
/// Encrypted bytes that wait for a slow reader.
const TLS_BUFFER: usize = 32 * 1024;
/// A link that takes nothing for so long is cut or hostile.
const TAKE_WITHIN: Duration = Duration::from_secs(30);
/// The hub's own certificate is made anew long before it ends.
const RENEW_EVERY: Duration = Duration::from_secs(6 * 60 * 60);
/// Answers under way have so long at the end.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// When the system has no more room for connections.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

/// How many connections clusters, and those without a certificate, may have: together, each cluster, and from one address.
pub fn bounds(max_connections: usize) -> (Bounds, Bounds) {
    let all = u32::try_from(max_connections).unwrap_or(u32::MAX);
    let strangers = u32::try_from((max_connections / STRANGERS).max(LEAST_STRANGERS)).unwrap_or(u32::MAX);
    (Bounds { all, cluster: PER_CLUSTER, address: all }, Bounds { all, cluster: all, address: strangers })
}

/// Serves until told to stop; returns when the last answer is out.
pub async fn serve(
    listener: TcpListener,
    service: Arc<AgentService>,
    shutdown: watch::Receiver<bool>,
) -> Result<(), TlsError> {
    let current: Current = Arc::new(RwLock::new(Arc::new(configuration(&service)?)));
    let bound = service.config.max_connections.min(Semaphore::MAX_PERMITS);
    let room = Arc::new(Semaphore::new(bound));
    let follow = service.fleet.roster().follow(&service.store, shutdown.clone());
    let refresh = keep_fresh(&service, &current, shutdown.clone());
    let update_limiter = service.update_limiter.run(&service.store, shutdown.clone());
    let accept = accept(&listener, &service, &current, &room, shutdown.clone());
    tokio::join!(follow, refresh, update_limiter, accept);
    drop(listener);
    let all = u32::try_from(bound).unwrap_or(u32::MAX);
    if tokio::time::timeout(DRAIN_WITHIN, room.acquire_many(all)).await.is_err() {
        tracing::warn!(left = bound - room.available_permits(), "connections of agents are cut: they take too long");
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    service: &Arc<AgentService>,
    current: &Current,
    room: &Arc<Semaphore>,
    mut shutdown: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop(&mut shutdown) => return,
        };
        match accepted {
            Ok((socket, address)) => {
                // Past the bound a connection is closed at once, so that the client knows and tries another hub.
                let Ok(permit) = Arc::clone(room).try_acquire_owned() else {
                    service.metrics.connections_refused.get_or_create(&At::Agents.into()).inc();
                    continue;
                };
                let owner = Owner { cluster: None, address: address.ip() };
                let Ok(share) = service.strangers.take_one(owner) else {
                    service.metrics.connections_refused.get_or_create(&At::Agents.into()).inc();
                    tracing::debug!(%address, "too many connections of one address without a certificate");
                    continue;
                };
                let config = Arc::clone(&current.read().unwrap_or_else(PoisonError::into_inner));
                let (service, shutdown) = (Arc::clone(service), shutdown.clone());
                tokio::spawn(connection(socket, address, config, service, (permit, share), shutdown));
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no more connections can be taken");
                tokio::time::sleep(OUT_OF_FILES_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

async fn connection(
    socket: TcpStream,
    address: SocketAddr,
    config: Arc<ServerConfig>,
    service: Arc<AgentService>,
    mut place: Place,
    mut shutdown: watch::Receiver<bool>,
) {
    let _counted = Counted::one(&service.metrics.connections.get_or_create_owned(&At::Agents.into()));
    // Small answers go out at once; a socket that refuses this still works.
    let _ = socket.set_nodelay(true);
    let handshake = Box::pin(tokio::time::timeout(HANDSHAKE_WITHIN, TlsAcceptor::from(config).accept(socket)));
    let mut stream = match handshake.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%address, %error, "a handshake failed"),
        Err(_) => return tracing::debug!(%address, "a handshake took too long"),
    };
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER));
    let peer = match tls::peer(stream.get_ref().1.peer_certificates()) {
        Ok(peer) => peer,
        Err(error) => return tracing::debug!(%address, %error, "a certificate can't be read"),
    };
    let head_within = match peer {
        Some(peer) => {
            let owner = Owner { cluster: Some(peer.cluster), address: address.ip() };
            match service.known.take_one(owner) {
                Ok(share) => place.1 = share,
                Err(full) => {
                    service.metrics.connections_refused.get_or_create(&At::Agents.into()).inc();
                    return tracing::debug!(%address, cluster = %peer.cluster, %full, "a connection too many");
                }
            }
            HEAD_WITHIN
        }
        None => STRANGERS_HEAD_WITHIN,
    };
    let caller = Arc::new(Caller { service, peer, address: address.ip(), shutdown: shutdown.clone() });
    let answer = service_fn(move |request| route::answer(Arc::clone(&caller), request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_within)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER)
        .auto_date_header(false)
        .writev(true)
        .serve_connection(TokioIo::new(Guarded::new(stream, TAKE_WITHIN)), answer);
    let mut served = Box::pin(served);
    let ended = tokio::select! {
        ended = &mut served => Some(ended),
        () = stop(&mut shutdown) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%address, %error, "a connection ended");
    }
    drop(place);
}

/// Ends when the hub stops.
async fn stop(shutdown: &mut watch::Receiver<bool>) {
    // Without a sender nobody can say so any more: as good as told.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

fn configuration(service: &AgentService) -> Result<ServerConfig, TlsError> {
    let mut names = service.config.names.clone();
    names.extend(host(&service.config.address));
    tls::server_config(&service.keys, &names)
}

/// The host of `https://host:port`, without the brackets of an IPv6 address.
fn host(address: &str) -> Option<String> {
    let uri: http::Uri = address.parse().ok()?;
    Some(uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned())
}

/// A new key set brings other authorities; and the hub's own certificate ends some day.
async fn keep_fresh(service: &Arc<AgentService>, current: &Current, mut shutdown: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            () = service.keys.changed() => {}
            () = tokio::time::sleep(RENEW_EVERY) => {}
            () = stop(&mut shutdown) => return,
        }
        match configuration(service) {
            Ok(config) => *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config),
            Err(error) => tracing::error!(%error, "the listener for agents keeps its old certificate"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_the_address_is_in_the_certificate() {
        assert_eq!(host("https://hub.example:7443").as_deref(), Some("hub.example"));
        assert_eq!(host("https://[2001:db8::1]:7443").as_deref(), Some("2001:db8::1"));
        assert_eq!(host("not an address"), None);
    }
}
