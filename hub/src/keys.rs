//! The hub's own secrets: signing keys, certificate authority, server certificate. Made at the first start, owned by
//! `run`. The folder holds the private halves (`signing/<id>.pk8`, `authority/<id>.key`); which of them are in use is
//! said by the chain of signed key sets in the database, so that every hub of a fleet and every agent agree.

pub mod authority;
mod folder;
pub mod rotation;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kedge_bundle::{BundleError, Index, Sealed};
use kedge_model::wire::{
    Digest, Envelope, EnvelopeError, Key, KeyId, KeySet, KeySetError, KeyState, Payload, SigningKey, VerifyingKey,
};
use rustls_pki_types::CertificateDer;
use tokio::sync::watch;

pub use authority::{Authority, AuthorityError, IssuedCertificate};
use folder::KeyFolder;

use crate::signal::stopped;
use crate::store::{Store, StoreError, now};

/// The keys in use. Cheap to clone; all clones see a rotation.
#[derive(Clone, Debug)]
pub struct Keys {
    folder: KeyFolder,
    current: Arc<watch::Sender<Arc<Current>>>,
}

/// One version of everything.
#[derive(Debug)]
struct Current {
    /// The whole chain, verified; never empty.
    chain: Vec<(Arc<KeySet>, Envelope)>,
    newest: Arc<KeySet>,
    /// The newest active key that is in the folder.
    signing: Option<SigningKey>,
    authority: Arc<Authority>,
}

#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path} can't be used")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path} holds no key that can be read")]
    Key { path: PathBuf, source: EnvelopeError },
    #[error("the certificate authority in {path} can't be used")]
    Authority { path: PathBuf, source: AuthorityError },
    #[error("a certificate authority can't be made")]
    NoAuthority(#[source] AuthorityError),
    #[error("the chain of key sets in the database is broken")]
    Chain(#[source] KeySetError),
    #[error("a key set can't be signed")]
    Sign(#[source] EnvelopeError),
    #[error("the database names signing key {}, and {folder} doesn't hold it", join(.ids))]
    NoSigningKey { ids: Vec<KeyId>, folder: PathBuf },
    #[error("the database names certificate authority {}, and {folder} doesn't hold its key", join(.ids))]
    NoAuthorityKey { ids: Vec<Digest>, folder: PathBuf },
    #[error("{folder} holds {found} {what}, and the database doesn't say which one is in use")]
    Ambiguous { folder: PathBuf, found: usize, what: &'static str },
    #[error("no key {0} is known")]
    Unknown(String),
    #[error("{0} is {1}")]
    WrongState(String, &'static str),
    #[error("key set {0} was made by another hub or command meanwhile")]
    Overtaken(u64),
}

/// A rotation made on another hub, or by a command, is noticed within this.
const FOLLOW: Duration = Duration::from_secs(1);

impl Keys {
    /// Loads the keys; makes them if the database knows of none yet. Never makes new ones beside a database that
    /// names others.
    pub async fn open(folder: &Path, store: &Store) -> Result<Keys, KeysError> {
        let folder = KeyFolder::open(folder)?;
        let mut envelopes = store.key_sets_after(0).await?;
        if envelopes.is_empty() {
            // Two hubs that share the folder must not both make keys.
            let _lock = folder.lock()?;
            envelopes = store.key_sets_after(0).await?;
            if envelopes.is_empty() {
                envelopes = begin(&folder, store).await?;
            }
        }
        let chain = follow_chain(Vec::new(), envelopes)?;
        let current = Current::load(chain, &folder)?;
        if current.signing.is_none() {
            let ids = current.newest.active().iter().map(VerifyingKey::id).collect();
            return Err(KeysError::NoSigningKey { ids, folder: folder.path().to_owned() });
        }
        Ok(Keys { folder, current: Arc::new(watch::Sender::new(Arc::new(current))) })
    }

    /// Signs with the active key.
    pub fn sign<T: Payload>(&self, message: &T) -> Result<Envelope, EnvelopeError> {
        let current = self.current();
        let key = current.signing.as_ref();
        let key = key.ok_or_else(|| EnvelopeError::Key("the active signing key isn't on this hub".to_owned()))?;
        Envelope::sign(message, key)
    }

    /// Signs the index of a bundle with the active key.
    pub fn seal(&self, index: &Index) -> Result<Sealed, BundleError> {
        let current = self.current();
        let key = current.signing.as_ref();
        let missing = || EnvelopeError::Key("the active signing key isn't on this hub".to_owned());
        Sealed::seal(index, key.ok_or_else(|| BundleError::Signature(missing()))?)
    }

    /// The newest.
    pub fn key_set(&self) -> Arc<KeySet> {
        Arc::clone(&self.current().newest)
    }

    /// What an agent that knows this version lacks, in order.
    pub fn key_sets_after(&self, version: u64) -> Vec<Envelope> {
        let newer = |(set, _): &&(Arc<KeySet>, Envelope)| set.version > version;
        self.current().chain.iter().filter(newer).map(|(_, envelope)| envelope.clone()).collect()
    }

    /// Every key that ever signed: for what this hub or one before it signed in the past.
    pub fn every_key(&self) -> Vec<VerifyingKey> {
        let current = self.current();
        let mut keys: Vec<VerifyingKey> = Vec::new();
        for key in current.chain.iter().rev().flat_map(|(set, _)| set.trusted()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// The one that issues.
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.current().authority)
    }

    /// Every authority that ever issued, the newest first: an agent that was away for a rotation comes with a
    /// certificate of an old one, to renew it.
    pub fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
        let current = self.current();
        let mut found: Vec<CertificateDer<'static>> = Vec::new();
        for pem in current.chain.iter().rev().flat_map(|(set, _)| &set.authorities) {
            let certificate = authority::read_certificate(pem)?;
            if !found.contains(&certificate) {
                found.push(certificate);
            }
        }
        Ok(found)
    }

    /// Wakes when there is a new key set.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.current.subscribe();
        async move {
            // The sender lives as long as the hub; without it there is nothing to wait for.
            if receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Reads what was added to the chain since. `true`: something was.
    pub async fn refresh(&self, store: &Store) -> Result<bool, KeysError> {
        let before = self.current();
        let added = store.key_sets_after(before.newest.version).await?;
        if added.is_empty() {
            return Ok(false);
        }
        let chain = follow_chain(before.chain.clone(), added)?;
        let current = Current::load(chain, &self.folder)?;
        tracing::info!(version = current.newest.version, "follows a new key set");
        if current.signing.is_none() {
            let ids: Vec<KeyId> = current.newest.active().iter().map(VerifyingKey::id).collect();
            let folder = self.folder.path().display();
            tracing::error!(keys = %join(&ids), %folder, "can't sign any more: copy the active signing key into the folder");
        }
        self.current.send_replace(Arc::new(current));
        Ok(true)
    }

    /// Follows rotations until told to stop.
    pub async fn follow(self, store: Store, mut shutdown: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = stopped(&mut shutdown) => return,
                () = tokio::time::sleep(FOLLOW) => {}
            }
            match self.refresh(&store).await {
                Ok(_) | Err(KeysError::Store(StoreError::Unavailable(_))) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, "a new key set can't be used; the one before stays in use");
                }
            }
        }
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.borrow())
    }
}

