//! Makes the file. First the database, then the keys: a key is in its folder before the database names it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{BackupError, CONFIG, DATABASE, FORMAT, KEY_FOLDERS, KEYS, MANIFEST, Manifest, Summary};
use crate::private;
use crate::store::dump::Table;
use crate::store::{Store, now};

/// Rows are collected into entries of this size: tar wants sizes first, memory wants bounds.
const ENTRY: usize = 8 << 20;
/// Fast, and rows of JSON shrink to a tenth.
const LEVEL: i32 = 3;

type Archive = tar::Builder<zstd::Encoder<'static, File>>;

/// Rows of one table on their way into the archive.
struct Entries<'a> {
    archive: &'a mut Archive,
    table: &'a Table,
    buffer: Vec<u8>,
    number: u32,
}

/// Writes a backup to `to`, which must not exist yet.
pub async fn backup(store: &Store, keys: &Path, config: Option<&Path>, to: &Path) -> Result<Summary, BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let half = half_name(to);
    let made = write(store, keys, config, &half).await;
    let kept = made.and_then(|summary| {
        let linked = fs::hard_link(&half, to).and_then(|()| private::sync_folder(parent(to)));
        linked.map_err(|source| BackupError::Write { path: to.to_owned(), source })?;
        Ok(summary)
    });
    // Whether or not the backup was made, the half file has no use any more.
    let _ = fs::remove_file(&half);
    kept
}

async fn write(store: &Store, keys: &Path, config: Option<&Path>, to: &Path) -> Result<Summary, BackupError> {
    let failed = |source| BackupError::Write { path: to.to_owned(), source };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(failed)?;
    let mut encoder = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
    encoder.include_checksum(true).map_err(failed)?;
    let mut archive = tar::Builder::new(encoder);
    let mut snapshot = store.snapshot().await?;
    let tables = snapshot.tables().await?;
    let manifest = Manifest {
        format: FORMAT,
        created_at: now(),
        hub_version: env!("CARGO_PKG_VERSION").to_owned(),
        migrations: snapshot.migrations().await?,
        tables: tables.clone(),
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(io::Error::other(error)))?;
    add(&mut archive, Path::new(MANIFEST), &text).map_err(failed)?;
    let mut summary = Summary { tables: tables.len(), ..Summary::default() };
    for table in &tables {
        let mut entries = Entries { archive: &mut archive, table, buffer: Vec::new(), number: 0 };
        let take = |line: String| {
            summary.rows += 1;
            entries.add(&line).map_err(failed)
        };
        snapshot.rows::<BackupError>(table, take).await?;
        entries.flush().map_err(failed)?;
    }
    drop(snapshot);
    summary.keys = add_keys(&mut archive, keys, to)?;
    if let Some(config) = config {
        let text = fs::read(config).map_err(|source| BackupError::Read { path: config.to_owned(), source })?;
        add(&mut archive, Path::new(CONFIG), &text).map_err(failed)?;
    }
    let file = archive.into_inner().and_then(zstd::Encoder::finish).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    Ok(summary)
}

impl Entries<'_> {
    fn add(&mut self, line: &str) -> io::Result<()> {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= ENTRY { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let path = Path::new(DATABASE).join(&self.table.name).join(format!("{:06}.jsonl", self.number));
        self.number += 1;
        add(self.archive, &path, &std::mem::take(&mut self.buffer))
    }
}

fn add_keys(archive: &mut Archive, keys: &Path, to: &Path) -> Result<usize, BackupError> {
    let mut count = 0;
    for folder in KEY_FOLDERS {
        let path = keys.join(folder);
        let unreadable = |source| BackupError::Read { path: path.clone(), source };
        let entries = fs::read_dir(&path).map_err(unreadable)?.collect::<Result<Vec<_>, _>>();
        let mut entries = entries.map_err(unreadable)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        // A hidden one is half written.
        entries.retain(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
        for entry in &entries {
            let bytes = fs::read(entry.path()).map_err(unreadable)?;
            let name = Path::new(KEYS).join(folder).join(entry.file_name());
            add(archive, &name, &bytes).map_err(|source| BackupError::Write { path: to.to_owned(), source })?;
        }
        count += entries.len();
    }
    Ok(count)
}

fn add(archive: &mut Archive, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    archive.append_data(&mut header, path, bytes)
}

fn half_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parent(path).join(format!(".{name}.{:016x}", rand::random::<u64>()))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
