//! Why a request to a hub came to nothing, and what to do about it.

use std::error::Error as _;

use crate::error::ErrorDetail;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the hub at {hub} doesn't answer: {why}")]
    Unreachable { hub: String, why: String, hint: &'static str },
    #[error("{}", .0.detail)]
    Refused(Box<ErrorDetail>),
    #[error("{hub} answers, but not as a hub does (status {status})")]
    Foreign { hub: String, status: u16 },
    #[error("the hub's answer can't be read: {why}")]
    Unreadable { why: String },
    #[error("the request can't be written: {why}")]
    Unwritable { why: String },
    /// What was named can't be a step of a path.
    #[error("{message}")]
    BadName { message: String, hint: &'static str },
}

/// Codes that mean: a name was typed that there isn't, or a word, a time or a selector that can't be read.
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

/// Whether an address is on this machine.
fn is_loopback(hub: &str) -> bool {
    let host = reqwest::Url::parse(hub).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."))
}

impl ClientError {
    pub(super) fn unreachable(hub: &str, error: reqwest::Error) -> ClientError {
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
        ClientError::Unreachable { hub: hub.to_owned(), why, hint }
    }

    /// What came isn't what such an answer is.
    #[must_use]
    pub fn unreadable(error: &serde_json::Error) -> ClientError {
        ClientError::Unreadable { why: error.to_string() }
    }

    pub(super) fn unwritable(error: &serde_json::Error) -> ClientError {
        ClientError::Unwritable { why: error.to_string() }
    }

    /// The hub's code for a refusal.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Refused(detail) => Some(&detail.code),
            _ => None,
        }
    }

    /// The watch has missed too much: it begins again with a list.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.code() == Some("TooOld")
    }

    /// A name that was typed isn't one that there is.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, ClientError::BadName { .. }) || self.code().is_some_and(|code| USAGE.contains(&code))
    }

    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, ClientError::Unreachable { .. })
    }

    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::Unreachable { hint, .. } | ClientError::BadName { hint, .. } => Some((*hint).to_owned()),
            ClientError::Refused(detail) => detail.hint.clone(),
            ClientError::Foreign { .. } => Some("is this the address of the hub's API?".to_owned()),
            ClientError::Unreadable { .. } => {
                Some("are this program and the hub of the same release? kedge --version tells its own".to_owned())
            }
            ClientError::Unwritable { .. } => None,
        }
    }
}
