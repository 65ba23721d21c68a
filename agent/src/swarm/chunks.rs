//! The digests of a blob's chunks, so that pieces from several peers can be judged before the whole is there. A list is only its
//! giver's word until the whole is: `docs/wire.md` has its bytes.

use std::io::{self, Read};
use std::ops::Range;

use kedge_model::wire::{BlobRef, Digest};
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkList {
    pub size: u64,
    /// Bytes of each chunk but the last, which has the rest. Follows from the size: see `chunk_of`.
    pub chunk: u64,
    pub digests: Vec<Digest>,
}

/// Why bytes are no list of this blob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoList {
    #[error("it can't be read")]
    Unreadable,
    #[error("it is for {0} bytes")]
    Size(u64),
    #[error("its chunks have {0} bytes")]
    Chunk(u64),
    #[error("it has {0} chunks")]
    Count(usize),
}

/// A loss costs little, and a list is a ten-thousandth of the content.
pub const CHUNK: u64 = 1024 * 1024;
/// Half a MiB of digests in memory; of what is larger (16 GiB) the chunks are larger too.
pub const MAX_CHUNKS: u64 = 16 * 1024;

/// What is read at one time.
const PIECE: usize = 64 * 1024;
/// `"sha256:<64 digits>",`, and room for somebody's blanks.
const BYTES_PER_DIGEST: u64 = 80;
const BYTES_BESIDE: u64 = 512;

impl ChunkList {
    /// The list of what is a single chunk: nobody needs to be asked, and it is true.
    pub fn of_small(blob: &BlobRef) -> Option<ChunkList> {
        let digests = match blob.size {
            0 => Vec::new(),
            1..=CHUNK => vec![blob.digest],
            _ => return None,
        };
        Some(ChunkList { size: blob.size, chunk: CHUNK, digests })
    }

    /// Reads all of it, and says what the whole is.
    pub fn compute(mut from: impl Read, size: u64) -> io::Result<(ChunkList, Digest)> {
        let chunk = chunk_of(size);
        let (mut whole, mut part) = (Context::new(&SHA256), Context::new(&SHA256));
        let (mut digests, mut read, mut piece) = (Vec::new(), 0, vec![0; PIECE]);
        loop {
            // No piece spans two chunks: a chunk is a multiple of a piece.
            let left = usize::try_from(chunk - read % chunk).unwrap_or(PIECE).min(PIECE);
            let count = from.read(&mut piece[..left])?;
            if count == 0 {
                break;
            }
            read += count as u64;
            if read > size {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it grew while it was read"));
            }
            whole.update(&piece[..count]);
            part.update(&piece[..count]);
            if read.is_multiple_of(chunk) || read == size {
                digests.push(Digest::finish(std::mem::replace(&mut part, Context::new(&SHA256))));
            }
        }
        if read != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((ChunkList { size, chunk, digests }, Digest::finish(whole)))
    }

    /// What a stranger says to be the list of this blob; its shape is right when this returns, its digests are his word.
    pub fn parse(bytes: &[u8], blob: &BlobRef) -> Result<ChunkList, NoList> {
        if bytes.len() as u64 > ChunkList::limit(blob.size) {
            return Err(NoList::Unreadable);
        }
        let list: ChunkList = serde_json::from_slice(bytes).map_err(|_| NoList::Unreadable)?;
        match &list {
            list if list.size != blob.size => Err(NoList::Size(list.size)),
            list if list.chunk != chunk_of(blob.size) => Err(NoList::Chunk(list.chunk)),
            list if list.digests.len() as u64 != count_of(blob.size) => Err(NoList::Count(list.digests.len())),
            _ => Ok(list),
        }
    }

    /// The most bytes that the list of so large a blob has as JSON.
    pub fn limit(size: u64) -> u64 {
        count_of(size) * BYTES_PER_DIGEST + BYTES_BESIDE
    }

    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Where a chunk's bytes are.
    pub fn range(&self, index: usize) -> Range<u64> {
        let first = (index as u64).saturating_mul(self.chunk).min(self.size);
        first..first.saturating_add(self.chunk).min(self.size)
    }
}

