//! Signs of life in a pod, for probes and for people: a file that the loop writes again and again, and who works while this agent stands
//! by. Both are below `run/`, which a start empties. `run` writes them, the commands `status`, `hold` and others read them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::paths::Paths;

/// An agent of a cluster that waits for its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Standby {
    /// The pod that works; none: nobody knows yet.
    pub holder: Option<String>,
    pub namespace: String,
}

/// Between two signs of life.
pub const EVERY: Duration = Duration::from_secs(10);
/// Without one for so long the loop hangs: a write to a slow API server takes some seconds, and several may come together.
pub const SILENT: Duration = Duration::from_secs(90);
/// It has a few hundred bytes.
const MOST: u64 = 16 * 1024;

pub fn path(paths: &Paths) -> PathBuf {
    folder(paths).join("alive")
}

/// Now.
pub fn show(file: &Path) {
    if let Err(error) = write(file, b"") {
        tracing::debug!(%error, "the sign of life can't be written");
    }
}

/// Whether a sign of life was shown lately.
pub fn is_shown(paths: &Paths) -> bool {
    let shown = fs::metadata(path(paths)).and_then(|file| file.modified());
    // A clock that was set back says nothing.
    shown.is_ok_and(|at| at.elapsed().is_ok_and(|past| past < SILENT) || at.elapsed().is_err())
}

impl Standby {
    /// None: this agent works, or doesn't run.
    pub fn read(paths: &Paths) -> Option<Standby> {
        let path = folder(paths).join(STANDBY);
        if fs::metadata(&path).ok()?.len() > MOST {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    pub fn write(&self, paths: &Paths) -> io::Result<()> {
        write(&folder(paths).join(STANDBY), &serde_json::to_vec(self)?)
    }

    /// From now on it works.
    pub fn end(paths: &Paths) {
        // There may be none.
        _ = fs::remove_file(folder(paths).join(STANDBY));
    }

    /// What to type instead.
    pub fn way(&self, command: &str) -> String {
        let pod = self.holder.as_deref().unwrap_or("POD");
        format!("kubectl exec -n {} {pod} -- kedge-agent {command}", self.namespace)
    }
}

const STANDBY: &str = "standby.json";

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}

fn folder(paths: &Paths) -> PathBuf {
    paths.root().join("run/kedge-agent")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_sign_of_life_is_seen_and_a_standby_names_who_works() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        assert!(!is_shown(&paths) && Standby::read(&paths).is_none());
        show(&path(&paths));
        assert!(is_shown(&paths));
        let standby = Standby { holder: Some("kedge-agent-x".to_owned()), namespace: "kedge-system".to_owned() };
        standby.write(&paths).unwrap();
        assert_eq!(Standby::read(&paths), Some(standby.clone()));
        assert_eq!(standby.way("status"), "kubectl exec -n kedge-system kedge-agent-x -- kedge-agent status");
        Standby::end(&paths);
        assert!(Standby::read(&paths).is_none());
        fs::write(folder.path().join("run/kedge-agent/standby.json"), b"{").unwrap();
        assert!(Standby::read(&paths).is_none());
    }
}
