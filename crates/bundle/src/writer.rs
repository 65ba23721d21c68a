//! Writes a container: the head (magic, length, signed index), then the blobs back to back, streamed. The hub sends the head and the
//! blobs itself; who has all of them at hand uses `Writer`.

use std::io::{Read, Write};

use kedge_model::wire::{Digest, Envelope, EnvelopeError, SigningKey};
use ring::digest::{Context, SHA256};

use crate::error::BundleError;
use crate::index::{BlobEntry, Index};
use crate::{HEAD, MAGIC, MAX_INDEX};

/// An index that is signed, ready to be written.
#[derive(Clone, Debug)]
pub struct Sealed {
    head: Vec<u8>,
    blobs: Vec<BlobEntry>,
}

/// Writes the blobs of a sealed index in its order.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    blobs: std::vec::IntoIter<BlobEntry>,
}

/// One read of a blob.
const PIECE: usize = 64 * 1024;

impl Sealed {
    pub fn seal(index: &Index, key: &SigningKey) -> Result<Sealed, BundleError> {
        index.check()?;
        let envelope = Envelope::sign(index, key).map_err(BundleError::Signature)?;
        let json = envelope.to_json().map_err(BundleError::Signature)?;
        let length = json.len() as u64;
        if length > MAX_INDEX {
            return Err(BundleError::IndexTooLarge(length));
        }
        let mut head = Vec::with_capacity(json.len() + 16);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&length.to_be_bytes());
        head.extend_from_slice(&json);
        Ok(Sealed { head, blobs: index.blobs.clone() })
    }

    /// The first bytes of the container; the blobs follow in the index's order.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    pub fn into_head(self) -> Vec<u8> {
        self.head
    }

    /// What follows the head, in this order.
    pub fn blobs(&self) -> &[BlobEntry] {
        &self.blobs
    }

    /// Of the whole container.
    pub fn length(&self) -> u64 {
        let body = self.blobs.last().map_or(0, |last| last.offset + last.size);
        self.head.len() as u64 + body
    }
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, sealed: Sealed) -> Result<Writer<W>, BundleError> {
        out.write_all(&sealed.head)?;
        Ok(Writer { out, blobs: sealed.blobs.into_iter() })
    }

    /// Which blob `write` expects.
    pub fn next(&self) -> Option<BlobEntry> {
        self.blobs.as_slice().first().copied()
    }

    /// Writes the next blob. One that isn't what the index says ends the file: it can't be taken back.
    pub fn write(&mut self, mut from: impl Read) -> Result<(), BundleError> {
        let Some(blob) = self.blobs.next() else {
            return Err(BundleError::Malformed("the index lists no further blob".to_owned()));
        };
        let mut digest = Context::new(&SHA256);
        let (mut left, mut piece) = (blob.size, vec![0; PIECE]);
        while left > 0 {
            let most = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
            let read = match from.read(&mut piece[..most]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if read == 0 {
                return Err(BundleError::WrongBlob(blob.digest));
            }
            digest.update(&piece[..read]);
            self.out.write_all(&piece[..read])?;
            left -= read as u64;
        }
        if Digest::finish(digest) == blob.digest { Ok(()) } else { Err(BundleError::WrongBlob(blob.digest)) }
    }

    pub fn finish(mut self) -> Result<W, BundleError> {
        if let Some(blob) = self.next() {
            return Err(BundleError::NoBlob(blob.digest));
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// What `Truncated` says of a file that has not even a head.
pub(crate) fn at_least(index: u64) -> u64 {
    HEAD.saturating_add(index)
}

impl From<serde_json::Error> for BundleError {
    fn from(error: serde_json::Error) -> BundleError {
        BundleError::Signature(EnvelopeError::Payload(error))
    }
}
