//! What the hub answers, and what it means when it doesn't.

use std::error::Error as _;
use std::io::Read as _;

use reqwest::StatusCode;
use reqwest::blocking::Response;
use serde::Deserialize;
use serde_json::Value;

/// An answer's document and the number of the newest change it shows.
#[derive(Debug)]
pub struct Answer {
    status: StatusCode,
    pub document: Value,
    pub tick: Option<i64>,
    /// What the hub says beside the document.
    pub note: Option<String>,
    retry_after: Option<u64>,
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    #[error("the hub at {hub} doesn't answer: {why}")]
    Unreachable { hub: String, why: String, hint: &'static str },
    #[error("{message}")]
    Refused { reason: String, message: String, hint: Option<String> },
    #[error("{hub} answers, but not as a hub does (status {status})")]
    Foreign { hub: String, status: u16 },
}

/// The body of a refusal.
#[derive(Deserialize)]
struct Refusal {
    reason: String,
    message: String,
    hint: Option<String>,
}

/// Reasons that mean: a name was typed that there isn't, or a word, a time or a selector that can't be read.
const USAGE: [&str; 13] = [
    "UnknownName",
    "UnknownRing",
    "UnknownClusterType",
    "UnknownWorkload",
    "NotFound",
    "BadQuery",
    "BadExpiry",
    "BadKind",
    "BadSelector",
    "BadSide",
    "BadSince",
    "BadTime",
    "BadUntil",
];

/// A page of 500 objects is below a megabyte.
const MAX_ANSWER: u64 = 64 << 20;

/// Whether an address is on this machine.
fn is_loopback(hub: &str) -> bool {
    let host = reqwest::Url::parse(hub).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

impl HubError {
    pub fn unreachable(hub: &str, error: reqwest::Error) -> HubError {
        let mut why = String::new();
        let mut cause = error.source();
        while let Some(next) = cause {
            why = next.to_string();
            cause = next.source();
        }
        if why.is_empty() {
            why = error.without_url().to_string();
        }
        let lower = why.to_lowercase();
        let hint = if lower.contains("certificate") || lower.contains("unknownissuer") {
            "is it the right hub? a private authority's certificates go with --ca FILE"
        } else if lower.contains("refused") {
            match is_loopback(hub) {
                true => {
                    "is it running? the hub of `kedge up` starts with: kedge up FOLDER; an installed one: systemctl status kedge-hub"
                }
                false => "is it running? on its machine: systemctl status kedge-hub",
            }
        } else if lower.contains("corrupt message") || lower.contains("invalidcontenttype") {
            "it seems to speak plain HTTP: give the address with http://"
        } else {
            "is the address right, and can this machine reach it?"
        };
        HubError::Unreachable { hub: hub.to_owned(), why, hint }
    }

    pub fn is_gone(&self) -> bool {
        matches!(self, HubError::Refused { reason, .. } if reason == "TooOld")
    }

    /// A name that was typed isn't one that there is.
    pub fn is_usage(&self) -> bool {
        matches!(self, HubError::Refused { reason, .. } if USAGE.contains(&reason.as_str()))
    }

    pub fn is_unreachable(&self) -> bool {
        matches!(self, HubError::Unreachable { .. })
    }

    pub fn hint(&self) -> Option<String> {
        match self {
            HubError::Unreachable { hint, .. } => Some((*hint).to_owned()),
            HubError::Refused { hint, .. } => hint.clone(),
            HubError::Foreign { .. } => Some("is this the address of the hub's API?".to_owned()),
        }
    }
}

impl Answer {
    pub fn read(hub: &str, response: Response) -> Result<Answer, HubError> {
        let status = response.status();
        let number = |name: &str| response.headers().get(name)?.to_str().ok()?.parse::<i64>().ok();
        let tick = number("kedge-tick");
        let retry_after = number("retry-after").and_then(|seconds| u64::try_from(seconds).ok());
        let note = response.headers().get("kedge-note").and_then(|note| note.to_str().ok()).map(str::to_owned);
        let mut bytes = Vec::new();
        if let Err(error) = response.take(MAX_ANSWER).read_to_end(&mut bytes) {
            let hint = "try again";
            return Err(HubError::Unreachable { hub: hub.to_owned(), why: error.to_string(), hint });
        }
        let document = match bytes.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&bytes).unwrap_or(Value::String(String::new())),
        };
        Ok(Answer { status, document, tick, note, retry_after })
    }

    /// Seconds to wait before another try.
    pub fn pause(&self) -> Option<u64> {
        let told = matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        self.retry_after.filter(|_| told)
    }

    /// Itself, when the hub did what was asked.
    pub fn check(self, hub: &str) -> Result<Answer, HubError> {
        if self.status.is_success() && !self.document.is_string() {
            return Ok(self);
        }
        match serde_json::from_value::<Refusal>(self.document) {
            Ok(Refusal { reason, message, hint }) if !self.status.is_success() => {
                Err(HubError::Refused { reason, message, hint })
            }
            _ => Err(HubError::Foreign { hub: hub.to_owned(), status: self.status.as_u16() }),
        }
    }
}
