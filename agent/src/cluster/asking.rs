//! Small requests to the API server with an answer in JSON, each with its time and typed by what happens next. The Lease, the secret ledger
//! and the facts of the cluster ask this way.

use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::Value;

use crate::causes::innermost;

pub type Answer = Value;

/// Typed by what the caller does next.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Somebody else wrote it, or it is there already.
    #[error("{0}")]
    Conflict(String),
    #[error("{0}")]
    Missing(String),
    /// It will be refused again: rights, sizes, words.
    #[error("the API server refuses it: {0}")]
    Refused(String),
    /// Whether it was done isn't known.
    #[error("the API server doesn't answer: {0}")]
    Away(String),
}

/// A merge patch: what isn't named stays.
const PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

pub async fn get(client: &Client, path: &str, limit: Duration) -> Result<Answer, AskError> {
    ask(client, Method::GET, path, None, limit).await
}

pub async fn create(client: &Client, path: &str, body: &Value, limit: Duration) -> Result<Answer, AskError> {
    ask(client, Method::POST, path, Some((JSON, body)), limit).await
}

pub async fn replace(client: &Client, path: &str, body: &Value, limit: Duration) -> Result<Answer, AskError> {
    ask(client, Method::PUT, path, Some((JSON, body)), limit).await
}

/// With a `resourceVersion` in its metadata it is refused once somebody else wrote.
pub async fn patch(client: &Client, path: &str, body: &Value, limit: Duration) -> Result<Answer, AskError> {
    ask(client, Method::PATCH, path, Some((PATCH, body)), limit).await
}

pub async fn delete(client: &Client, path: &str, body: &Value, limit: Duration) -> Result<Answer, AskError> {
    ask(client, Method::DELETE, path, Some((JSON, body)), limit).await
}

async fn ask(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<(&str, &Value)>,
    limit: Duration,
) -> Result<Answer, AskError> {
    let mut request = Request::builder().method(method).uri(path);
    let bytes = match body {
        Some((kind, body)) => {
            request = request.header(http::header::CONTENT_TYPE, kind);
            serde_json::to_vec(body).map_err(|why| AskError::Refused(why.to_string()))?
        }
        None => Vec::new(),
    };
    let request = request.body(bytes).map_err(|why| AskError::Refused(why.to_string()))?;
    match tokio::time::timeout(limit, client.request::<Value>(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(typed(error)),
        Err(_) => Err(AskError::Away(format!("not within {} s", limit.as_secs()))),
    }
}

fn typed(error: kube::Error) -> AskError {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => AskError::Missing(status.message),
            409 => AskError::Conflict(status.message),
            // A token that is being renewed, a server that starts: it passes.
            401 | 408 | 429 | 500..=599 => AskError::Away(format!("{} ({})", status.message, status.code)),
            code => AskError::Refused(format!("{} ({code})", status.message)),
        },
        kube::Error::SerdeError(why) => AskError::Away(format!("its answer can't be read: {why}")),
        error => AskError::Away(innermost(&error)),
    }
}
