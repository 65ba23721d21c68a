//! What agents are served from, of the hub's other modules, as traits: `run` gives the real ones, tests their own.

use std::path::PathBuf;

use async_trait::async_trait;
use kedge_hub_types::status::TakeError;
use kedge_model::wire::{ClusterId, Digest, Envelope, Heads, Stream};

use crate::pack::Blobs;
use crate::state::proof::{self, ProofError, Prover};
use crate::status::{Contact, StatusIntake, Taken};
use crate::store::StoreError;

/// Takes in what agents say of themselves.
#[async_trait]
pub trait Intake: Send + Sync {
    /// Answers once the document is stored for good. `carrier` is who brought it: the owner or somebody else.
    async fn take(&self, carrier: &ClusterId, envelope: Envelope) -> Result<Taken, TakeError>;
    async fn contact(&self, cluster: &ClusterId, contact: Contact);
    /// Whether the hub lacks the document that these heads name.
    fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool;
}

#[async_trait]
impl Intake for StatusIntake {
    async fn take(&self, carrier: &ClusterId, envelope: Envelope) -> Result<Taken, TakeError> {
        StatusIntake::take(self, Some(carrier), envelope).await
    }

    async fn contact(&self, cluster: &ClusterId, contact: Contact) {
        StatusIntake::contact(self, cluster, contact).await;
    }

    fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool {
        StatusIntake::wants(self, cluster, heads)
    }
}

/// Packages and artifacts by digest.
pub trait Packages: Send + Sync {
    /// Where the content is; it may be gone.
    fn path(&self, digest: &Digest) -> PathBuf;
}

impl Packages for Blobs {
    fn path(&self, digest: &Digest) -> PathBuf {
        Blobs::path(self, digest)
    }
}

/// Believes a generation that the hub has lost, if it is proved.
#[async_trait]
pub trait Proofs: Send + Sync {
    async fn prove(&self, stream: &Stream, envelope: Envelope) -> Result<(), ProofRefusal>;
}

#[async_trait]
impl Proofs for Prover {
    async fn prove(&self, stream: &Stream, envelope: Envelope) -> Result<(), ProofRefusal> {
        match proof::take(&self.store, &self.keys.every_key(), stream, &envelope).await {
            Ok(_) => Ok(()),
            Err(ProofError::Store(StoreError::Unavailable(_))) => Err(ProofRefusal::Unavailable),
            Err(error) => Err(ProofRefusal::Refused(error.to_string())),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofRefusal {
    #[error("{0}")]
    Refused(String),
    #[error("the database can't be reached")]
    Unavailable,
}
