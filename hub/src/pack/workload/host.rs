//! A HostWorkload and the files it names. The package holds `host-workload.yaml`, the files below `files/` under their
//! path in the folder, and `blobs.json` for those that are blobs of their own.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::{ArtifactSource, Deb, HostWorkload};
use kedge_model::wire::{BlobRef, Digest};
use kedge_model::{Options, Problem, Spec, decode};

use super::descriptor::{self, Versions};
use super::kustomization::{self, Kustomization};
use super::{Download, Made, Place};
use crate::pack::Blobs;
use crate::pack::fault::Fault;
use crate::pack::objects::Item;
use crate::pack::platform::in_folder;
use crate::pack::reconciler::text;

/// The document, at the package's root.
pub const DOCUMENT: &str = "host-workload.yaml";
/// Files of the manifests folder.
pub const FOLDER: &str = "files";
/// Path below `files/` → blob, for what isn't in the archive.
pub const BLOBS: &str = "blobs.json";

/// What is larger is a blob of its own: it is fetched by ranges, and once for all versions that share it.
pub const INLINE: u64 = 1 << 20;
/// Git objects are unpacked whole; what is larger needs a `url`.
const MAX_GIT_FILE: u64 = 256 << 20;
const MAX_YAML: u64 = decode::MAX_FILE_BYTES as u64;
/// A model or two, not a catalogue.
const MAX_DOWNLOADS: usize = 100;

pub(in crate::pack) fn read(place: &Place<'_>, blobs: &Blobs) -> Result<Made, Fault> {
    let (mut made, mut versions) = (Made::default(), Versions::default());
    let mut found: Vec<(String, HostWorkload, kedge_model::Origin)> = Vec::new();
    for (path, item) in manifests(place)? {
        let origin = in_folder(place.origin, &path);
        let bytes = place.objects.read(item.id, &path, MAX_YAML)?;
        // Other YAML of the folder may be content of `files`.
        let Ok(documents) = descriptor::documents(&bytes, &origin) else {
            if mentions_workload(&bytes) {
                descriptor::documents(&bytes, &origin)?;
            }
            continue;
        };
        for document in documents {
            if versions.read(&document.node) {
                continue;
            }
            if text(&document.node, &["kind"]) == Some("HostWorkload") {
                versions.read_host(&document.node);
                let workload = decoded(&bytes, &origin)?;
                found.push((document.text.trim_start_matches("---").trim_start().to_owned(), workload, origin.clone()));
            }
        }
    }
    let (Some((document, workload, origin)), true) = (found.pop(), found.is_empty()) else {
        let (code, message) = match found.is_empty() {
            true => ("NothingToDeliver", "there is no HostWorkload in the folder"),
            false => ("TooManyWorkloads", "the folder holds several HostWorkloads"),
        };
        return Err(Fault::of(
            Problem::error(code, message)
                .at(place.origin.clone())
                .hint("a Delivery with `to: host` names a folder with one HostWorkload"),
        ));
    };
    made.version = versions.best();
    made.contents.add(DOCUMENT, document.into_bytes(), false)?;
    add_files(place, &workload, &origin, blobs, &mut made)?;
    Ok(made)
}

/// YAML files at the folder's top, or those that its kustomization lists.
fn manifests(place: &Place<'_>) -> Result<Vec<(String, Item)>, Fault> {
    let items = place.objects.list(place.folder, place.path)?;
    for name in kustomization::NAMES {
        let Some(item) = items.iter().find(|item| item.name == name && item.kind.is_file()) else { continue };
        let file = in_folder(place.origin, name);
        let bytes = place.objects.read(item.id, name, MAX_YAML)?;
        let Kustomization::Resources(paths) = kustomization::read(&bytes, &file)? else {
            return Err(Fault::of(
                Problem::error("NotForHosts", "a HostWorkload can't be changed by kustomize")
                    .at(file)
                    .hint("let the kustomization only list resources, or delete it"),
            ));
        };
        return paths.into_iter().map(|path| Ok((path.clone(), regular(place, &path, &file)?))).collect();
    }
    let is_yaml = |item: &Item| item.name.ends_with(".yaml") || item.name.ends_with(".yml");
    let chosen = items.into_iter().filter(|item| is_yaml(item) && !item.name.starts_with('.'));
    chosen.map(|item| Ok((item.name.clone(), checked(item, place)?))).collect()
}

