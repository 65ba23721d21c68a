//! When the hub was last heard and when it is expected again, for the commands that people type. The link loop writes it after
//! each poll, into a folder that a reboot empties: nothing depends on it, so it costs the disk nothing. How it was when the hub was
//! lost is kept beside the ledgers, so that a host that was switched off in between still says since when.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::paths::Paths;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Contact {
    /// By this host's clock.
    pub last: Option<Timestamp>,
    /// What the hub's clock said then.
    pub hub_time: Option<Timestamp>,
    /// The promise: when the next contact is expected.
    pub next: Option<Timestamp>,
    /// Polls that failed since.
    pub failures: u32,
    /// Why the last one failed.
    pub error: Option<String>,
}

const FILE: &str = "contact.json";
/// It has a few hundred bytes.
const MOST: u64 = 16 * 1024;

impl Contact {
    /// The newer of what this boot knows and what was kept.
    pub fn read(paths: &Paths) -> Contact {
        let [now, kept] = [place(paths), kept(paths)].map(|path| load(&path));
        match (now, kept) {
            (Some(now), Some(kept)) if now.last.is_none() => {
                Contact { last: kept.last, hub_time: kept.hub_time, next: kept.next, ..now }
            }
            (Some(now), _) => now,
            (None, kept) => kept.unwrap_or_default(),
        }
    }

    /// The hub answered.
    pub fn heard(paths: &Paths, at: Timestamp, hub_time: Timestamp, next: Timestamp) -> io::Result<()> {
        let contact = Contact { last: Some(at), hub_time: Some(hub_time), next: Some(next), ..Contact::default() };
        contact.write(&place(paths))?;
        // Once after each time without the hub: the next loss has something to begin from.
        match load(&kept(paths)) {
            Some(kept) if kept.failures == 0 => Ok(()),
            _ => contact.write(&kept(paths)),
        }
    }

    /// It didn't, and why.
    pub fn missed(paths: &Paths, why: &str) -> io::Result<()> {
        let before = Contact::read(paths);
        let contact = Contact { failures: before.failures.saturating_add(1), error: Some(why.to_owned()), ..before };
        contact.write(&place(paths))?;
        if contact.failures == 1 { contact.write(&kept(paths)) } else { Ok(()) }
    }

    /// Milliseconds to add to this host's clock for the hub's time.
    pub fn clock_offset(&self) -> Option<i64> {
        Some(self.hub_time?.0.saturating_sub(self.last?.0))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let temporary = path.with_extension("new");
        fs::write(&temporary, serde_json::to_vec(self)?)?;
        fs::rename(&temporary, path)
    }
}

fn load(path: &Path) -> Option<Contact> {
    if fs::metadata(path).ok()?.len() > MOST {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn place(paths: &Paths) -> PathBuf {
    paths.root().join("run/kedge-agent").join(FILE)
}

fn kept(paths: &Paths) -> PathBuf {
    paths.state().join(FILE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_loss_is_remembered_over_a_reboot_with_the_last_time_that_the_hub_was_heard() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        assert_eq!(Contact::read(&paths), Contact::default());
        Contact::heard(&paths, Timestamp(5000), Timestamp(7000), Timestamp(9000)).unwrap();
        assert_eq!(Contact::read(&paths).clock_offset(), Some(2000));
        Contact::missed(&paths, "no route").unwrap();
        Contact::missed(&paths, "timed out").unwrap();
        let now = Contact::read(&paths);
        assert_eq!((now.last, now.failures, now.error.as_deref()), (Some(Timestamp(5000)), 2, Some("timed out")));

        fs::remove_dir_all(folder.path().join("run")).unwrap();
        let after = Contact::read(&paths);
        assert_eq!((after.last, after.failures, after.error.as_deref()), (Some(Timestamp(5000)), 1, Some("no route")));
        Contact::missed(&paths, "no route").unwrap();
        assert_eq!(Contact::read(&paths).failures, 2);
    }

    #[test]
    fn a_broken_file_is_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        fs::create_dir_all(folder.path().join("run/kedge-agent")).unwrap();
        fs::write(place(&paths), b"{\"last\":").unwrap();
        assert_eq!(Contact::read(&paths), Contact::default());
    }
}
