//! The store on disk: sled in the folder `cache`. sled syncs too little and can't open all that it leaves behind, so both are done
//! here; and what it can't read is set aside as `cache.broken-1` and begun anew, with a sentence for a warning.

use std::fs::{self, File};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sled::{Config, Db};

use super::{Store, StoreError};

#[derive(Debug)]
pub struct SledStore {
    folder: PathBuf,
    /// None: it broke and couldn't be begun anew.
    database: Mutex<Option<Db>>,
}

/// Keys and values here are some ten kilobytes.
const CACHE_BYTES: u64 = 256 * 1024;
/// Sets of broken files that are kept for people; older ones go.
const KEPT_BROKEN: usize = 2;

/// Why sled's work ended without a value.
enum Trouble {
    /// Its files are wrong.
    Broken(String),
    Io(io::Error),
}

impl SledStore {
    /// Opens the folder. Answers also what to warn of, if it had to begin anew.
    pub fn open(folder: &Path) -> Result<(SledStore, Option<String>), StoreError> {
        let (database, warning) = match open(folder) {
            Ok(database) => (database, None),
            Err(Trouble::Io(error)) => return Err(error.into()),
            Err(Trouble::Broken(why)) => {
                let (database, told) = begin_again(folder, &why)?;
                (database, Some(told))
            }
        };
        Ok((SledStore { folder: folder.to_owned(), database: Mutex::new(Some(database)) }, warning))
    }

    fn with<T>(&self, work: impl FnOnce(&Db) -> sled::Result<T>) -> Result<T, StoreError> {
        let mut slot = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let database = slot.as_ref().ok_or(StoreError::Closed)?;
        match attempt(|| work(database)) {
            Ok(value) => Ok(value),
            Err(Trouble::Io(error)) => Err(error.into()),
            Err(Trouble::Broken(why)) => {
                *slot = None;
                let (database, told) = begin_again(&self.folder, &why)?;
                *slot = Some(database);
                Err(StoreError::Lost(told))
            }
        }
    }
}

impl Store for SledStore {
    fn get(&self, tree: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.with(|database| Ok(database.open_tree(tree)?.get(key)?.map(|value| value.to_vec())))
    }

    fn put(&self, tree: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.with(|database| database.open_tree(tree)?.insert(key, value).map(|_| ()))
    }

    fn remove(&self, tree: &str, key: &[u8]) -> Result<(), StoreError> {
        self.with(|database| database.open_tree(tree)?.remove(key).map(|_| ()))
    }

    fn each(&self, tree: &str, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.with(|database| {
            for entry in &database.open_tree(tree)? {
                let (key, value) = entry?;
                visit(&key, &value);
            }
            Ok(())
        })
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.with(|database| database.flush().map(|_| ()))?;
        // sled calls sync_file_range, which leaves the disk's own cache and the file's length aside.
        Ok(File::open(self.folder.join("db"))?.sync_data()?)
    }
}

fn open(folder: &Path) -> Result<Db, Trouble> {
    fs::create_dir_all(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => Trouble::Broken(error.to_string()),
        _ => Trouble::Io(error),
    })?;
    remove_leftovers(folder).map_err(Trouble::Io)?;
    // No thread of its own: what is lost without a flush is fetched again.
    let config = Config::new().path(folder).cache_capacity(CACHE_BYTES).flush_every_ms(None).mode(sled::Mode::LowSpace);
    let opened = attempt(|| config.open())?;
    // A page that can't be read shows itself only when it is read.
    attempt(|| {
        for tree in opened.tree_names() {
            opened.open_tree(tree)?.iter().try_for_each(|entry| entry.map(|_| ()))?;
        }
        Ok(opened)
    })
}

/// A snapshot that a cut left half-made keeps sled from opening.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// sled panics on some files that it can't read, instead of saying so.
fn attempt<T>(work: impl FnOnce() -> sled::Result<T>) -> Result<T, Trouble> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(sled::Error::Io(error))) if is_of_the_disk(&error) => Err(Trouble::Io(error)),
        Ok(Err(error)) => Err(Trouble::Broken(error.to_string())),
        Err(_) => Err(Trouble::Broken("sled gave up on its files".to_owned())),
    }
}

/// Full, locked or not ours: the files may be fine. Anything else is said of what they hold.
fn is_of_the_disk(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let kinds = [Kind::StorageFull, Kind::QuotaExceeded, Kind::PermissionDenied, Kind::ReadOnlyFilesystem];
    kinds.contains(&error.kind()) || error.to_string().contains("could not acquire lock")
}

fn begin_again(folder: &Path, why: &str) -> Result<(Db, String), StoreError> {
    let aside = set_aside(folder)?;
    let database = match open(folder) {
        Ok(database) => database,
        Err(Trouble::Io(error)) => return Err(error.into()),
        Err(Trouble::Broken(why)) => return Err(io::Error::other(why).into()),
    };
    let (folder, aside) = (folder.display(), aside.display());
    Ok((database, format!("{folder} can't be read ({why}); it was set aside as {aside}")))
}

