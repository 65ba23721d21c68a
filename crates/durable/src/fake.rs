//! A disk with a page cache, for tests: what isn't synced may be lost, torn or kept when the power is cut. `every_cut` tries a
//! power cut at every operation of a piece of work, with everything that may be left on the disk then.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, FileLock};

#[cfg(test)]
mod tests;
mod trial;

pub use trial::{Power, every_cut, every_failure};

/// Cheap to clone; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct FakeDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    files: BTreeMap<u64, Content>,
    /// Names as a process sees them.
    names: BTreeMap<PathBuf, u64>,
    /// Names as they are on the medium.
    synced_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that aren't synced, in their order.
    pending: Vec<Naming>,
    folders: BTreeSet<PathBuf>,
    next_file: u64,
    operations: u64,
    syncs: u64,
    fault: Option<(u64, Fault)>,
    /// No write succeeds.
    full: bool,
    off: bool,
}

#[derive(Clone, Debug, Default)]
struct Content {
    bytes: Vec<u8>,
    /// What is on the medium, and whether it is all of it.
    synced: Vec<u8>,
    clean: bool,
}

#[derive(Clone, Debug)]
enum Naming {
    Make(PathBuf, u64),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    Cut,
    Error(io::ErrorKind),
}

/// What a file may hold after a cut in which its bytes weren't synced.
const REMAINS: usize = 4;

impl FakeDisk {
    pub fn new() -> FakeDisk {
        FakeDisk::default()
    }

    /// How many operations changed or synced something so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// The power goes during the n-th operation from now; 1 is the next. Everything after it fails.
    pub fn cut_at(&self, nth: u64) {
        let mut state = self.state();
        state.fault = Some((state.operations + nth, Fault::Cut));
    }

    /// The n-th operation from now fails; later ones succeed.
    pub fn fail_at(&self, nth: u64, kind: io::ErrorKind) {
        let mut state = self.state();
        state.fault = Some((state.operations + nth, Fault::Error(kind)));
    }

    /// No cut and no failure is due any more.
    pub fn repair(&self) {
        self.state().fault = None;
    }

    /// Nothing can be written while it is full.
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    /// Another disk with the same content, all of it on the medium.
    pub fn settled_copy(&self) -> FakeDisk {
        let state = self.state();
        let files = state.files.iter().map(|(number, file)| {
            let bytes = file.bytes.clone();
            (*number, Content { synced: bytes.clone(), bytes, clean: true })
        });
        FakeDisk::of(State {
            files: files.collect(),
            names: state.names.clone(),
            synced_names: state.names.clone(),
            folders: state.folders.clone(),
            next_file: state.next_file,
            ..State::default()
        })
    }

    /// Everything that may be found after a power cut now: changes of names survive in their order, and each file that wasn't
    /// synced holds its old bytes, nothing, a part of the new ones, or all of them.
    pub fn survivors(&self) -> Vec<FakeDisk> {
        let state = self.state();
        (0..=state.pending.len()).flat_map(|kept| state.with_names_kept(kept)).map(FakeDisk::of).collect()
    }

