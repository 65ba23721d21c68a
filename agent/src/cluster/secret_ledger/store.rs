//! Where the secret ledger puts things: a trait, so that a test has a cluster within a map. `Secrets` is the real one.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

/// One Secret of the secret ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub name: String,
    /// The label's value.
    pub word: String,
    pub annotations: BTreeMap<String, String>,
    pub value: Vec<u8>,
    /// As the API server counts; empty before it is written.
    pub version: String,
}

/// Each call waits for its answer.
pub trait SecretStore: Debug + Send + Sync {
    /// All of them.
    fn list(&self) -> Result<Vec<Kept>, SecretStoreError>;
    fn get(&self, name: &str) -> Result<Option<Kept>, SecretStoreError>;
    /// Writes it if it is still at its `version`; an empty one: if there is none. The version that it then has.
    fn put(&self, kept: &Kept) -> Result<String, SecretStoreError>;
    /// Changes an annotation and nothing else, if it is still at `version`.
    fn mark(&self, name: &str, version: &str, annotation: (&str, &str)) -> Result<String, SecretStoreError>;
    /// If it is still at `version`. One that is gone is fine.
    fn remove(&self, name: &str, version: &str) -> Result<(), SecretStoreError>;
}

/// Typed by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum SecretStoreError {
    /// Somebody else wrote it.
    #[error("a Secret was written by somebody else: {0}")]
    Conflict(String),
    /// Nothing but a person helps.
    #[error("a Secret can't be kept: {0}")]
    Refused(String),
    /// Tried again; whether it was done isn't known.
    #[error("a Secret can't be kept now: {0}")]
    Away(String),
}

impl From<SecretStoreError> for io::Error {
    fn from(error: SecretStoreError) -> io::Error {
        let kind = match &error {
            SecretStoreError::Conflict(_) => io::ErrorKind::StaleNetworkFileHandle,
            SecretStoreError::Refused(_) => io::ErrorKind::PermissionDenied,
            SecretStoreError::Away(_) => io::ErrorKind::NotConnected,
        };
        io::Error::new(kind, error)
    }
}
