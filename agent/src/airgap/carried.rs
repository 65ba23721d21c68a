//! What this host carries for others of its site: their status documents, holds and signs of life, as they signed them. The peers' task
//! keeps them here while no hub is reached, the command `export` reads them. One file below the inbox, replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use kedge_model::wire::Envelope;

use super::inbox::MAX_DOCUMENTS;
use crate::paths::Paths;

/// As in the inbox.
const MAX_BYTES: u64 = 16 << 20;

/// Keeps these and no others. Whoever calls it does so seldom: nothing is synced, since all of it is said again.
pub fn keep(paths: &Paths, documents: &[Envelope]) -> io::Result<()> {
    let path = path(paths);
    let kept = documents.get(..MAX_DOCUMENTS).unwrap_or(documents);
    let bytes = serde_json::to_vec(kept)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more is carried than is kept"));
    }
    fs::create_dir_all(paths.inbox())?;
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
    file.write_all(&bytes)?;
    fs::rename(&temporary, &path)
}

/// None or an unreadable file is nothing.
pub fn read(paths: &Paths) -> Vec<Envelope> {
    let mut bytes = Vec::new();
    let read = File::open(path(paths)).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    read.ok().and_then(|_| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn path(paths: &Paths) -> PathBuf {
    paths.inbox().join("carried.json")
}
