//! Why a join didn't happen, and the way out. Nothing was changed in any of these cases but the key that the next try uses.

use std::io;
use std::path::PathBuf;

use kedge_durable::LedgerError;
use kedge_model::wire::{ClusterId, JoinTokenError};

use crate::identity::IdentityError;
use crate::link::LinkError;

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("this host joined already: it is cluster {name} ({cluster}) of the hub {hub}")]
    AlreadyJoined { hub: String, cluster: ClusterId, name: String },
    #[error("another join is under way on this host")]
    Busy,
    #[error("there is no token: neither an argument nor {path}")]
    NoToken { path: PathBuf },
    #[error("the token's file {path} can't be read")]
    TokenFile { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Token(#[from] JoinTokenError),
    #[error("`{0}` is no name for a cluster: 1 to 253 printable characters are")]
    Name(String),
    #[error("{path} can't be made")]
    Folder { path: PathBuf, source: io::Error },
    #[error("the host's identity can't be kept")]
    Ledger(#[source] LedgerError),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the hub's answer is not to be believed: {0}")]
    Unbelievable(String),
}

impl JoinError {
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            JoinError::AlreadyJoined { .. } => {
                "`kedge-agent status` shows it; `kedge-agent join --again` leaves it and joins as a new cluster"
                    .to_owned()
            }
            JoinError::NoToken { .. } => {
                "make one with `kedge token create` and give it as `kedge-agent join --token …`".to_owned()
            }
            JoinError::Token(_) => "`kedge token create` prints a token on one line".to_owned(),
            JoinError::TokenFile { source, .. } | JoinError::Folder { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                "run it as root".to_owned()
            }
            JoinError::Ledger(LedgerError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                "run it as root".to_owned()
            }
            // Before a join nothing is pinned but what the token says.
            JoinError::Link(LinkError::WrongHub { .. }) => {
                "the token names the authority of another hub: make one on the hub at this address, or find out what \
                 answers there (a proxy, an old name)"
                    .to_owned()
            }
            JoinError::Link(LinkError::Unreachable { .. } | LinkError::Slow { .. }) => {
                "check the network and the hub's name and port; the same token works again".to_owned()
            }
            JoinError::Link(error) => return error.hint(),
            _ => return None,
        })
    }

    /// A stable word for a warning.
    pub fn code(&self) -> &str {
        match self {
            JoinError::Link(error) => error.code(),
            JoinError::AlreadyJoined { .. } => "AlreadyJoined",
            JoinError::Busy => "JoinBusy",
            JoinError::NoToken { .. } | JoinError::TokenFile { .. } | JoinError::Token(_) => "BadToken",
            JoinError::Name(_) => "BadName",
            JoinError::Folder { .. } | JoinError::Ledger(_) | JoinError::Identity(_) => "IdentityBroken",
            JoinError::Unbelievable(_) => "HubUnreadable",
        }
    }
}
