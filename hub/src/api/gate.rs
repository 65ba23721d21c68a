//! What stands before every route of the API: time, rate limits, the token, and the audit's entry of refused writes.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::ApiState;
use super::airgap::IMPORT;
use super::answer::{ApiError, Reason};
use super::attempt::Attempt;
use super::caller::{Caller, no_token};
use super::limit::Whose;
use super::page::MAX_WAIT;
use crate::connections::address::network;
use crate::metrics::Route;

/// As it is seen below `/api/v1`.
const PLAN: &str = "/plan";

/// This host alone: others of its domain are nobody's business.
const A_YEAR_OF_TLS: &str = "max-age=31536000";

/// A token that was revoked ends what waits on it within two seconds.
const CHECKED: Duration = Duration::from_millis(1500);

/// The largest file over a thin link, and the commits of all that is in it.
const IMPORT_TIME: Duration = Duration::from_secs(10 * 60);

/// A request ends in time, however slowly its body comes.
pub async fn in_time(State(time): State<Duration>, request: Request, next: Next) -> Response {
    let time = if waits(&request) { time + MAX_WAIT } else { time };
    let time = if request.uri().path() == IMPORT { time.max(IMPORT_TIME) } else { time };
    match tokio::time::timeout(time, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::new(StatusCode::REQUEST_TIMEOUT, "TooSlow", "the request took too long").into_response(),
    }
}

/// Lets a request with a valid token in, at its rate.
pub async fn let_in(State(state): State<ApiState>, mut request: Request, next: Next) -> Response {
    let address = address_of(&request);
    let from = address.map(|address| address.to_canonical().to_string()).unwrap_or_default();
    let caller = match Caller::of(&state, request.headers(), &from).await {
        Ok(Some(caller)) => caller,
        Ok(None) => return by_address(&state, address, no_token()),
        Err(refused) => {
            if refused.status == StatusCode::UNAUTHORIZED {
                state.note_failed_login(address, &refused).await;
            }
            return by_address(&state, address, refused);
        }
    };
    if let Err(seconds) = state.limits.take(Whose::Token(caller.token.clone()), Instant::now()) {
        return too_many(seconds).into_response();
    }
    request.extensions_mut().insert(caller.clone());
    let waits = waits(&request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let request = match state.bodies.watch(&caller.token, request) {
        Ok(request) => request,
        Err(busy) => return busy.into_response(),
    };
    let mut response = if waits && !is_write(&method, &path) {
        tokio::select! {
            response = next.run(request) => response,
            refused = ended(&state, &caller) => refused.into_response(),
        }
    } else {
        next.run(request).await
    };
    // A token that was revoked meanwhile gets nothing any more.
    if waits && let Err(refused) = caller.check_again(&state).await {
        response = refused.into_response();
    }
    let reason = response.extensions().get::<Reason>().copied();
    if let Some(Reason(reason)) = reason.filter(|_| is_write(&method, &path) && !caller.asked.is_audited()) {
        note_refusal(&state, &caller, (&method, &path), reason).await;
    }
    let kind = match is_write(&method, &path) {
        true => Route::Write,
        false if waits => Route::Watch,
        false => Route::Read,
    };
    state.count(kind, response.status());
    response
}

/// Returns once the token isn't good any more, however long the request waits.
async fn ended(state: &ApiState, caller: &Caller) -> ApiError {
    loop {
        tokio::time::sleep(CHECKED).await;
        // A database that is away says nothing of it.
        if let Err(refused) = caller.check_again(state).await
            && refused.status == StatusCode::UNAUTHORIZED
        {
            return refused;
        }
    }
}

/// Where TLS leads here, browsers are told to stay with it, also before the first page is seen.
pub async fn stay_with_tls(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    if state.secure {
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static(A_YEAR_OF_TLS));
    }
    response
}

/// Requests without a valid token are limited by where they come from.
fn by_address(state: &ApiState, address: Option<IpAddr>, refused: ApiError) -> Response {
    let taken = address.map_or(Ok(()), |address| state.limits.take(Whose::Address(network(address)), Instant::now()));
    match taken {
        Ok(()) => refused.into_response(),
        Err(seconds) => too_many(seconds).into_response(),
    }
}

pub fn too_many(seconds: u64) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "too many requests: slow down")
        .hint("to follow changes use a watch (`--watch`, or `?after=…&wait=30s`)")
        .retry_after(seconds)
}

/// The listener put it there.
pub fn address_of(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<ConnectInfo<SocketAddr>>().map(|peer| peer.0.ip())
}

fn waits(request: &Request) -> bool {
    request.uri().query().is_some_and(|query| query.contains("wait="))
}

/// A plan is posted for its size, and writes nothing.
fn is_write(method: &Method, path: &str) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) && path != PLAN
}

/// Writes that are done note themselves, in their own transaction.
async fn note_refusal(state: &ApiState, caller: &Caller, (method, path): (&Method, &str), reason: &str) {
    let Attempt { action, object, environment } = Attempt::find(state, caller, method, path).await;
    let mut entry = caller.did(&action, &object, &environment, serde_json::Value::Null);
    entry.result = format!("refused: {reason}");
    state.note_refused_write(entry).await;
}
