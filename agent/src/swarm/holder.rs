//! Who has content, as a download sees it: a trait over the connections, so that those that misbehave, are slow or die are in a test.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use kedge_model::wire::{ClusterId, Digest};

use super::chunks::NoList;

/// Bytes as they come.
pub type Pieces = BoxStream<'static, Result<Bytes, HolderError>>;

/// One peer that says that it has a blob. Nothing that it gives is believed; it need not bound what it gives, or when.
pub trait Holder: Send + Sync {
    fn cluster(&self) -> ClusterId;
    /// Its list of chunks, as JSON.
    fn chunks(&self, blob: Digest) -> BoxFuture<'_, Result<Pieces, HolderError>>;
    /// These bytes of the blob.
    fn range(&self, blob: Digest, range: Range<u64>) -> BoxFuture<'_, Result<Pieces, HolderError>>;
}

/// The peers, as far as downloads care.
pub trait Sources: Send + Sync {
    /// Who has it now. Asked again while a download runs, so that it uses those who come.
    fn holders(&self, blob: &Digest) -> Vec<Arc<dyn Holder>>;
    /// Somebody of the site is fetching it: waiting costs less than fetching it twice.
    fn is_coming(&self, blob: &Digest) -> bool;
    /// It gave what can't be true. Told once for each download.
    fn misbehaved(&self, who: ClusterId, misbehavior: Misbehavior);
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HolderError {
    /// Not for now: it has it no more, or doesn't give it to us.
    #[error("it doesn't give it: {0}")]
    Refused(String),
    /// Worth another try.
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// What no honest peer does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misbehavior {
    #[error("what it gave as the chunks of {blob} is no such list: {why}")]
    List { blob: Digest, why: NoList },
    #[error("bytes {} to {} of {blob} aren't what it said they were", range.start, range.end)]
    Chunk { blob: Digest, range: Range<u64> },
    #[error("it gave more bytes of {blob} than were asked for")]
    Endless { blob: Digest },
    #[error("its chunks of {blob} make something else")]
    Whole { blob: Digest },
}

impl fmt::Debug for dyn Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Holder({})", self.cluster())
    }
}
