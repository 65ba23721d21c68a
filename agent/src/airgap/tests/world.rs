//! A hub that writes files, and a host below a folder.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use kedge_bundle::{Index, JoinAnswerFile, JoinRequestFile, Output, fingerprint};
use kedge_durable::{Disk, RealDisk};
use kedge_model::wire::{
    ClusterId, DesiredState, Digest, Entry, Envelope, Generation, JoinAnswer, Membership, Mode, PackageRef,
    Payload as _, Stream,
};

use crate::airgap::enrol::{self, Request};
use crate::airgap::import::{Brought, ImportError, Importer};
use crate::commands::sample;
use crate::identity::Identity;
use crate::link::fake::Authority;
use crate::link::fake::authority::{DAY, now};
use crate::paths::Paths;

pub struct World {
    pub hub: Authority,
    pub paths: Paths,
    pub folder: tempfile::TempDir,
}

pub fn stream() -> Stream {
    Stream::new("dev", "drone", "all")
}

pub fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

impl World {
    pub fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        World { hub: Authority::new(), paths: Paths::below(&folder.path().join("root")), folder }
    }

    /// One whose host has joined.
    pub fn joined() -> World {
        let world = World::new();
        sample::join(&world.paths, &world.hub, "https://127.0.0.1:1");
        world
    }

    pub fn identity(&self) -> Identity {
        Identity::read(&RealDisk, &self.paths).unwrap().unwrap()
    }

    pub fn request(&self) -> Request {
        enrol::request(&disk(), &self.paths, Some("drone-1"), false).unwrap()
    }

    /// What a hub answers to a request.
    pub fn answer(&self, hub: &Authority, request: &Envelope) -> Envelope {
        let asked = JoinRequestFile::open(request).unwrap();
        let cluster = asked.cluster();
        let answer = JoinAnswer {
            certificate: hub.certify(&asked.csr, (now().0 - DAY, now().0 + 90 * DAY)),
            key_sets: hub.chain.clone(),
            membership: hub.sign(&hub.membership(cluster, 1, &stream())),
            time: now(),
        };
        hub.sign(&JoinAnswerFile { hub: "https://hub:8443".to_owned(), cluster, answer })
    }

    /// A state whose one assignment has these two packages.
    pub fn state(&self, generation: u64, platform: &[u8], workload: &[u8]) -> DesiredState {
        let package = |bytes: &[u8]| PackageRef {
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            repo: "repo".to_owned(),
            commit: "commit".to_owned(),
            artifacts: Vec::new(),
        };
        let mut packages = sample::packages("1.0");
        (packages.platform, packages.workload) = (package(platform), package(workload));
        let mode = Mode::Apply(Box::new(packages));
        let entry = Entry { assignment: "web".to_owned(), mode, restart: 0, requires: Vec::new() };
        DesiredState {
            stream: stream(),
            generation: Generation(generation),
            created_at: now(),
            confirmed: 1,
            entries: vec![entry],
            removed: Vec::new(),
            unmanaged: Vec::new(),
            source: None,
            turns: false,
            requires: Vec::new(),
        }
    }

    pub fn index(&self) -> Index {
        let mut index = Index::new(fingerprint(&self.hub.keys).unwrap(), now());
        index.key_sets.clone_from(&self.hub.chain);
        index
    }

    pub fn membership(&self, cluster: ClusterId, sequence: u64, site: &str) -> Membership {
        Membership { site: Some(site.to_owned()), ..self.hub.membership(cluster, sequence, &stream()) }
    }

    /// The container's bytes, whose index the hub signs.
    pub fn seal(&self, index: &Index, blobs: &[&[u8]]) -> Vec<u8> {
        let envelope = self.hub.sign_bytes(Index::TYPE, serde_json::to_vec(index).unwrap()).to_json().unwrap();
        let mut bytes = kedge_bundle::MAGIC.to_vec();
        bytes.extend_from_slice(&(envelope.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&envelope);
        blobs.iter().for_each(|blob| bytes.extend_from_slice(blob));
        bytes
    }

    /// A bundle with one state and its packages.
    pub fn bundle(&self, state: &DesiredState, blobs: &[&[u8]]) -> Vec<u8> {
        let mut index = self.index();
        index.states.push(self.hub.sign(state));
        blobs.iter().for_each(|blob| index.add_blob(Digest::of(blob), blob.len() as u64));
        self.seal(&index, blobs)
    }

    pub fn write(&self, bytes: &[u8], split: Option<u64>) -> PathBuf {
        let path = self.folder.path().join("x.kedge");
        let mut output = Output::create(&path, split).unwrap();
        output.write_all(bytes).unwrap();
        output.finish().unwrap();
        path
    }

    pub fn import(&self, bytes: &[u8]) -> Result<Brought, ImportError> {
        self.import_with(bytes, None, 0)
    }

    pub fn import_with(&self, bytes: &[u8], split: Option<u64>, reserve: u64) -> Result<Brought, ImportError> {
        let path = self.write(bytes, split);
        let identity = self.identity();
        Importer { disk: disk(), paths: &self.paths, identity: &identity, reserve }.import(&path, |_| {})
    }
}
