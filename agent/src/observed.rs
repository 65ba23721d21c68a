//! What is true of a host now, as far as a plan or a look needs it. The host applier fills it in; plan and drift compare.

use std::collections::BTreeMap;

use kedge_model::wire::Digest;
use serde::{Deserialize, Serialize};

use crate::goal::{ObjectGoal, ObjectId, Owner};

/// What to look at: everything that the goal or the inventory names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subjects {
    pub paths: std::collections::BTreeSet<String>,
    pub debs: std::collections::BTreeSet<String>,
    pub units: std::collections::BTreeSet<String>,
    /// Those of which it matters whose they are.
    pub own_units: std::collections::BTreeSet<String>,
    pub users: std::collections::BTreeSet<String>,
    pub objects: BTreeMap<ObjectId, ObjectGoal>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observed {
    pub paths: BTreeMap<String, PathState>,
    pub debs: BTreeMap<String, DebState>,
    pub units: BTreeMap<String, UnitState>,
    pub users: BTreeMap<String, UserState>,
    #[serde(skip)]
    pub objects: BTreeMap<ObjectId, ObjectState>,
}

/// What the host has by a user's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserState {
    pub account: Option<Account>,
    /// Whether there is a group of that name.
    pub has_group: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub uid: u32,
    /// What `useradd --comment` wrote: whose it is.
    pub comment: String,
}

/// An object of the API server, compared with what was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ObjectState {
    Absent,
    AsApplied,
    /// Which fields differ, and how, in a sentence: `spec.replicas is 5 instead of 2`.
    Differs(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PathState {
    Absent,
    File {
        content: Digest,
        size: u64,
        owner: Owner,
        mode: u32,
    },
    Link {
        target: String,
        owner: Owner,
    },
    Folder {
        owner: Owner,
        mode: u32,
    },
    /// A device, a socket: never ours to touch.
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DebState {
    /// Of what is unpacked; none: not installed.
    pub version: Option<String>,
    /// `amd64`, `all`.
    pub architecture: Option<String>,
    /// Installed and configured; false: half-installed, half-configured, unpacked, triggers pending.
    pub whole: bool,
    /// Removed, its configuration files are left.
    pub config_only: bool,
    /// `apt-mark hold`.
    pub held: bool,
    /// `apt-mark auto`.
    pub auto: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UnitState {
    /// Whether systemd knows such a unit.
    pub known: bool,
    pub enabled: bool,
    /// Has no `[Install]`, or is generated: can't be enabled and needn't be.
    pub is_static: bool,
    pub masked: bool,
    /// `active`, `inactive`, `failed`, `activating`, …
    pub active: String,
    /// The file that systemd reads it from; what a generator made is from what the generator read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The deb that brought that file, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deb: Option<String>,
}
