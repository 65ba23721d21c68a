//! What a plain host runs, and the namespace it runs in: the application team's HostWorkload and the platform team's
//! HostNamespace.

use std::time::Duration;

use super::{Drift, Rollback};

/// Debs, files, artifacts and units of a host, and how their health is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostWorkload {
    pub debs: Vec<Deb>,
    pub files: Vec<FileEntry>,
    pub artifacts: Vec<Artifact>,
    pub units: Vec<Unit>,
    pub health: Vec<HealthCheck>,
    /// This and the next three: none takes the Delivery's, which is also the bound.
    pub timeout: Option<Duration>,
    pub soak: Option<Duration>,
    pub rollback: Option<Rollback>,
    pub drift: Option<Drift>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deb {
    /// An exact version from the host's apt sources.
    Apt { name: String, version: String },
    /// A `.deb` of the manifests folder.
    File(String),
}

/// A file of the manifests folder and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    pub path: String,
    /// Inside the manifests folder.
    pub file: String,
    /// `user` or `user:group`; none: the namespace's user.
    pub owner: Option<String>,
    /// Permission bits.
    pub mode: u32,
    /// Whether late binding fills in what the host knows.
    pub template: bool,
}

/// Something big with a known content: a model, an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub path: String,
    pub source: ArtifactSource,
    /// 64 hexadecimal digits, lower case.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArtifactSource {
    /// Fetched by the hub.
    Url(String),
    /// Inside the manifests folder.
    File(String),
}

/// A systemd unit and the state it should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    pub enabled: bool,
    pub running: bool,
    /// Paths of files and artifacts, and names of debs, whose change restarts it.
    pub restart_on: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    pub probe: HealthProbe,
    pub timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HealthProbe {
    /// The unit is active.
    Unit(String),
    /// The URL answers with a status of success.
    Http(String),
    /// `host:port` accepts a connection.
    Tcp(String),
    /// The program ends with 0.
    Exec(Vec<String>),
    /// The hub can be reached: what was changed didn't cut the host off.
    Hub,
}

/// A tenant's place on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostNamespace {
    /// None: `kedge-<hash>` of the namespace's name.
    pub user: Option<String>,
    pub folders: Vec<Folder>,
    pub limits: Limits,
    pub allow: Allow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: String,
    /// Permission bits.
    pub mode: u32,
}

/// Limits of the namespace's systemd slice and of its folders; none is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Thousandths of a core.
    pub cpu: Option<u64>,
    /// Bytes.
    pub memory: Option<u64>,
    pub tasks: Option<u64>,
    /// Bytes.
    pub disk: Option<u64>,
}

/// What a HostWorkload may have beyond its own folders, units and user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Names, as the host's apt sources have them.
    pub debs: Vec<String>,
    /// Debs of the manifests folder, each by the digest of its file: what a maintainer script does, root does.
    pub deb_files: Vec<String>,
    pub paths: Vec<String>,
    pub units: Vec<String>,
}

impl HealthCheck {
    /// One question to something on the same host.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
}

impl FileEntry {
    pub const DEFAULT_MODE: u32 = 0o644;
}

impl Folder {
    pub const DEFAULT_MODE: u32 = 0o750;
}
