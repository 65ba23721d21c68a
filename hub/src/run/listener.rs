//! The listener of people and programs: plain HTTP or TLS with the operator's certificate, bounds on connections, time limits
//! for who sends or takes slowly, and an end at which answers that are under way finish. Started by `run`, also for metrics alone.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use super::DRAIN;
use crate::config::TlsFiles;
use crate::connections::guard::Guarded;
use crate::connections::proxies::Proxies;
use crate::connections::shares::{Bounds, Owner, Shares};
use crate::metrics::{At, Metrics};
use crate::signal::stopped;

/// TLS with files that an operator renews: read again when they change.
#[derive(Clone)]
pub struct Tls {
    files: TlsFiles,
    current: Arc<RwLock<(Option<SystemTime>, TlsAcceptor)>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    #[error("{address} can't be listened on")]
    Bind { address: SocketAddr, source: std::io::Error },
    #[error("the TLS file {path} can't be read")]
    File { path: PathBuf, source: rustls_pki_types::pem::Error },
    #[error("the certificate and the key of [api.tls] can't be used together")]
    Tls(#[source] rustls::Error),
}

/// People, scripts, proxies; a proxy reuses its connections.
const MAX_CONNECTIONS: u32 = 2048;
/// An office behind one router; a proxy that the operator named has no such bound.
const PER_ADDRESS: u32 = MAX_CONNECTIONS / 4;
/// A link that takes nothing for so long is cut or hostile.
const TAKE: Duration = Duration::from_secs(30);
/// Who hasn't sent a request's head by then won't; also how long an idle connection is kept.
const HEAD: Duration = Duration::from_secs(30);
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Heads are small; bodies have limits of their own.
const MAX_HEAD: usize = 32 * 1024;
/// After a failure to accept (no file descriptors left) a moment passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How often TLS files are looked at.
const RELOAD: Duration = Duration::from_secs(60);

pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenerError> {
    TcpListener::bind(address).await.map_err(|source| ListenerError::Bind { address, source })
}

pub fn address(listener: &TcpListener) -> Result<SocketAddr, ListenerError> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    listener.local_addr().map_err(|source| ListenerError::Bind { address: unknown, source })
}

/// What a listener serves, and to whom.
#[derive(Clone, Debug)]
pub struct Served {
    pub tls: Option<Tls>,
    pub proxies: Arc<Proxies>,
    pub router: Router,
}

/// Serves until told to stop; returns when the last answer is out, or after `DRAIN`.
pub async fn serve(
    listener: TcpListener,
    served: Served,
    metrics: Arc<Metrics>,
    at: At,
    mut shutdown: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    let bounds = Bounds { all: MAX_CONNECTIONS, cluster: MAX_CONNECTIONS, address: PER_ADDRESS };
    let by_address = Shares::new(bounds);
    let open = metrics.connections.get_or_create_owned(&at.into());
    let refused = metrics.connections_refused.get_or_create_owned(&at.into());
    let mut connections = JoinSet::new();
    let mut reload = tokio::time::interval(RELOAD);
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut shutdown) => break,
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = reload.tick() => {
                if let Some(tls) = &served.tls {
                    tls.reload();
                }
                continue;
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection can't be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            refused.inc();
            continue;
        };
        let share = match served.proxies.trusts(peer.ip()) {
            true => None,
            false => match by_address.take_one(Owner { cluster: None, address: peer.ip() }) {
                Ok(share) => Some(share),
                Err(_) => {
                    refused.inc();
                    tracing::debug!(%peer, "too many connections of one address");
                    continue;
                }
            },
        };
        let (served, shutdown, open) = (served.clone(), shutdown.clone(), open.clone());
        open.inc();
        connections.spawn(async move {
            connect(stream, peer, served, shutdown).await;
            open.dec();
            drop((permit, share));
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connect(stream: TcpStream, peer: SocketAddr, served: Served, shutdown: watch::Receiver<bool>) {
    // Small answers must not wait for more to come.
    let _ = stream.set_nodelay(true);
    match served.tls.clone() {
        None => talk(stream, peer, served, shutdown).await,
        Some(tls) => match tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(stream)).await {
            Ok(Ok(stream)) => talk(stream, peer, served, shutdown).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
            Err(_) => tracing::debug!(%peer, "the TLS handshake took too long"),
        },
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    Served { proxies, router, .. }: Served,
    mut shutdown: watch::Receiver<bool>,
) {
    let answer = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut router = router.clone();
        let client = SocketAddr::new(proxies.client(peer.ip(), request.headers()), peer.port());
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(client));
            Ok::<_, Infallible>(match router.call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            })
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(MAX_HEAD).half_close(false);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(Guarded::new(stream, TAKE)), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut shutdown) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "the connection broke");
    }
}

impl Tls {
    /// `None`: no TLS was asked for.
    pub fn load(files: Option<&TlsFiles>) -> Result<Option<Tls>, ListenerError> {
        let Some(files) = files else { return Ok(None) };
        let current = (changed(files), acceptor(files)?);
        Ok(Some(Tls { files: files.clone(), current: Arc::new(RwLock::new(current)) }))
    }

    fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Files that can't be used leave the old certificate in place.
    pub(super) fn reload(&self) {
        let now = changed(&self.files);
        if self.current.read().unwrap_or_else(PoisonError::into_inner).0 == now {
            return;
        }
        match acceptor(&self.files) {
            Ok(acceptor) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = (now, acceptor);
                tracing::info!(certificate = %self.files.certificate.display(), "serves the new certificate");
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "the new certificate can't be used; the old one stays");
            }
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

/// When the newer of the files changed.
fn changed(files: &TlsFiles) -> Option<SystemTime> {
    let time = |path| std::fs::metadata(path).and_then(|file| file.modified()).ok();
    time(&files.certificate).max(time(&files.key))
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ListenerError> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|source| ListenerError::File { path: files.certificate.clone(), source })?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|source| ListenerError::File { path: files.key.clone(), source })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(ListenerError::Tls)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
