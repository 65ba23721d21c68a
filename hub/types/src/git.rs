//! What is known of repositories that are followed, as the database remembers it.

use std::collections::BTreeMap;
use std::fmt;

use kedge_model::address::Refused;
use kedge_model::wire::Timestamp;
use kedge_platform::Want;
use serde::{Deserialize, Serialize};

/// A server that failed so often in a row is failing; before that it may have been the network for a moment.
pub const FIRM_ATTEMPTS: u32 = 3;

/// A branch or a tag that is followed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RefName {
    Branch(String),
    Tag(String),
}

/// What is known of one ref.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tracked {
    /// The last good commit.
    pub commit: Option<String>,
    pub moved_at: Option<Timestamp>,
    pub failing: Option<Failure>,
    pub forced: Option<Forced>,
}

/// Why something can't be had, since when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub error: String,
    pub hint: String,
    pub since: Timestamp,
    pub attempts: u32,
    /// Not only for a moment: objects from here are stale.
    pub firm: bool,
}

/// A branch was rewritten: what was good before isn't behind its head any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forced {
    pub from: String,
    pub to: String,
    pub at: Timestamp,
}

/// A row of the database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedRepository {
    pub refs: BTreeMap<RefName, Tracked>,
    pub failing: Option<Failure>,
    pub last_good: Option<Timestamp>,
}

impl RefName {
    pub fn want(&self) -> Result<Want, Refused> {
        let want = match self {
            RefName::Branch(name) => Want::branch(name),
            RefName::Tag(name) => Want::tag(name),
        };
        want.map_err(|error| Refused::new(error.to_string(), error.hint().unwrap_or_default()))
    }

    /// Without its kind.
    pub fn short(&self) -> &str {
        match self {
            RefName::Branch(name) | RefName::Tag(name) => name,
        }
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RefName::Branch(name) => write!(f, "branch {name}"),
            RefName::Tag(name) => write!(f, "tag {name}"),
        }
    }
}

impl From<RefName> for String {
    fn from(name: RefName) -> String {
        name.to_string()
    }
}

impl TryFrom<String> for RefName {
    type Error = String;

    fn try_from(text: String) -> Result<RefName, String> {
        match text.split_once(' ') {
            Some(("branch", name)) => Ok(RefName::Branch(name.to_owned())),
            Some(("tag", name)) => Ok(RefName::Tag(name.to_owned())),
            _ => Err(format!("`{text}` is neither a branch nor a tag")),
        }
    }
}
