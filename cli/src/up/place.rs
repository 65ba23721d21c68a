//! The folder of a fleet: new and temporary, or a person's. It has the platform, the hub's data, each agent's root, and the file
//! `up.json` that says what was made. What this run made it takes away at the end, unless it is to be kept.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use super::error::UpError;
use crate::init::{self, Flavour};

/// The folder, locked for this run.
#[derive(Debug)]
pub(super) struct Place {
    /// Absolute, without symbolic links.
    path: PathBuf,
    made: Made,
    /// This run made it, so it takes it away.
    new: bool,
    /// It stood there before, empty, and may be somebody's current folder: it stays, empty.
    existed: bool,
    keep: bool,
    /// Nobody else's while it is open.
    _lock: Flock<File>,
}

/// What is remembered between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Made {
    /// Of this file.
    version: u32,
    /// Those of the last run; taken again when they are free, so that the page keeps its address.
    pub api_port: Option<u16>,
    pub agents_port: Option<u16>,
    pub agents: usize,
    /// The first content has arrived everywhere; from here on people approve.
    pub settled: bool,
    /// The commit of the first change, which `up` pushes itself to show the way.
    pub change: Option<String>,
    /// What production ran when that was pushed.
    #[serde(default)]
    pub before: Option<String>,
    /// It was approved, or something else went to production: from here on only people approve. So it is, too, in a folder
    /// that an older `kedge up` made.
    #[serde(default = "yes")]
    pub decided: bool,
    /// It has arrived too.
    pub arrived: bool,
}

fn yes() -> bool {
    true
}

/// What stays behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Nothing,
    /// Kept, or it was there before.
    Folder(PathBuf),
    /// All of ours is gone; this is somebody else's.
    Strangers(PathBuf),
}

const VERSION: u32 = 1;
const MARKER: &str = "up.json";
const LOCK: &str = "up.lock";
/// `up.json` is some hundred bytes.
const MAX_MARKER: u64 = 64 * 1024;
/// What `up` makes in the folder; nothing else is taken away.
const OURS: [&str; 11] =
    [MARKER, LOCK, ".up.json", "platform", "work", ".work", "hub", "hub.toml", "hub.log", "agents", "env"];

impl Place {
    pub fn open(folder: Option<&Path>, keep: bool) -> Result<Place, UpError> {
        match folder {
            None => {
                let name = format!("kedge-up-{:08x}", random() & 0xffff_ffff);
                Place::create(&std::env::temp_dir().join(name), false, keep)
            }
            Some(folder) => Place::open_named(folder, keep),
        }
    }

    fn open_named(folder: &Path, keep: bool) -> Result<Place, UpError> {
        let mut entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Place::create(folder, false, keep),
            Err(source) => return Err(UpError::File { path: folder.to_owned(), source }),
        };
        if entries.next().is_none() {
            return Place::create(folder, true, keep);
        }
        let path = fs::canonicalize(folder).map_err(UpError::file(folder))?;
        let made = read_marker(&path)?;
        let lock = take_lock(&path)?;
        // What was begun and not finished is as good as new: its repositories are made whole or not at all.
        Ok(Place { path, made, new: false, existed: true, keep, _lock: lock })
    }

    fn create(folder: &Path, existed: bool, keep: bool) -> Result<Place, UpError> {
        if !existed {
            // Keys and tokens will be in it.
            DirBuilder::new().mode(0o700).create(folder).map_err(UpError::file(folder))?;
        }
        let path = fs::canonicalize(folder).map_err(UpError::file(folder))?;
        let made = Made {
            version: VERSION,
            api_port: None,
            agents_port: None,
            agents: 0,
            settled: false,
            change: None,
            before: None,
            decided: false,
            arrived: false,
        };
        let lock = take_lock(&path)?;
        let place = Place { path, made, new: true, existed, keep, _lock: lock };
        place.write()?;
        Ok(place)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder that `kedge init` would have made.
    pub fn platform(&self) -> PathBuf {
        self.path.join("platform")
    }

    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Whether it is there after the end.
    pub fn stays(&self) -> bool {
        self.keep || !self.new
    }

    pub fn made(&self) -> &Made {
        &self.made
    }

    pub fn change(&mut self, change: impl FnOnce(&mut Made)) -> Result<(), UpError> {
        let before = self.made.clone();
        change(&mut self.made);
        if self.made == before { Ok(()) } else { self.write() }
    }

    /// The sample's repositories, once.
    pub fn make_platform(&self) -> Result<()> {
        if !self.platform().exists() {
            init::create(&self.platform(), Flavour::FilesOnly)?;
        }
        Ok(())
    }

    /// Takes away what this run made, unless it is to stay.
    pub fn close(self) -> Result<Left, UpError> {
        if self.stays() {
            return Ok(Left::Folder(self.path));
        }
        for name in OURS {
            remove(&self.path.join(name))?;
        }
        if self.existed {
            return Ok(Left::Nothing);
        }
        match fs::remove_dir(&self.path) {
            Ok(()) => Ok(Left::Nothing),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Left::Nothing),
            Err(_) => Ok(Left::Strangers(self.path)),
        }
    }

    fn write(&self) -> Result<(), UpError> {
        let path = self.path.join(MARKER);
        let text = serde_json::to_vec_pretty(&self.made).map_err(|error| UpError::file(&path)(error.into()))?;
        let new = self.path.join(format!(".{MARKER}"));
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(UpError::file(&path))
    }
}

