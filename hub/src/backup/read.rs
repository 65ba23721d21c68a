//! Brings a hub back from its file, into places that are empty. The file is read once as a whole before anything is
//! written. The rows and the marks of the restore are one transaction; keys that an interrupted try has already written
//! are recognised.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{BackupError, CONFIG, DATABASE, FORMAT, KEY_FOLDERS, KEYS, LEAP, MANIFEST, Manifest, Summary};
use crate::private;
use crate::store::dump::Table;
use crate::store::{Store, Tx, meta, now};

/// What an entry of the archive is.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Manifest,
    /// Of this table.
    Rows(String),
    /// Folder and name.
    Key(PathBuf),
    Config,
}

/// Everything but the rows.
struct Small {
    manifest: Manifest,
    keys: BTreeMap<PathBuf, Vec<u8>>,
    config: Option<Vec<u8>>,
}

type Archive = tar::Archive<zstd::Decoder<'static, BufReader<File>>>;

/// A list of tables, a key, a configuration: a larger one is something else.
const MAX_SMALL: u64 = 4 << 20;
/// A row with a large state in it; lines beyond it are no rows of ours.
const MAX_LINE: u64 = 256 << 20;
/// A hub has a handful.
const MAX_KEYS: usize = 1000;

/// Restores the file `from`: rows into the database at `url`, keys into `keys`, and the configuration that was in force,
/// to be looked at, into `config`. Whatever is there already is never overwritten.
pub async fn restore(from: &Path, url: &str, keys: &Path, config: &Path) -> Result<Summary, BackupError> {
    let small = read_small(from)?;
    check_places(&small, keys, config)?;
    let store = Store::open_for_dump(url, &small.manifest.migrations).await?;
    let loaded = load(from, &store, &small, keys).await;
    store.close().await;
    let summary = loaded?;
    if let Some(text) = &small.config {
        private::write_new(config, text).map_err(|source| BackupError::Write { path: config.to_owned(), source })?;
    }
    // What a newer program adds to the tables.
    Store::open(url).await?.close().await;
    Ok(summary)
}

/// Reads the file to its end: one that is cut or changed fails here.
fn read_small(from: &Path) -> Result<Small, BackupError> {
    let failed = |error: io::Error| not_a_backup(from, error.to_string());
    let (mut manifest, mut keys, mut config) = (None, BTreeMap::new(), None);
    let mut archive = open(from)?;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        match part(&entry.path().map_err(failed)?) {
            Some(Part::Manifest) => {
                let bytes = read_limited(&mut entry).map_err(failed)?;
                manifest = Some(read_manifest(from, &bytes)?);
            }
            Some(Part::Key(path)) if keys.len() < MAX_KEYS => {
                keys.insert(path, read_limited(&mut entry).map_err(failed)?);
            }
            Some(Part::Config) => config = Some(read_limited(&mut entry).map_err(failed)?),
            Some(Part::Rows(_)) if manifest.is_some() => {
                io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
            }
            _ => return Err(not_a_backup(from, "something unknown is in it")),
        }
    }
    // What follows the archive's end holds the checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    let manifest = manifest.ok_or_else(|| not_a_backup(from, format!("it holds no {MANIFEST}")))?;
    Ok(Small { manifest, keys, config })
}

fn read_manifest(from: &Path, bytes: &[u8]) -> Result<Manifest, BackupError> {
    let value: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|error| not_a_backup(from, error.to_string()))?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => {}
        Some(format) => return Err(BackupError::Format(u32::try_from(format).unwrap_or(u32::MAX))),
        None => return Err(not_a_backup(from, "it has no format")),
    }
    serde_json::from_value(value).map_err(|error| not_a_backup(from, error.to_string()))
}

