//! Who and what is meant: clusters, keys, streams, and the numbers that only grow.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::{hex, unhex};

/// A cluster is the hash of its public key (Ed25519); its name is a label. The same key is in its certificate and
/// signs its documents, so that anybody can check whose a document is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId([u8; 16]);

/// A signing key is the first half of the SHA-256 of its 32 public bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 16]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id: 32 lower-case hexadecimal digits are expected")]
pub struct IdError(String);

/// What a desired state is numbered in: all clusters of one type in one ring of an environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stream {
    pub environment: String,
    pub cluster_type: String,
    pub ring: String,
}

/// The number of a desired state in its stream; it only grows. 0 is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

/// The number of a cluster's membership; it only grows. 0 is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sequence(pub u64);

/// Milliseconds since 1970 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Stream {
    /// The ring of an environment without a PromotionPolicy.
    pub const ALL: &'static str = "all";

    pub fn new(environment: &str, cluster_type: &str, ring: &str) -> Stream {
        Stream { environment: environment.to_owned(), cluster_type: cluster_type.to_owned(), ring: ring.to_owned() }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.environment, self.cluster_type, self.ring)
    }
}

impl ClusterId {
    /// The id of the cluster that holds this Ed25519 public key.
    pub fn of_public_key(public: &[u8; 32]) -> ClusterId {
        ClusterId(half_digest(public))
    }

    /// The same key, as a signature names it.
    pub fn key_id(&self) -> KeyId {
        KeyId(self.0)
    }
}

impl KeyId {
    /// The id of an Ed25519 public key.
    pub fn of_public_key(public: &[u8; 32]) -> KeyId {
        KeyId(half_digest(public))
    }
}

fn half_digest(bytes: &[u8]) -> [u8; 16] {
    let whole = super::Digest::of(bytes);
    let mut out = [0; 16];
    out.copy_from_slice(&whole.as_bytes()[..16]);
    out
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

macro_rules! hexadecimal {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<$name, IdError> {
                unhex(text).map($name).ok_or_else(|| IdError(text.chars().take(80).collect()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

hexadecimal!(ClusterId);
hexadecimal!(KeyId);
