//! What the hub answered: the document as it came, for those who print it, and the typed value, for those who read it.

use std::io::Read as _;
use std::marker::PhantomData;

use reqwest::StatusCode;
use reqwest::blocking::Response;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ClientError;
use crate::error::ErrorDetail;

/// An answer, and the number of the newest change it shows.
#[derive(Debug)]
pub struct Answer<T> {
    /// As it came, also with fields that this program doesn't know.
    pub document: Value,
    pub tick: Option<i64>,
    /// What the hub says beside the document.
    pub note: Option<String>,
    of: PhantomData<fn() -> T>,
}

/// An answer that nobody has looked into yet.
pub(super) struct Received {
    status: StatusCode,
    document: Value,
    tick: Option<i64>,
    note: Option<String>,
    retry_after: Option<u64>,
}

/// A page of 500 objects is below a megabyte.
const MAX_ANSWER: u64 = 64 << 20;

impl<T: DeserializeOwned> Answer<T> {
    pub fn read(&self) -> Result<T, ClientError> {
        T::deserialize(&self.document).map_err(|error| ClientError::unreadable(&error))
    }
}

impl Received {
    pub fn read(hub: &str, response: Response) -> Result<Received, ClientError> {
        let status = response.status();
        let number = |name: &str| response.headers().get(name)?.to_str().ok()?.parse::<i64>().ok();
        let tick = number("kedge-tick");
        let retry_after = number("retry-after").and_then(|seconds| u64::try_from(seconds).ok());
        let note = response.headers().get("kedge-note").and_then(|note| note.to_str().ok()).map(str::to_owned);
        let mut bytes = Vec::new();
        if let Err(error) = response.take(MAX_ANSWER).read_to_end(&mut bytes) {
            let hint = "try again";
            return Err(ClientError::Unreachable { hub: hub.to_owned(), why: error.to_string(), hint });
        }
        let document = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes).unwrap_or(Value::String(String::new())),
        };
        Ok(Received { status, document, tick, note, retry_after })
    }

    /// Seconds to wait before another try.
    pub fn pause(&self) -> Option<u64> {
        let told = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        self.retry_after.filter(|_| told)
    }

    /// The answer, when the hub did what was asked.
    pub fn check<T>(self, hub: &str) -> Result<Answer<T>, ClientError> {
        let Received { status, document, tick, note, .. } = self;
        if status.is_success() && !document.is_string() {
            return Ok(Answer { document, tick, note, of: PhantomData });
        }
        match serde_json::from_value::<ErrorDetail>(document) {
            Ok(detail) if !status.is_success() => Err(ClientError::Refused(Box::new(detail))),
            _ => Err(ClientError::Foreign { hub: hub.to_owned(), status: status.as_u16() }),
        }
    }
}
