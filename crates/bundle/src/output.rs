//! Where a container is written: one file, or parts of a size that the stick's file system holds. All of it appears under its name
//! when it is whole, and nothing otherwise. Root writes to strangers' sticks with it, so it follows no symlink that a stick brings.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::parts::{MAX_PARTS, part};

#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    split: Option<u64>,
    /// Written or being written, under their temporary names.
    files: Vec<PathBuf>,
    now: Option<(File, u64)>,
    finished: bool,
}

impl Output {
    /// With `split`, `FILE.001`, `FILE.002`, …, each of at most so many bytes.
    pub fn create(path: &Path, split: Option<u64>) -> io::Result<Output> {
        if path.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no file's name"));
        }
        if split == Some(0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "parts need a size"));
        }
        check_folders(path)?;
        check_place(path)?;
        let mut output = Output { path: path.to_owned(), split, files: Vec::new(), now: None, finished: false };
        output.begin()?;
        Ok(output)
    }

    /// Everything is on disk, and under its own name, when this returns. The names, in order.
    pub fn finish(mut self) -> io::Result<Vec<PathBuf>> {
        self.end()?;
        let names: Vec<PathBuf> = (1..=self.files.len()).map(|number| self.name(number)).collect();
        // The first part comes last: who finds it finds all.
        for (from, to) in self.files.iter().zip(&names).rev() {
            fs::rename(from, to)?;
        }
        // A shorter one took a longer one's place.
        if self.split.is_some() {
            for number in names.len() + 1..=MAX_PARTS {
                if fs::remove_file(self.name(number)).is_err() {
                    break;
                }
            }
        }
        self.finished = true;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        Ok(names)
    }

    fn name(&self, number: usize) -> PathBuf {
        if self.split.is_some() { part(&self.path, number) } else { self.path.clone() }
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.files.len() >= MAX_PARTS {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than 999 parts: choose larger ones"));
        }
        let name = self.name(self.files.len() + 1);
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name.file_name().unwrap_or_default());
        hidden.push(".partial");
        let path = name.with_file_name(hidden);
        // What an interrupted run left, or a symlink that a stick brought: gone, and never written through.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        // Exclusive: it fails rather than follow what somebody puts there meanwhile.
        // Configuration with its secrets is in it: its owner's alone, where the file system knows owners.
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        self.files.push(path);
        self.now = Some((file, 0));
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        match self.now.take() {
            Some((file, _)) => file.sync_all(),
            None => Ok(()),
        }
    }
}

/// What is there is replaced, so it must be a file or a link: for `/dev/null` the whole host would miss it.
fn check_place(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(known) if !known.is_file() && !known.is_symlink() => {
            let message = format!("{} is there and isn't a file; name another", path.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
        }
        _ => Ok(()),
    }
}

/// A symlink in a folder's path may lead from a stick to the host. Those of the system's own file system are the administrator's.
fn check_folders(path: &Path) -> io::Result<()> {
    let system = fs::metadata("/")?.dev();
    let mut so_far = PathBuf::new();
    for component in path.parent().into_iter().flat_map(Path::components) {
        so_far.push(component);
        let known = fs::symlink_metadata(&so_far)?;
        if known.is_symlink() && known.dev() != system {
            let so_far = so_far.display();
            let message = format!("{so_far} is a symlink on a stick or another disk; name the folder that it leads to");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let full = |written: u64| self.split.is_some_and(|split| written >= split);
        if self.now.as_ref().is_none_or(|(_, written)| full(*written)) && !bytes.is_empty() {
            self.end()?;
            self.begin()?;
        }
        let Some((file, written)) = &mut self.now else { return Ok(0) };
        let left = self.split.map_or(u64::MAX, |split| split.saturating_sub(*written));
        let most = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let done = file.write(&bytes[..most])?;
        *written += done as u64;
        Ok(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.now {
            Some((file, _)) => file.flush(),
            None => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.finished {
            for path in &self.files {
                // Renamed already, or the stick is gone.
                _ = fs::remove_file(path);
            }
        }
    }
}