/// Bytes per chunk of a blob of so many bytes.
pub fn chunk_of(size: u64) -> u64 {
    let mut chunk = CHUNK;
    while size.div_ceil(chunk) > MAX_CHUNKS {
        chunk = chunk.saturating_mul(2);
    }
    chunk
}

fn count_of(size: u64) -> u64 {
    size.div_ceil(chunk_of(size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn blob(content: &[u8]) -> BlobRef {
        BlobRef { digest: Digest::of(content), size: content.len() as u64 }
    }

    #[test]
    fn a_list_names_each_chunk_and_the_rest() {
        let content: Vec<u8> = (0..CHUNK * 2 + 5).map(|at| (at % 251) as u8).collect();
        let (list, whole) = ChunkList::compute(content.as_slice(), content.len() as u64).unwrap();
        assert_eq!(whole, Digest::of(&content));
        assert_eq!(list.digests.len(), 3);
        for (index, digest) in list.digests.iter().enumerate() {
            let range = list.range(index);
            let part = &content[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
            assert_eq!(*digest, Digest::of(part));
        }
        let json = list.to_json().unwrap();
        assert!(json.len() as u64 <= ChunkList::limit(list.size));
        assert_eq!(ChunkList::parse(&json, &blob(&content)), Ok(list));
    }

    #[test]
    fn the_bytes_of_a_list_are_as_documented() {
        let list = ChunkList { size: 1, chunk: CHUNK, digests: vec![Digest::of(b"x")] };
        let json = String::from_utf8(list.to_json().unwrap()).unwrap();
        let digest = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(json, format!(r#"{{"size":1,"chunk":1048576,"digests":["{digest}"]}}"#));
    }

    #[test]
    fn what_is_small_needs_no_list() {
        assert_eq!(ChunkList::of_small(&blob(b"x")).unwrap().digests, [Digest::of(b"x")]);
        assert_eq!(ChunkList::of_small(&blob(b"")).unwrap().digests, []);
        assert_eq!(ChunkList::of_small(&BlobRef { digest: Digest::of(b"x"), size: CHUNK + 1 }), None);
    }

    #[test]
    fn a_list_of_the_largest_blob_stays_small() {
        for size in [1 << 34, (1 << 34) + 1, 1 << 40, u64::MAX] {
            assert!(count_of(size) <= MAX_CHUNKS && ChunkList::limit(size) < 2 << 20);
        }
        assert_eq!((chunk_of(1 << 34), chunk_of((1 << 34) + 1)), (CHUNK, 2 * CHUNK));
    }

    #[test]
    fn a_list_of_another_shape_is_none() {
        let of = BlobRef { digest: Digest::of(b"x"), size: CHUNK + 1 };
        let good = ChunkList { size: of.size, chunk: CHUNK, digests: vec![of.digest; 2] };
        let parse = |list: &ChunkList| ChunkList::parse(&list.to_json().unwrap(), &of).unwrap_err();
        assert_eq!(parse(&ChunkList { size: 7, ..good.clone() }), NoList::Size(7));
        assert_eq!(parse(&ChunkList { chunk: 0, ..good.clone() }), NoList::Chunk(0));
        assert_eq!(parse(&ChunkList { digests: vec![of.digest], ..good.clone() }), NoList::Count(1));
        assert_eq!(parse(&ChunkList { digests: vec![of.digest; 30], ..good }), NoList::Unreadable);
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_gives_no_list() {
        assert!(ChunkList::compute(&b"abc"[..], 2).is_err());
        assert!(ChunkList::compute(&b"abc"[..], 4).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_list_of_the_right_shape_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in any::<u64>()) {
            if let Ok(list) = ChunkList::parse(&bytes, &BlobRef { digest: Digest::of(b""), size }) {
                prop_assert_eq!(list.digests.len() as u64, count_of(size));
            }
        }

        #[test]
        fn the_chunks_of_any_size_cover_it_once(size in any::<u64>()) {
            let list = ChunkList { size, chunk: chunk_of(size), digests: Vec::new() };
            let count = usize::try_from(count_of(size)).unwrap();
            let mut at = 0;
            for index in 0..count {
                let range = list.range(index);
                prop_assert!(range.start == at && range.end > at);
                at = range.end;
            }
            prop_assert_eq!(at, size);
        }
    }
}