fn read_marker(folder: &Path) -> Result<Made, UpError> {
    let path = folder.join(MARKER);
    match fs::metadata(&path) {
        Ok(found) if found.is_file() && found.len() <= MAX_MARKER => {}
        _ => return Err(UpError::NotOurs { path: folder.to_owned() }),
    }
    let text = fs::read(&path).map_err(UpError::file(&path))?;
    let other = || UpError::OtherVersion { path: folder.to_owned() };
    let made: Made = serde_json::from_slice(&text).map_err(|_| other())?;
    if made.version == VERSION { Ok(made) } else { Err(other()) }
}

fn take_lock(folder: &Path) -> Result<Flock<File>, UpError> {
    let path = folder.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(UpError::file(&path))?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| UpError::InUse { path: folder.to_owned() })
}

fn remove(path: &Path) -> Result<(), UpError> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(UpError::file(path)(error)),
        _ => Ok(()),
    }
}

/// What the standard library seeds its maps with: other for every call.
pub(super) fn random() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_new_folder_is_taken_away_and_one_that_was_there_stays() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("my fleet");
        let place = Place::open(Some(&folder), false).unwrap();
        assert!(place.is_new() && !place.stays());
        assert_eq!(place.close().unwrap(), Left::Nothing);
        assert!(!folder.exists());

        let kept = Place::open(Some(&folder), true).unwrap().close().unwrap();
        assert_eq!(kept, Left::Folder(folder.canonicalize().unwrap()));
        let again = Place::open(Some(&folder), false).unwrap();
        assert!(!again.is_new() && again.stays());
        again.close().unwrap();
        assert!(folder.join(MARKER).exists());
    }

    #[test]
    fn files_of_others_stay_in_a_folder_that_goes() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("fleet");
        let place = Place::open(Some(&folder), false).unwrap();
        fs::write(folder.join("notes"), "mine").unwrap();
        assert!(matches!(place.close().unwrap(), Left::Strangers(_)));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn an_empty_folder_is_used_and_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::open(Some(folder.path()), false).unwrap();
        assert_eq!(place.close().unwrap(), Left::Nothing);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_of_others_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(Place::open(Some(folder.path()), false).unwrap_err(), UpError::NotOurs { .. }));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_in_use_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("fleet");
        let _first = Place::open(Some(&folder), false).unwrap();
        assert!(matches!(Place::open(Some(&folder), false).unwrap_err(), UpError::InUse { .. }));
    }

    #[test]
    fn what_was_made_is_remembered() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("fleet");
        let mut place = Place::open(Some(&folder), true).unwrap();
        place.change(|made| made.api_port = Some(4711)).unwrap();
        place.change(|made| made.settled = true).unwrap();
        place.close().unwrap();
        let again = Place::open(Some(&folder), false).unwrap();
        assert!(again.made().settled);
        assert_eq!(again.made().api_port, Some(4711));
    }

    proptest! {
        #[test]
        fn any_bytes_of_a_marker_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(MARKER), bytes).unwrap();
            let _ = read_marker(folder.path());
        }
    }
}