fn decoded(bytes: &[u8], origin: &kedge_model::Origin) -> Result<HostWorkload, Fault> {
    let decoded = decode::objects(bytes, origin, &Options::default());
    let errors: Vec<Problem> = decoded.problems.into_iter().filter(Problem::is_error).collect();
    if !errors.is_empty() {
        return Err(Fault::Quarantine(errors));
    }
    let workload = decoded.objects.into_iter().find_map(|object| match object.spec {
        Spec::HostWorkload(workload) => Some(workload),
        _ => None,
    });
    workload.ok_or_else(|| {
        Fault::of(Problem::error("NotAHostWorkload", "the HostWorkload can't be read").at(origin.clone()))
    })
}

fn mentions_workload(bytes: &[u8]) -> bool {
    String::from_utf8_lossy(bytes).lines().any(|line| line.trim_end() == "kind: HostWorkload")
}

fn add_files(
    place: &Place<'_>,
    workload: &HostWorkload,
    origin: &kedge_model::Origin,
    blobs: &Blobs,
    made: &mut Made,
) -> Result<(), Fault> {
    let debs = workload.debs.iter().filter_map(|deb| match deb {
        Deb::File(path) => Some((path, None)),
        Deb::Apt { .. } => None,
    });
    let files = workload.files.iter().map(|file| (&file.file, None));
    let artifacts = workload.artifacts.iter().filter_map(|artifact| match &artifact.source {
        ArtifactSource::File(path) => Some((path, Some(artifact.sha256.as_str()))),
        ArtifactSource::Url(_) => None,
    });
    let mut seen = BTreeSet::new();
    let mut big: BTreeMap<String, BlobRef> = BTreeMap::new();
    for (path, sha256) in debs.chain(files).chain(artifacts) {
        let path = plain(path);
        let is_new = seen.insert(path.clone());
        if !is_new && sha256.is_none() {
            continue;
        }
        let item = regular(place, &path, origin)?;
        let bytes = place.objects.read(item.id, &path, MAX_GIT_FILE)?;
        if let Some(expected) = sha256
            && Digest::of(&bytes).hex() != expected
        {
            let message = format!("`{path}` has the digest {}, not {expected}", Digest::of(&bytes).hex());
            return Err(Fault::of(
                Problem::error("DigestMismatch", message).at(origin.clone()).hint("write what `sha256sum` prints"),
            ));
        }
        if !is_new {
            continue;
        }
        if bytes.len() as u64 > INLINE {
            big.insert(path, blobs.put(&bytes)?);
        } else {
            let executable = item.kind == crate::pack::objects::ItemKind::Executable;
            made.contents.add(&format!("{FOLDER}/{path}"), bytes, executable)?;
        }
    }
    for artifact in &workload.artifacts {
        let ArtifactSource::Url(url) = &artifact.source else { continue };
        let digest =
            format!("sha256:{}", artifact.sha256).parse().map_err(|error: kedge_model::wire::DigestError| {
                Fault::of(Problem::error("InvalidValue", error.to_string()).at(origin.clone()))
            })?;
        made.downloads.push(Download { url: url.clone(), digest, origin: origin.clone() });
    }
    made.downloads.sort_by_key(|download| download.digest);
    made.downloads.dedup_by_key(|download| download.digest);
    if made.downloads.len() > MAX_DOWNLOADS {
        let message = format!("the HostWorkload has more than {MAX_DOWNLOADS} artifacts with a `url`");
        return Err(Fault::of(Problem::error("PackageTooLarge", message).at(origin.clone())));
    }
    if !big.is_empty() {
        let index = serde_json::to_vec(&big).map_err(|error| {
            Fault::of(Problem::error("PathInvalid", format!("the big files can't be listed: {error}")))
        })?;
        made.contents.add(BLOBS, index, false)?;
        made.blobs = big.into_values().collect();
    }
    Ok(())
}

/// The file at a path of the folder, and no link.
fn regular(place: &Place<'_>, path: &str, named_in: &kedge_model::Origin) -> Result<Item, Fault> {
    match place.objects.item(place.folder, path)? {
        Some(item) => checked(item, place).map_err(|_| not_a_file(path, named_in)),
        None => Err(Fault::of(
            Problem::error("PathMissing", format!("`{}` does not exist in the folder", path.escape_debug()))
                .at(named_in.clone())
                .hint("add the file to the manifests folder, or fix the path"),
        )),
    }
}

fn checked(item: Item, place: &Place<'_>) -> Result<Item, Fault> {
    match item.kind.is_file() {
        true => Ok(item),
        false => Err(not_a_file(&item.name, place.origin)),
    }
}

fn not_a_file(path: &str, origin: &kedge_model::Origin) -> Fault {
    let message = format!("`{}` is not a regular file; links and submodules are never followed", path.escape_debug());
    Fault::of(Problem::error("NotAFile", message).at(origin.clone()).hint("put the file itself there"))
}

/// A path without `.` and doubled slashes. `..` was refused when it was read.
fn plain(path: &str) -> String {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/")
}
