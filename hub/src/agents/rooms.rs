//! What agents are served from, of the hub's other rooms, as traits: `run` gives the real ones, tests their own.

use std::path::PathBuf;

use async_trait::async_trait;
use kedge_model::wire::{ClusterId, Digest, Envelope, Generation, Heads, Stream, Timestamp};

/// Takes in what agents say of themselves.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Answers once the document is stored for good. `carrier` is who brought it: the owner or somebody else.
    async fn take(&self, carrier: &ClusterId, envelope: Envelope) -> Result<(), TakeRefusal>;
    async fn contact(&self, cluster: &ClusterId, contact: Contact);
    /// Whether the hub lacks the document that these heads name.
    fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool;
}

/// What a poll tells beside its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    pub generation: Generation,
    /// Seconds since the last full look.
    pub look_age: u64,
    /// The next contact is expected before this.
    pub promise_until: Timestamp,
    pub heads: Heads,
}

/// Why a document isn't taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeRefusal {
    #[error("{message}")]
    Refused { reason: &'static str, message: String },
    #[error("the document is too large")]
    TooLarge,
    #[error("the database is away")]
    Unavailable,
}

/// Packages and artifacts by digest.
pub trait Packages: Send + Sync {
    /// Where the content is; it may be gone.
    fn path(&self, digest: &Digest) -> PathBuf;
}

/// Believes a generation that the hub has lost, if it is proved.
#[async_trait]
pub trait Proofs: Send + Sync {
    async fn prove(&self, stream: &Stream, envelope: Envelope) -> Result<(), ProofRefusal>;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofRefusal {
    #[error("{0}")]
    Refused(String),
    #[error("the database is away")]
    Unavailable,
}
