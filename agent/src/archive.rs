//! Reads a package: a tar compressed with zstd, whose every rule (docs/wire.md, "What is in a package") is checked while its files
//! become objects, piece by piece. Content calls it; nothing is ever unpacked under a name that the package chose.

use std::collections::BTreeMap;
use std::io::{self, Read};

use kedge_model::wire::Digest;
use serde::{Deserialize, Serialize};
use tar::{EntryType, Header};

use crate::objects::{Batch, Objects};

/// What a package holds, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    pub files: BTreeMap<String, Listed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub digest: Digest,
    pub size: u64,
    pub executable: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The package breaks a rule: another try gives the same.
    #[error("{0}")]
    Broken(String),
    #[error("it isn't here yet")]
    Missing(#[source] io::Error),
    /// Our own disk.
    #[error("its files can't be kept")]
    Disk(#[source] io::Error),
}

/// The writer's own limits (hub/src/pack/archive.rs).
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 20;
const MAX_PATH: usize = 1024;
/// A header, its padding, and the same for a long name with that name.
const MAX_FRAME: u64 = 4 * 512 + MAX_PATH as u64;
/// 8 MiB: four times what the hub's level uses, a third of what the agent may take at its peak.
const WINDOW_LOG: u32 = 23;
/// The hub puts no larger file into an archive.
const SMALL: u64 = 1 << 20;
const BLOCK: usize = 512;
const PIECE: usize = 32 * 1024;

/// All files of a package, as objects.
pub fn read(package: impl Read, objects: &Objects) -> Result<Listing, ArchiveError> {
    let mut decoder = zstd::stream::read::Decoder::new(package).map_err(unreadable)?;
    decoder.window_log_max(WINDOW_LOG).map_err(unreadable)?;
    // Whatever it says of itself, no more is unpacked than the rules allow.
    let mut tar = decoder.take(MAX_BYTES + MAX_FILES as u64 * MAX_FRAME);
    let (mut listing, mut batch) = (Listing::default(), objects.batch());
    let (mut bytes, mut last) = (0, None);
    while let Some((path, header)) = next(&mut tar)? {
        if last.as_deref().is_some_and(|last: &str| last.as_bytes() >= path.as_bytes()) {
            return Err(broken(format!("`{path}` is twice in it or not in order")));
        }
        let size = header.entry_size().map_err(unreadable)?;
        bytes += size.min(MAX_BYTES + 1);
        if bytes > MAX_BYTES {
            return Err(broken(format!("it has more than {} MiB", MAX_BYTES >> 20)));
        }
        if listing.files.len() >= MAX_FILES {
            return Err(broken(format!("it has more than {MAX_FILES} files")));
        }
        let digest = keep(&mut tar, size, objects, &mut batch)?;
        let executable = header.mode().map_err(unreadable)? == 0o755;
        listing.files.insert(path.clone(), Listed { digest, size, executable });
        last = Some(path);
    }
    batch.finish().map_err(ArchiveError::Disk)?;
    Ok(listing)
}

/// A file's content as an object. What was unpacked before is hashed and not written again.
fn keep(tar: &mut impl Read, size: u64, objects: &Objects, batch: &mut Batch<'_>) -> Result<Digest, ArchiveError> {
    if size <= SMALL {
        let mut bytes = Vec::new();
        copy(tar, size, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        return batch.put(&bytes).map_err(ArchiveError::Disk);
    }
    let mut writing = objects.begin().map_err(ArchiveError::Disk)?;
    copy(tar, size, |piece| writing.write(piece).map_err(ArchiveError::Disk))?;
    batch.end(writing).map_err(ArchiveError::Disk)
}

/// The next file's path and header; none at the end, which must be the end of everything.
fn next(tar: &mut impl Read) -> Result<Option<(String, Header)>, ArchiveError> {
    let Some(mut header) = header(tar)? else { return end(tar) };
    let mut long = None;
    if header.entry_type() == EntryType::GNULongName {
        let size = header.entry_size().map_err(unreadable)?;
        if size > MAX_PATH as u64 + 1 {
            return Err(broken(format!("a path in it has more than {MAX_PATH} bytes")));
        }
        let mut name = Vec::new();
        copy(tar, size, |piece| {
            name.extend_from_slice(piece);
            Ok(())
        })?;
        if name.last() == Some(&0) {
            name.pop();
        }
        long = Some(name);
        header = self::header(tar)?.ok_or_else(|| broken("a long path belongs to no file".to_owned()))?;
    }
    let name = long.unwrap_or_else(|| header.path_bytes().into_owned());
    let path = String::from_utf8(name).map_err(|_| broken("a path in it isn't UTF-8".to_owned()))?;
    if !is_plain(&path) {
        return Err(broken(format!("`{}` can't be a path in a package", shown(&path))));
    }
    if header.entry_type() != EntryType::Regular {
        return Err(broken(format!("`{path}` isn't a regular file")));
    }
    let numbers = [header.uid(), header.gid(), header.mtime()];
    if numbers.into_iter().any(|number| !matches!(number, Ok(0))) {
        return Err(broken(format!("`{path}` has an owner or a time, and both must be 0")));
    }
    if !matches!(header.mode(), Ok(0o644 | 0o755)) {
        return Err(broken(format!("`{path}` must have the mode 0644 or 0755")));
    }
    Ok(Some((path, header)))
}

/// One header with a right checksum; none for the block of zeros at the end.
fn header(tar: &mut impl Read) -> Result<Option<Header>, ArchiveError> {
    let mut header = Header::new_old();
    tar.read_exact(header.as_mut_bytes()).map_err(unreadable)?;
    let block = header.as_bytes();
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    // As if the checksum's own eight bytes were spaces.
    let sum = block.iter().enumerate().map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u32::from(*byte) });
    match header.cksum() {
        Ok(expected) if expected == sum.sum::<u32>() => Ok(Some(header)),
        _ => Err(broken("a header in it has a wrong checksum".to_owned())),
    }
}

