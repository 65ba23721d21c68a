//! What an assignment's two packages mean on this host: names bound, owners decided, contents known by digest, and already
//! allowed by the namespace. Made once per pair of packages; plan, drift and health read it and ask nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use kedge_model::wire::Digest;
use serde::{Deserialize, Serialize};

/// Everything that should be true of the host. Order within a list is the order of applying.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Goal {
    /// The namespace's user, made if it isn't there. None with `--root`.
    pub user: Option<String>,
    /// The HostNamespace's name: whose that user is. None with `--root`, and in what older agents wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub folders: Vec<FolderGoal>,
    /// Of the platform and of the workload, also the slice and the units' drop-ins.
    pub files: Vec<FileGoal>,
    pub artifacts: Vec<ArtifactGoal>,
    pub debs: Vec<DebGoal>,
    pub units: Vec<UnitGoal>,
    /// Units that the workload names or brings a file for, and that nobody allowed by name: what systemd reads for them must be the
    /// workload's own. A template stands here as one of its instances.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub own_units: BTreeSet<String>,
    /// Folders that systemd makes for its units: none of them may be somebody else's.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub claimed: BTreeSet<String>,
    pub health: Vec<Check>,
    pub bounds: Bounds,
    /// Bytes that the namespace's folders may hold.
    pub disk: Option<u64>,
    /// By which rules of the host's policy it was made.
    #[serde(default = "Judged::before")]
    pub judged: Judged,
    /// Objects of the API server. A host has none, and a cluster has nothing else.
    pub objects: Vec<ObjectGoal>,
}

/// The rules that a host's policy had when a goal was made: after an upgrade that tightens them what runs is judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Judged(u32);

/// Raised whenever the policy refuses or forces more.
const RULES: u32 = 3;

impl Judged {
    /// Goals of agents that didn't write it.
    fn before() -> Judged {
        Judged(0)
    }

    pub fn is_current(self) -> bool {
        self == Judged::default()
    }
}

impl Default for Judged {
    fn default() -> Judged {
        Judged(RULES)
    }
}

/// An object of the API server, shared by the goal, its steps and the way back: a cluster has thousands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectGoal(Arc<ObjectTerms>);

/// Which object, and how it is applied. Its content is an object of the store: JSON, with names bound and our labels set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTerms {
    pub id: ObjectId,
    pub content: Digest,
    pub part: Part,
    pub stage: Stage,
    /// The user that applies and removes it, as the API server calls it; none: the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// `conflicts: take`: fields that somebody else manages become ours.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub take: bool,
    /// `kedge.dev/prune: never`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// `kedge.dev/recreate: "true"`: deleted and made again where a field can't be changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recreate: bool,
    /// The object's own word, or the assignment's.
    #[serde(default)]
    pub drift: OnDrift,
}

/// Which object it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectId {
    /// Empty: the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// As it stands in addresses: `deployments`.
    pub plural: String,
    /// None: it belongs to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub name: String,
}

/// When an object is applied: what others need comes first. Removal goes the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    Namespaces,
    /// CustomResourceDefinitions, until they are established.
    Definitions,
    /// Accounts, roles, quotas, configuration, secrets, claims, classes.
    Configuration,
    Rest,
    /// Webhooks and API services: they can stop everything that comes after them.
    Webhooks,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolderGoal {
    pub path: String,
    pub owner: Owner,
    pub mode: u32,
}

/// A file of which the content is an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileGoal {
    pub path: String,
    pub content: Digest,
    pub size: u64,
    pub owner: Owner,
    pub mode: u32,
    pub part: Part,
}

/// Which package a file came from: the platform's are applied first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Part {
    Platform,
    Workload,
}

/// A symlink at `path` to the object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArtifactGoal {
    pub path: String,
    pub content: Digest,
    pub size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DebGoal {
    pub name: String,
    pub version: String,
    /// An object that holds the `.deb`; none: from the host's apt sources.
    pub file: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitGoal {
    pub name: String,
    pub enabled: bool,
    pub running: bool,
    /// Paths of files and artifacts and names of debs whose change restarts it; the platform configuration's paths too, where the
    /// workload asked for them.
    pub restart_on: Vec<String>,
}

/// A file's owner by names; ids are looked up when it is written. Empty with `--root`: whoever runs the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    pub user: String,
    pub group: String,
}

/// One health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub probe: Probe,
    pub timeout_seconds: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Probe {
    Unit(String),
    Http(String),
    Tcp(String),
    Exec {
        command: Vec<String>,
        /// The namespace's user: a check is the tenant's program.
        user: Option<String>,
        /// The namespace's, whose limits are for its checks too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slice: Option<String>,
    },
    Hub,
    /// Objects of the API server, each ready as its kind means it.
    Objects(Vec<ObjectId>),
}

/// The Delivery's bounds, with what the HostWorkload made more careful.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    pub timeout_seconds: u64,
    pub soak_seconds: u64,
    /// `rollback: never`: a failed change stays as it is, and debs may change without a way back.
    pub no_rollback: bool,
    pub drift: OnDrift,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnDrift {
    #[default]
    Repair,
    Report,
    Ignore,
}

/// What only this host knows; late binding fills it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    pub cluster_name: String,
    pub labels: BTreeMap<String, String>,
    /// As Debian calls it: `amd64`, `arm64`, `armhf`. Empty: not one host but a cluster of them.
    pub arch: String,
    /// Of the interface with the default route; none while there is no network.
    pub ip: Option<String>,
}

impl Goal {
    /// The slice that it runs in, by its file's name: one namespace's alone.
    pub fn slice(&self) -> Option<&str> {
        let names = self.files.iter().filter_map(|file| file.path.strip_prefix("/etc/systemd/system/"));
        names.into_iter().find(|name| name.starts_with("kedge-") && name.ends_with(".slice"))
    }
}

impl From<ObjectTerms> for ObjectGoal {
    fn from(terms: ObjectTerms) -> ObjectGoal {
        ObjectGoal(Arc::new(terms))
    }
}

impl Deref for ObjectGoal {
    type Target = ObjectTerms;

    fn deref(&self) -> &ObjectTerms {
        &self.0
    }
}

#[cfg(test)]
impl ObjectGoal {
    /// The same one on other terms.
    pub fn with(&self, change: impl FnOnce(&mut ObjectTerms)) -> ObjectGoal {
        let mut terms = ObjectTerms::clone(self);
        change(&mut terms);
        terms.into()
    }
}

impl ObjectId {
    /// Whether both name one object; it may be asked for in several versions.
    pub fn is_same(&self, other: &ObjectId) -> bool {
        (&self.group, &self.kind, &self.namespace, &self.name)
            == (&other.group, &other.kind, &other.namespace, &other.name)
    }
}

/// As people write it: `Deployment shop/web`.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

impl Owner {
    pub fn root() -> Owner {
        Owner { user: "root".to_owned(), group: "root".to_owned() }
    }
}
