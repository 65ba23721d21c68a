//! Strong entity tags: the digest of the very bytes of an answer. Who has them already gets 304.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt as _;
use kedge_model::wire::Digest;

use super::answer::ApiError;

/// So many digits can't meet by chance.
const DIGITS: usize = 32;

/// On an answer that is made while it is sent: it has no tag.
#[derive(Clone, Copy, Debug)]
pub struct Streamed;

pub async fn add(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    if !reads || response.status() != StatusCode::OK || response.extensions().get::<Streamed>().is_some() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Our own answers are made in memory before they are sent.
    let Ok(bytes) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return ApiError::unavailable("the answer couldn't be made").into_response();
    };
    let Some(tag) = tag(&bytes) else { return Response::from_parts(parts, Body::from(bytes)) };
    let unchanged = known.is_some_and(|known| names(&known, &tag));
    put(&mut parts.headers, header::ETAG, tag);
    // Kept by the caller alone, and asked for again each time.
    put(&mut parts.headers, header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    put(&mut parts.headers, header::VARY, HeaderValue::from_static("authorization"));
    if unchanged {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        parts.headers.remove(header::CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

fn put(headers: &mut HeaderMap, name: header::HeaderName, value: HeaderValue) {
    headers.insert(name, value);
}

fn tag(bytes: &Bytes) -> Option<HeaderValue> {
    let digits = Digest::of(bytes).hex();
    HeaderValue::from_str(&format!("\"{}\"", digits.get(..DIGITS)?)).ok()
}

/// Whether the header lists the tag. A proxy may have made it weak.
fn names(header: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(list), Ok(tag)) = (header.to_str(), tag.to_str()) else { return false };
    list.split(',').map(str::trim).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
