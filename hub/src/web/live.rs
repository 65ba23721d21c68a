//! `/live`: server-sent events that say when something changed. What changed, a page asks for itself.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream};
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::session::Proven;
use super::{Viewer, WebError};
use crate::api::answer::ApiError;
use crate::api::{ApiState, ticks};

/// A page that hears nothing for two of these says that the connection is lost.
const ALIVE: Duration = Duration::from_secs(5);
/// A session that ended is noticed within this, also when nothing else happens.
const CHECKED: Duration = Duration::from_secs(2);
/// A stream ends after this and the browser comes back.
const LONGEST: Duration = Duration::from_secs(10 * 60);

/// One browser that listens.
struct Listener {
    state: ApiState,
    shutdown: watch::Receiver<bool>,
    /// Who listens: told nothing once that has ended.
    proven: Proven,
    checked: tokio::time::Instant,
    seen: Option<i64>,
    until: tokio::time::Instant,
    _place: OwnedSemaphorePermit,
}

pub async fn news(
    State(state): State<ApiState>,
    _viewer: Viewer,
    Extension(proven): Extension<Proven>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, WebError> {
    let place = std::sync::Arc::clone(&state.watchers).try_acquire_owned().map_err(|_| {
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyWatchers", "too many are waiting for changes already")
            .retry_after(10)
    })?;
    let checked = tokio::time::Instant::now();
    let (shutdown, until) = (state.shutdown.clone(), checked + LONGEST);
    let listener = Listener { shutdown, state, proven, checked, seen: None, until, _place: place };
    let events = stream::unfold(listener, async |mut listener| {
        let tick = listener.next().await?;
        Some((Ok(Event::default().event("tick").data(tick.to_string())), listener))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE).event(Event::default().event("alive").data("."))))
}

impl Listener {
    /// None: a revoked token, a removed person, a session that ended. False: nobody can say now.
    async fn may_go_on(&mut self) -> Option<bool> {
        match self.proven.stands(&self.state).await {
            Ok(false) => None,
            Ok(true) => {
                self.checked = tokio::time::Instant::now();
                Some(true)
            }
            Err(_) => {
                let _ = tokio::time::timeout(ticks::FRESH, self.shutdown.changed()).await;
                Some(false)
            }
        }
    }

    /// The number of the newest change, once it is another one; none ends the stream.
    async fn next(&mut self) -> Option<i64> {
        loop {
            if *self.shutdown.borrow_and_update() || tokio::time::Instant::now() >= self.until {
                return None;
            }
            // A database that is away says nothing new; it is asked again.
            let tick = self.state.ticks.current(&self.state.store).await.ok().filter(|tick| self.seen != Some(*tick));
            if (tick.is_some() || self.checked.elapsed() > CHECKED) && !self.may_go_on().await? {
                continue;
            }
            if let Some(tick) = tick {
                self.seen = Some(tick);
                return Some(tick);
            }
            let _ = tokio::time::timeout(ticks::FRESH, self.shutdown.changed()).await;
        }
    }
}
