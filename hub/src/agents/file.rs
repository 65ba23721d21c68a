//! A part of a file as the content of an answer: read in small pieces, only as fast as the other side takes them.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::fs::File;
use tokio::io::{AsyncRead as _, AsyncSeekExt as _, ReadBuf};

use crate::connections::shares::Share;

/// A file and how much of it is still to come.
#[derive(Debug)]
pub struct FileContent {
    file: File,
    left: u64,
    /// Its place among the downloads.
    _slot: Share,
}

/// What a connection holds of a package at one time.
const PIECE: u64 = 32 * 1024;

impl FileContent {
    /// `length` bytes from `start` on.
    pub async fn part(mut file: File, start: u64, length: u64, slot: Share) -> io::Result<FileContent> {
        file.set_max_buf_size(PIECE as usize);
        if start > 0 {
            file.seek(SeekFrom::Start(start)).await?;
        }
        Ok(FileContent { file, left: length, _slot: slot })
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn poll_piece(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut piece = BytesMut::zeroed(self.left.min(PIECE) as usize);
        let mut buffer = ReadBuf::new(&mut piece);
        if let Err(error) = ready!(Pin::new(&mut self.file).poll_read(cx, &mut buffer)) {
            return Poll::Ready(Some(Err(error)));
        }
        let read = buffer.filled().len();
        if read == 0 {
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file was cut meanwhile"))));
        }
        piece.truncate(read);
        self.left -= read as u64;
        Poll::Ready(Some(Ok(piece.freeze())))
    }
}
