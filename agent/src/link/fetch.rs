//! Blobs by digest, resumed where they broke off: streamed to disk as they come, checked as they are written, and renamed into the
//! objects when they are whole. Space is looked at first. `run` fetches what a state names before anything is applied.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_RANGE, HeaderMap, HeaderValue, IF_RANGE, RANGE};
use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use kedge_model::wire::{BlobRef, Digest};

use super::HubLink;
use super::connection::{self, Connection};
use super::error::{LinkError, Next};
use super::pace::Backoff;
use super::partial::{self, Partial};
use crate::objects::Objects;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Passes when something is collected or a person makes room.
    #[error("{need} bytes are needed and {free} are free")]
    DiskFull { need: u64, free: u64 },
    /// The hub has it no more, or no state names it: another state will.
    #[error("the hub doesn't give {digest}: {message}")]
    Gone { digest: Digest, message: String },
    /// Again and again.
    #[error("what came as {digest} is something else")]
    Wrong { digest: Digest },
    #[error("{0} can't be fetched")]
    Link(Digest, #[source] Box<LinkError>),
    #[error("{0} can't be written")]
    Disk(Digest, #[source] io::Error),
}

/// How one answer ended.
enum Ended {
    Whole,
    /// The connection broke; what came stays.
    Cut(LinkError),
}

/// Left for logs, journals and dpkg.
pub const RESERVE: u64 = 64 * 1024 * 1024;
/// Without a byte of progress between them; then the caller's own backoff.
const TRIES: u32 = 4;
/// Whole downloads that turned out to be something else.
const WRONG_TRIES: u32 = 2;
/// The head of an answer; the hub may wait for its disk.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// A link that brings nothing for so long is cut.
const PIECE_WITHIN: Duration = Duration::from_secs(60);

impl HubLink {
    /// The blob is an object when this returns. May be stopped at any point, and goes on from there.
    pub async fn fetch(&self, blob: &BlobRef, objects: &Objects) -> Result<(), FetchError> {
        let (digest, disk) = (blob.digest, |why: io::Error| of_disk(blob, 0, &self.partial, why));
        if objects.has(&digest) {
            return Ok(());
        }
        let mut partial = Partial::open(&self.partial, &digest, blob.size).await.map_err(disk)?;
        let (mut backoff, mut wrong) = (Backoff::default(), 0);
        loop {
            let before = partial.length();
            let ended = match before == blob.size {
                true => Ended::Whole,
                false => {
                    check_space(blob, before, &self.partial)?;
                    self.continue_with(&mut partial, blob).await?
                }
            };
            match ended {
                Ended::Whole if partial.digest() == digest => return self.adopt(partial, objects, digest).await,
                Ended::Whole => {
                    wrong += 1;
                    tracing::warn!(%digest, "a download has the wrong digest and begins anew");
                    partial.restart().map_err(|why| FetchError::Disk(digest, why))?;
                    if wrong >= WRONG_TRIES {
                        _ = partial.remove();
                        return Err(FetchError::Wrong { digest });
                    }
                }
                Ended::Cut(error) => {
                    if partial.length() > before {
                        backoff.reset();
                    }
                    if backoff.tries() >= TRIES || error.next() != Next::Backoff {
                        return Err(FetchError::Link(digest, Box::new(error)));
                    }
                    let wait = backoff.next(rand::random_range(0.0..1.0));
                    tracing::debug!(%digest, have = partial.length(), error = error.sentence(), "a download goes on soon");
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    async fn continue_with(&self, partial: &mut Partial, blob: &BlobRef) -> Result<Ended, FetchError> {
        let (connection, answer) = match self.ask_for(partial.length(), blob).await {
            Ok(both) => both,
            Err(error) => return Ok(Ended::Cut(error)),
        };
        let disk = |why: io::Error| FetchError::Disk(blob.digest, why);
        match answer.status() {
            StatusCode::PARTIAL_CONTENT if range_start(answer.headers()) == Some(partial.length()) => {}
            StatusCode::OK => partial.restart().map_err(disk)?,
            // Not what was asked for: from the beginning with the next try.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                partial.restart().map_err(disk)?;
                let why = io::Error::new(io::ErrorKind::InvalidData, "the hub gave another range");
                return Ok(Ended::Cut(connection::broken(&self.address, why)));
            }
            _ => {
                return match connection::refused(&self.address, answer).await {
                    LinkError::Refused { status: 404, problem, .. } => {
                        self.keep(connection);
                        Err(FetchError::Gone { digest: blob.digest, message: problem.message })
                    }
                    error => Ok(Ended::Cut(error)),
                };
            }
        }
        let left = blob.size - partial.length();
        if answer.body().size_hint().exact().is_some_and(|length| length != left) {
            return Err(FetchError::Wrong { digest: blob.digest });
        }
        let ended = self.take(answer.into_body(), partial, blob).await?;
        if matches!(ended, Ended::Whole) {
            self.keep(connection);
        }
        Ok(ended)
    }

    async fn take(&self, mut body: Incoming, partial: &mut Partial, blob: &BlobRef) -> Result<Ended, FetchError> {
        let cut = |error| Ok(Ended::Cut(error));
        loop {
            let piece: Bytes = match tokio::time::timeout(PIECE_WITHIN, body.frame()).await {
                Err(_) => return cut(self.address.slow("go on with a download", PIECE_WITHIN)),
                Ok(Some(Err(error))) => return cut(connection::broken(&self.address, error)),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None) if partial.length() == blob.size => return Ok(Ended::Whole),
                Ok(None) => {
                    return cut(connection::broken(&self.address, io::Error::from(io::ErrorKind::UnexpectedEof)));
                }
            };
            if partial.length() + piece.len() as u64 > blob.size {
                return Err(FetchError::Wrong { digest: blob.digest });
            }
            let failed = |why, have| of_disk(blob, have, &self.partial, why);
            partial.append(&piece).map_err(|why| failed(why, partial.length()))?;
            if let Some(file) = partial.due_for_sync().map_err(|why| failed(why, partial.length()))? {
                let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
                synced.map_err(io::Error::other).flatten().map_err(|why| failed(why, partial.length()))?;
            }
        }
    }

    async fn ask_for(&self, from: u64, blob: &BlobRef) -> Result<(Connection, Response<Incoming>), LinkError> {
        let path = format!("/agent/v1/blobs/{}", blob.digest);
        let mut headers = HeaderMap::new();
        if from > 0 {
            let value =
                |text: String| HeaderValue::try_from(text).map_err(|why| connection::broken(&self.address, why));
            headers.insert(RANGE, value(format!("bytes={from}-"))?);
            headers.insert(IF_RANGE, value(format!("\"{}\"", blob.digest))?);
        }
        if let Some(mut kept) = self.idle() {
            match kept.send(Method::GET, &path, headers.clone(), Bytes::new(), HEAD_WITHIN).await {
                Ok(answer) => return Ok((kept, answer)),
                Err(failed) if failed.stale => {}
                Err(failed) => return Err(failed.error),
            }
        }
        let mut fresh = self.connect().await?;
        match fresh.send(Method::GET, &path, headers, Bytes::new(), HEAD_WITHIN).await {
            Ok(answer) => Ok((fresh, answer)),
            Err(failed) => Err(failed.error),
        }
    }

    /// Syncing gigabytes takes its time: elsewhere, so that polls go on.
    async fn adopt(&self, partial: Partial, objects: &Objects, digest: Digest) -> Result<(), FetchError> {
        let objects = objects.clone();
        let adopted = tokio::task::spawn_blocking(move || objects.adopt(partial.path(), &digest)).await;
        adopted.map_err(io::Error::other).flatten().map_err(|why| FetchError::Disk(digest, why))
    }
}

impl FetchError {
    /// Whether it may go well later without anybody's doing.
    pub fn passes(&self) -> bool {
        match self {
            FetchError::DiskFull { .. } | FetchError::Wrong { .. } | FetchError::Disk(..) => true,
            FetchError::Link(_, error) => !matches!(error.next(), Next::Drop),
            FetchError::Gone { .. } => false,
        }
    }
}

/// Where room is short, what is there of other downloads goes first: nobody may need them any more.
pub(crate) fn check_space(blob: &BlobRef, have: u64, folder: &std::path::Path) -> Result<(), FetchError> {
    let need = blob.size.saturating_sub(have).saturating_add(RESERVE);
    let failed = |why| FetchError::Disk(blob.digest, why);
    let mut free = space(folder).map_err(failed)?;
    if free < need && partial::sweep_others(folder, &blob.digest).map_err(failed)? > 0 {
        free = space(folder).map_err(failed)?;
    }
    if free < need { Err(FetchError::DiskFull { need, free }) } else { Ok(()) }
}

/// Bytes that this process may still write there.
#[allow(clippy::useless_conversion, reason = "the counts have 32 bits on some of our targets")]
fn space(folder: &std::path::Path) -> io::Result<u64> {
    let stat = nix::sys::statvfs::statvfs(folder)?;
    Ok(u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size())))
}

pub(crate) fn of_disk(blob: &BlobRef, have: u64, folder: &std::path::Path, why: io::Error) -> FetchError {
    match why.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FetchError::DiskFull {
            need: blob.size.saturating_sub(have).saturating_add(RESERVE),
            free: space(folder).unwrap_or(0),
        },
        _ => FetchError::Disk(blob.digest, why),
    }
}

/// Where an answer's range begins: `bytes FIRST-LAST/LENGTH`.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    text.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_disk_that_fills_up_meanwhile_is_said_with_what_is_needed() {
        let (folder, blob) = (tempfile::tempdir().unwrap(), BlobRef { digest: Digest::of(b"x"), size: 100 });
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let error = of_disk(&blob, 40, folder.path(), kind.into());
            assert!(
                matches!(error, FetchError::DiskFull { need, free } if need == 60 + RESERVE && free > 0),
                "{error}"
            );
        }
        let error = of_disk(&blob, 0, folder.path(), io::ErrorKind::PermissionDenied.into());
        assert!(matches!(error, FetchError::Disk(..)));
    }

    proptest! {
        #[test]
        fn a_range_of_any_text_is_a_number_or_none(text in "[ -~]{0,60}") {
            let headers = |text: &str| {
                let mut headers = HeaderMap::new();
                headers.insert(CONTENT_RANGE, HeaderValue::try_from(text).unwrap());
                headers
            };
            _ = range_start(&headers(&text));
            prop_assert_eq!(range_start(&headers("bytes 7-9/10")), Some(7));
        }
    }
}
