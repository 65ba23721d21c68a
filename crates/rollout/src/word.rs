//! What people say about a rollout or a promotion. Kept with it for ever; read by `advance` and `promote`.

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

/// Who says something: what an approval counts, whatever the tokens and names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// Stable and opaque. Empty: said before the hub knew persons.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// As an administrator set them, to compare with the authors of commits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<String>,
    /// Names and addresses that were taken away not long ago: an author stays the author.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<String>,
    /// When the token that was used was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_made_at: Option<Timestamp>,
}

/// One person's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Word {
    /// The person's name.
    pub who: String,
    #[serde(default)]
    pub person: Person,
    /// Of the token: `platform`, `application`.
    pub role: String,
    pub at: Timestamp,
    /// Why; never empty for an override.
    pub reason: String,
    pub say: Say,
    /// The token was made after what it speaks of had begun: worth a second look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_token: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "say")]
pub enum Say {
    /// For one ring; none: for the one that waits now.
    Approve {
        ring: Option<String>,
    },
    /// The gate of this ring (none: the one that waits now), or of the environments before, counts as passed.
    Override {
        ring: Option<String>,
    },
    /// Windows and freezes don't hold it up.
    Now,
    Pause,
    /// Goes on; failures until now no longer count against the budget.
    Resume,
    /// No further ring; those reached keep what they have.
    Abort,
    /// Those reached go back to what they had.
    Rollback,
}

/// Why a word can't be taken, for the person who said it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// A stable CamelCase word.
    pub reason: &'static str,
    pub message: String,
}

impl Person {
    pub fn new(id: &str, emails: &[&str]) -> Person {
        let emails = emails.iter().map(|email| (*email).to_owned()).collect();
        Person { id: id.to_owned(), emails, ..Person::default() }
    }
}

impl Word {
    /// What makes two words the same person's. Words from before the hub knew persons have a name only.
    pub(crate) fn speaker(&self) -> String {
        match self.person.id.as_str() {
            "" => format!("name {}", self.who.trim().to_lowercase()),
            id => id.to_owned(),
        }
    }

    /// The same word about something that began at this time.
    pub(crate) fn about(self, began: Timestamp) -> Word {
        let new_token = self.person.token_made_at.is_some_and(|made| made >= began);
        Word { new_token, ..self }
    }
}

impl Refused {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Refused {
        Refused { reason, message: message.into() }
    }
}

impl Say {
    /// As people type it.
    pub fn verb(&self) -> &'static str {
        match self {
            Say::Approve { .. } => "approve",
            Say::Override { .. } => "override",
            Say::Now => "now",
            Say::Pause => "pause",
            Say::Resume => "resume",
            Say::Abort => "abort",
            Say::Rollback => "rollback",
        }
    }
}
