//! The name of what an assignment runs: both packages together, or what another reconciler should have reached. Counts
//! and gates are by it, so agent and hub make it in the same way.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::desired::{BlobRef, DesiredState, Entry, Mode, Observation, Packages};
use super::digest::{Digest, hex, unhex};

/// Half a SHA-256 over the digests: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackagesKey([u8; 16]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name packages: 32 lower-case hexadecimal digits are expected")]
pub struct PackagesKeyError(String);

/// What is hashed begins with what it is, so that one kind can't pass for another.
const APPLIED: &[u8] = b"kedge packages 1\0";
const OBSERVED: &[u8] = b"kedge observed 1\0";

impl PackagesKey {
    pub fn of_packages(platform: &Digest, workload: &Digest) -> PackagesKey {
        PackagesKey::of(&[APPLIED, platform.as_bytes(), workload.as_bytes()])
    }

    pub fn of_observed(content: &Digest) -> PackagesKey {
        PackagesKey::of(&[OBSERVED, content.as_bytes()])
    }

    fn of(parts: &[&[u8]]) -> PackagesKey {
        let whole = Digest::of(&parts.concat());
        let mut out = [0; 16];
        out.iter_mut().zip(whole.as_bytes()).for_each(|(to, from)| *to = *from);
        PackagesKey(out)
    }
}

impl Packages {
    pub fn key(&self) -> PackagesKey {
        PackagesKey::of_packages(&self.platform.digest, &self.workload.digest)
    }

    /// All content: both packages, and the artifacts that they name.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        [&self.platform, &self.workload].into_iter().flat_map(|package| {
            let own = BlobRef { digest: package.digest, size: package.size };
            std::iter::once(own).chain(package.artifacts.iter().cloned())
        })
    }
}

impl DesiredState {
    /// All content that is to be applied; what several assignments share comes again.
    pub fn blobs(&self) -> impl Iterator<Item = BlobRef> + '_ {
        let packages = self.entries.iter().filter_map(|entry| match &entry.mode {
            Mode::Apply(packages) => Some(packages),
            Mode::Observe(_) => None,
        });
        packages.flat_map(|packages| packages.blobs())
    }
}

impl Observation {
    pub fn key(&self) -> PackagesKey {
        PackagesKey::of_observed(&self.content)
    }
}

impl Entry {
    /// What a cluster that followed this entry runs.
    pub fn packages_key(&self) -> PackagesKey {
        match &self.mode {
            Mode::Apply(packages) => packages.key(),
            Mode::Observe(observation) => observation.key(),
        }
    }
}

impl FromStr for PackagesKey {
    type Err = PackagesKeyError;

    fn from_str(text: &str) -> Result<PackagesKey, PackagesKeyError> {
        unhex(text).map(PackagesKey).ok_or_else(|| PackagesKeyError(text.chars().take(80).collect()))
    }
}

impl fmt::Display for PackagesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PackagesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PackagesKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PackagesKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PackagesKey, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_package_changes_the_key_and_their_order_matters() {
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let key = PackagesKey::of_packages(&a, &b);
        assert_ne!(key, PackagesKey::of_packages(&b, &a));
        assert_ne!(key, PackagesKey::of_packages(&a, &a));
        assert_ne!(PackagesKey::of_observed(&a), PackagesKey::of_packages(&a, &a));
        assert_eq!(key.to_string().parse(), Ok(key));
    }
}
