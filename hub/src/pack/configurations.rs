//! The configuration inside platform packages: what was delivered, whatever Git says since. A package never changes, so what was
//! read once is kept in memory, up to a bound. Read by whoever answers people.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::{Arc, Mutex, PoisonError};

use kedge_model::decode::MAX_FILE_BYTES;
use kedge_model::wire::Digest;
use kedge_scheduler::ConfigFile;

use super::archive::MAX_BYTES;
use super::blobs::{BlobError, Blobs};

/// What a platform package says, or why that can't be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Its configuration file; none: it has no configuration.
    Read(Option<Arc<Rendered>>),
    /// It isn't in the packages folder any more.
    Gone,
    Unreadable(String),
}

/// A published file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub file: ConfigFile,
    pub text: String,
}

/// Reads packages. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Configurations {
    blobs: Blobs,
    known: Arc<Mutex<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    files: BTreeMap<Digest, Option<Arc<Rendered>>>,
    bytes: usize,
}

/// A namespace and a configuration file, compressed.
const MAX_PACKAGE: u64 = 4 << 20;
/// Memory for what was read; then it starts over.
const MAX_KNOWN: usize = 32 << 20;
/// What an entry takes besides its text.
const ENTRY: usize = 200;

impl Configurations {
    pub fn new(blobs: Blobs) -> Configurations {
        Configurations { blobs, known: Arc::default() }
    }

    /// What each of these platform packages says.
    pub async fn read(&self, packages: &BTreeSet<Digest>) -> BTreeMap<Digest, Delivered> {
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            for digest in packages {
                match known.files.get(digest) {
                    Some(file) => _ = found.insert(*digest, Delivered::Read(file.clone())),
                    None => missing.push(*digest),
                }
            }
        }
        if missing.is_empty() {
            return found;
        }
        let here = self.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let read = missing.iter().map(|digest| (*digest, here.open(digest)));
            read.collect::<Vec<_>>()
        });
        // A hub that stops gives no answers any more.
        found.extend(reading.await.unwrap_or_default());
        found
    }

    fn open(&self, digest: &Digest) -> Delivered {
        let file = match self.blobs.read(digest, MAX_PACKAGE) {
            Ok(bytes) => match configuration(&bytes) {
                Ok(file) => file.map(Arc::new),
                Err(error) => return Delivered::Unreadable(error.to_string()),
            },
            Err(BlobError::Missing(_)) => return Delivered::Gone,
            Err(error) => return Delivered::Unreadable(kedge_hub_types::causes::chain(&error)),
        };
        let size = file.as_ref().map_or(0, |file| file.text.len()) + ENTRY;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.bytes + size > MAX_KNOWN {
            *known = Known::default();
        }
        if known.files.insert(*digest, file.clone()).is_none() {
            known.bytes += size;
        }
        Delivered::Read(file)
    }
}

/// The configuration file of a package's bytes.
fn configuration(package: &[u8]) -> std::io::Result<Option<Rendered>> {
    let tar = zstd::stream::read::Decoder::new(package)?.take(MAX_BYTES);
    let mut found: Option<Rendered> = None;
    for entry in tar::Archive::new(tar).entries()? {
        let entry = entry?;
        let path = entry.path()?.display().to_string();
        let Some(file) = [ConfigFile::Yaml, ConfigFile::Shell].into_iter().find(|file| file.name() == path) else {
            continue;
        };
        let mut text = String::new();
        entry.take(MAX_FILE_BYTES as u64).read_to_string(&mut text)?;
        // As packing does it: the ConfigMap comes first.
        if file == ConfigFile::Yaml || found.is_none() {
            found = Some(Rendered { file, text });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::archive::Contents;

    fn package(files: &[(&str, &str)]) -> Vec<u8> {
        let mut contents = Contents::default();
        for (path, text) in files {
            contents.add(path, text.as_bytes().to_vec(), false).unwrap();
        }
        contents.archive().unwrap()
    }

    #[tokio::test]
    async fn a_package_says_what_was_delivered_also_after_its_file_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path()).unwrap();
        let with = blobs.put(&package(&[("namespace.yaml", "a: b\n"), ("platform-config.sh", "export A=\"1\"\n")]));
        let without = blobs.put(&package(&[("namespace.yaml", "a: b\n")])).unwrap().digest;
        let broken = blobs.put(b"no package").unwrap().digest;
        let with = with.unwrap().digest;
        let nowhere = Digest::of(b"nowhere");
        let configurations = Configurations::new(blobs.clone());
        let all = BTreeSet::from([with, without, broken, nowhere]);
        let read = configurations.read(&all).await;
        let text = Rendered { file: ConfigFile::Shell, text: "export A=\"1\"\n".to_owned() };
        assert_eq!(read[&with], Delivered::Read(Some(Arc::new(text))));
        assert_eq!((&read[&without], &read[&nowhere]), (&Delivered::Read(None), &Delivered::Gone));
        assert!(matches!(read[&broken], Delivered::Unreadable(_)), "{:?}", read[&broken]);
        std::fs::remove_file(blobs.path(&with)).unwrap();
        assert_eq!(configurations.read(&all).await[&with], read[&with], "it is remembered");
    }

    #[test]
    fn bytes_that_are_no_package_never_panic() {
        let good = package(&[("platform-config.yaml", "A: b\n")]);
        for end in 0..good.len() {
            let _ = configuration(&good[..end]);
        }
        for at in 0..good.len() {
            let mut other = good.clone();
            other[at] ^= 0x41;
            let _ = configuration(&other);
        }
    }
}
