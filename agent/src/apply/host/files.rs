//! Files, folders and symlinks of the host: looking at them, and the steps that change them. Every change is atomic, on the disk before it
//! returns, and goes through folders that are held open, never through a tenant's symlink. The host applier calls it.

mod change;
mod owner;
mod state;
#[cfg(test)]
mod tests;
pub mod walk;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;

use kedge_model::wire::Digest;
use nix::errno::Errno;

use crate::objects::Objects;
use crate::observed::PathState;
use crate::paths::Paths;
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;
use state::Stamp;
use walk::{Parents, WalkError, reach};

#[derive(Debug)]
pub struct Files {
    paths: Paths,
    objects: Objects,
    /// Digests of files that haven't changed since they were read: a look every few minutes reads nothing.
    seen: RefCell<BTreeMap<String, (Stamp, Digest)>>,
}

impl Files {
    pub fn new(paths: Paths, objects: Objects) -> Files {
        Files { paths, objects, seen: RefCell::default() }
    }

    /// What is true of each path. One behind a tenant's symlink is `Other`: not ours to touch.
    pub fn look(&self, wanted: &BTreeSet<String>) -> Result<BTreeMap<String, PathState>, Failure> {
        wanted.iter().map(|path| Ok((path.clone(), self.look_at(path)?))).collect()
    }

    /// Keeps the content of a file as an object.
    pub fn keep(&self, path: &str) -> Result<Digest, Failure> {
        let spot = reach(&self.paths, path, Parents::Expect).map_err(|error| barred(path, error))?;
        let file = state::open_file(&spot).map_err(|error| failed("read", path, &error))?;
        self.objects.put_stream(file).map_err(|error| failed("kept", path, &error))
    }

    /// Bytes that these folders hold, without following symlinks: what a namespace's disk limit is about.
    pub fn usage(&self, folders: &[String]) -> u64 {
        let mut waiting: Vec<_> = folders.iter().map(|folder| self.paths.place(folder)).collect();
        let mut bytes = 0;
        while let Some(folder) = waiting.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                    Ok(metadata) => bytes += metadata.len(),
                    Err(_) => {}
                }
            }
        }
        bytes
    }

    /// The steps of folders, files and symlinks.
    pub fn execute(&self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        let line = trace.begin(match step {
            Step::MakeFolder { path, .. } => format!("make folder {path}"),
            Step::RemoveFolder { path } => format!("remove folder {path}"),
            Step::PutFile { path, .. } => format!("write {path}"),
            Step::PutLink { path, target, .. } => format!("link {path} to {target}"),
            Step::RemovePath { path } => format!("remove {path}"),
            _ => return Err(Failure::new("Unsupported", "this isn't a step of files")),
        });
        let done = match step {
            Step::MakeFolder { path, owner, mode } => self.make_folder(path, owner, *mode),
            Step::RemoveFolder { path } => self.remove_folder(path),
            Step::PutFile { path, content, owner, mode } => self.put_file(path, content, owner, *mode),
            Step::PutLink { path, target, owner } => self.put_link(path, target, owner),
            Step::RemovePath { path } => self.remove_path(path),
            _ => Ok(String::new()),
        };
        match &done {
            Ok(note) => trace.end(line, note),
            Err(failure) => trace.fail(line, failure, ""),
        }
        done.map(|_| ())
    }
}

/// The sentence for what the disk refused.
fn failed(done: &str, path: &str, error: &io::Error) -> Failure {
    let full = [Errno::ENOSPC, Errno::EDQUOT].iter().any(|errno| error.raw_os_error() == Some(*errno as i32));
    let message = format!("{path} can't be {done}: {error}");
    match error.kind() {
        _ if full => Failure::passing("DiskFull", format!("{message}; free some space on its disk")),
        // An object that is missing or rotten is made again.
        io::ErrorKind::InvalidData => Failure::passing("FileFailed", message),
        _ => Failure::new("FileFailed", message),
    }
}

/// The sentence for a way that can't be gone.
fn barred(path: &str, error: WalkError) -> Failure {
    match error {
        WalkError::Io { at, source } => failed("reached", &at, &source),
        WalkError::Symlink { .. } => Failure::new(
            "NotAllowed",
            format!(
                "{path} can't be touched: {error}; replace it by a folder, or let the namespace name the real folder"
            ),
        ),
        WalkError::Missing | WalkError::NotAFolder { .. } => {
            Failure::new("FileFailed", format!("{path} can't be reached: {error}"))
        }
    }
}

/// A file that was opened by us, for std's reading and writing.
fn std_file(fd: std::os::fd::OwnedFd) -> File {
    File::from(fd)
}
