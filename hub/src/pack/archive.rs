//! The bytes of a package: a tar whose every byte follows from names and contents, compressed with zstd. The same
//! content gives the same digest on every hub.
//!
//! The library's version is part of that promise: another zstd may compress to other bytes, and every package would be
//! delivered again as something new. `Cargo.lock` pins it (zstd 1.5.7) and a test holds a digest.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

/// Files by their path in the package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    files: BTreeMap<String, File>,
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("`{}` can't be a path in a package", .0.escape_debug())]
    Path(String),
    #[error("`{}` is in the package twice", .0.escape_debug())]
    Twice(String),
    #[error("the package has more than {MAX_FILES} files")]
    Files,
    #[error("the package has more than {} MiB; what is big belongs into an artifact with a `url`", MAX_BYTES >> 20)]
    Bytes,
    #[error("the package can't be compressed")]
    Compress(#[source] io::Error),
    #[error("the archive can't be read")]
    Unreadable(#[source] io::Error),
    #[error("`{}` isn't a plain file", .0.escape_debug())]
    NotAFile(String),
}

/// Far above a folder of manifests; a bound for an agent's disk and for our memory.
pub const MAX_FILES: usize = 10_000;
/// Before compression. Big files are blobs of their own.
pub const MAX_BYTES: u64 = 64 << 20;
/// Longer than any path that a file system takes in one piece below an agent's folder.
const MAX_PATH: usize = 1024;
/// Small text compresses hardly better above it, and ten thousand packages are still made in seconds.
const LEVEL: i32 = 6;

impl Contents {
    pub fn add(&mut self, path: &str, bytes: Vec<u8>, executable: bool) -> Result<(), ArchiveError> {
        if !is_plain(path) {
            return Err(ArchiveError::Path(path.chars().take(200).collect()));
        }
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(ArchiveError::Bytes);
        }
        match self.files.insert(path.to_owned(), File { bytes, executable }) {
            Some(_) => Err(ArchiveError::Twice(path.to_owned())),
            None if self.files.len() > MAX_FILES => Err(ArchiveError::Files),
            None => Ok(()),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn files(&self) -> &BTreeMap<String, File> {
        &self.files
    }

    /// The package's bytes.
    pub fn archive(&self) -> Result<Vec<u8>, ArchiveError> {
        let tar = self.tar().map_err(ArchiveError::Compress)?;
        zstd::bulk::compress(&tar, LEVEL).map_err(ArchiveError::Compress)
    }

    /// What `tar` made; from somebody who isn't trusted. Nothing but whole plain files.
    pub fn of_tar(bytes: &[u8]) -> Result<Contents, ArchiveError> {
        let mut contents = Contents::default();
        for entry in tar::Archive::new(bytes).entries().map_err(ArchiveError::Unreadable)? {
            let mut entry = entry.map_err(ArchiveError::Unreadable)?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if entry.header().entry_type() != tar::EntryType::Regular || path.contains('\u{fffd}') {
                return Err(ArchiveError::NotAFile(path.chars().take(200).collect()));
            }
            let executable = entry.header().mode().map_err(ArchiveError::Unreadable)? & 0o100 != 0;
            let mut content = Vec::new();
            entry.read_to_end(&mut content).map_err(ArchiveError::Unreadable)?;
            if content.len() as u64 != entry.size() {
                return Err(ArchiveError::Unreadable(io::ErrorKind::UnexpectedEof.into()));
            }
            contents.add(&path, content, executable)?;
        }
        Ok(contents)
    }

    pub fn tar(&self) -> io::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, file) in &self.files {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(file.bytes.len() as u64);
            header.set_mode(if file.executable { 0o755 } else { 0o644 });
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(0);
            builder.append_data(&mut header, path, file.bytes.as_slice())?;
        }
        builder.into_inner()
    }
}

