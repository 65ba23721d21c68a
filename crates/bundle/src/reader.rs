//! Reads a container from a stranger: its head, then the signature, and only then what the index says; blobs are copied one at a
//! time under their digests. Nothing is held in memory but the index and one piece of a blob.

use std::io::{Read, Seek, SeekFrom, Write};

use kedge_model::wire::{ClusterId, Digest, Envelope, EnvelopeError, KeySet, KeySetError, Payload as _};
use ring::digest::{Context, SHA256};
use serde::Deserialize;

use crate::error::BundleError;
use crate::index::{BlobEntry, Index, Writer, fingerprint, fingerprints};
use crate::writer::at_least;
use crate::{HEAD, MAGIC, MAX_INDEX};

/// A container whose head was read. Nothing of it is believed yet.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    /// Where the blobs begin.
    body: u64,
    length: u64,
    envelope: Envelope,
}

/// A container whose index is believed.
#[derive(Debug)]
pub struct Bundle<R> {
    source: R,
    body: u64,
    index: Index,
    /// Where the bundle's key sets lead; none for one that a cluster wrote.
    keys: Option<KeySet>,
}

/// What has to be read before the signature can be checked: both prove themselves.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Claimed {
    #[serde(default)]
    writer: Option<Writer>,
    #[serde(default)]
    key_sets: Vec<Envelope>,
}

/// More key sets than any hub makes in years.
const MAX_KEY_SETS: usize = 1000;
/// One read of a blob.
const PIECE: usize = 64 * 1024;

impl<R: Read + Seek> Reader<R> {
    pub fn open(mut source: R) -> Result<Reader<R>, BundleError> {
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        if length < MAGIC.len() as u64 {
            return Err(BundleError::NotABundle);
        }
        let mut magic = [0; MAGIC.len()];
        source.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Err(BundleError::NotABundle);
        }
        if length < HEAD {
            return Err(BundleError::Truncated { expected: HEAD, found: length });
        }
        let mut size = [0; 8];
        source.read_exact(&mut size)?;
        let size = u64::from_be_bytes(size);
        if size > MAX_INDEX {
            return Err(BundleError::IndexTooLarge(size));
        }
        let body = at_least(size);
        if length < body {
            return Err(BundleError::Truncated { expected: body, found: length });
        }
        let mut json = Vec::new();
        (&mut source).take(size).read_to_end(&mut json)?;
        let envelope = Envelope::from_json(&json).map_err(BundleError::Signature)?;
        Ok(Reader { source, body, length, envelope })
    }

    /// Of the whole container.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Which cluster says that it wrote this; none: a hub did. Not believed yet.
    pub fn writer(&self) -> Result<Option<ClusterId>, BundleError> {
        Ok(self.claimed()?.writer.map(|writer| writer.cluster))
    }

    /// Believes a bundle of the hub whose keys are pinned: its key sets lead on from them, and an active key of the last signed it.
    pub fn verify(self, pinned: &KeySet) -> Result<Bundle<R>, BundleError> {
        let claimed = self.claimed()?;
        let keys = follow(pinned, &claimed.key_sets)?;
        // The hub may have retired the key since, and nobody has told this host: what it signed before stays good.
        if let Err(why) = self.envelope.verify(Index::TYPE, &keys.trusted()) {
            return Err(stranger(&keys, &claimed.key_sets, why));
        }
        self.believe(Some(keys))
    }

    /// Believes a file that a cluster wrote, if the key whose hash it is signed it. Whether it is a member is the caller's question.
    pub fn verify_writer(self) -> Result<(ClusterId, Bundle<R>), BundleError> {
        let claimed = self.claimed()?;
        let missing = || BundleError::Malformed("it doesn't say which cluster wrote it".to_owned());
        let writer = claimed.writer.ok_or_else(missing)?;
        self.envelope.verify(Index::TYPE, &[writer.key]).map_err(BundleError::Signature)?;
        if ClusterId::of_public_key(writer.key.as_bytes()) != writer.cluster {
            return Err(BundleError::Signature(EnvelopeError::Untrusted(vec![writer.key.id()])));
        }
        Ok((writer.cluster, self.believe(None)?))
    }

    /// For who has nothing pinned and only looks: whole, and of whichever fleet its own key sets are. A cluster's file likewise.
    pub fn look(self) -> Result<Bundle<R>, BundleError> {
        let claimed = self.claimed()?;
        if claimed.writer.is_some() {
            return Ok(self.verify_writer()?.1);
        }
        let missing = || BundleError::Malformed("it has no key set".to_owned());
        let first = claimed.key_sets.first().ok_or_else(missing)?;
        let first = KeySet::first(first).map_err(BundleError::KeySets)?;
        self.verify(&first)
    }

    fn claimed(&self) -> Result<Claimed, BundleError> {
        if self.envelope.payload_type != Index::TYPE {
            let found = self.envelope.payload_type.chars().take(100).collect();
            return Err(BundleError::Signature(EnvelopeError::Type { found, expected: Index::TYPE }));
        }
        let claimed: Claimed = serde_json::from_slice(&self.envelope.payload)?;
        if claimed.key_sets.len() > MAX_KEY_SETS {
            let count = claimed.key_sets.len();
            return Err(BundleError::Malformed(format!("it has {count} key sets, more than {MAX_KEY_SETS}")));
        }
        Ok(claimed)
    }

    /// After the signature: counts, places, and the length of the whole.
    fn believe(self, keys: Option<KeySet>) -> Result<Bundle<R>, BundleError> {
        let index: Index = serde_json::from_slice(&self.envelope.payload)?;
        index.check()?;
        let (expected, found) = (self.body.saturating_add(index.body()), self.length);
        if found < expected {
            return Err(BundleError::Truncated { expected, found });
        }
        if found > expected {
            return Err(BundleError::Trailing { expected, found });
        }
        Ok(Bundle { source: self.source, body: self.body, index, keys })
    }
}