    fn of(state: State) -> FakeDisk {
        FakeDisk { state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts an operation; the error that is due, if one is. On a cut the operation itself may still reach the medium.
    fn step(&mut self) -> Result<bool, io::Error> {
        if self.off {
            return Err(no_power());
        }
        self.operations += 1;
        match self.fault {
            Some((at, Fault::Cut)) if at == self.operations => {
                self.off = true;
                Ok(true)
            }
            Some((at, Fault::Error(kind))) if at == self.operations => Err(kind.into()),
            _ => Ok(false),
        }
    }

    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn with_names_kept(&self, kept: usize) -> Vec<State> {
        let mut names = self.synced_names.clone();
        for naming in self.pending.iter().take(kept) {
            naming.apply(&mut names);
        }
        let unsynced: Vec<u64> = names.values().copied().filter(|file| !self.files[file].clean).collect();
        let combinations = REMAINS.pow(u32::try_from(unsynced.len()).unwrap_or(u32::MAX));
        (0..combinations).map(|combination| self.survivor(&names, &unsynced, combination)).collect()
    }

    fn survivor(&self, names: &BTreeMap<PathBuf, u64>, unsynced: &[u64], mut combination: usize) -> State {
        let mut files: BTreeMap<u64, Content> = names.values().map(|file| (*file, self.files[file].clone())).collect();
        for file in unsynced {
            let Some(content) = files.get_mut(file) else { continue };
            let bytes = match combination % REMAINS {
                0 => content.synced.clone(),
                1 => Vec::new(),
                2 => torn(&content.bytes),
                _ => content.bytes.clone(),
            };
            *content = Content { synced: bytes.clone(), bytes, clean: true };
            combination /= REMAINS;
        }
        State {
            files,
            names: names.clone(),
            synced_names: names.clone(),
            folders: self.folders.clone(),
            next_file: self.next_file,
            ..State::default()
        }
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Naming::Make(path, file) => _ = names.insert(path.clone(), *file),
            Naming::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Naming::Remove(path) => _ = names.remove(path),
        }
    }

    fn folder(&self) -> Option<&Path> {
        match self {
            Naming::Make(path, _) | Naming::Rename(path, _) | Naming::Remove(path) => path.parent(),
        }
    }
}

impl Disk for FakeDisk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let state = self.state();
        if state.off {
            return Err(no_power());
        }
        let bytes = &state.files[&state.inode(path)?].bytes;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.clone())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        if !state.folders.contains(path.parent().unwrap_or(Path::new("/"))) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let step = state.step();
        let step = if state.full { step.and(Err(io::ErrorKind::StorageFull.into())) } else { step };
        if state.off && step.is_err() {
            return Err(no_power());
        }
        let file = match state.inode(path) {
            Ok(file) => file,
            Err(_) => {
                state.next_file += 1;
                let file = state.next_file;
                state.names.insert(path.to_owned(), file);
                state.pending.push(Naming::Make(path.to_owned(), file));
                file
            }
        };
        let content = state.files.entry(file).or_default();
        content.clean = false;
        // A disk that becomes full or breaks takes a part.
        content.bytes = if step.is_err() { bytes[..bytes.len() / 2].to_vec() } else { bytes.to_vec() };
        ended(step)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let file = state.inode(path)?;
        if !state.step()? {
            state.syncs += 1;
            if let Some(content) = state.files.get_mut(&file) {
                content.synced = content.bytes.clone();
                content.clean = true;
            }
            return Ok(());
        }
        Err(no_power())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        if state.step()? {
            return Err(no_power());
        }
        state.syncs += 1;
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.pending).into_iter().partition(|naming| naming.folder() == Some(path));
        let mut names = std::mem::take(&mut state.synced_names);
        here.iter().for_each(|naming| naming.apply(&mut names));
        state.synced_names = names;
        state.pending = elsewhere;
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.name(from, Naming::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.name(path, Naming::Remove(path.to_owned()))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let step = state.step();
        if step.is_ok() {
            state.folders.extend(path.ancestors().map(Path::to_owned));
        }
        ended(step)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.state();
        if state.off {
            return Err(no_power());
        }
        Ok(state.names.keys().filter(|path| path.parent() == Some(folder)).cloned().collect())
    }

    fn lock(&self, _path: &Path) -> io::Result<FileLock> {
        Ok(FileLock::of_nobody())
    }
}

impl FakeDisk {
    fn name(&self, path: &Path, naming: Naming) -> io::Result<()> {
        let mut state = self.state();
        if !state.off {
            state.inode(path)?;
        }
        let step = state.step();
        if step.is_ok() {
            naming.apply(&mut state.names);
            state.pending.push(naming);
        }
        ended(step)
    }
}

/// A step at which the power went may have happened, and nobody heard of it.
fn ended(step: Result<bool, io::Error>) -> io::Result<()> {
    match step {
        Ok(false) => Ok(()),
        Ok(true) => Err(no_power()),
        Err(error) => Err(error),
    }
}

/// Half of the bytes, and zeros where the rest should be.
fn torn(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes[..bytes.len() / 2].to_vec();
    out.resize(bytes.len(), 0);
    out
}

fn no_power() -> io::Error {
    io::Error::other("the power is cut")
}
