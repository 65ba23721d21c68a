//! What others are given of the own objects: lists of chunks and ranges of bytes, piece by piece and never a whole file in memory.
//! The peers' listener asks, after it has checked that the peer may have the blob; it bounds how many ask, how fast and how long.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use kedge_model::wire::{BlobRef, Digest};
use tokio::sync::Mutex;

use super::chunks::{CHUNK, ChunkList};
use super::lists::Lists;
use crate::objects::Objects;
use crate::paths::Paths;

/// Cheap to clone.
#[derive(Clone, Debug)]
pub struct Server {
    objects: Objects,
    lists: Lists,
    /// One blob is read for its list at a time, whatever is asked for.
    reading: Arc<Mutex<()>>,
}

/// A range of a blob.
pub struct Served {
    pub range: Range<u64>,
    /// Of the whole blob.
    pub size: u64,
    pub body: BoxStream<'static, io::Result<Bytes>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// 404.
    #[error("it isn't here")]
    Gone,
    /// 416, with the size.
    #[error("of {0} bytes there is no such range")]
    Range(u64),
    /// 500.
    #[error("it can't be read")]
    Disk(#[source] io::Error),
}

/// What is read of a file at one time, and so what one answer holds in memory.
const PIECE: u64 = 64 * 1024;

impl Server {
    pub fn new(paths: &Paths, objects: Objects) -> Server {
        Server { objects, lists: Lists::of(paths), reading: Arc::default() }
    }

    /// The list of chunks as JSON. The first who asks waits until the blob was read; it is read to the end if he doesn't.
    pub async fn chunks(&self, digest: &Digest) -> Result<Bytes, ServeError> {
        let size = self.objects.size(digest).map_err(gone)?;
        let blob = BlobRef { digest: *digest, size };
        if let Some(json) = self.known(&blob) {
            return Ok(json);
        }
        let turn = Arc::clone(&self.reading).lock_owned().await;
        if let Some(json) = self.known(&blob) {
            return Ok(json);
        }
        let here = self.clone();
        let made = tokio::task::spawn_blocking(move || {
            let made = here.make(&blob);
            drop(turn);
            made
        });
        made.await.map_err(|why| ServeError::Disk(io::Error::other(why)))?
    }

    /// The bytes that a `Range` header asks for, or all.
    pub fn range(&self, digest: &Digest, header: Option<&str>) -> Result<Served, ServeError> {
        let file = self.objects.read(digest).map_err(gone)?;
        let size = file.metadata().map_err(ServeError::Disk)?.len();
        let range = wanted(header, size).ok_or(ServeError::Range(size))?;
        Ok(Served { body: body(file, range.clone()), range, size })
    }

    fn known(&self, blob: &BlobRef) -> Option<Bytes> {
        match ChunkList::of_small(blob) {
            Some(list) => list.to_json().ok().map(Bytes::from),
            None => self.lists.read(blob).map(|(_, json)| Bytes::from(json)),
        }
    }

    fn make(&self, blob: &BlobRef) -> Result<Bytes, ServeError> {
        let file = self.objects.read(&blob.digest).map_err(gone)?;
        let (list, whole) = ChunkList::compute(file, blob.size).map_err(ServeError::Disk)?;
        if whole != blob.digest {
            tracing::warn!(digest = %blob.digest, "an object was damaged on the disk and is removed");
            _ = self.objects.remove(&blob.digest);
            return Err(ServeError::Gone);
        }
        self.lists.keep(&blob.digest, &list);
        list.to_json().map(Bytes::from).map_err(|why| ServeError::Disk(why.into()))
    }
}

impl Served {
    /// Whether it is less than the whole: 206 with a `Content-Range`.
    pub fn is_partial(&self) -> bool {
        self.range != (0..self.size)
    }

