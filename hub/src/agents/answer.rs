//! Answers: a status, few headers, and a content that is in memory, shared between many, or read from a file as it goes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use kedge_model::wire::WireProblem;
use serde::Serialize;

use super::file::FileContent;
use crate::store::StoreError;

pub type Answer = Response<Content>;

/// What an answer carries.
#[derive(Debug, Default)]
pub enum Content {
    #[default]
    Empty,
    Whole(Bytes),
    /// Three pieces in order; the middle one is shared by all who are told the same.
    Pieces([Bytes; 3]),
    File(Box<FileContent>),
}

/// Why a request is refused, and what happens next.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    /// A stable word.
    pub reason: &'static str,
    pub message: String,
    pub hint: Option<&'static str>,
    /// Seconds after which another try makes sense.
    pub retry_after: Option<u64>,
    /// The rest of the request isn't read, so that the connection can't go on.
    pub close: bool,
}

/// A database that is away comes back in seconds; a spread keeps its return bearable.
const RETRY_SECONDS: std::ops::RangeInclusive<u64> = 5..=15;

impl Refusal {
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { status, reason, message: message.into(), hint: None, retry_after: None, close: false }
    }

    pub fn hint(self, hint: &'static str) -> Refusal {
        Refusal { hint: Some(hint), ..self }
    }

    pub fn closing(self) -> Refusal {
        Refusal { close: true, ..self }
    }

    pub fn unavailable() -> Refusal {
        let refusal =
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "Unavailable", "the hub can't reach its database now");
        Refusal { retry_after: Some(rand::random_range(RETRY_SECONDS)), ..refusal }
    }

    pub fn internal() -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", "the hub failed; see its log for the reason")
    }

    pub fn answer(self) -> Answer {
        let problem =
            WireProblem { reason: self.reason.to_owned(), message: self.message, hint: self.hint.map(str::to_owned) };
        let mut answer = json(self.status, &problem);
        if let Some(seconds) = self.retry_after {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.close {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::Unavailable(why) => {
                tracing::warn!(error = %why, "the database can't be reached");
                Refusal::unavailable()
            }
            other => {
                tracing::error!(error = %other, source = ?std::error::Error::source(&other), "the database failed");
                Refusal::internal()
            }
        }
    }
}

/// An answer in JSON.
pub fn json<T: Serialize>(status: StatusCode, message: &T) -> Answer {
    match serde_json::to_vec(message) {
        Ok(bytes) => with_type(status, Content::Whole(bytes.into())),
        Err(why) => {
            tracing::error!(error = %why, "an answer can't be written");
            bare(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

/// JSON that is written already.
pub fn with_type(status: StatusCode, content: Content) -> Answer {
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// A status alone.
pub fn bare(status: StatusCode) -> Answer {
    let mut answer = Response::new(Content::Empty);
    *answer.status_mut() = status;
    answer
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let next = match &mut *self {
            Content::Empty => None,
            Content::Whole(bytes) => Some(std::mem::take(bytes)),
            Content::Pieces(pieces) => pieces.iter_mut().find(|piece| !piece.is_empty()).map(std::mem::take),
            Content::File(file) => {
                return Pin::new(&mut **file).poll_piece(cx).map(|piece| piece.map(|read| read.map(Frame::data)));
            }
        };
        Poll::Ready(next.filter(|bytes| !bytes.is_empty()).map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

impl Content {
    fn left(&self) -> u64 {
        match self {
            Content::Empty => 0,
            Content::Whole(bytes) => bytes.len() as u64,
            Content::Pieces(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            Content::File(file) => file.left(),
        }
    }
}
