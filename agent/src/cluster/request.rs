//! One request to the API server and its answer: a value, or why not in the server's own words. Sorted by what happens next: what
//! passes is tried again by `retry`, a refusal is for people.

use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Cluster;
use super::metadata::or_default;
use crate::causes::chain;
use crate::goal::ObjectId;
use crate::tally::{self, Counted};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub accept: &'static str,
    /// Of the body, and the body.
    pub body: Option<(&'static str, Bytes)>,
    /// The user that asks; none: the agent itself.
    pub account: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// It can't be reached, is too busy, or changes its leader: later it may work.
    Passing {
        message: String,
        /// The server asked for so much patience.
        after: Option<Duration>,
    },
    Refused(Box<Refusal>),
    /// Somebody else leads by now, or the agent stops: nothing more is written.
    NotLeader,
}

/// A `Status` of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
    pub details: Details,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Details {
    pub kind: String,
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub causes: Vec<Cause>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    pub field: String,
}

pub const JSON: &str = "application/json";
/// The body is JSON, which is YAML too.
pub const APPLY: &str = "application/apply-patch+yaml";
pub const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
pub const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// An object has at most 3 MiB on its way in, and comes back with what the server adds to it.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// A refusal's words.
const MAX_REFUSAL: usize = 256 * 1024;
/// The server itself gives up after a minute.
const TIME: Duration = Duration::from_secs(62);
/// No server may make us wait longer than that.
const MOST_PATIENCE: Duration = Duration::from_secs(30);
const IMPERSONATE: HeaderName = HeaderName::from_static("impersonate-user");
/// A sentence of the server that a person reads to its end.
const MAX_SENTENCE: usize = 600;

impl Call {
    pub fn get(path: String) -> Call {
        Call { method: Method::GET, path, accept: JSON, body: None, account: None }
    }

    pub fn with_accept(self, accept: &'static str) -> Call {
        Call { accept, ..self }
    }

    pub fn by(self, account: Option<&str>) -> Call {
        Call { account: account.map(str::to_owned), ..self }
    }

    pub fn patch(path: String, body: Bytes) -> Call {
        Call { method: Method::PATCH, body: Some((APPLY, body)), ..Call::get(path) }
    }

    pub fn delete(path: String, options: Bytes) -> Call {
        Call { method: Method::DELETE, body: Some((JSON, options)), ..Call::get(path) }
    }

    fn request(&self) -> Result<Request<Body>, http::Error> {
        let mut request = Request::builder().method(self.method.clone()).uri(&self.path).header(ACCEPT, self.accept);
        if let Some(account) = &self.account {
            request = request.header(IMPERSONATE, account);
        }
        match &self.body {
            None => request.body(Body::empty()),
            Some((kind, bytes)) => request.header(CONTENT_TYPE, *kind).body(Body::from(bytes.clone())),
        }
    }
}

impl Cluster {
    /// Asks once.
    pub async fn call<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ApiError> {
        let bytes = within(TIME, async { read(self.send(call).await?.into_body(), MAX_ANSWER).await }).await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| passing(format!("the API server's answer can't be read: {error}"), None))
    }

    /// Asks once for what isn't JSON.
    pub async fn text(&self, call: &Call) -> Result<String, ApiError> {
        let bytes = within(TIME, async { read(self.send(call).await?.into_body(), MAX_REFUSAL).await }).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Asks for an answer that goes on; only its beginning is waited for.
    pub async fn open(&self, call: &Call) -> Result<Body, ApiError> {
        within(TIME, async { Ok(self.send(call).await?.into_body()) }).await
    }

    async fn send(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let sent = self.send_once(call).await;
        tally::add(if sent.is_ok() { Counted::Requested } else { Counted::RequestFailed }, 1);
        sent
    }

    async fn send_once(&self, call: &Call) -> Result<Response<Body>, ApiError> {
        let request = call.request().map_err(|error| {
            let message = format!("{} can't be asked for: {error}", call.path);
            ApiError::Refused(Box::new(Refusal { code: 400, message, ..Refusal::default() }))
        })?;
        let answer = self.client().send(request).await;
        let answer = answer
            .map_err(|error| passing(format!("the API server can't be reached: {}", shorten(&chain(&error))), None))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let code = answer.status().as_u16();
        let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = read(answer.into_body(), MAX_REFUSAL).await?;
        Err(sort(code, after.map(Duration::from_secs), &body))
    }
}

impl Refusal {
    /// In the server's own words, and not too many of them.
    pub fn sentence(&self) -> String {
        shorten(&self.message)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Passing { message, .. } => f.write_str(message),
            ApiError::Refused(refusal) => f.write_str(&refusal.sentence()),
            ApiError::NotLeader => f.write_str("another agent of this cluster leads, or this one stops"),
        }
    }
}

impl std::error::Error for ApiError {}

impl ApiError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }
}

