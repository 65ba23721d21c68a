//! What the reporter keeps on disk: the document with its clocks in the ledger `status`, and in the ledger `epoch` the highest epoch
//! that was ever begun, so that a lost document is followed by a higher one.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::ClusterId;
use kedge_status::{Nonce, StatusDocument};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::clocks::Clocks;
use crate::paths::Paths;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Whose document it is: a new join has a new key and begins anew.
    pub cluster: ClusterId,
    pub epoch: u64,
    pub nonce: Nonce,
    /// The document's bytes in base64.
    pub document: String,
    #[serde(default)]
    pub clocks: Clocks,
}

/// The highest epoch that was begun.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counter {
    pub epoch: u64,
}

/// A ledger that can be written in any case, and what was found.
pub struct Found<T> {
    pub ledger: Ledger<T>,
    pub value: Option<T>,
    /// A copy was healed.
    pub healed: Option<String>,
    /// Nothing could be read: it begins anew.
    pub lost: Option<String>,
}

pub fn status_path(paths: &Paths) -> PathBuf {
    paths.state().join("status")
}

pub fn epoch_path(paths: &Paths) -> PathBuf {
    paths.state().join("epoch")
}

impl Kept {
    pub fn new(cluster: ClusterId, document: &StatusDocument, bytes: &[u8], clocks: Clocks) -> Kept {
        Kept { cluster, epoch: document.epoch(), nonce: document.nonce(), document: BASE64.encode(bytes), clocks }
    }

    /// None: the bytes aren't a document. Writes go on as a new actor.
    pub fn open(&self) -> Option<StatusDocument> {
        let bytes = BASE64.decode(&self.document).ok()?;
        StatusDocument::from_bytes(&bytes).ok()
    }
}

/// Opens a ledger whose loss is bearable.
pub fn open<T: Serialize + DeserializeOwned>(disk: &Arc<dyn Disk>, path: PathBuf) -> Found<T> {
    match Ledger::open(Arc::clone(disk), &path) {
        Ok(opened) => Found { ledger: opened.ledger, value: opened.value, healed: opened.healed, lost: None },
        Err(error) => {
            let lost = Some(told(&error));
            Found { ledger: Ledger::begin_again(Arc::clone(disk), &path), value: None, healed: None, lost }
        }
    }
}

fn told(error: &LedgerError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
