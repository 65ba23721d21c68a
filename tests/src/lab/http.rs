//! HTTP of the lab: a blocking client, and a small server that answers whole requests from a function. The Git server and the
//! inbox are made of it. A server owns one runtime with one thread, and its port also while it is closed.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, JoinSet};

use super::port::Port;

/// No answer of a part on loopback takes longer; a test that expects more says so itself.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

pub type Answer = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> Answer + Send + Sync>;

/// A server on loopback that can be closed (connections are refused) and opened again at the same address.
pub struct Server {
    port: Port,
    handler: Handler,
    runtime: Option<Runtime>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Server {
    pub fn start(handler: Handler) -> Server {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = Server { port: Port::claim(), handler, runtime: Some(runtime), accepting: Mutex::new(None) };
        server.open();
        server
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Takes connections, again if it was closed.
    pub fn open(&self) {
        let mut accepting = self.accepting.lock().unwrap();
        if accepting.is_none() {
            let listener = self.runtime().block_on(TcpListener::bind(self.address())).unwrap();
            *accepting = Some(self.runtime().spawn(accept(listener, self.handler.clone())));
        }
    }

    /// Ends every connection and refuses new ones.
    pub fn close(&self) {
        if let Some(accepting) = self.accepting.lock().unwrap().take() {
            accepting.abort();
            // The end of an aborted task is an error by definition.
            let _ = self.runtime().block_on(accepting);
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is taken in drop only")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, handler: Handler) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer_all(stream, handler.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers what comes through one connection, until it ends.
pub(crate) async fn answer_all(stream: impl AsyncRead + AsyncWrite + Unpin, handler: Handler) {
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let handler = handler.clone();
        async move {
            let (head, body) = request.into_parts();
            let response = match body.collect().await {
                Ok(body) => handler(Request::from_parts(head, body.to_bytes())).await,
                Err(_) => plain(400, "the body ended early"),
            };
            Ok::<_, Infallible>(response.map(Full::new))
        }
    });
    // A client that hangs up is no matter for the server.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// An answer of one line of text.
pub fn plain(status: u16, text: &str) -> Response<Bytes> {
    Response::builder().status(status).body(Bytes::from(format!("{text}\n"))).unwrap()
}

/// A client for the lab's own parts. Certificates aren't checked: that is for the tests about certificates.
pub fn client() -> reqwest::blocking::Client {
    use_ring();
    reqwest::blocking::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .timeout(ANSWER_WITHIN)
        .no_proxy()
        .build()
        .unwrap()
}

/// Makes ring the provider of TLS in this process; a second call changes nothing.
pub fn use_ring() {
    // It fails when there is a provider already, which is ours.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
