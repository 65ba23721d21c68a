//! Environments, and the last good version of their objects, as the database remembers them.

use std::collections::BTreeMap;

use kedge_model::kinds::RepoRef;
use kedge_model::{ObjectId, Source};

/// An environment, and where it is described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    pub name: String,
    pub control_plane: RepoRef,
    /// Its file can't be read now: this is what it said before.
    pub stale_since: Option<String>,
}

/// An object as it is stored: where it was, and the text of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedObject {
    pub id: ObjectId,
    pub source: Source,
    pub file: String,
    pub text_id: String,
    pub stale_since: Option<String>,
}

/// What changes in the database.
#[derive(Debug, Default)]
pub struct Edits {
    pub saved: Vec<SavedObject>,
    /// Of those whose text isn't there yet.
    pub texts: BTreeMap<String, Vec<u8>>,
    pub removed: Vec<ObjectId>,
}
