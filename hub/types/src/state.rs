//! Desired states as they are stored and served, and the picks that they move.

use bytes::Bytes;
use kedge_model::wire::{Envelope, Generation, PackageRef};
use serde::Deserialize;

/// A state that is in the database and may be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub generation: Generation,
    /// The envelope as JSON, exactly as stored.
    pub envelope: Bytes,
    /// Its clusters change a few at a time, also where they get it from each other.
    pub turns: bool,
}

/// A package of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Package {
    Platform,
    Workload,
}

/// A pick that a state moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub assignment: String,
    pub package: Package,
    /// None: the assignment isn't ours to deliver any more.
    pub to: Option<PackageRef>,
}

/// What is read of a state before it is shown.
#[derive(Deserialize)]
struct Flags {
    #[serde(default)]
    turns: bool,
}

impl Issued {
    /// A state as it is stored.
    pub fn of(generation: Generation, envelope: Bytes) -> Issued {
        let read = Envelope::from_json(&envelope).ok();
        let flags = read.and_then(|envelope| serde_json::from_slice::<Flags>(&envelope.payload).ok());
        Issued { generation, envelope, turns: flags.is_some_and(|flags| flags.turns) }
    }
}

impl Package {
    pub fn as_str(self) -> &'static str {
        match self {
            Package::Platform => "platform",
            Package::Workload => "workload",
        }
    }
}
