//! Which request goes where, and who may ask what: everything but a join needs a certificate that isn't shut out, and an
//! expired one may only renew.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{ALLOW, HeaderValue};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use tokio::sync::watch;

use super::AgentService;
use super::answer::{Answer, Refusal};
use super::roster::Member;
use super::tls::Peer;
use super::{blobs, join, poll, renew, site, status};
use crate::connections::shares::Owner;
use crate::metrics::{self, Route, Status};
use crate::store::now;

/// One connection's other side.
pub struct Caller {
    pub service: Arc<AgentService>,
    /// None without a certificate: it can only join.
    pub peer: Option<Peer>,
    pub address: IpAddr,
    pub shutdown: watch::Receiver<bool>,
}

/// A cluster that may ask.
pub struct Known {
    pub peer: Peer,
    pub member: Arc<Member>,
}

const PREFIX: &str = "/agent/v1/";

pub async fn answer(caller: Arc<Caller>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let metrics = Arc::clone(&caller.service.metrics);
    let route = route(request.uri().path());
    let answer = dispatch(caller, request).await.unwrap_or_else(Refusal::answer);
    metrics.requests.get_or_create(&metrics::Request { route, status: Status::of(answer.status()) }).inc();
    Ok(answer)
}

fn route(path: &str) -> Route {
    match path.strip_prefix(PREFIX).unwrap_or_default() {
        "join" | "renew" => Route::Join,
        "poll" | "site" => Route::Poll,
        "status" | "proof" => Route::Status,
        other if other.starts_with("blobs/") => Route::Blob,
        _ => Route::Other,
    }
}

/// Each route's future is boxed on its own, so that a held poll keeps only its own.
async fn dispatch(caller: Arc<Caller>, request: Request<Incoming>) -> Result<Answer, Refusal> {
    let (parts, body) = request.into_parts();
    let route = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    match (route, &parts.method) {
        ("poll", &Method::POST) => {
            drop(parts);
            Box::pin(async move {
                let known = caller.known().await?;
                poll::poll(&caller, &known, body).await
            })
            .await
        }
        ("join", &Method::POST) => Box::pin(join::join(&caller, body)).await,
        ("renew", &Method::POST) => {
            let known = caller.known_even_expired().await?;
            Box::pin(renew::renew(&caller, &known, body)).await
        }
        ("status", &Method::POST) => {
            let known = caller.known().await?;
            Box::pin(status::take(&caller, &known, body)).await
        }
        ("proof", &Method::POST) => {
            let known = caller.known().await?;
            Box::pin(status::prove(&caller, &known, body)).await
        }
        ("site", &Method::POST) => {
            let known = caller.known().await?;
            Box::pin(site::carry(&caller, &known, body)).await
        }
        ("poll" | "join" | "renew" | "status" | "proof" | "site", _) => Ok(not_allowed("POST")),
        (route, method) => match route.strip_prefix("blobs/") {
            Some(digest) if matches!(*method, Method::GET | Method::HEAD) => {
                let known = caller.known().await?;
                let digest = digest.to_owned();
                Box::pin(blobs::send(&caller, &known, &digest, &parts)).await
            }
            Some(_) => Ok(not_allowed("GET, HEAD")),
            None => Err(Refusal::new(StatusCode::NOT_FOUND, "NotFound", "there is nothing at this path").closing()),
        },
    }
}

fn not_allowed(methods: &'static str) -> Answer {
    let message = format!("this path takes {methods}");
    let mut answer = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).closing().answer();
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    answer
}

impl Caller {
    /// Whose share of the hub a request takes.
    pub fn owner(&self) -> Owner {
        Owner { cluster: self.peer.map(|peer| peer.cluster), address: self.address }
    }

    /// The cluster, if its certificate is good for everything.
    async fn known(&self) -> Result<Known, Refusal> {
        let known = self.known_even_expired().await?;
        if known.peer.not_after <= now() {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "CertificateExpired", "the certificate has expired");
            return Err(refusal.hint("renew it at /agent/v1/renew"));
        }
        Ok(known)
    }

    async fn known_even_expired(&self) -> Result<Known, Refusal> {
        let Some(peer) = self.peer else {
            let message = "this needs the certificate that a join gives";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "CertificateMissing", message));
        };
        let Some(member) = self.service.fleet.roster().find(&self.service.store, &peer.cluster).await? else {
            let refusal = Refusal::new(StatusCode::FORBIDDEN, "NotAMember", "the hub knows no such cluster");
            return Err(refusal.hint("join again with a new token"));
        };
        refuse_shut_out(&member)?;
        Ok(Known { peer, member })
    }
}

/// Checked with each request, and while a poll is held.
pub fn refuse_shut_out(member: &Member) -> Result<(), Refusal> {
    if member.standing().state.is_shut_out() {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "Revoked", "this cluster's identity is revoked");
        return Err(refusal.hint("join again with a new key and a new token").closing());
    }
    Ok(())
}