    /// The value of `Content-Range`.
    pub fn content_range(&self) -> String {
        format!("bytes {}-{}/{}", self.range.start, self.range.end.saturating_sub(1), self.size)
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Served({})", self.content_range())
    }
}

/// The one range of a `Range` header that lies in so many bytes: `bytes=FIRST-LAST` or `bytes=FIRST-`.
fn wanted(header: Option<&str>, size: u64) -> Option<Range<u64>> {
    let Some(header) = header else { return Some(0..size) };
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let first: u64 = first.parse().ok()?;
    let end = match last {
        "" => size,
        last => last.parse::<u64>().ok()?.checked_add(1)?.min(size),
    };
    (first < end).then_some(first..end)
}

fn body(file: File, range: Range<u64>) -> BoxStream<'static, io::Result<Bytes>> {
    let begin = (Arc::new(file), range);
    stream::try_unfold(begin, |(file, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let (length, read_from) = ((range.end - range.start).min(PIECE), Arc::clone(&file));
        let piece = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; usize::try_from(length).unwrap_or(0)];
            read_from.read_exact_at(&mut piece, range.start).map(|()| piece)
        });
        let piece = piece.await.map_err(io::Error::other).flatten()?;
        Ok(Some((Bytes::from(piece), (file, range.start + length..range.end))))
    })
    .boxed()
}

fn gone(why: io::Error) -> ServeError {
    if why.kind() == io::ErrorKind::NotFound { ServeError::Gone } else { ServeError::Disk(why) }
}

/// A chunk is served in whole pieces.
const _: () = assert!(PIECE <= CHUNK && CHUNK.is_multiple_of(PIECE));

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server() -> (tempfile::TempDir, Server) {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let objects = Objects::open(&paths.objects()).unwrap();
        (folder, Server::new(&paths, objects))
    }

    async fn read(served: Served) -> io::Result<Vec<u8>> {
        let mut body = served.body;
        let mut all = Vec::new();
        while let Some(piece) = body.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_range_is_exactly_what_was_asked_for() {
        let (_folder, server) = server();
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 241) as u8).collect();
        let digest = server.objects.put(&content).unwrap();
        let whole = server.range(&digest, None).unwrap();
        assert!(!whole.is_partial());
        assert_eq!(read(whole).await.unwrap(), content);
        let part = server.range(&digest, Some("bytes=65535-131072")).unwrap();
        assert_eq!((part.is_partial(), part.content_range()), (true, "bytes 65535-131072/200000".to_owned()));
        assert_eq!(read(part).await.unwrap(), &content[65_535..=131_072]);
        let refused = server.range(&digest, Some("bytes=200000-"));
        assert!(matches!(refused, Err(ServeError::Range(200_000))));
        assert!(matches!(server.range(&Digest::of(b"other"), None), Err(ServeError::Gone)));
    }

    #[tokio::test]
    async fn a_file_that_is_cut_while_it_is_served_ends_in_an_error() {
        let (_folder, server) = server();
        let digest = server.objects.put(&vec![7; 200_000]).unwrap();
        let mut served = server.range(&digest, None).unwrap();
        served.body.next().await.unwrap().unwrap();
        std::fs::OpenOptions::new().write(true).open(server.objects.path(&digest)).unwrap().set_len(100_000).unwrap();
        assert_eq!(read(served).await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_list_is_made_once_and_never_of_a_damaged_object() {
        let (_folder, server) = server();
        let content = vec![3; 2 << 20];
        let digest = server.objects.put(&content).unwrap();
        let blob = BlobRef { digest, size: content.len() as u64 };
        let json = server.chunks(&digest).await.unwrap();
        assert_eq!(ChunkList::parse(&json, &blob).unwrap().digests, [Digest::of(&content[..1 << 20]); 2]);
        assert!(server.lists.read(&blob).is_some());
        let other = server.objects.put(&vec![4; 2 << 20]).unwrap();
        std::fs::write(server.objects.path(&other), vec![5; 2 << 20]).unwrap();
        assert!(matches!(server.chunks(&other).await, Err(ServeError::Gone)));
        assert!(!server.objects.has(&other));
    }

    #[tokio::test]
    async fn a_small_blob_is_its_own_list() {
        let (_folder, server) = server();
        let digest = server.objects.put(b"small").unwrap();
        let json = server.chunks(&digest).await.unwrap();
        assert_eq!(ChunkList::parse(&json, &BlobRef { digest, size: 5 }).unwrap().digests, [digest]);
    }

    proptest! {
        #[test]
        fn any_header_is_a_range_inside_or_none(header in "(bytes=)?[0-9,-]{0,24}", size in any::<u64>()) {
            if let Some(range) = wanted(Some(&header), size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