/// Where all objects of a kind are, in a namespace or in all of them.
pub fn collection(group: &str, version: &str, plural: &str, namespace: Option<&str>) -> String {
    let mut path = String::from(if group.is_empty() { "/api" } else { "/apis" });
    let parts = [(!group.is_empty()).then_some(group), Some(version)];
    for part in parts.into_iter().flatten() {
        append(&mut path, part);
    }
    if let Some(namespace) = namespace {
        append(&mut path, "namespaces");
        append(&mut path, namespace);
    }
    append(&mut path, plural);
    path
}

/// Where an object is.
pub fn address(id: &ObjectId) -> String {
    let mut path = collection(&id.group, &id.version, &id.plural, id.namespace.as_deref());
    append(&mut path, &id.name);
    path
}

/// For a query.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The beginning of a long sentence.
pub fn shorten(text: &str) -> String {
    let text = text.trim();
    match text.len() > MAX_SENTENCE {
        false => text.to_owned(),
        true => format!("{}…", &text[..text.floor_char_boundary(MAX_SENTENCE)]),
    }
}

/// One more part of a path; nothing in it can lead elsewhere.
fn append(path: &mut String, part: &str) {
    path.push('/');
    for byte in part.bytes() {
        // A part of dots alone would be taken for another folder.
        let plain =
            byte.is_ascii_alphanumeric() || b"-_~:".contains(&byte) || (byte == b'.' && part != "." && part != "..");
        match plain {
            true => path.push(char::from(byte)),
            // Writing to a text can't fail.
            false => _ = write!(path, "%{byte:02X}"),
        }
    }
}

/// What an answer that isn't a success means.
fn sort(code: u16, after: Option<Duration>, body: &[u8]) -> ApiError {
    let mut refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    refusal.code = code;
    if refusal.message.is_empty() {
        let text = String::from_utf8_lossy(body);
        refusal.message = format!("HTTP {code}: {}", shorten(&text));
    }
    let clash = code == 409 && refusal.details.causes.iter().all(|cause| cause.reason != "FieldManagerConflict");
    // Faults of the content that the server calls its own.
    let ours = ["request is too large", "typed patch object", "not declared in schema"];
    let ours = ours.iter().any(|words| refusal.message.contains(words));
    match code {
        401 | 408 | 429 | 500.. if !ours => passing(refusal.sentence(), after),
        // Somebody wrote at the same moment.
        409 if clash => passing(refusal.sentence(), after),
        _ => ApiError::Refused(Box::new(refusal)),
    }
}

fn passing(message: String, after: Option<Duration>) -> ApiError {
    ApiError::Passing { message, after: after.map(|after| after.min(MOST_PATIENCE)) }
}

async fn within<T>(time: Duration, answer: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
    match tokio::time::timeout(time, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(passing(format!("the API server doesn't answer within {} s", time.as_secs()), None)),
    }
}

async fn read(body: Body, limit: usize) -> Result<Bytes, ApiError> {
    match Limited::new(body, limit).collect().await {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) => Err(passing(format!("the API server's answer broke off: {error}"), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_to_another_address() {
        assert_eq!(collection("apps", "v1", "deployments", Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(collection("", "v1", "nodes", None), "/api/v1/nodes");
        assert_eq!(collection("", "v1", "..", Some("a/b?c")), "/api/v1/namespaces/a%2Fb%3Fc/%2E%2E");
        assert_eq!(encode("kedge.dev/a b&c="), "kedge.dev%2Fa%20b%26c%3D");
    }

    #[test]
    fn what_passes_is_told_from_what_a_person_must_mend() {
        let status = |code: u16, text: &str| sort(code, Some(Duration::from_secs(90)), text.as_bytes());
        let busy = status(429, r#"{"message":"too many requests"}"#);
        let after = Some(MOST_PATIENCE);
        assert_eq!(busy, ApiError::Passing { message: "too many requests".to_owned(), after });
        assert!(matches!(status(500, r#"{"message":"etcdserver: leader changed"}"#), ApiError::Passing { .. }));
        assert!(matches!(status(503, "no JSON"), ApiError::Passing { .. }));
        assert!(matches!(status(409, r#"{"message":"the object has been modified"}"#), ApiError::Passing { .. }));
        let conflict =
            r#"{"message":"m","details":{"causes":[{"reason":"FieldManagerConflict","field":".spec.replicas"}]}}"#;
        assert!(matches!(status(409, conflict), ApiError::Refused(_)));
        assert_eq!(status(403, r#"{"message":"cannot patch"}"#).code(), Some(403));
        assert_eq!(status(500, r#"{"message":"etcdserver: request is too large"}"#).code(), Some(500));
    }

    proptest::proptest! {
        #[test]
        fn any_answer_is_sorted_without_a_panic(code in 300_u16..600, body: Vec<u8>) {
            let error = sort(code, None, &body);
            proptest::prop_assert!(error.to_string().len() <= MAX_SENTENCE + 64);
        }
    }
}
