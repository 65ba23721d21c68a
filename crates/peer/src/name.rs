//! What a document is called among peers, and which of two with one name is the newer: summaries are lists of both.

use std::fmt;
use std::str::FromStr;

use kedge_model::wire::digest::hex;
use kedge_model::wire::{ClusterId, Digest, KeyId, Stream};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// In the order in which documents are given: each can be judged by those before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// One step of the chain of key sets.
    Keys(u64),
    Membership(ClusterId),
    State(Stream),
    /// A cluster's leave to run a state of its stream.
    Turn(ClusterId),
    Status(ClusterId),
    /// Holds on a cluster, by one writer.
    Holds {
        of: ClusterId,
        by: KeyId,
    },
}

/// A total order per name: a key set's version, a sequence, a generation; when a turn was issued; a status document's epoch and number of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version(pub u64, pub u64);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no document")]
pub struct NameError(String);

/// The longest part of a stream's name.
const MAX_PART: usize = 253;

impl Name {
    /// Which cluster it is about.
    pub fn cluster(&self) -> Option<&ClusterId> {
        match self {
            Name::Membership(cluster) | Name::Turn(cluster) | Name::Status(cluster) => Some(cluster),
            Name::Holds { of: cluster, .. } => Some(cluster),
            Name::Keys(_) | Name::State(_) => None,
        }
    }

    /// The name of a stream's state, if the stream's parts can be told apart in it.
    pub(crate) fn of_stream(stream: &Stream) -> Option<Name> {
        let parts = [&stream.environment, &stream.cluster_type, &stream.ring];
        parts.iter().all(|part| is_part(part)).then(|| Name::State(stream.clone()))
    }

    /// The number that stands for this document in a store's digest.
    pub(crate) fn mark(&self, version: Version) -> u128 {
        let text = format!("kedge shelf 1\0{self}\0{}.{}", version.0, version.1);
        let whole = Digest::of(text.as_bytes());
        whole.as_bytes().iter().take(16).fold(0, |sum, byte| (sum << 8) | u128::from(*byte))
    }
}

/// A store's digest as it is written, by this writer: who hears it can tell whether it has the same, and can't say it back as its own.
pub(crate) fn digits(writer: &ClusterId, marks: u128) -> String {
    let whole = Digest::of(format!("kedge shelf 1\0{writer}\0{}", hex(&marks.to_be_bytes())).as_bytes());
    whole.hex().chars().take(16).collect()
}

fn is_part(part: &str) -> bool {
    !part.is_empty() && part.len() <= MAX_PART && !part.contains('/') && !part.chars().any(char::is_control)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Keys(version) => write!(f, "keys:{version}"),
            Name::Membership(cluster) => write!(f, "membership:{cluster}"),
            Name::State(stream) => write!(f, "state:{stream}"),
            Name::Turn(cluster) => write!(f, "turn:{cluster}"),
            Name::Status(cluster) => write!(f, "status:{cluster}"),
            Name::Holds { of, by } => write!(f, "holds:{of}:{by}"),
        }
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Name, NameError> {
        parse(text).ok_or_else(|| NameError(text.chars().take(80).collect()))
    }
}

fn parse(text: &str) -> Option<Name> {
    let (kind, rest) = text.split_once(':')?;
    match kind {
        // As it is written and no other way: one name per document.
        "keys" => rest.parse().ok().filter(|version: &u64| version.to_string() == rest).map(Name::Keys),
        "membership" => rest.parse().ok().map(Name::Membership),
        "turn" => rest.parse().ok().map(Name::Turn),
        "status" => rest.parse().ok().map(Name::Status),
        "holds" => {
            let (of, by) = rest.split_once(':')?;
            Some(Name::Holds { of: of.parse().ok()?, by: by.parse().ok()? })
        }
        "state" => {
            let mut parts = rest.split('/');
            let stream = Stream::new(parts.next()?, parts.next()?, parts.next()?);
            parts.next().is_none().then(|| Name::of_stream(&stream)).flatten()
        }
        _ => None,
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        let (of, by) = (ClusterId::of_public_key(&[1; 32]), KeyId::of_public_key(&[2; 32]));
        let state = Name::State(Stream::new("prod", "drone", "all"));
        for name in
            [Name::Keys(3), Name::Membership(of), state, Name::Turn(of), Name::Status(of), Name::Holds { of, by }]
        {
            assert_eq!(name.to_string().parse(), Ok(name.clone()));
        }
        for wrong in
            ["", "keys:", "keys:03", "keys:-1", "state:a/b", "state:a/b/c/d", "state://", "blob:1", "status:xyz"]
        {
            assert!(wrong.parse::<Name>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_stream_whose_parts_run_together_has_no_name() {
        assert_eq!(Name::of_stream(&Stream::new("a/b", "c", "d")), None);
        assert_eq!(Name::of_stream(&Stream::new("a", "", "d")), None);
    }

    #[test]
    fn another_version_is_another_mark() {
        let name = Name::Keys(1);
        assert_ne!(name.mark(Version(1, 0)), name.mark(Version(10, 0)));
        assert_ne!(name.mark(Version(1, 10)), name.mark(Version(11, 0)));
    }
}
