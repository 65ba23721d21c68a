//! What can go wrong between host and hub, typed by what happens next. `run` asks `next`, reports `code`, and prints the chain.

use std::error::Error;
use std::io;
use std::time::Duration;

use kedge_model::wire::WireProblem;

use crate::causes::chain;
use crate::identity::IdentityError;

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("`{0}` is no address of a hub: `https://host:port` is expected")]
    Address(String),
    #[error("{hub} can't be reached")]
    Unreachable { hub: String, source: io::Error },
    #[error("{hub} took longer than {seconds} s to {step}")]
    Slow { hub: String, step: &'static str, seconds: u64 },
    #[error("the connection to {hub} broke")]
    Broken { hub: String, source: Box<dyn Error + Send + Sync> },
    /// Its certificate doesn't come from the pinned authority, names another, or has ended.
    #[error("what answers at {hub} is not the hub that is pinned here")]
    WrongHub { hub: String, source: rustls::Error },
    /// The hub ended the handshake: it doesn't know the authority of our certificate.
    #[error("{hub} doesn't take this host's certificate")]
    Rejected { hub: String, source: rustls::Error },
    /// A proxy's page, another program.
    #[error("what answers at {hub} is no Kedge hub: {said}")]
    NotAHub { hub: String, said: String },
    /// The hub says no, and why.
    #[error("the hub refused ({}): {}", problem.reason, problem.message)]
    Refused { status: u16, problem: WireProblem, after: Option<Duration> },
    #[error("the hub's answer has more than {0} bytes")]
    TooLarge(usize),
    #[error("the hub's answer can't be read")]
    Unreadable(#[source] serde_json::Error),
    #[error("the request can't be written")]
    Unwritable(#[source] serde_json::Error),
    #[error("TLS can't be set up")]
    Settings(#[source] rustls::Error),
    /// A copied disk: whoever talks with this identity is another machine.
    #[error("this identity was made on another machine")]
    MachineChanged,
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// What the loop does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Tries again with backoff.
    Backoff,
    /// The hub said when.
    After(Duration),
    /// A person is needed: asks rarely.
    Rarely,
    /// This request isn't repeated as it is; others go on.
    Drop,
    /// The certificate ended: only a renewal is answered.
    Renew,
    /// The identity on disk is another one now: begin again with it.
    Restart,
}

impl LinkError {
    pub fn next(&self) -> Next {
        match self {
            LinkError::Unreachable { .. }
            | LinkError::Slow { .. }
            | LinkError::Broken { .. }
            | LinkError::NotAHub { .. }
            | LinkError::TooLarge(_)
            | LinkError::Unreadable(_) => Next::Backoff,
            // Another hub at this address is mostly a name that resolves wrongly for a while.
            LinkError::WrongHub { .. } => Next::Backoff,
            LinkError::Refused { status, problem, after } => match (*status, problem.reason.as_str(), *after) {
                (403, "CertificateExpired", _) => Next::Renew,
                (429 | 503, _, Some(after)) => Next::After(after),
                (401 | 403 | 409, ..) => Next::Rarely,
                (400 | 404 | 405 | 413 | 422, ..) => Next::Drop,
                _ => Next::Backoff,
            },
            LinkError::Identity(IdentityError::Replaced) => Next::Restart,
            LinkError::Identity(IdentityError::Ledger(_)) => Next::Backoff,
            LinkError::Unwritable(_) => Next::Drop,
            LinkError::Address(_)
            | LinkError::Rejected { .. }
            | LinkError::Settings(_)
            | LinkError::MachineChanged
            | LinkError::Identity(_) => Next::Rarely,
        }
    }

    /// A stable word for a warning.
    pub fn code(&self) -> &str {
        match self {
            LinkError::Unreachable { .. } | LinkError::Slow { .. } | LinkError::Broken { .. } => "HubUnreachable",
            LinkError::WrongHub { .. } => "WrongHub",
            LinkError::Rejected { .. } => "CertificateRejected",
            LinkError::NotAHub { .. } => "NotAHub",
            LinkError::Refused { problem, .. } => &problem.reason,
            LinkError::TooLarge(_) | LinkError::Unreadable(_) => "HubUnreadable",
            LinkError::MachineChanged => "MachineChanged",
            LinkError::Address(_) | LinkError::Unwritable(_) | LinkError::Settings(_) => "LinkBroken",
            LinkError::Identity(IdentityError::Replaced) => "IdentityReplaced",
            LinkError::Identity(_) => "IdentityBroken",
        }
    }

    /// The way out, where one is known.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            LinkError::Unreachable { .. } | LinkError::Slow { .. } => {
                "check the network, the name and the port; what runs here continues meanwhile".to_owned()
            }
            LinkError::WrongHub { .. } => {
                "a proxy that opens TLS, a name that leads elsewhere, or a hub that was set up anew: \
                 the last needs a new token and `kedge-agent join --again`"
                    .to_owned()
            }
            LinkError::NotAHub { .. } => {
                "a proxy or another program answers: ask for a direct way to the hub".to_owned()
            }
            LinkError::Rejected { .. } => "join again with a new token: `kedge-agent join --again`".to_owned(),
            LinkError::MachineChanged => {
                "a copied disk joins as a cluster of its own: `kedge-agent join` with a new token".to_owned()
            }
            LinkError::Refused { problem, .. } => return problem.hint.clone(),
            _ => return None,
        })
    }

    /// The error and its causes in one sentence, each said once.
    pub fn sentence(&self) -> String {
        chain(self)
    }

    /// Whether the other side was there and said something.
    pub fn is_refusal(&self) -> bool {
        matches!(self, LinkError::Refused { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, reason: &str, after: Option<u64>) -> LinkError {
        let problem = WireProblem { reason: reason.to_owned(), message: "no".to_owned(), hint: None };
        LinkError::Refused { status, problem, after: after.map(Duration::from_secs) }
    }

    #[test]
    fn each_refusal_of_the_wire_has_its_next_step() {
        for (status, reason, after, next) in [
            (400, "Malformed", None, Next::Drop),
            (401, "CertificateMissing", None, Next::Rarely),
            (401, "TokenUnknown", None, Next::Rarely),
            (403, "CertificateExpired", None, Next::Renew),
            (403, "Revoked", None, Next::Rarely),
            (403, "NotAMember", None, Next::Rarely),
            (403, "Retired", None, Next::Rarely),
            (404, "Gone", None, Next::Drop),
            (408, "TooSlow", None, Next::Backoff),
            (409, "Cloned", None, Next::Rarely),
            (413, "TooLarge", None, Next::Drop),
            (422, "NotProved", None, Next::Drop),
            (429, "TooManyAttempts", Some(7), Next::After(Duration::from_secs(7))),
            (429, "TooManyAttempts", None, Next::Backoff),
            (500, "Internal", None, Next::Backoff),
            (503, "Busy", Some(3), Next::After(Duration::from_secs(3))),
            (599, "New", None, Next::Backoff),
        ] {
            assert_eq!(refused(status, reason, after).next(), next, "{status} {reason}");
        }
    }

    #[test]
    fn a_sentence_says_each_cause_once() {
        let error = LinkError::Unreachable {
            hub: "hub:1".to_owned(),
            source: io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"),
        };
        assert_eq!(error.sentence(), "hub:1 can't be reached: connection refused");
    }
}