impl<R> Bundle<R> {
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Where the bundle's key sets lead; none for one that a cluster wrote.
    pub fn keys(&self) -> Option<&KeySet> {
        self.keys.as_ref()
    }

    pub fn find(&self, digest: &Digest) -> Option<BlobEntry> {
        self.index.blobs.iter().find(|blob| blob.digest == *digest).copied()
    }

    pub fn into_index(self) -> Index {
        self.index
    }
}

impl<R: Read + Seek> Bundle<R> {
    /// Copies a blob; `tell` gets the bytes of each piece. On an error what was written has to be thrown away.
    pub fn copy(&mut self, digest: &Digest, to: &mut impl Write, mut tell: impl FnMut(u64)) -> Result<(), BundleError> {
        let blob = self.find(digest).ok_or(BundleError::NoBlob(*digest))?;
        self.source.seek(SeekFrom::Start(self.body.saturating_add(blob.offset)))?;
        let mut context = Context::new(&SHA256);
        let (mut left, mut piece) = (blob.size, vec![0; PIECE]);
        while left > 0 {
            let most = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let read = match self.source.read(&mut piece[..most]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                let found = self.body.saturating_add(blob.offset).saturating_add(blob.size - left);
                return Err(BundleError::Truncated { expected: self.body.saturating_add(self.index.body()), found });
            }
            context.update(&piece[..read]);
            to.write_all(&piece[..read])?;
            left -= read as u64;
            tell(read as u64);
        }
        if Digest::finish(context) == blob.digest { Ok(()) } else { Err(BundleError::WrongBlob(blob.digest)) }
    }

    /// Reads every blob: whether the whole is as it was written.
    pub fn check(&mut self, mut tell: impl FnMut(u64)) -> Result<(), BundleError> {
        let digests: Vec<Digest> = self.index.blobs.iter().map(|blob| blob.digest).collect();
        digests.iter().try_for_each(|digest| self.copy(digest, &mut std::io::sink(), &mut tell))
    }
}

/// Where the sets lead from the pinned one on. The sets before it are passed over; its own, if it is there, must be the same.
fn follow(pinned: &KeySet, sets: &[Envelope]) -> Result<KeySet, BundleError> {
    let mut keys = pinned.clone();
    for envelope in sets {
        let claimed: KeySet = serde_json::from_slice(&envelope.payload)?;
        if claimed.version == pinned.version && claimed != *pinned {
            let first = sets.first().and_then(|first| serde_json::from_slice(&first.payload).ok());
            return Err(match first.as_ref().and_then(fingerprint) {
                Some(fleet) => BundleError::OtherFleet(fleet),
                None => BundleError::KeySets(KeySetError::Gap { known: pinned.version, found: claimed.version }),
            });
        }
        if claimed.version > pinned.version {
            keys = keys.follow(envelope).map_err(BundleError::KeySets)?;
        }
    }
    Ok(keys)
}

/// A signature of nobody who is known: whose it is, if it can be said.
fn stranger(known: &KeySet, sets: &[Envelope], why: EnvelopeError) -> BundleError {
    let fleet = sets.first().and_then(|first| KeySet::first(first).ok()).and_then(|first| fingerprint(&first));
    match (fleet, why) {
        (Some(fleet), EnvelopeError::Untrusted(_)) if !fingerprints(known).contains(&fleet) => {
            BundleError::OtherFleet(fleet)
        }
        (_, why) => BundleError::Signature(why),
    }
}
