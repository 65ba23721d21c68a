//! What is true on clusters: a document that was read, its part of the counts, and what it warns of.

pub mod prepared;
pub mod tally;
pub mod warnings;

use kedge_model::wire::{ClusterId, Timestamp};
use kedge_status::Status;

/// Who brought a sign of life that its cluster didn't bring itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// One of its site.
    Cluster(ClusterId),
    /// A person, with a file.
    File,
}

/// Why a document isn't taken; the first word of each is its stable reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeError {
    #[error("{0}")]
    Malformed(String),
    #[error("{0}")]
    Forged(String),
    #[error("{0}")]
    WrongCluster(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("{0}")]
    Unsupported(String),
    #[error("cluster {cluster} changes its holds too often: its next change is accepted in {seconds} seconds")]
    TooOften { cluster: ClusterId, seconds: u64 },
    #[error("no cluster {0} has joined this hub")]
    UnknownCluster(ClusterId),
    #[error("cluster {0} is retired or revoked")]
    Retired(ClusterId),
    #[error("two hosts write as cluster {0}: the document of the first stays")]
    Cloned(ClusterId),
    #[error("the database can't take the document now")]
    Unavailable,
}

/// Clocks that follow a time server differ by less.
const FUTURE_TOLERANCE_MS: i64 = 60_000;

/// A reported time in the hub's time; what would be in the future is now, and marked.
pub fn truly(status: &Status, clock: u64, at: Timestamp, received_at: Timestamp) -> (i64, bool) {
    let (at, corrected) = status.true_time(clock, at);
    (at.0.min(received_at.0), corrected || at.0 > received_at.0 + FUTURE_TOLERANCE_MS)
}

impl Carrier {
    /// As it is stored.
    pub fn to_text(self) -> String {
        match self {
            Carrier::Cluster(id) => id.to_string(),
            Carrier::File => "file".to_owned(),
        }
    }
}

impl TakeError {
    /// A stable word for answers and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            TakeError::Malformed(_) => "Malformed",
            TakeError::Forged(_) => "Forged",
            TakeError::WrongCluster(_) => "WrongCluster",
            TakeError::TooLarge(_) => "TooLarge",
            TakeError::Unsupported(_) => "Unsupported",
            TakeError::TooOften { .. } => "TooOften",
            TakeError::UnknownCluster(_) => "UnknownCluster",
            TakeError::Retired(_) => "Retired",
            TakeError::Cloned(_) => "Cloned",
            TakeError::Unavailable => "Unavailable",
        }
    }
}
