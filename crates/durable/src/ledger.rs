//! One value on disk that is either the old or the new one, whatever happens: two copies, each replaced as a whole. A copy that is
//! broken or behind is healed from the other when the ledger is opened. A write costs three syncs: both new copies, then the folder.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::Disk;
use crate::file::{beside, folder_of, write_new};

#[cfg(test)]
mod tests;

/// The writer of one ledger: `NAME` becomes the files `NAME.a` and `NAME.b`. There is one writer at a time.
pub struct Ledger<T> {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    sequence: u64,
    value: PhantomData<fn(T)>,
}

/// What opening found.
#[derive(Debug)]
pub struct Opened<T> {
    pub ledger: Ledger<T>,
    /// None: it was never written.
    pub value: Option<T>,
    /// A copy was broken or behind: what was wrong with it, and that it is whole again (or why it isn't yet).
    pub healed: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The old value is still there; the new one only where replacing failed half-way.
    #[error("{path} can't be {action}")]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    /// Neither copy can be read: a person or a new join is needed.
    #[error("both copies of {path} are broken: {first}; {second}")]
    Broken { path: PathBuf, first: String, second: String },
    /// Whole, but not what this version writes.
    #[error("{path} isn't the JSON that is expected")]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{path} would be {size} bytes, more than {MAX_LEDGER}")]
    TooLarge { path: PathBuf, size: usize },
}

/// The first bytes of a copy: what it is, and its version.
const MAGIC: &[u8; 8] = b"kedge-1\n";
/// A status document has 256 KiB, a journal with commands' output less.
pub const MAX_LEDGER: usize = 4 * 1024 * 1024;
/// Magic, sequence, SHA-256 of sequence and content.
const HEAD: usize = 8 + 8 + 32;
/// The two copies.
const COPIES: [&str; 2] = ["a", "b"];

impl<T: Serialize + DeserializeOwned> Ledger<T> {
    /// Reads both copies, heals the one that is broken or behind, and is ready to write.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Opened<T>, LedgerError> {
        let found = choose(path, &*disk)?;
        let mut ledger = Ledger { disk, path: path.to_owned(), sequence: 0, value: PhantomData };
        ledger.tidy();
        let Some(best) = found.best else { return Ok(Opened { ledger, value: None, healed: None }) };
        let value = parse(path, &best.content)?;
        ledger.sequence = best.sequence;
        let healed = found.wrong.map(|(which, why)| match ledger.put(best.sequence, &best.content, &[which]) {
            Ok(()) => format!("{why}; it was healed from the other copy"),
            // The other copy is good, and a full disk must not keep anything from starting.
            Err(error) => format!("{why}; it can't be healed from the other copy yet: {}", chain(&error)),
        });
        Ok(Opened { ledger, value: Some(value), healed })
    }

    /// Starts anew where `open` said that nothing can be read. What is there is kept beside it as `NAME.a.broken`, for people.
    pub fn begin_again(disk: Arc<dyn Disk>, path: &Path) -> Ledger<T> {
        let sequence = |which| read_copy(&*disk, path, which).ok().flatten().map_or(0, |copy| copy.sequence);
        let sequence = COPIES.into_iter().map(sequence).max().unwrap_or(0);
        for which in COPIES {
            let copy = beside(path, which);
            // Where this fails the next write replaces it: its sequence is higher.
            _ = disk.rename(&copy, &beside(&copy, "broken"));
        }
        Ledger { disk, path: path.to_owned(), sequence, value: PhantomData }
    }

    /// The value, for who only looks: nothing is written.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<T>, LedgerError> {
        let best = choose(path, disk)?.best;
        best.map(|copy| parse(path, &copy.content)).transpose()
    }

    /// Durable when it returns. A full disk leaves the old value.
    pub fn write(&mut self, value: &T) -> Result<(), LedgerError> {
        let content =
            serde_json::to_vec(value).map_err(|source| LedgerError::Json { path: self.path.clone(), source })?;
        if content.len() > MAX_LEDGER - HEAD {
            return Err(LedgerError::TooLarge { path: self.path.clone(), size: content.len() });
        }
        // A number is never used twice: a write that failed half-way may have left a copy of this one.
        self.sequence = self.sequence.saturating_add(1);
        self.put(self.sequence, &content, &COPIES)
    }

    /// Takes both copies away.
    pub fn remove(self) -> Result<(), LedgerError> {
        for which in COPIES {
            let copy = beside(&self.path, which);
            match self.disk.remove(&copy) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(LedgerError::Io { path: copy, action: "removed", source });
                }
                _ => {}
            }
        }
        self.sync_folder()
    }

    /// Both new copies are on disk before the first old one is replaced, so that at any time a whole one has its name.
    fn put(&self, sequence: u64, content: &[u8], copies: &[&str]) -> Result<(), LedgerError> {
        let bytes = encode(sequence, content);
        for which in copies {
            let (copy, temporary) = self.names(which);
            if let Err(source) = write_new(&*self.disk, &temporary, &bytes) {
                self.tidy();
                return Err(LedgerError::Io { path: copy, action: "written", source });
            }
        }
        for which in copies {
            let (copy, temporary) = self.names(which);
            if let Err(source) = self.disk.rename(&temporary, &copy) {
                self.tidy();
                return Err(LedgerError::Io { path: copy, action: "replaced", source });
            }
        }
        self.sync_folder()
    }

    fn names(&self, which: &str) -> (PathBuf, PathBuf) {
        let copy = beside(&self.path, which);
        let temporary = beside(&copy, "new");
        (copy, temporary)
    }

    /// What a cut or a full disk left only takes space: nobody reads it.
    fn tidy(&self) {
        for which in COPIES {
            _ = self.disk.remove(&self.names(which).1);
        }
    }

    fn sync_folder(&self) -> Result<(), LedgerError> {
        let folder = folder_of(&self.path);
        let failed = |source| LedgerError::Io { path: folder.to_owned(), action: "synced", source };
        self.disk.sync_folder(folder).map_err(failed)
    }
}