/// A relative path that means the same on every file system and leaves nowhere.
pub fn is_plain(path: &str) -> bool {
    path.len() <= MAX_PATH
        && !path.contains(|c: char| c.is_control() || c == '\\')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kedge_model::wire::Digest;
    use proptest::prelude::*;

    fn contents(files: &[(&str, &[u8], bool)]) -> Contents {
        let mut contents = Contents::default();
        for (path, bytes, executable) in files {
            contents.add(path, bytes.to_vec(), *executable).unwrap();
        }
        contents
    }

    #[test]
    fn the_digest_of_a_known_package_never_changes() {
        let long = format!("manifests/{}/{}.yaml", "folder".repeat(20), "name".repeat(40));
        let package = contents(&[
            ("namespace.yaml", b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: dev\n", false),
            ("files/greet.sh", b"#!/bin/sh\nhello\n", true),
            (&long, b"x: 1\n", false),
        ]);
        assert_eq!(
            Digest::of(&package.tar().unwrap()).to_string(),
            "sha256:99047021fb05f5ad2539464e6cbe15074d94efd0ba05dceb1ce612dda3399424"
        );
        assert_eq!(
            Digest::of(&package.archive().unwrap()).to_string(),
            "sha256:d9adff5f7fe7432256f0844d15adfe7833709c24f93e39052b4f0b11f1f5da92"
        );
    }

    #[test]
    fn an_archive_is_read_back_with_plain_owners_times_and_modes() {
        let package = contents(&[("b/run", b"1", true), ("a", b"2", false)]);
        let tar = zstd::bulk::decompress(&package.archive().unwrap(), 1 << 20).unwrap();
        let mut seen = Vec::new();
        for entry in tar::Archive::new(tar.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
            seen.push((entry.path().unwrap().display().to_string(), header.mode().unwrap()));
        }
        assert_eq!(seen, [("a".to_owned(), 0o644), ("b/run".to_owned(), 0o755)]);
    }

    #[test]
    fn a_tar_of_ours_is_read_back_and_one_with_anything_but_plain_files_is_refused() {
        let long = format!("{}/{}", "folder".repeat(40), "name".repeat(60));
        let ours = contents(&[("b/run", b"1", true), ("a", b"", false), (&long, b"x", false)]);
        let tar = ours.tar().unwrap();
        assert_eq!(Contents::of_tar(&tar).unwrap(), ours);
        assert!(Contents::of_tar(&tar[..tar.len() - 1600]).is_err(), "half of it");
        assert!(Contents::of_tar(&[7; 1024]).is_err(), "garbage");
        for kind in [
            tar::EntryType::Symlink,
            tar::EntryType::Link,
            tar::EntryType::Directory,
            tar::EntryType::Fifo,
            tar::EntryType::Char,
        ] {
            assert!(matches!(Contents::of_tar(&hostile("a", kind)), Err(ArchiveError::NotAFile(_))), "{kind:?}");
        }
        assert!(Contents::of_tar(&hostile("a", tar::EntryType::GNUSparse)).is_err());
        for path in ["../a", "/etc/a", "a/../b", "a//b"] {
            let tar = hostile(path, tar::EntryType::Regular);
            assert!(matches!(Contents::of_tar(&tar), Err(ArchiveError::Path(_))), "{path}");
        }
    }

    /// What the library itself wouldn't write.
    fn hostile(path: &str, kind: tar::EntryType) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_link_name("/etc/passwd").unwrap();
        header.set_size(0);
        header.set_mode(0o644);
        header.set_cksum();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header, &b""[..]).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn hostile_paths_are_refused_by_name() {
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\nb", "a\\b", "a\0"] {
            let error = Contents::default().add(path, Vec::new(), false).unwrap_err();
            assert!(matches!(error, ArchiveError::Path(_)), "{path:?}");
        }
        let mut twice = contents(&[("a", b"", false)]);
        assert!(matches!(twice.add("a", Vec::new(), false), Err(ArchiveError::Twice(_))));
        assert!(matches!(twice.add("b", vec![0; MAX_BYTES as usize + 1], false), Err(ArchiveError::Bytes)));
    }

    proptest! {
        #[test]
        fn the_same_content_in_any_order_has_the_same_digest(
            files in proptest::collection::btree_map("[a-z]{1,8}(/[a-z]{1,120}){0,3}", (any::<Vec<u8>>(), any::<bool>()), 1..12),
            seed in any::<u64>(),
        ) {
            let mut shuffled: Vec<_> = files.iter().collect();
            shuffled.sort_by_key(|(path, _)| Digest::of(format!("{seed}{path}").as_bytes()));
            let make = |order: &[(&String, &(Vec<u8>, bool))]| {
                let mut contents = Contents::default();
                for (path, (bytes, executable)) in order {
                    contents.add(path, bytes.clone(), *executable).unwrap();
                }
                Digest::of(&contents.archive().unwrap())
            };
            let sorted: Vec<_> = files.iter().collect();
            prop_assert_eq!(make(&sorted), make(&shuffled));
        }

        #[test]
        fn no_path_panics_or_escapes(path in any::<String>()) {
            let mut contents = Contents::default();
            if contents.add(&path, vec![1], false).is_ok() {
                prop_assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."));
                prop_assert!(contents.archive().is_ok());
            }
        }
    }
}
