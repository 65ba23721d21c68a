//! What a pod that stands by knows of its cluster: read from the Secrets, never written or claimed, and checked as if a stranger had put
//! it there.

use std::collections::BTreeMap;

use kedge_model::wire::{BlobRef, ClusterId, DesiredState, Digest, EnvelopeError, Membership};
use serde::de::DeserializeOwned;

use crate::cluster::secret_ledger::{self, SecretLedgerError, SecretStore};
use crate::desired::Remembered;
use crate::identity::{Identity, IdentityError, Stored};
use crate::link::mutual::Mutual;

#[derive(Debug)]
pub struct Known {
    pub cluster: ClusterId,
    /// How the cluster shows who it is.
    pub mutual: Mutual,
    /// All that its desired state names.
    pub blobs: BTreeMap<Digest, BlobRef>,
}

#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    #[error(transparent)]
    SecretLedger(#[from] SecretLedgerError),
    #[error("a ledger of the cluster can't be read")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("what the cluster follows isn't signed by its hub")]
    Unsigned(#[from] EnvelopeError),
    #[error("its desired state is another cluster's, or of another stream")]
    Another,
    #[error("the cluster's certificate can't be used")]
    Settings(#[from] rustls::Error),
}

/// None: the cluster hasn't joined, or follows nothing yet. Waits for the API server.
pub fn read(secret_store: &dyn SecretStore) -> Result<Option<Known>, KnownError> {
    let joined = ledger::<Stored>(secret_store, "identity")?.and_then(|stored| stored.joined);
    let remembered = ledger::<Remembered>(secret_store, "memory")?;
    let (Some(joined), Some(remembered)) = (joined, remembered) else { return Ok(None) };
    let Some(state) = &remembered.state else { return Ok(None) };
    let (identity, trusted) = (Identity::of(joined)?, remembered.keys.trusted());
    let membership: Membership = remembered.membership.open(&trusted)?;
    let state: DesiredState = state.open(&trusted)?;
    if membership.cluster != identity.cluster() || state.stream != membership.stream {
        return Err(KnownError::Another);
    }
    let mutual = Mutual::new(&remembered.keys.authorities, identity.certificate(), identity.key())?;
    let blobs = state.blobs().map(|blob| (blob.digest, blob)).collect();
    Ok(Some(Known { cluster: identity.cluster(), mutual, blobs }))
}

fn ledger<T: DeserializeOwned>(secret_store: &dyn SecretStore, name: &str) -> Result<Option<T>, KnownError> {
    let json = secret_ledger::look(secret_store, name)?;
    Ok(json.map(|json| serde_json::from_slice(&json)).transpose()?)
}
