//! A proxy before the API server that a test has in its hands: it writes down what is asked, and answers, delays, holds back or cuts
//! what the test says. It shows the API server's own certificate, and passes watches on as they come.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::certificates::Certificates;
use crate::lab::port::Port;

type Rule = Arc<dyn Fn(&Request) -> Verdict + Send + Sync>;
type Response = http::Response<BoxBody<Bytes, hyper::Error>>;

/// What somebody asked of the API server.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// With the query.
    pub path: String,
    /// Whom the client acts for.
    pub impersonated: Option<String>,
    pub body: Bytes,
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Verdict {
    Pass,
    /// The API server gets it later.
    Delay(Duration),
    /// The API server never hears of it: a status, `Retry-After` in seconds, and a body.
    Answer(u16, Option<u64>, String),
    /// It isn't passed on, and isn't answered, until the client gives up.
    HoldBefore,
    /// The API server does it, and the client isn't told.
    HoldAfter,
    /// The connection ends without an answer.
    Break,
}

/// The proxy, with one thread of its own.
pub struct Proxy {
    port: Port,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

struct State {
    target: SocketAddr,
    connector: TlsConnector,
    rule: Mutex<Rule>,
    requests: Mutex<Vec<Request>>,
    connected: watch::Sender<bool>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Proxy {
    pub(super) fn start(target: SocketAddr, certificates: &Certificates) -> Proxy {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let port = Port::claim();
        let listener = runtime.block_on(TcpListener::bind(port.address())).unwrap();
        let state = Arc::new(State {
            target,
            connector: TlsConnector::from(certificates.client()),
            rule: Mutex::new(Arc::new(|_| Verdict::Pass)),
            requests: Mutex::default(),
            connected: watch::channel(true).0,
        });
        runtime.spawn(accept(listener, TlsAcceptor::from(certificates.server()), Arc::clone(&state)));
        Proxy { port, state, runtime: Some(runtime) }
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Ends every connection, and new ones as soon as they are made.
    pub fn cut(&self) {
        self.state.connected.send_replace(false);
    }

    pub fn mend(&self) {
        self.state.connected.send_replace(true);
    }

    /// From now on requests are judged by this.
    pub fn judge(&self, rule: impl Fn(&Request) -> Verdict + Send + Sync + 'static) {
        *self.state.rule.lock().unwrap() = Arc::new(rule);
    }

    /// From now on everything passes.
    pub fn pass_all(&self) {
        self.judge(|_| Verdict::Pass);
    }

    /// What was asked since it was last forgotten.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    pub fn forget_requests(&self) {
        self.state.requests.lock().unwrap().clear();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Request {
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// A write that isn't the agent's own bookkeeping, nor a question how an object would look.
    pub fn changes_objects(&self) -> bool {
        let own = ["/leases", "/namespaces/kedge-", "dryRun=All", "selfsubject"];
        self.is_write() && !own.iter().any(|part| self.path.contains(part))
    }

    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=true") || self.path.contains("watch=1")
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, state) = (acceptor.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            let mut cut = state.connected.subscribe();
            tokio::select! {
                // A connection that breaks is what a proxy passes on.
                _ = serve(stream, acceptor, &state) => {}
                _ = cut.wait_for(|connected| !connected) => {}
            }
        });
    }
}

/// One connection of a client and, from its first request on, one to the API server.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, state: &Arc<State>) -> Result<(), io::Error> {
    _ = stream.set_nodelay(true);
    let stream = acceptor.accept(stream).await?;
    let onward: Arc<tokio::sync::Mutex<Option<SendRequest<Full<Bytes>>>>> = Arc::default();
    let service = service_fn(|request: http::Request<Incoming>| {
        let (state, onward) = (Arc::clone(state), Arc::clone(&onward));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let seen = describe(&head, &body);
            state.requests.lock().unwrap().push(seen.clone());
            let rule = Arc::clone(&state.rule.lock().unwrap());
            let request = http::Request::from_parts(head, Full::new(body));
            match rule(&seen) {
                Verdict::Pass => pass(&state, &onward, request).await,
                Verdict::Delay(time) => {
                    tokio::time::sleep(time).await;
                    pass(&state, &onward, request).await
                }
                Verdict::Answer(status, retry_after, text) => answer(status, retry_after, text),
                Verdict::HoldBefore => std::future::pending().await,
                Verdict::HoldAfter => {
                    pass(&state, &onward, request).await?.into_body().collect().await.map_err(io::Error::other)?;
                    std::future::pending().await
                }
                Verdict::Break => Err(io::Error::other("as the test wishes")),
            }
        }
    });
    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}

fn describe(head: &http::request::Parts, body: &Bytes) -> Request {
    let impersonated = head.headers.get("impersonate-user").and_then(|value| value.to_str().ok());
    Request {
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        impersonated: impersonated.map(str::to_owned),
        body: body.clone(),
    }
}

async fn pass(
    state: &State,
    onward: &tokio::sync::Mutex<Option<SendRequest<Full<Bytes>>>>,
    request: http::Request<Full<Bytes>>,
) -> Result<Response, io::Error> {
    let mut sender = onward.lock().await;
    if sender.as_ref().is_none_or(SendRequest::is_closed) {
        *sender = Some(connect(state).await?);
    }
    let Some(sender) = sender.as_mut() else { return Err(io::Error::other("no connection")) };
    sender.ready().await.map_err(io::Error::other)?;
    Ok(sender.send_request(request).await.map_err(io::Error::other)?.map(BodyExt::boxed))
}

async fn connect(state: &State) -> Result<SendRequest<Full<Bytes>>, io::Error> {
    let stream = TcpStream::connect(state.target).await?;
    _ = stream.set_nodelay(true);
    let stream = state.connector.connect(ServerName::IpAddress(state.target.ip().into()), stream).await?;
    let made = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (sender, connection) = made.await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

fn answer(status: u16, retry_after: Option<u64>, text: String) -> Result<Response, io::Error> {
    let mut response = http::Response::builder().status(status).header("content-type", "application/json");
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    response.body(body).map_err(io::Error::other)
}
