//! When the daemon last looked at everything that runs: what a sign of life says that a command writes. A file below `run/`, which a
//! start empties; the daemon writes it after each full look, the command `export` reads it.

use std::fs;
use std::io;
use std::path::PathBuf;

use kedge_model::wire::Timestamp;

use crate::paths::Paths;

/// By this host's clock.
pub fn note(paths: &Paths, at: Timestamp) {
    if let Err(error) = write(paths, at) {
        tracing::debug!(%error, "the look can't be noted");
    }
}

/// None: not since the host started.
pub fn read(paths: &Paths) -> Option<Timestamp> {
    fs::read_to_string(path(paths)).ok()?.trim().parse().ok().map(Timestamp)
}

fn write(paths: &Paths, at: Timestamp) -> io::Result<()> {
    let path = path(paths);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, at.0.to_string())?;
    fs::rename(&temporary, &path)
}

fn path(paths: &Paths) -> PathBuf {
    paths.root().join("run/kedge-agent/looked")
}
