//! The name of a content: `sha256:` and 64 hexadecimal digits. Packages, blobs and contents of states are called so.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: `sha256:` and 64 lower-case hexadecimal digits are expected")]
pub struct DigestError(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Digest {
        let mut out = [0; 32];
        out.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
        Digest(out)
    }

    /// The digest that a running `ring::digest::Context` (SHA-256) came to; for content that is read in pieces.
    pub fn finish(context: ring::digest::Context) -> Digest {
        let mut out = [0; 32];
        let made = context.finish();
        out.iter_mut().zip(made.as_ref()).for_each(|(to, from)| *to = *from);
        Digest(out)
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digits without the algorithm: a file's name in a store.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(if half < 10 { b'0' + half } else { b'a' + half - 10 });
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 0xf));
    }
    out
}

/// The bytes that so many lower-case hexadecimal digits stand for.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 || digits.iter().any(|digit| !matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let mut out = [0; N];
    for (to, pair) in out.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *to = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Digest, DigestError> {
        let wrong = || DigestError(text.chars().take(80).collect());
        text.strip_prefix("sha256:").and_then(unhex).map(Digest).ok_or_else(wrong)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
