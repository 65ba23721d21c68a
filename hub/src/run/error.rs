//! Why a hub can't start or had to stop.

use std::path::PathBuf;

use super::data::DataError;
use super::listener::ListenerError;
use crate::git::GitConfigError;
use crate::keys::KeysError;
use crate::pack::BlobError;
use crate::store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error("the database can't be opened")]
    Store(#[from] StoreError),
    #[error("the file with the database's password, {path}, can't be read")]
    Password { path: PathBuf, source: std::io::Error },
    #[error("the hub's keys can't be used")]
    Keys(#[from] KeysError),
    #[error(transparent)]
    Git(#[from] GitConfigError),
    #[error("the folder of packages can't be used")]
    Packages(#[from] BlobError),
    #[error(transparent)]
    Listener(#[from] ListenerError),
    #[error("agents can't be served")]
    Agents(#[from] crate::agents::TlsError),
    /// A part that should run for ever ended: nothing is served rather than half.
    #[error("the task `{0}` ended")]
    TaskEnded(&'static str),
    #[error("a task broke down")]
    TaskFailed(#[source] tokio::task::JoinError),
}
