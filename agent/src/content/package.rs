//! One package of an assignment: its files by path, as objects, and the documents in it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kedge_model::kinds::HostWorkload;
use kedge_model::wire::{BlobRef, PackageRef};
use kedge_model::{Object, Options, Origin, Problem, Source, Spec, decode};

use crate::archive::{ArchiveError, Listing};
use crate::objects::Objects;
use crate::record::Failure;
use crate::store::index::PackageIndex;

pub struct Package<'a> {
    objects: &'a Objects,
    /// `platform` or `workload`, for sentences.
    part: &'static str,
    reference: &'a PackageRef,
    listing: Listing,
}

/// As the hub calls them.
const DOCUMENT: &str = "host-workload.yaml";
const FOLDER: &str = "files";
const BLOBS: &str = "blobs.json";
/// A document, and a file that is bound or judged, is read whole.
pub const MAX_TEXT: u64 = 1 << 20;
const MAX_DOCUMENT: u64 = decode::MAX_FILE_BYTES as u64;

impl<'a> Package<'a> {
    pub fn open(
        reference: &'a PackageRef,
        part: &'static str,
        objects: &'a Objects,
        index: &PackageIndex,
    ) -> Result<Package<'a>, Failure> {
        let listing = index.listing(&reference.digest, objects).map_err(|error| match error {
            ArchiveError::Missing(source) => {
                Failure::passing("Network", format!("the {part} package isn't here yet: {source}"))
            }
            ArchiveError::Broken(_) if !objects.is_whole(&reference.digest) => {
                Failure::passing("Network", format!("the {part} package was damaged on the disk and is fetched again"))
            }
            ArchiveError::Broken(message) => {
                Failure::new("BadPackage", format!("the {part} package breaks a rule: {message}"))
            }
            ArchiveError::Disk(source) => disk(part, &source),
        })?;
        Ok(Package { objects, part, reference, listing })
    }

    /// Paths of all files below a folder, in order.
    pub fn below(&self, folder: &str) -> impl Iterator<Item = &str> {
        let inside = move |path: &&str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.listing.files.keys().map(String::as_str).filter(inside)
    }

    /// A file's text; none: there is no such file.
    pub fn text(&self, path: &str) -> Result<Option<String>, Failure> {
        self.text_within(path, MAX_DOCUMENT)
    }

    /// As [`Package::text`], for files that may have another size.
    pub fn text_within(&self, path: &str, limit: u64) -> Result<Option<String>, Failure> {
        let Some(listed) = self.listing.files.get(path) else { return Ok(None) };
        let bytes = self.objects.read_small(&listed.digest, limit).map_err(|error| {
            let message = format!("{path} of the {} package can't be read: {error}", self.part);
            Failure { passes: error.kind() == io::ErrorKind::InvalidData, ..Failure::new("BadPackage", message) }
        })?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Failure::new("BadPackage", format!("{path} of the {} package isn't UTF-8", self.part)))?;
        Ok(Some(text))
    }

    pub fn host_workload(&self) -> Result<HostWorkload, Failure> {
        let missing = || Failure::new("BadPackage", format!("the workload package has no {DOCUMENT}"));
        let text = self.text(DOCUMENT)?.ok_or_else(missing)?;
        let mut objects = self.decode(DOCUMENT, &text)?;
        match (objects.pop().map(|object| object.spec), objects.is_empty()) {
            (Some(Spec::HostWorkload(workload)), true) => Ok(workload),
            _ => Err(Failure::new("BadPackage", format!("{DOCUMENT} must hold one HostWorkload"))),
        }
    }

    /// The objects of a text of this package, or its first error with its line.
    pub fn decode(&self, file: &str, text: &str) -> Result<Vec<Object>, Failure> {
        let revision = Some(format!("sha1:{}", self.reference.commit));
        let source = Arc::new(Source { repo: self.reference.repo.clone(), revision });
        let origin = Origin { source, file: file.into(), line: 0, column: 0 };
        let decoded = decode::objects(text.as_bytes(), &origin, &Options::default());
        let errors: Vec<&Problem> = decoded.problems.iter().filter(|problem| problem.is_error()).collect();
        match errors.as_slice() {
            [] => Ok(decoded.objects),
            [first, rest @ ..] => {
                let place = first.origin.as_ref().map_or_else(|| file.to_owned(), ToString::to_string);
                let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
                Err(Failure::new("BadPackage", format!("{place}: {}{more}", first.message)))
            }
        }
    }

    /// A file of the manifests folder, in the archive or as a blob of its own.
    pub fn file(&self, path: &str) -> Result<BlobRef, Failure> {
        let plain: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let plain = plain.join("/");
        if let Some(listed) = self.listing.files.get(&format!("{FOLDER}/{plain}")) {
            return Ok(BlobRef { digest: listed.digest, size: listed.size });
        }
        let index: BTreeMap<String, BlobRef> = match self.text(BLOBS)? {
            Some(text) => serde_json::from_str(&text)
                .map_err(|error| Failure::new("BadPackage", format!("{BLOBS} can't be read: {error}")))?,
            None => BTreeMap::new(),
        };
        let missing = || Failure::new("BadPackage", format!("the workload package has no file `{plain}`"));
        self.fetched(index.get(&plain).ok_or_else(missing)?.clone())
    }

    /// A blob that the package's reference lists, fetched beforehand.
    pub fn fetched(&self, blob: BlobRef) -> Result<BlobRef, Failure> {
        if !self.reference.artifacts.contains(&blob) {
            let message = format!("{} isn't listed among the package's artifacts", blob.digest);
            return Err(Failure::new("BadPackage", message));
        }
        match self.objects.size(&blob.digest) {
            Ok(size) if size == blob.size => Ok(blob),
            Ok(size) => Err(Failure::new("BadPackage", format!("{} has {size} bytes, not {}", blob.digest, blob.size))),
            Err(_) => Err(Failure::passing("Network", format!("the artifact {} isn't here yet", blob.digest))),
        }
    }

    /// The listed blob of a digest.
    pub fn artifact(&self, digest: &kedge_model::wire::Digest) -> Result<BlobRef, Failure> {
        let listed = self.reference.artifacts.iter().find(|blob| blob.digest == *digest);
        let missing = || Failure::new("BadPackage", format!("{digest} isn't listed among the package's artifacts"));
        self.fetched(listed.ok_or_else(missing)?.clone())
    }
}

/// Objects that can't be written.
pub fn disk(what: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Failure::passing("DiskFull", format!("the {what} package can't be unpacked: {error}"))
        }
        _ => Failure::new("FileFailed", format!("the {what} package can't be unpacked: {error}")),
    }
}