/// A second block of zeros and nothing behind it.
fn end(tar: &mut impl Read) -> Result<Option<(String, Header)>, ArchiveError> {
    if header(tar)?.is_some() {
        return Err(broken("its end mark is missing".to_owned()));
    }
    match tar.read(&mut [0; 1]).map_err(unreadable)? {
        0 => Ok(None),
        _ => Err(broken("something follows its end".to_owned())),
    }
}

/// The content of an entry, and its padding to a whole block.
fn copy(
    tar: &mut impl Read,
    size: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let mut piece = vec![0; PIECE];
    let mut rest = size;
    while rest > 0 {
        let wanted = usize::try_from(rest).map_or(PIECE, |rest| rest.min(PIECE));
        let read = tar.read(&mut piece[..wanted]).map_err(unreadable)?;
        if read == 0 {
            return Err(broken("it ends in the middle of a file".to_owned()));
        }
        take(&piece[..read])?;
        rest -= read as u64;
    }
    let padding = (BLOCK - (size % BLOCK as u64) as usize) % BLOCK;
    tar.read_exact(&mut piece[..padding]).map_err(unreadable)
}

/// A relative path that means the same on every file system and leaves nowhere.
fn is_plain(path: &str) -> bool {
    path.len() <= MAX_PATH
        && !path.contains(|c: char| c.is_control() || c == '\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn shown(path: &str) -> String {
    path.chars().take(200).flat_map(char::escape_debug).collect()
}

fn broken(message: String) -> ArchiveError {
    ArchiveError::Broken(message)
}

/// What the decoder or the blob's bytes say.
fn unreadable(error: io::Error) -> ArchiveError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => broken("it ends too early".to_owned()),
        _ => broken(format!("it can't be read: {error}")),
    }
}

#[cfg(test)]
pub(crate) mod tests;
