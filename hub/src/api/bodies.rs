//! Bodies of requests while they are read: one token has a few under way, and each must come at a pace. Whoever holds connections open
//! with bodies that never end would else keep everybody out. Used by the gates of the API and of the page.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::answer::ApiError;

/// Bodies that are being read, by who sends them.
#[derive(Debug, Default)]
pub struct Bodies {
    under_way: Mutex<HashMap<String, usize>>,
}

/// A place among them; free again when it is dropped.
#[derive(Debug)]
struct Place {
    bodies: Arc<Bodies>,
    whose: String,
}

/// A body that ends with an error when nothing comes for too long, or too little.
#[derive(Debug)]
struct Paced {
    inner: Body,
    idle: Pin<Box<Sleep>>,
    begun: Instant,
    read: u64,
    place: Option<Place>,
}

#[derive(Debug, thiserror::Error)]
#[error("the body of the request comes too slowly")]
struct TooSlow;

/// A script with several commands at once needs a few.
const MOST: usize = 16;
/// A thin link loses a packet and sends it again within this.
const IDLE: Duration = Duration::from_secs(10);
/// By then a pace can be told from a slow start.
const START: Duration = Duration::from_secs(20);
/// Bytes in a second: less than any link that carries a file in ten minutes.
const PACE: u64 = 1024;
const BUSY_RETRY_S: u64 = 2;

impl Bodies {
    /// The same request with its body watched; one without a body is left alone.
    pub fn watch(self: &Arc<Bodies>, whose: &str, request: Request) -> Result<Request, ApiError> {
        if request.body().is_end_stream() {
            return Ok(request);
        }
        let place = self.begin(whose).ok_or_else(|| {
            ApiError::new(
                StatusCode::TOO_MANY_REQUESTS,
                "TooManyBodies",
                "too many requests of yours are still coming in",
            )
            .hint("send one after the other")
            .retry_after(BUSY_RETRY_S)
        })?;
        Ok(request.map(|inner| {
            let idle = Box::pin(tokio::time::sleep(IDLE));
            Body::new(Paced { inner, idle, begun: Instant::now(), read: 0, place: Some(place) })
        }))
    }

    fn begin(self: &Arc<Bodies>, whose: &str) -> Option<Place> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let count = under_way.get(whose).copied().unwrap_or_default();
        if count >= MOST {
            return None;
        }
        under_way.insert(whose.to_owned(), count + 1);
        Some(Place { bodies: Arc::clone(self), whose: whose.to_owned() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = self.bodies.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        match under_way.get_mut(&self.whose) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(under_way.remove(&self.whose)),
        }
    }
}

impl Paced {
    fn is_slow(&self) -> bool {
        let spent = self.begun.elapsed();
        spent > START && self.read < spent.as_secs() * PACE
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.read += frame.data_ref().map_or(0, |data| data.len() as u64);
                let until = Instant::now() + IDLE;
                self.idle.as_mut().reset(until);
                match self.is_slow() {
                    true => Poll::Ready(Some(Err(axum::Error::new(TooSlow)))),
                    false => Poll::Ready(Some(Ok(frame))),
                }
            }
            Poll::Ready(end) => {
                self.place = None;
                Poll::Ready(end)
            }
            Poll::Pending => match self.idle.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(Some(Err(axum::Error::new(TooSlow)))),
                Poll::Pending => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn never() -> Request {
        let silent = stream::pending::<Result<Bytes, std::io::Error>>();
        Request::new(Body::from_stream(silent))
    }

    #[tokio::test]
    async fn one_token_has_a_few_bodies_under_way_and_others_have_theirs() {
        let bodies = Arc::new(Bodies::default());
        let mut held: Vec<Request> = (0..MOST).map(|_| bodies.watch("a", never()).unwrap()).collect();
        assert_eq!(bodies.watch("a", never()).unwrap_err().status, StatusCode::TOO_MANY_REQUESTS);
        assert!(bodies.watch("a", Request::new(Body::empty())).is_ok(), "without a body");
        bodies.watch("b", never()).unwrap();
        held.pop();
        bodies.watch("a", never()).unwrap();
        drop(held);
        assert!(bodies.under_way.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_or_drips_ends_and_one_that_comes_does_not() {
        let bodies = Arc::new(Bodies::default());
        let read = async |request: Request| axum::body::to_bytes(request.into_body(), 1 << 20).await;
        let begun = Instant::now();
        assert!(read(bodies.watch("a", never()).unwrap()).await.is_err());
        assert!(begun.elapsed() < Duration::from_secs(11));
        let drip = |size: usize, pieces: usize| {
            let pieces = stream::unfold(pieces, move |left| async move {
                tokio::time::sleep(Duration::from_secs(5)).await;
                (left > 0).then(|| (Ok::<_, std::io::Error>(Bytes::from(vec![0; size])), left - 1))
            });
            Request::new(Body::from_stream(pieces))
        };
        assert!(read(bodies.watch("a", drip(1, 100)).unwrap()).await.is_err());
        assert_eq!(read(bodies.watch("a", drip(8192, 20)).unwrap()).await.unwrap().len(), 20 * 8192);
    }
}
