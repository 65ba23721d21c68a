//! What agents are served from, of the hub's other rooms, as traits: `run` gives the real ones, tests their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kedge_model::wire::{ClusterId, Digest, Envelope, EnvelopeError, Generation, Heads, KeySet, Membership, Stream, Timestamp};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

/// The hub's keys and its certificate authority.
pub trait Trust: Send + Sync {
    /// The newest set.
    fn key_set(&self) -> Arc<KeySet>;
    /// The sets after a version, in order.
    fn key_sets_after(&self, version: u64) -> Vec<Envelope>;
    /// The newest version, and a way to wait for the next.
    fn versions(&self) -> watch::Receiver<u64>;
    /// Signed with the active key.
    fn sign_membership(&self, membership: &Membership) -> Result<Envelope, EnvelopeError>;
    /// The digest of the authority's certificate: a join token carries it.
    fn fingerprint(&self) -> Digest;
    /// A certificate for the request's key, with the cluster's id as its name.
    fn issue(&self, csr: &str, cluster: &ClusterId, lifetime: Duration) -> Result<Certificate, TrustError>;
    /// What the listener shows: chain and key, for these names.
    fn server_identity(&self, names: &[String]) -> Result<ServerIdentity, TrustError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The cluster's own first, then the authority's.
    pub pem: String,
    pub serial: String,
    pub not_after: Timestamp,
}

#[derive(Debug)]
pub struct ServerIdentity {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

#[derive(Debug, thiserror::Error)]
#[error("the certificate can't be made: {0}")]
pub struct TrustError(pub String);

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
