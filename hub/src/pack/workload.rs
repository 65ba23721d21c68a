//! The workload package of an assignment, from the application's repository at a commit: what is read natively is here
//! and below, what needs `kustomize` or `helm` is in `program`. Called by the packer.

pub(super) mod descriptor;
mod folder;
pub(super) mod host;
pub mod installed;
pub(super) mod kubernetes;
pub(super) mod kustomization;
pub mod loads;
pub mod local;
mod process;
pub(super) mod program;
pub mod renderer;
pub mod request;
pub mod sandbox;

use gix::ObjectId;
use kedge_model::Origin;
use kedge_model::kinds::Destination;
use kedge_model::wire::{BlobRef, Digest};

use super::archive::Contents;
use super::fault::Fault;
use super::objects::Objects;

/// What the folder of a source turned out to be.
#[derive(Debug)]
pub(super) enum Read {
    Ready(Made),
    /// The folder needs a program: its repository at the commit, as files.
    Render(program::Job),
}

/// The content of a package, before it is an archive.
#[derive(Debug, Default)]
pub(super) struct Made {
    pub contents: Contents,
    /// Big files of the folder, stored already.
    pub blobs: Vec<BlobRef>,
    /// To be fetched.
    pub downloads: Vec<Download>,
    pub version: Option<String>,
}

/// An artifact with a `url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Download {
    pub url: String,
    pub digest: Digest,
    pub origin: Origin,
}

/// Where a workload is read.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub objects: &'a Objects,
    pub root: ObjectId,
    /// The folder, and its path from the root (empty: the root itself).
    pub folder: ObjectId,
    pub path: &'a str,
    pub origin: &'a Origin,
}

/// Reads a folder for a destination. Big files are put into the blobs on the way.
pub(super) fn read(place: &Place<'_>, to: Destination, blobs: &super::Blobs) -> Result<Read, Fault> {
    match to {
        Destination::Kubernetes => kubernetes::read(place),
        Destination::Host => host::read(place, blobs).map(Read::Ready),
    }
}
