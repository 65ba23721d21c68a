//! One value on disk that is either the old or the new one, whatever happens: two copies, each replaced as a whole. A copy that is
//! broken or behind is healed from the other when the ledger is opened.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::disk::Disk;

/// The writer of one ledger: `NAME` becomes the files `NAME.a` and `NAME.b`.
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
    /// A copy was broken or behind and is whole again: what was wrong with it.
    pub healed: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("{path} can't be {action}")]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    /// Neither copy can be read: a person or a new join is needed.
    #[error("both copies of {path} are broken: {first}; {second}")]
    Broken { path: PathBuf, first: String, second: String },
    #[error("{path} can't be written as JSON")]
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

impl<T: Serialize + DeserializeOwned> Ledger<T> {
    /// Reads both copies, heals the one that is broken or behind, and is ready to write.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Opened<T>, LedgerError> {
        let (first, second) = (read_copy(&*disk, path, "a"), read_copy(&*disk, path, "b"));
        let mut ledger = Ledger { disk, path: path.to_owned(), sequence: 0, value: PhantomData };
        let (best, wrong) = choose(path, first, second)?;
        let Some((sequence, content)) = best else {
            return Ok(Opened { ledger, value: None, healed: None });
        };
        let value = parse(path, &content)?;
        ledger.sequence = sequence;
        if wrong.is_some() {
            ledger.put(sequence, &content)?;
        }
        Ok(Opened { ledger, value: Some(value), healed: wrong })
    }

    /// The value, for who only looks: nothing is written.
    pub fn read(disk: &dyn Disk, path: &Path) -> Result<Option<T>, LedgerError> {
        let (best, _) = choose(path, read_copy(disk, path, "a"), read_copy(disk, path, "b"))?;
        best.map(|(_, content)| parse(path, &content)).transpose()
    }

    /// Durable when it returns.
    pub fn write(&mut self, value: &T) -> Result<(), LedgerError> {
        let content =
            serde_json::to_vec(value).map_err(|source| LedgerError::Json { path: self.path.clone(), source })?;
        if content.len() > MAX_LEDGER - HEAD {
            return Err(LedgerError::TooLarge { path: self.path.clone(), size: content.len() });
        }
        self.put(self.sequence + 1, &content)?;
        self.sequence += 1;
        Ok(())
    }

    /// Takes both copies away.
    pub fn remove(self) -> Result<(), LedgerError> {
        for which in ["a", "b"] {
            match self.disk.remove(&copy(&self.path, which)) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(LedgerError::Io { path: copy(&self.path, which), action: "removed", source });
                }
                _ => {}
            }
        }
        self.sync_folder()
    }

    fn put(&self, sequence: u64, content: &[u8]) -> Result<(), LedgerError> {
        let mut bytes = Vec::with_capacity(HEAD + content.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&sequence.to_be_bytes());
        bytes.extend_from_slice(&checksum(sequence, content));
        bytes.extend_from_slice(content);
        for which in ["a", "b"] {
            let (temporary, path) = (copy(&self.path, "new"), copy(&self.path, which));
            let failed = |action| move |source| LedgerError::Io { path: path.clone(), action, source };
            self.disk.write(&temporary, &bytes).map_err(failed("written"))?;
            let path = copy(&self.path, which);
            let failed = |action| move |source| LedgerError::Io { path: path.clone(), action, source };
            self.disk.sync_file(&temporary).map_err(failed("synced"))?;
            let path = copy(&self.path, which);
            self.disk.rename(&temporary, &path).map_err(|source| LedgerError::Io {
                path: path.clone(),
                action: "replaced",
                source,
            })?;
        }
        self.sync_folder()
    }

    fn sync_folder(&self) -> Result<(), LedgerError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let failed = |source| LedgerError::Io { path: folder.to_owned(), action: "synced", source };
        self.disk.sync_folder(folder).map_err(failed)
    }
}

impl<T> fmt::Debug for Ledger<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ledger({} at {})", self.path.display(), self.sequence)
    }
}

type Copy = Result<Option<(u64, Vec<u8>)>, String>;

fn choose(path: &Path, first: Copy, second: Copy) -> Result<(Option<(u64, Vec<u8>)>, Option<String>), LedgerError> {
    match (first, second) {
        (Err(first), Err(second)) => Err(LedgerError::Broken { path: path.to_owned(), first, second }),
        (Ok(None), Ok(None)) => Ok((None, None)),
        (Ok(Some(good)), Err(why)) | (Err(why), Ok(Some(good))) => Ok((Some(good), Some(why))),
        (Ok(Some(good)), Ok(None)) | (Ok(None), Ok(Some(good))) => {
            Ok((Some(good), Some("a copy was missing".to_owned())))
        }
        (Ok(None), Err(why)) | (Err(why), Ok(None)) => {
            Err(LedgerError::Broken { path: path.to_owned(), first: why, second: "the other is missing".to_owned() })
        }
        (Ok(Some(first)), Ok(Some(second))) => {
            let behind = first.0 != second.0;
            let best = if first.0 >= second.0 { first } else { second };
            Ok((Some(best), behind.then(|| "a copy was behind".to_owned())))
        }
    }
}

fn read_copy(disk: &dyn Disk, path: &Path, which: &str) -> Copy {
    let path = copy(path, which);
    let bytes = match disk.read(&path, MAX_LEDGER as u64) {
        Ok(bytes) => bytes,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(format!("{}: {why}", path.display())),
    };
    let wrong = || format!("{}: the checksum doesn't fit", path.display());
    let (head, content) = bytes.split_at_checked(HEAD).ok_or_else(wrong)?;
    let (magic, rest) = head.split_at(8);
    let (sequence, sum) = rest.split_at(8);
    let sequence = u64::from_be_bytes(sequence.try_into().map_err(|_| wrong())?);
    if magic != MAGIC || sum != checksum(sequence, content) {
        return Err(wrong());
    }
    Ok(Some((sequence, content.to_vec())))
}

fn parse<T: DeserializeOwned>(path: &Path, content: &[u8]) -> Result<T, LedgerError> {
    serde_json::from_slice(content).map_err(|source| LedgerError::Json { path: path.to_owned(), source })
}

fn checksum(sequence: u64, content: &[u8]) -> [u8; 32] {
    let mut whole = sequence.to_be_bytes().to_vec();
    whole.extend_from_slice(content);
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, &whole).as_ref());
    out
}

fn copy(path: &Path, which: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(which);
    PathBuf::from(name)
}
