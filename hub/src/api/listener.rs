//! The listener for people and programs: plain HTTP or TLS with the operator's certificate. One task per connection,
//! bounded in number, each with limits on time and buffers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::{ApiState, router};
use crate::config;

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the certificate for the API in {path} can't be used")]
    Certificate { path: PathBuf, source: rustls_pki_types::pem::Error },
    #[error("there is no certificate in {0}")]
    NoCertificate(PathBuf),
    #[error("the key in {0} doesn't fit the certificate")]
    Key(PathBuf, #[source] rustls::Error),
}

/// More are refused: each costs memory, and people are few.
const MAX_CONNECTIONS: usize = 4096;
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// The whole head of a request must be there by then; also how long a connection may be idle between two.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// The head of a request, and what is read ahead.
const MAX_BUFFER: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// When the hub stops, answers on their way have so long.
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// After a failed accept (out of descriptors) a moment for others to close theirs.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the shutdown says so; answers on their way are finished, long polls end at once.
pub async fn serve(
    listener: TcpListener,
    tls: Option<&config::TlsFiles>,
    state: ApiState,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    let acceptor = tls.map(acceptor).transpose()?;
    let router = router(state);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = shutdown.wait_for(|stop| *stop) => break,
            Some(_) = connections.join_next() => continue,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "the API's listener can't accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Dropping the stream closes it.
        let Ok(seat) = Arc::clone(&room).try_acquire_owned() else { continue };
        let (router, acceptor, shutdown) = (router.clone(), acceptor.clone(), shutdown.clone());
        connections.spawn(async move {
            connection(stream, address, acceptor, router, shutdown).await;
            drop(seat);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIME, drained).await.is_err() {
        tracing::warn!("some requests didn't end in time and were cut");
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    shutdown: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    match acceptor {
        None => talk(stream, address, router, shutdown).await,
        Some(acceptor) => {
            // Who doesn't finish the handshake isn't worth a line in the log.
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await {
                talk(stream, address, router, shutdown).await;
            }
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    address: SocketAddr,
    router: Router,
    mut shutdown: watch::Receiver<bool>,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(address));
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(MAX_BUFFER)
        .max_headers(MAX_HEADERS)
        .half_close(false);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that vanished or spoke no HTTP: hyper has answered what could be answered.
        _ = connection.as_mut() => return,
        _ = shutdown.wait_for(|stop| *stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

fn acceptor(files: &config::TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let unreadable = |path: &PathBuf| {
        let path = path.clone();
        move |source| ServeError::Certificate { path, source }
    };
    let chain = CertificateDer::pem_file_iter(&files.certificate).map_err(unreadable(&files.certificate))?;
    let chain: Vec<CertificateDer<'static>> =
        chain.collect::<Result<_, _>>().map_err(unreadable(&files.certificate))?;
    if chain.is_empty() {
        return Err(ServeError::NoCertificate(files.certificate.clone()));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unreadable(&files.key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let wrong = |error| ServeError::Key(files.key.clone(), error);
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(wrong)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(wrong)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
