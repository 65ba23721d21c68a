//! A hub in one file: the database as of one moment, the keys and the configuration, made while the hub runs; and the way
//! back into an empty data folder and database. Called by `kedge-hub backup` and `restore`.
//!
//! The file is a tar archive in zstd: `kedge-backup.json` first, then `database/<table>/<number>.jsonl`, `keys/…` and
//! `hub.toml`. Mirrors are fetched again and packages are packed again, so neither is in it.

mod read;
mod write;

use std::path::PathBuf;

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

pub use read::restore;
pub use write::backup;

use crate::store::StoreError;
use crate::store::dump::Table;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Of this format.
    pub format: u32,
    pub created_at: Timestamp,
    /// The program that made it.
    pub hub_version: String,
    /// Versions of the database's tables.
    pub migrations: Vec<i64>,
    pub tables: Vec<Table>,
}

/// What a command says when it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub tables: usize,
    pub rows: u64,
    pub keys: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{path} can't be written")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{path} can't be read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{0} is there already")]
    Exists(PathBuf),
    #[error("{0} holds keys of its own")]
    OtherKeys(PathBuf),
    #[error("{path} is no backup of a hub: {why}")]
    NotABackup { path: PathBuf, why: String },
    #[error("the backup is of format {0}, and this program knows {FORMAT}")]
    Format(u32),
}

const FORMAT: u32 = 1;
const MANIFEST: &str = "kedge-backup.json";
const DATABASE: &str = "database";
const KEYS: &str = "keys";
const CONFIG: &str = "hub.toml";
/// The folders of keys that are kept; see `keys`.
const KEY_FOLDERS: [&str; 2] = ["signing", "authority"];
/// After a restore all numbers begin this far above what the backup knows: more than any hub gives between two backups.
const LEAP: i64 = 1_000_000;

impl BackupError {
    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BackupError::Exists(_) => Some("choose another name or folder; nothing is ever overwritten"),
            BackupError::OtherKeys(_) => Some("restore into an empty folder: --data DIR"),
            BackupError::Format(_) => Some("use the kedge-hub that made the backup, or a newer one"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