impl<T> Ledger<T> {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Counts the writes, over all processes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl<T> fmt::Debug for Ledger<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ledger({} at {})", self.path.display(), self.sequence)
    }
}

/// A copy that is whole.
struct Copy {
    sequence: u64,
    content: Vec<u8>,
}

/// The newer of the copies, and which one is broken or behind, and why.
struct Found {
    best: Option<Copy>,
    wrong: Option<(&'static str, String)>,
}

fn choose(path: &Path, disk: &dyn Disk) -> Result<Found, LedgerError> {
    let missing = |which| format!("{} was missing", beside(path, which).display());
    let [a, b] = COPIES;
    let found = |best, which, why| Ok(Found { best: Some(best), wrong: Some((which, why)) });
    match (read_copy(disk, path, a), read_copy(disk, path, b)) {
        (Ok(None), Ok(None)) => Ok(Found { best: None, wrong: None }),
        (Ok(Some(best)), Err(why)) => found(best, b, why),
        (Err(why), Ok(Some(best))) => found(best, a, why),
        (Ok(Some(best)), Ok(None)) => found(best, b, missing(b)),
        (Ok(None), Ok(Some(best))) => found(best, a, missing(a)),
        (Ok(Some(first)), Ok(Some(second))) => Ok(newer(path, first, second)),
        (first, second) => {
            let told = |copy: Result<Option<Copy>, String>, which| copy.err().unwrap_or_else(|| missing(which));
            Err(LedgerError::Broken { path: path.to_owned(), first: told(first, a), second: told(second, b) })
        }
    }
}

fn newer(path: &Path, first: Copy, second: Copy) -> Found {
    let [a, b] = COPIES;
    let behind = |which| Some((which, format!("{} was behind", beside(path, which).display())));
    match first.sequence.cmp(&second.sequence) {
        std::cmp::Ordering::Less => Found { best: Some(second), wrong: behind(a) },
        std::cmp::Ordering::Greater => Found { best: Some(first), wrong: behind(b) },
        std::cmp::Ordering::Equal if first.content != second.content => {
            let why = format!("{} differed from the other copy", beside(path, b).display());
            Found { best: Some(first), wrong: Some((b, why)) }
        }
        std::cmp::Ordering::Equal => Found { best: Some(first), wrong: None },
    }
}

fn read_copy(disk: &dyn Disk, path: &Path, which: &str) -> Result<Option<Copy>, String> {
    let path = beside(path, which);
    match disk.read(&path, MAX_LEDGER as u64) {
        Ok(bytes) => {
            let wrong = || format!("{}: the checksum doesn't fit", path.display());
            decode(&bytes).map(Some).ok_or_else(wrong)
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(format!("{}: {why}", path.display())),
    }
}

fn encode(sequence: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&checksum(sequence, content));
    bytes.extend_from_slice(content);
    bytes
}

fn decode(bytes: &[u8]) -> Option<Copy> {
    let (head, content) = bytes.split_at_checked(HEAD)?;
    let (magic, rest) = head.split_at_checked(MAGIC.len())?;
    let (sequence, sum) = rest.split_at_checked(8)?;
    let sequence = u64::from_be_bytes(sequence.try_into().ok()?);
    (magic == MAGIC && sum == checksum(sequence, content)).then(|| Copy { sequence, content: content.to_vec() })
}

fn parse<T: DeserializeOwned>(path: &Path, content: &[u8]) -> Result<T, LedgerError> {
    serde_json::from_slice(content).map_err(|source| LedgerError::Json { path: path.to_owned(), source })
}

fn checksum(sequence: u64, content: &[u8]) -> [u8; 32] {
    let mut sum = Context::new(&SHA256);
    sum.update(&sequence.to_be_bytes());
    sum.update(content);
    let mut out = [0; 32];
    out.copy_from_slice(sum.finish().as_ref());
    out
}

/// The number and the JSON of one copy's bytes; none: they aren't a whole copy. For who carries copies elsewhere.
pub fn open_copy(bytes: &[u8]) -> Option<(u64, Vec<u8>)> {
    decode(bytes).map(|copy| (copy.sequence, copy.content))
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}
