//! What `kedge login` stores: one hub, its token, and the authority's file, readable by the owner alone.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub hub: String,
    pub token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// `$XDG_CONFIG_HOME/kedge/hub.json`, or `~/.config/kedge/hub.json`.
fn path() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("kedge").join("hub.json"))
}

impl Settings {
    /// None before the first login.
    pub fn load() -> Result<Option<Settings>> {
        let Some(path) = path() else { return Ok(None) };
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("{} can't be read", path.display()))?,
        };
        let settings = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged: log in again with kedge login", path.display()))?;
        Ok(Some(settings))
    }

    /// Returns where it is.
    pub fn store(&self) -> Result<PathBuf> {
        let path = path().context("there is no folder for settings: set HOME or XDG_CONFIG_HOME")?;
        let text = serde_json::to_vec_pretty(self)?;
        write(&path, &text).with_context(|| format!("{} can't be written", path.display()))?;
        Ok(path)
    }
}

/// The file is never open to others, not even while it is written.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".hub.json.{}", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&beside).and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()));
    written.and_then(|()| fs::rename(&beside, path)).inspect_err(|_| {
        let _ = fs::remove_file(&beside);
    })
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("hub", &self.hub).finish_non_exhaustive()
    }
}