/// Nothing may be there that isn't in the backup.
fn check_places(small: &Small, keys: &Path, config: &Path) -> Result<(), BackupError> {
    if small.config.is_some() && config.exists() {
        return Err(BackupError::Exists(config.to_owned()));
    }
    for folder in KEY_FOLDERS {
        let unreadable = |source| BackupError::Read { path: keys.join(folder), source };
        let entries = match fs::read_dir(keys.join(folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(unreadable)?,
        };
        for entry in entries {
            let entry = entry.map_err(unreadable)?;
            let here = fs::read(entry.path()).map_err(unreadable)?;
            if small.keys.get(&Path::new(folder).join(entry.file_name())) != Some(&here) {
                return Err(BackupError::OtherKeys(keys.to_owned()));
            }
        }
    }
    Ok(())
}

async fn load(from: &Path, store: &Store, small: &Small, keys: &Path) -> Result<Summary, BackupError> {
    let mut tx = store.write().await?;
    let tables = tx.tables_for(&small.manifest.tables, store.backend()).await?;
    for table in &small.manifest.tables {
        let here = tables.iter().find(|here| here.name == table.name);
        if !here.is_some_and(|here| table.columns.iter().all(|column| here.columns.contains(column))) {
            return Err(not_a_backup(from, format!("this program's table `{}` is another one", table.name)));
        }
    }
    tx.clear_seeds().await?;
    let rows = load_rows(from, &mut tx, &small.manifest.tables).await?;
    mark(&mut tx).await?;
    write_keys(small, keys)?;
    tx.commit().await?;
    Ok(Summary { tables: small.manifest.tables.len(), rows, keys: small.keys.len() })
}

async fn load_rows(from: &Path, tx: &mut Tx, tables: &[Table]) -> Result<u64, BackupError> {
    let failed = |error: io::Error| not_a_backup(from, error.to_string());
    let mut rows = 0;
    for entry in open(from)?.entries().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(Part::Rows(name)) = part(&entry.path().map_err(failed)?) else { continue };
        let table = tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| not_a_backup(from, format!("its list lacks the table `{name}`")))?;
        let mut reader = BufReader::new(entry);
        let mut line = String::new();
        while reader.by_ref().take(MAX_LINE).read_line(&mut line).map_err(failed)? > 0 {
            tx.insert_row(table, line.trim_end()).await?;
            rows += 1;
            line.clear();
        }
    }
    Ok(rows)
}

/// The lost hub may have given numbers that the backup doesn't know of; from here on all are above them.
async fn mark(tx: &mut Tx) -> Result<(), BackupError> {
    let floor = tx.highest_number().await?.max(tx.floor().await?).saturating_add(LEAP);
    tx.set_meta(meta::FLOOR, &floor.to_string()).await?;
    tx.set_meta(meta::RESTORED_AT, &now().0.to_string()).await?;
    Ok(())
}

fn write_keys(small: &Small, keys: &Path) -> Result<(), BackupError> {
    for folder in [keys.to_owned()].into_iter().chain(KEY_FOLDERS.map(|folder| keys.join(folder))) {
        private::folder(&folder).map_err(|source| BackupError::Write { path: folder, source })?;
    }
    for (name, bytes) in &small.keys {
        let path = keys.join(name);
        match private::write_new(&path, bytes) {
            // The same bytes: it was compared before.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other.map_err(|source| BackupError::Write { path, source })?,
        }
    }
    Ok(())
}

fn open(from: &Path) -> Result<Archive, BackupError> {
    let failed = |source| BackupError::Read { path: from.to_owned(), source };
    let decoder = zstd::Decoder::new(File::open(from).map_err(failed)?).map_err(failed)?;
    Ok(tar::Archive::new(decoder))
}

/// Names that we write, and no others: a path in an archive is somebody's text.
fn part(path: &Path) -> Option<Part> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    let plain = |name: &str| {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !name.is_empty() && !name.starts_with('.') && name.chars().all(fine)
    };
    match parts.as_slice() {
        [name] if *name == MANIFEST => Some(Part::Manifest),
        [name] if *name == CONFIG => Some(Part::Config),
        [top, table, file] if *top == DATABASE && plain(table) && plain(file) => Some(Part::Rows((*table).to_owned())),
        [top, folder, name] if *top == KEYS && KEY_FOLDERS.contains(folder) && plain(name) => {
            Some(Part::Key(Path::new(folder).join(name)))
        }
        _ => None,
    }
}

fn read_limited(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_SMALL + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_SMALL {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "an entry is too large"));
    }
    Ok(bytes)
}

fn not_a_backup(path: &Path, why: impl Into<String>) -> BackupError {
    BackupError::NotABackup { path: path.to_owned(), why: why.into() }
}

#[cfg(test)]
mod names {
    use super::*;

    #[test]
    fn only_names_that_a_backup_has_are_taken() {
        assert_eq!(part(Path::new("keys/signing/ab.pk8")), Some(Part::Key(PathBuf::from("signing/ab.pk8"))));
        assert_eq!(part(Path::new("database/states/000000.jsonl")), Some(Part::Rows("states".to_owned())));
        for path in ["keys/../x/y", "keys/signing/..", "/etc/passwd", "keys/signing/a/b", "keys/other/a", "database/a"]
        {
            assert_eq!(part(Path::new(path)), None, "{path}");
        }
    }
}
