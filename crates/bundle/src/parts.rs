//! A container as files on a disk: one, or parts that are read as one. Finds them by a file's name, a part's name or a folder's.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::error::BundleError;

/// How files of Kedge end: bundles, requests and answers.
pub const EXTENSION: &str = "kedge";
/// More entries than a stick's folder has; the rest isn't looked at.
const MAX_ENTRIES: usize = 4096;
/// Numbers have three digits.
pub(crate) const MAX_PARTS: usize = 999;

/// Files whose bytes follow each other.
#[derive(Debug)]
pub struct Parts {
    files: Vec<Part>,
    at: u64,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    file: File,
    /// Where it begins in the whole.
    start: u64,
    size: u64,
}

/// What is meant by a path: that file, the parts of that name, or each of them in a folder, sorted by name.
pub fn find(path: &Path) -> Result<Vec<PathBuf>, BundleError> {
    let of_path = |source| BundleError::File { path: path.to_owned(), source };
    match fs::metadata(path) {
        Ok(known) if known.is_dir() => {}
        Ok(_) => return Ok(vec![base(path).unwrap_or_else(|| path.to_owned())]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // `FILE` was said and `FILE.001` is there, or a later part without the first.
            let stem = base(path).unwrap_or_else(|| path.to_owned());
            return if part(&stem, 1).exists() {
                Ok(vec![stem])
            } else if base(path).is_some() {
                Err(BundleError::MissingPart(part(&stem, 1)))
            } else {
                Err(of_path(error))
            };
        }
        Err(error) => return Err(of_path(error)),
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(of_path)?.take(MAX_ENTRIES) {
        let entry = entry.map_err(of_path)?;
        // A link may lead anywhere, and a pipe never ends.
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let name = base(&entry.path()).unwrap_or_else(|| entry.path());
        let hidden = name.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && name.extension().is_some_and(|extension| extension == EXTENSION) {
            found.push(name);
        }
    }
    found.sort();
    found.dedup();
    if found.is_empty() { Err(BundleError::Nothing(path.to_owned())) } else { Ok(found) }
}

impl Parts {
    /// Opens `FILE`, or else `FILE.001` and those that follow.
    pub fn open(path: &Path) -> Result<Parts, BundleError> {
        let mut parts = Parts { files: Vec::new(), at: 0 };
        if path.exists() {
            parts.add(path.to_owned())?;
            return Ok(parts);
        }
        for number in 1..=MAX_PARTS {
            let name = part(path, number);
            if !name.exists() {
                // One that has followers is missing; otherwise the index says whether these were all.
                let later = (number + 1..=MAX_PARTS).any(|later| part(path, later).exists());
                if later {
                    return Err(BundleError::MissingPart(name));
                }
                if number == 1 {
                    let source = io::Error::from(io::ErrorKind::NotFound);
                    return Err(BundleError::File { path: path.to_owned(), source });
                }
                break;
            }
            parts.add(name)?;
        }
        Ok(parts)
    }

    /// The part that should follow the last one here: what is missing if the whole is cut. None for a single file.
    pub fn following(&self) -> Option<PathBuf> {
        let last = self.files.last()?;
        base(&last.path).map(|stem| part(&stem, self.files.len() + 1))
    }

    pub fn length(&self) -> u64 {
        self.files.last().map_or(0, |last| last.start.saturating_add(last.size))
    }

    fn add(&mut self, path: PathBuf) -> Result<(), BundleError> {
        let start = self.length();
        let (file, size) = regular(&path).map_err(|source| BundleError::File { path: path.clone(), source })?;
        self.files.push(Part { path, file, start, size });
        Ok(())
    }
}

/// Opens a file that somebody brought, and says how long it is. A link may lead anywhere, and a pipe never ends: neither is
/// followed or waited for, also where it was named itself.
pub fn regular(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let no_file = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a file"));
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Err(_) if fs::symlink_metadata(path).is_ok_and(|known| known.is_symlink()) => return Err(no_file("a symlink")),
        opened => opened?,
    };
    let known = file.metadata()?;
    match known.is_file() {
        true => Ok((file, known.len())),
        false if known.is_dir() => Err(no_file("a folder")),
        false => Err(no_file("a pipe or a device")),
    }
}

impl Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let at = self.at;
        let Some(part) = self.files.iter_mut().find(|part| part.start <= at && at < part.start + part.size) else {
            return Ok(0);
        };
        let (inside, left) = (at - part.start, part.size - (at - part.start));
        let most = usize::try_from(left).map_or(into.len(), |left| left.min(into.len()));
        part.file.seek(SeekFrom::Start(inside))?;
        let read = part.file.read(&mut into[..most])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Parts {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let next = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = next.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// `FILE.007`.
pub(crate) fn part(stem: &Path, number: usize) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(format!(".{number:03}"));
    PathBuf::from(name)
}

/// `FILE`, if this is the name of a part of it.
fn base(path: &Path) -> Option<PathBuf> {
    let digits = path.extension()?.to_str()?;
    let number = digits.len() == 3 && digits.bytes().all(|digit| digit.is_ascii_digit()) && digits != "000";
    number.then(|| path.with_extension(""))
}
