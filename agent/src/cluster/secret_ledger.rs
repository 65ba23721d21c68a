//! The agent's disk on a cluster: every ledger is written to a Secret before it is written to the node's folder, so that an agent on
//! another node goes on from it. The Secrets are the truth and the folder is a cache, which `hydrate` makes equal at the begin of a
//! term. A Secret that somebody else wrote means that another agent works: from then on nothing is written any more.
//!
//! The loop and the applier's thread write through it. It owns the Secrets with the label `kedge.dev/ledger` in the agent's namespace.

mod bundle;
mod hydrate;
mod mirror;
mod names;
mod secrets;
mod store;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_durable::{Disk, FileLock, MAX_LEDGER, RealDisk, open_copy};
use tokio::sync::watch;

use crate::objects::Objects;
use crate::paths::Paths;
use mirror::Mirror;
pub use secrets::Secrets;
pub use store::{Kept, SecretStore, SecretStoreError};

/// Whether this agent may write: it holds the Lease.
pub type Held = Arc<dyn Fn() -> bool + Send + Sync>;

/// Cheap to share; there is one per term.
pub struct SecretLedger {
    inner: RealDisk,
    state: PathBuf,
    mirror: Mirror,
}

#[derive(Debug, thiserror::Error)]
pub enum SecretLedgerError {
    #[error("what the agent keeps in Secrets can't be read or claimed")]
    SecretStore(#[from] SecretStoreError),
    #[error("the node's folder can't be made equal to what is kept in Secrets")]
    Disk(#[from] io::Error),
    #[error("the Secret {name} is damaged: {why}")]
    Broken { name: String, why: &'static str },
    /// It is written faster than it can be claimed.
    #[error("another agent is writing the Secrets")]
    Contested,
}

/// What taking over found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hydrated {
    /// Ledgers in Secrets.
    pub ledgers: usize,
    /// Of these the node had another value, or none.
    pub changed: usize,
}

impl SecretLedger {
    /// Takes everything over for this term: claims the Secrets and makes the folder equal to them. `writer` is this process in this
    /// term; `fenced` becomes true when another agent is found to write.
    pub fn take_over(
        secret_store: Arc<dyn SecretStore>,
        paths: &Paths,
        objects: &Objects,
        writer: String,
        held: Held,
        fenced: watch::Sender<bool>,
    ) -> Result<(SecretLedger, Hydrated), SecretLedgerError> {
        let mirror = Mirror::new(secret_store, writer, held, fenced, objects.clone());
        let secret_ledger = SecretLedger { inner: RealDisk, state: paths.state(), mirror };
        let hydrated = hydrate::hydrate(&secret_ledger, objects)?;
        Ok((secret_ledger, hydrated))
    }

    /// The ledger that a path is a copy of, as it is called below the state folder: `memory`, `records/web-prod`.
    fn ledger(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.state).ok()?.to_str()?;
        let stem = below.strip_suffix(".a").or_else(|| below.strip_suffix(".b"))?;
        names::is_ledger(stem).then(|| stem.to_owned())
    }
}

/// For who only looks, and claims nothing: the JSON of a ledger as the cluster has it.
pub fn look(secret_store: &dyn SecretStore, ledger: &str) -> Result<Option<Vec<u8>>, SecretLedgerError> {
    let Some(kept) = secret_store.get(&names::secret(ledger))? else { return Ok(None) };
    let mut parts = BTreeMap::new();
    for name in mirror::parts_of(&kept) {
        parts.extend(secret_store.get(&name)?.map(|part| (name, part)));
    }
    Ok(open_copy(&mirror::unpack(&kept, &parts)?).map(|(_, json)| json))
}

/// Written by commands too, which know nothing of Secrets: what they wrote is carried over when it is read.
const DOORS: [&str; 3] = ["identity", "holds", "external"];

impl Disk for SecretLedger {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let bytes = self.inner.read(path, most)?;
        if let Some(ledger) = self.ledger(path).filter(|ledger| DOORS.contains(&ledger.as_str()))
            && let Err(error) = self.mirror.catch_up(&ledger, &bytes)
        {
            tracing::warn!(ledger, %error, "what a command wrote isn't kept in the cluster yet; trying again");
        }
        Ok(bytes)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.inner.write(path, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.inner.sync_folder(path)
    }

    /// A ledger's copy gets its name: the value is kept in the cluster first. The second copy costs nothing more.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if let Some(ledger) = self.ledger(to) {
            let bytes = self.inner.read(from, MAX_LEDGER as u64)?;
            self.mirror.put(&ledger, &bytes)?;
        }
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if let Some(ledger) = self.ledger(path) {
            self.mirror.remove(&ledger)?;
        }
        self.inner.remove(path)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.inner.make_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<FileLock> {
        self.inner.lock(path)
    }
}

impl fmt::Debug for SecretLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretLedger({})", self.state.display())
    }
}
