//! The steps of a transaction, as data: each says how something should be, so that doing it twice is doing it once. The way back is
//! made of the same steps. Plan makes them, the journal keeps them, the host applier executes them without deciding anything.

use kedge_model::wire::Digest;
use serde::{Deserialize, Serialize};

use crate::goal::{ObjectGoal, Owner};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "do")]
pub enum Step {
    /// A system user without a home and a shell. One that is there is marked as the namespace's.
    AddUser {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
    },
    RemoveUser {
        name: String,
    },
    /// Parents that are missing belong to root, 0755.
    MakeFolder {
        path: String,
        owner: Owner,
        mode: u32,
    },
    /// Only an empty one; one that still holds something stays.
    RemoveFolder {
        path: String,
    },
    /// Atomic: a new file beside it, synced, with owner and mode, renamed over it.
    PutFile {
        path: String,
        content: Digest,
        owner: Owner,
        mode: u32,
    },
    /// A symlink, atomically switched.
    PutLink {
        path: String,
        target: String,
        owner: Owner,
    },
    /// A file or a symlink.
    RemovePath {
        path: String,
    },
    Debs(DebsStep),
    /// `systemctl daemon-reload`.
    ReloadUnits,
    EnableUnit {
        name: String,
    },
    DisableUnit {
        name: String,
    },
    StartUnit {
        name: String,
    },
    StopUnit {
        name: String,
    },
    RestartUnit {
        name: String,
    },
    /// Server-side apply of all of them, beside each other; definitions are waited for.
    PutObjects {
        objects: Vec<ObjectGoal>,
    },
    /// Deletes all of them, beside each other, and waits until they are gone. What holds foreign objects stays.
    RemoveObjects {
        objects: Vec<ObjectGoal>,
    },
}

/// One dpkg transaction from local archives: no network is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DebsStep {
    pub install: Vec<DebInstall>,
    pub remove: Vec<DebRemove>,
    /// Names that end up held against upgrades, and those that don't any more.
    pub hold: Vec<String>,
    pub unhold: Vec<String>,
    /// Configuration files of the debs as they were: restored, or removed if they weren't there. Only on the way back.
    pub conffiles: Vec<ConffileBefore>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DebInstall {
    pub name: String,
    pub architecture: String,
    pub version: String,
    /// An object that holds the `.deb`.
    pub archive: Digest,
    /// Came as a dependency: marked so in apt.
    pub auto: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DebRemove {
    pub name: String,
    /// With its configuration files: it wasn't there before.
    pub purge: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConffileBefore {
    pub path: String,
    /// None: it wasn't there.
    pub was: Option<FileBefore>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileBefore {
    pub content: Digest,
    pub owner: Owner,
    pub mode: u32,
}
