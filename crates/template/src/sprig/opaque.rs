//! What Go's reflection sees of a time or a version.

use crate::value::{Opaque, Version};

impl Opaque {
    /// The number that this is in Go's eyes, for the types whose kind is one.
    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Opaque::Duration(number) | Opaque::Month(number) | Opaque::Weekday(number) => Some(*number),
            Opaque::Byte(byte) => Some(i64::from(*byte)),
            Opaque::Time(_) | Opaque::Version(_) => None,
        }
    }

    /// Another number of the same type.
    pub(crate) fn with_int(&self, number: i64) -> Opaque {
        match self {
            Opaque::Duration(_) => Opaque::Duration(number),
            Opaque::Byte(_) => Opaque::Byte(number as u8),
            Opaque::Month(_) => Opaque::Month(number),
            Opaque::Weekday(_) => Opaque::Weekday(number),
            Opaque::Time(_) | Opaque::Version(_) => self.clone(),
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