/// `cache.broken-1`, `-2`, …: the first that is free, and only the newest are kept.
fn set_aside(folder: &Path) -> io::Result<PathBuf> {
    let mut stem = folder.as_os_str().to_owned();
    stem.push(".broken-");
    let numbered = |number: u64| {
        let mut name = stem.clone();
        name.push(number.to_string());
        PathBuf::from(name)
    };
    let mut taken: Vec<u64> = Vec::new();
    for entry in fs::read_dir(folder.parent().unwrap_or(Path::new("/")))? {
        let path = entry?.path();
        let number: Option<u64> =
            path.to_str().zip(stem.to_str()).and_then(|(path, stem)| path.strip_prefix(stem)?.parse().ok());
        taken.extend(number);
    }
    taken.sort_unstable();
    let aside = numbered(taken.last().map_or(1, |last| last.saturating_add(1)));
    fs::rename(folder, &aside)?;
    taken.truncate(taken.len().saturating_sub(KEPT_BROKEN - 1));
    for old in taken.into_iter().map(numbered) {
        let removed = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
        if let Err(error) = removed {
            tracing::warn!(path = %old.display(), %error, "an old broken cache can't be removed");
        }
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

    use super::*;

    fn open_at(folder: &Path) -> (SledStore, Option<String>) {
        SledStore::open(folder).unwrap()
    }

    fn all(store: &dyn Store) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut entries = Vec::new();
        store.each("t", &mut |key, value| entries.push((key.to_vec(), value.to_vec()))).unwrap();
        entries
    }

    /// A folder with flushed entries.
    fn filled(folder: &Path) {
        let (store, warning) = open_at(folder);
        assert_eq!(warning, None);
        for number in 0..200_u8 {
            store.put("t", &[number], &[number; 100]).unwrap();
        }
        store.flush().unwrap();
    }

    #[test]
    fn what_was_put_is_there_after_a_restart() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        filled(&folder);
        let (store, warning) = open_at(&folder);
        assert_eq!((warning, all(&store).len()), (None, 200));
        store.remove("t", &[0]).unwrap();
        assert_eq!((store.get("t", &[0]).unwrap(), store.get("t", &[7]).unwrap()), (None, Some(vec![7; 100])));
    }

    #[test]
    fn both_stores_answer_alike() {
        let place = tempfile::tempdir().unwrap();
        let stores: [Box<dyn Store>; 2] =
            [Box::new(open_at(&place.path().join("cache")).0), Box::<crate::store::memory::MemoryStore>::default()];
        for store in stores {
            store.put("t", b"b", b"2").unwrap();
            store.put("t", b"a", b"1").unwrap();
            store.put("u", b"a", b"other").unwrap();
            store.remove("t", b"nothing").unwrap();
            assert_eq!(all(&*store), [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
            assert_eq!(store.get("u", b"b").unwrap(), None);
            store.flush().unwrap();
        }
    }

    #[test]
    fn a_half_made_snapshot_does_not_keep_it_from_opening() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        filled(&folder);
        fs::write(folder.join("snap.0000000000000040.generating"), b"half").unwrap();
        let (store, warning) = open_at(&folder);
        assert_eq!((warning, all(&store).len()), (None, 200));
    }

    #[test]
    fn garbage_is_set_aside_and_told_and_it_starts_empty() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        for round in 1..=4 {
            filled(&folder);
            fs::write(folder.join("conf"), b"\xff\x00garbage").unwrap();
            fs::write(folder.join("db"), vec![0xa5; 600_000]).unwrap();
            let (store, warning) = open_at(&folder);
            let warning = warning.unwrap();
            let aside = place.path().join(format!("cache.broken-{round}"));
            assert!(warning.ends_with(&format!("it was set aside as {}", aside.display())), "{warning}");
            assert!(aside.join("db").is_file() && all(&store).is_empty());
            drop(store);
            fs::remove_dir_all(&folder).unwrap();
        }
        let left = fs::read_dir(place.path()).unwrap().count();
        assert_eq!(left, KEPT_BROKEN, "only the newest broken ones are kept");
    }

    #[test]
    fn a_file_where_the_folder_should_be_is_set_aside() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        fs::write(&folder, b"not a folder").unwrap();
        let (store, warning) = open_at(&folder);
        assert!(warning.is_some() && all(&store).is_empty());
    }

    #[test]
    fn any_broken_piece_of_its_file_is_survived() {
        let place = tempfile::tempdir().unwrap();
        let original = place.path().join("original");
        filled(&original);
        let bytes = fs::read(original.join("db")).unwrap();
        let conf = fs::read(original.join("conf")).unwrap();
        for (number, at) in (0..40_000.min(bytes.len())).step_by(4_001).enumerate() {
            let folder = place.path().join(format!("cache-{number}"));
            fs::create_dir(&folder).unwrap();
            let mut broken = bytes.clone();
            broken.iter_mut().skip(at).take(64).for_each(|byte| *byte ^= 0x5a);
            fs::write(folder.join("db"), &broken).unwrap();
            fs::write(folder.join("conf"), &conf).unwrap();
            let (store, _) = open_at(&folder);
            store.put("t", b"new", b"value").unwrap();
            store.flush().unwrap();
            assert_eq!(store.get("t", b"new").unwrap(), Some(b"value".to_vec()));
        }
    }

    #[test]
    fn a_second_process_is_told_that_it_is_in_use() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("cache");
        let (_store, _) = open_at(&folder);
        assert!(matches!(SledStore::open(&folder), Err(StoreError::Io(_))));
        assert!(folder.join("db").is_file(), "and nothing is set aside");
    }
}
