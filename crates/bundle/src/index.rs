//! The index of a bundle: everything signed that it carries, and where each blob is. It is signed as a whole, by the hub for what
//! goes down to clusters and by a cluster for what it brings up.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kedge_model::wire::{ClusterId, Digest, Envelope, KeySet, Payload, Stream, Timestamp, VerifyingKey};
use serde::{Deserialize, Serialize};

use crate::error::BundleError;
use crate::{MAX_BLOBS, MAX_DOCUMENTS};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Of the first authority of the first key set that the writer knows: for people, and for a better sentence when it is wrong.
    pub fleet: Digest,
    pub created_at: Timestamp,
    /// Who signed it, if it goes up; the hub's is signed by an active key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<Writer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Whose states are here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Stream>,
    /// Whom it is for, or of whom it tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<ClusterId>,
    /// Every one from the first on, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_sets: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memberships: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds: Vec<Envelope>,
    /// For each cluster that it is for, where its state asks for turns: a peer may hand the state on to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Envelope>,
    /// Status documents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Envelope>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presences: Vec<Envelope>,
    /// In the order in which they follow the index, without gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blobs: Vec<BlobEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
}

/// The cluster that wrote an index, and the key whose hash it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writer {
    pub cluster: ClusterId,
    pub key: VerifyingKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobEntry {
    pub digest: Digest,
    pub size: u64,
    /// From the end of the index.
    pub offset: u64,
}

impl Payload for Index {
    const TYPE: &'static str = "application/vnd.kedge.bundle.v1+json";
}

impl Index {
    pub fn new(fleet: Digest, created_at: Timestamp) -> Index {
        Index {
            fleet,
            created_at,
            writer: None,
            environment: None,
            streams: Vec::new(),
            clusters: Vec::new(),
            key_sets: Vec::new(),
            memberships: Vec::new(),
            states: Vec::new(),
            holds: Vec::new(),
            turns: Vec::new(),
            documents: Vec::new(),
            presences: Vec::new(),
            blobs: Vec::new(),
            requires: Vec::new(),
        }
    }

    /// Adds a blob behind the others; one that is there already isn't added again.
    pub fn add_blob(&mut self, digest: Digest, size: u64) {
        if !self.blobs.iter().any(|known| known.digest == digest) {
            let offset = self.body();
            self.blobs.push(BlobEntry { digest, size, offset });
        }
    }

    /// The bytes of all blobs.
    pub fn body(&self) -> u64 {
        self.blobs.last().map_or(0, |last| last.offset.saturating_add(last.size))
    }

    /// The signed documents of all kinds.
    pub fn documents_in_all(&self) -> usize {
        let signed = [&self.key_sets, &self.memberships, &self.states, &self.holds, &self.turns];
        signed.iter().chain(&[&self.documents, &self.presences]).fold(0, |sum, list| sum + list.len())
    }

    /// Whether it is as the format says: counts, and blobs one behind the other.
    pub(crate) fn check(&self) -> Result<(), BundleError> {
        let wrong = |why: String| Err(BundleError::Malformed(why));
        if !self.requires.is_empty() {
            let words = self.requires.iter().take(8).map(|word| word.escape_debug().take(64).collect());
            return Err(BundleError::Unsupported(words.collect()));
        }
        if self.blobs.len() > MAX_BLOBS {
            return wrong(format!("it lists {} blobs, more than {MAX_BLOBS}", self.blobs.len()));
        }
        if self.documents_in_all() > MAX_DOCUMENTS {
            return wrong(format!("it has {} documents, more than {MAX_DOCUMENTS}", self.documents_in_all()));
        }
        let mut end = 0_u64;
        for blob in &self.blobs {
            if blob.offset != end {
                return wrong(format!("{} is at {} instead of {end}", blob.digest, blob.offset));
            }
            let Some(next) = end.checked_add(blob.size) else {
                return wrong(format!("{} is longer than any file", blob.digest));
            };
            end = next;
        }
        let mut digests: Vec<&Digest> = self.blobs.iter().map(|blob| &blob.digest).collect();
        digests.sort_unstable();
        match digests.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => wrong(format!("{} is listed twice", twice[0])),
            None => Ok(()),
        }
    }
}

/// The digest of the first authority's certificate: what a person compares to know a fleet, as in a join token.
pub fn fingerprint(keys: &KeySet) -> Option<Digest> {
    keys.authorities.first().and_then(|pem| of_pem(pem))
}

/// Of each authority of a key set.
pub fn fingerprints(keys: &KeySet) -> Vec<Digest> {
    keys.authorities.iter().filter_map(|pem| of_pem(pem)).collect()
}

fn of_pem(pem: &str) -> Option<Digest> {
    let (_, rest) = pem.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let text: String = body.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    BASE64.decode(text).ok().map(|der| Digest::of(&der))
}