impl Current {
    fn load(chain: Vec<(Arc<KeySet>, Envelope)>, folder: &KeyFolder) -> Result<Current, KeysError> {
        let Some(newest) = chain.last().map(|(set, _)| Arc::clone(set)) else {
            return Err(KeysError::Chain(KeySetError::NoKey(0)));
        };
        let mut signing = None;
        for key in newest.keys.iter().rev().filter(|key| key.state == KeyState::Active) {
            signing = folder.signing_key(key.id)?;
            if signing.is_some() {
                break;
            }
        }
        let mut ids = Vec::new();
        for pem in &newest.authorities {
            if let Some(authority) = folder.authority(pem)? {
                return Ok(Current { chain, newest, signing, authority: Arc::new(authority) });
            }
            ids.extend(authority::fingerprint(pem));
        }
        Err(KeysError::NoAuthorityKey { ids, folder: folder.path().to_owned() })
    }
}

impl KeysError {
    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            KeysError::NoSigningKey { .. } | KeysError::NoAuthorityKey { .. } => Some(
                "several hubs use the same keys: copy the keys folder of the hub that made them, or restore a backup; \
                 with other keys no agent would believe this hub",
            ),
            KeysError::Ambiguous { .. } => {
                Some("is this the right database? Restore the backup, or keep one key and one authority in the folder")
            }
            KeysError::Chain(_) => Some("somebody changed the table key_sets: restore a backup"),
            KeysError::Overtaken(_) => Some("look at `kedge-hub keys list` and try again"),
            KeysError::Unknown(_) => Some("`kedge-hub keys list` shows what is known"),
            _ => None,
        }
    }
}

/// The first key set, of keys that are in the folder already or are made now.
async fn begin(folder: &KeyFolder, store: &Store) -> Result<Vec<Envelope>, KeysError> {
    let key = folder.only_signing_key()?;
    let authority = folder.only_authority()?;
    let keys = vec![Key { id: key.id(), public: key.public(), state: KeyState::Active }];
    let set = KeySet { version: 1, created_at: now(), keys, authorities: vec![authority] };
    let envelope = Envelope::sign(&set, &key).map_err(KeysError::Sign)?;
    if store.add_key_set(1, &envelope).await? {
        tracing::info!(key = %key.id(), folder = %folder.path().display(), "made the hub's signing key and certificate authority");
        return Ok(vec![envelope]);
    }
    // Another hub with a folder of its own was faster; whether its keys are ours is seen when they are loaded.
    Ok(store.key_sets_after(0).await?)
}

/// Appends to a verified chain what follows it; the first set vouches for itself.
fn follow_chain(
    mut chain: Vec<(Arc<KeySet>, Envelope)>,
    added: Vec<Envelope>,
) -> Result<Vec<(Arc<KeySet>, Envelope)>, KeysError> {
    for envelope in added {
        let set = match chain.last() {
            Some((known, _)) => known.follow(&envelope),
            None => KeySet::first(&envelope),
        };
        chain.push((Arc::new(set.map_err(KeysError::Chain)?), envelope));
    }
    Ok(chain)
}

fn join<T: std::fmt::Display>(ids: &[T]) -> String {
    ids.iter().map(T::to_string).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests;
