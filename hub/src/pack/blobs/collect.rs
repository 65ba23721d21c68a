//! Which blobs may go: those that nobody has needed for the time that they are kept. A blob's modification time is when
//! it was last known to be needed; every sweep brings it up to date for those that still are. Called by the leader.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use kedge_model::wire::Digest;

use super::{BlobError, Blobs, UNFINISHED};

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub kept: u64,
    pub deleted: u64,
    pub deleted_bytes: u64,
}

/// No package is written for so long: what is older was left by a hub that was killed.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);
/// A download that nobody went on with.
const STALE_DOWNLOAD: Duration = Duration::from_secs(7 * 24 * 60 * 60);

impl Blobs {
    /// Deletes what isn't `needed` and wasn't for `keep`. Blocking: it looks at every file.
    pub fn collect(&self, needed: &BTreeSet<Digest>, keep: Duration, now: SystemTime) -> Result<Collected, BlobError> {
        self.sweep_blobs(needed, keep, now)
            .and_then(|collected| {
                sweep_older(&self.folder.join(UNFINISHED), ABANDONED, now)?;
                sweep_older(&self.folder.join("partial"), STALE_DOWNLOAD, now)?;
                Ok(collected)
            })
            .map_err(|error| self.failed(error))
    }

    fn sweep_blobs(&self, needed: &BTreeSet<Digest>, keep: Duration, now: SystemTime) -> io::Result<Collected> {
        let mut collected = Collected::default();
        for folder in fs::read_dir(self.folder.join("sha256"))? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for item in fs::read_dir(folder.path())? {
                let item = item?;
                let name = item.file_name();
                // What isn't called as a blob isn't ours to delete.
                let Some(digest) = name.to_str().and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok()) else {
                    continue;
                };
                if needed.contains(&digest) {
                    touch_at(&item.path(), now)?;
                    collected.kept += 1;
                    continue;
                }
                let _sweeping = self.sweeping.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let found = item.metadata()?;
                if age(&found, now) <= keep {
                    collected.kept += 1;
                    continue;
                }
                fs::remove_file(item.path())?;
                collected.deleted += 1;
                collected.deleted_bytes += found.len();
            }
        }
        Ok(collected)
    }
}

pub(super) fn touch(path: &Path) -> io::Result<()> {
    touch_at(path, SystemTime::now())
}

fn touch_at(path: &Path, now: SystemTime) -> io::Result<()> {
    File::open(path)?.set_times(FileTimes::new().set_modified(now))
}

fn sweep_older(folder: &Path, than: Duration, now: SystemTime) -> io::Result<()> {
    for item in fs::read_dir(folder)? {
        let item = item?;
        // Another hub may have finished with it meanwhile.
        let Ok(found) = item.metadata() else { continue };
        if found.is_file() && age(&found, now) > than {
            let _ = fs::remove_file(item.path());
        }
    }
    Ok(())
}

/// A time in the future counts as now.
fn age(found: &fs::Metadata, now: SystemTime) -> Duration {
    found.modified().ok().and_then(|then| now.duration_since(then).ok()).unwrap_or_default()
}
