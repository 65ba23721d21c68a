//! The hub's public keys, as a numbered set that every agent pins. A set is signed by an active key of the set before
//! it, so that an agent that was away for months follows the chain step by step.

use serde::{Deserialize, Serialize};

use super::envelope::{Envelope, EnvelopeError, Payload, VerifyingKey};
use super::id::{KeyId, Timestamp};

/// All keys of one version, and the authorities that certificates may come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeySet {
    /// 1 is the first; the next is one more.
    pub version: u64,
    pub created_at: Timestamp,
    pub keys: Vec<Key>,
    /// Certificates (PEM) that the hub's own certificate and the agents' may come from: the current and an announced one.
    pub authorities: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    pub id: KeyId,
    pub public: VerifyingKey,
    pub state: KeyState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum KeyState {
    /// Known, signs nothing yet.
    Announced,
    /// Signs.
    Active,
    /// Signs nothing new; what it signed before stays good.
    Retired,
}

#[derive(Debug, thiserror::Error)]
pub enum KeySetError {
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    #[error("key set {found} does not follow key set {known}")]
    Gap { known: u64, found: u64 },
    #[error("key set {0} holds a key whose id isn't its own")]
    WrongId(u64),
    #[error("key set {0} has no active key")]
    NoKey(u64),
}

impl Payload for KeySet {
    const TYPE: &'static str = "application/vnd.kedge.key-set.v1+json";
}

impl KeySet {
    /// Keys whose signatures are believed.
    pub fn trusted(&self) -> Vec<VerifyingKey> {
        self.keys.iter().filter(|key| key.state != KeyState::Announced).map(|key| key.public).collect()
    }

    /// Keys that may sign the next set.
    pub fn active(&self) -> Vec<VerifyingKey> {
        self.keys.iter().filter(|key| key.state == KeyState::Active).map(|key| key.public).collect()
    }

    /// The next set, if an active key of this one signed it.
    pub fn follow(&self, next: &Envelope) -> Result<KeySet, KeySetError> {
        let set: KeySet = next.open(&self.active())?;
        if Some(set.version) != self.version.checked_add(1) {
            return Err(KeySetError::Gap { known: self.version, found: set.version });
        }
        set.check()
    }

    /// The first set, as the join's answer carries it: signed by its own active key, over a connection whose
    /// authority the token pinned.
    pub fn first(envelope: &Envelope) -> Result<KeySet, KeySetError> {
        let claimed: KeySet = serde_json::from_slice(&envelope.payload).map_err(EnvelopeError::Payload)?;
        envelope.verify(KeySet::TYPE, &claimed.active())?;
        claimed.check()
    }

    fn check(self) -> Result<KeySet, KeySetError> {
        if self.keys.iter().any(|key| key.id != key.public.id()) {
            return Err(KeySetError::WrongId(self.version));
        }
        if self.active().is_empty() {
            return Err(KeySetError::NoKey(self.version));
        }
        Ok(self)
    }
}
