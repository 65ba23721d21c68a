//! What became of an offered document: taken, known, or refused with a sentence that a person is shown.

use kedge_model::wire::{ClusterId, EnvelopeError};
use kedge_status::ReadError;

use crate::name::Name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    New(Name),
    Known,
    /// Something newer of the same name is here, or nobody here needs it.
    Older,
    /// It can't be judged yet: the membership, the key or the key set it rests on isn't here. Asked for again in a later round.
    NotYet,
}

/// Why a document or a message is refused. Nothing changes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misbehavior {
    #[error("the signature does not fit the content")]
    Forged,
    #[error("it isn't signed by its owner")]
    NotTheOwner,
    #[error("no key of this fleet's hub signed it")]
    OtherFleet,
    #[error("cluster {0} is no member of this site any more")]
    NotAMember(ClusterId),
    #[error("cluster {0} belongs to another site")]
    OtherSite(ClusterId),
    #[error("the state belongs to another stream, `{0}`")]
    OtherStream(String),
    #[error("it has {0} bytes or parts, more than {1}")]
    TooLarge(usize, usize),
    #[error("cluster {0} has a clone: the same epoch came with two nonces")]
    Clone(ClusterId),
    #[error("it can't be read: {0}")]
    Unreadable(String),
    #[error("it sent more messages in a minute than any honest peer does")]
    TooMany,
    #[error("there is no room left for documents of peers")]
    Full,
    /// Told by the agent: a blob or a chunk whose bytes aren't what their digest says.
    #[error("the bytes of {0} aren't what their digest says")]
    WrongBytes(String),
}

impl Misbehavior {
    /// Whether only a faulty or hostile peer says such a thing. The others an honest peer that knows less, or more, may say too: its word
    /// is refused, and it stays.
    pub fn is_fault(&self) -> bool {
        match self {
            Misbehavior::Forged
            | Misbehavior::NotTheOwner
            | Misbehavior::OtherFleet
            | Misbehavior::TooLarge(..)
            | Misbehavior::Unreadable(_) => true,
            Misbehavior::TooMany | Misbehavior::WrongBytes(_) => true,
            Misbehavior::NotAMember(_)
            | Misbehavior::OtherSite(_)
            | Misbehavior::OtherStream(_)
            | Misbehavior::Clone(_)
            | Misbehavior::Full => false,
        }
    }

    pub(crate) fn unreadable(why: impl std::fmt::Display) -> Misbehavior {
        Misbehavior::Unreadable(why.to_string().chars().take(200).collect())
    }

    /// A document of the hub.
    pub(crate) fn of_hub(error: &EnvelopeError) -> Misbehavior {
        match error {
            EnvelopeError::Untrusted(_) => Misbehavior::OtherFleet,
            other => Misbehavior::of_envelope(other),
        }
    }

    /// A document of a cluster.
    pub(crate) fn of_owner(error: &EnvelopeError) -> Misbehavior {
        match error {
            EnvelopeError::Untrusted(_) => Misbehavior::NotTheOwner,
            other => Misbehavior::of_envelope(other),
        }
    }

    fn of_envelope(error: &EnvelopeError) -> Misbehavior {
        match error {
            EnvelopeError::Forged(_) => Misbehavior::Forged,
            EnvelopeError::TooMany(count) => Misbehavior::TooLarge(*count, kedge_model::wire::envelope::MAX_SIGNATURES),
            other => Misbehavior::unreadable(other),
        }
    }

    pub(crate) fn of_status(error: &ReadError) -> Misbehavior {
        match error {
            ReadError::Signature(error) => Misbehavior::of_owner(error),
            ReadError::WrongKey { .. } => Misbehavior::NotTheOwner,
            ReadError::TooLarge { length, most } => Misbehavior::TooLarge(*length, *most),
            other => Misbehavior::unreadable(other),
        }
    }
}
