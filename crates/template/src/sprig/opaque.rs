//! What Go's reflection sees of a time or a version.

use crate::value::{Opaque, Version};

impl Opaque {
    /// The number that this is in Go's eyes, for the types whose kind is one.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Opaque::Duration(nanoseconds) => Some(*nanoseconds),
            Opaque::Byte(byte) => Some(i64::from(*byte)),
            Opaque::Time(_) | Opaque::Version(_) => None,
        }
    }

    /// What Go can copy by reflection: the fields of a version are private, so its copy is empty.
    pub(super) fn visible_copy(&self) -> Opaque {
        let empty = String::new;
        match self {
            Opaque::Version(_) => Opaque::Version(Version {
                major: 0,
                minor: 0,
                patch: 0,
                prerelease: empty(),
                metadata: empty(),
                original: empty(),
            }),
            other => other.clone(),
        }
    }
}
