//! One peer's requests: a sync is the driver's to answer, content is served if the driver says that this peer may have it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use kedge_model::wire::{ClusterId, Digest, WireProblem};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::super::dial::MAX_MESSAGE;
use super::visits::Visit;
use super::{Asked, Door};
use crate::swarm::{ServeError, Served};

pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Who visits, for as long as its connection lasts.
pub struct Visitor {
    cluster: ClusterId,
    address: SocketAddr,
    door: Door,
    visit: Visit,
    due: Arc<Due>,
    /// Since when nothing is under way; none: something is.
    idle: Mutex<Option<Instant>>,
    /// Others need the place.
    leave: Notify,
}

/// When what is under way must have ended.
#[derive(Debug, Default)]
struct Due(Mutex<Option<Instant>>);

/// Clears the time when a body was read to its end, or dropped.
struct Running(Arc<Due>);

/// A message of a MiB over a slow radio link, and its answer.
const MESSAGE_WITHIN: Duration = Duration::from_secs(60);
/// A chunk of content; a slower one isn't worth a connection.
const CONTENT_WITHIN: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_secs(5);

impl Visitor {
    pub fn new(cluster: ClusterId, address: SocketAddr, door: Door, visit: Visit) -> Visitor {
        Visitor {
            cluster,
            address,
            door,
            visit,
            due: Arc::default(),
            idle: Mutex::new(Some(Instant::now())),
            leave: Notify::new(),
        }
    }

    /// Returns when the other side takes too long.
    pub async fn overdue(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if self.due.get().is_some_and(|due| Instant::now() >= due) {
                return;
            }
        }
    }

    /// Returns when it was asked to leave.
    pub async fn asked_to_leave(&self) {
        self.leave.notified().await;
    }

    pub fn ask_to_leave(&self) {
        self.leave.notify_one();
    }

    /// Since when it asks for nothing.
    pub fn idle_since(&self) -> Option<Instant> {
        let idle = *self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.filter(|_| self.due.get().is_none())
    }

    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        self.set_idle(None);
        let answer = self.answer_now(request).await;
        self.set_idle(Some(Instant::now()));
        answer
    }

    fn set_idle(&self, since: Option<Instant>) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    async fn answer_now(&self, request: Request<Incoming>) -> Response<Body> {
        if !self.visit.spend(1, 0) {
            return refusal(StatusCode::TOO_MANY_REQUESTS, "TooMany", "more requests than any honest peer makes");
        }
        let path = request.uri().path().to_owned();
        match (request.method(), path.as_str()) {
            (&Method::POST, "/peer/v1/sync") => self.sync(request).await,
            (&Method::GET, path) => match path.strip_prefix("/peer/v1/").and_then(|rest| rest.split_once('/')) {
                Some(("blobs", digest)) => self.content(digest, Some(request.headers().get(RANGE))).await,
                Some(("chunks", digest)) => self.content(digest, None).await,
                _ => nothing(),
            },
            _ => nothing(),
        }
    }

    async fn sync(&self, request: Request<Incoming>) -> Response<Body> {
        let _running = self.due.begin(MESSAGE_WITHIN);
        let Ok(message) = Limited::new(request.into_body(), MAX_MESSAGE).collect().await else {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "TooLarge", "a message has a MiB at most");
        };
        let message = message.to_bytes();
        if !self.visit.spend(0, message.len() as u64) {
            return refusal(StatusCode::TOO_MANY_REQUESTS, "TooMany", "more bytes than any honest peer sends");
        }
        let (reply, answer) = oneshot::channel();
        let asked = Asked::Sync { from: self.cluster, address: self.address, message, reply };
        if self.door.ask.send(asked).await.is_err() {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "Stopping", "the agent stops");
        }
        match answer.await {
            Ok(Some(answer)) if self.visit.spend(0, answer.len() as u64) => json(answer),
            Ok(Some(_)) => refusal(StatusCode::TOO_MANY_REQUESTS, "TooMany", "more bytes than any honest peer needs"),
            Ok(None) => refusal(StatusCode::FORBIDDEN, "Refused", "nothing is shared with this peer"),
            Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE, "Stopping", "the agent stops"),
        }
    }

    /// A blob or a part of it; without `range` its list of chunks.
    async fn content(&self, digest: &str, range: Option<Option<&HeaderValue>>) -> Response<Body> {
        let Ok(blob) = digest.parse::<Digest>() else { return nothing() };
        let (reply, answer) = oneshot::channel();
        let asked = Asked::May { from: self.cluster, address: self.address, blob, reply };
        if self.door.ask.send(asked).await.is_err() {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "Stopping", "the agent stops");
        }
        // Whether it is here is nobody's business who may not have it.
        if !answer.await.unwrap_or(false) {
            return nothing();
        }
        let (server, running) = (&self.door.server, self.due.begin(CONTENT_WITHIN));
        let served = match range {
            None => server.chunks(&blob).await.map(json),
            Some(header) => match header.map(HeaderValue::to_str).transpose() {
                Ok(header) => server.range(&blob, header).map(|served| stream(served, running)),
                Err(_) => Err(ServeError::Range(0)),
            },
        };
        served.unwrap_or_else(|error| match error {
            ServeError::Gone => nothing(),
            ServeError::Range(_) => refusal(StatusCode::RANGE_NOT_SATISFIABLE, "Range", "no such bytes"),
            ServeError::Disk(_) => {
                tracing::debug!(%blob, error = %error, "content can't be served");
                refusal(StatusCode::INTERNAL_SERVER_ERROR, "Internal", "it can't be read")
            }
        })
    }
}

fn stream(served: Served, running: Running) -> Response<Body> {
    let (partial, length) = (served.is_partial(), served.range.end - served.range.start);
    let range = HeaderValue::try_from(served.content_range());
    let frames = served.body.map(move |piece| {
        // Lives as long as the body.
        let _running = &running;
        piece.map(Frame::data)
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    if let (true, Ok(range)) = (partial, range) {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

/// A refusal that a peer reads as the hub's.
fn refusal(status: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let problem = WireProblem { reason: reason.to_owned(), message: message.to_owned(), hint: None };
    let mut response = json(serde_json::to_vec(&problem).unwrap_or_default());
    *response.status_mut() = status;
    response
}

fn nothing() -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, "Gone", "it isn't here, or not for this peer")
}

/// No header says that it is JSON: everything here is, and an idle site sends little else than heads.
fn json(bytes: impl Into<Bytes>) -> Response<Body> {
    Response::new(Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync())
}

impl Due {
    fn begin(self: &Arc<Due>, within: Duration) -> Running {
        self.set(Some(Instant::now() + within));
        Running(Arc::clone(self))
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, due: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = due;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
