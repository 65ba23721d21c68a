//! Brings events to one destination: reads the history, sends what the destination asked for, and remembers how far it got.
//! At least once, in order for each subject, with bounded memory, for as long as it takes. Run by `Events::lead`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kedge_hub_types::history::Recorded;
use kedge_model::wire::Timestamp;
use ring::hmac;
use tokio::time::Instant;

use super::cloud::{CloudEvent, Source, subject_of};
use super::delivery::{DeliveryError, deliver};
use super::window::{MOST, Pending, Window};
use super::{problem, sign};
use crate::config::Destination;
use crate::store::events::Delivery;
use crate::store::{Store, StoreError, Term, now};

pub(super) struct EventDispatcher {
    store: Store,
    term: Term,
    destination: Destination,
    source: Arc<Source>,
    window: Window,
    /// What is true now, and what the database says.
    delivery: Delivery,
    saved: Delivery,
    saved_at: Instant,
    /// Requests in a row that the destination didn't answer well.
    failures: u32,
    /// It is left alone until then.
    rest: Option<Instant>,
    /// People were told that it fails.
    told: bool,
    pub(super) pace: Pace,
}

/// How patient it is. Tests are less so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Between two looks for new entries; also how often progress is saved.
    pub look: Duration,
    /// After the first failure, then twice as long each time, up to the longest.
    pub first: Duration,
    pub longest: Duration,
    /// An event that the destination refuses for so long is given up, so that it doesn't hold what comes after it for ever.
    pub refused: Duration,
    /// A destination that fails for so long needs a person.
    pub problem: Duration,
}

/// Subjects that are told at once.
const AT_ONCE: usize = 16;
const PACE: Pace = Pace {
    look: Duration::from_secs(1),
    first: Duration::from_secs(1),
    longest: Duration::from_secs(300),
    refused: Duration::from_secs(3600),
    problem: Duration::from_secs(3600),
};
/// Of an error's text.
const MOST_SAID: usize = 300;

impl EventDispatcher {
    pub(super) fn new(
        store: Store,
        term: Term,
        destination: Destination,
        delivery: Delivery,
        source: Arc<Source>,
    ) -> EventDispatcher {
        EventDispatcher {
            window: Window::new(delivery.entry),
            saved: delivery.clone(),
            delivery,
            store,
            term,
            destination,
            source,
            saved_at: Instant::now(),
            failures: 0,
            rest: None,
            told: false,
            pace: PACE,
        }
    }

    /// Ends with the term only.
    pub(super) async fn run(mut self) {
        loop {
            let mut idle = !self.step().await;
            if idle || self.saved_at.elapsed() >= self.pace.look {
                match self.save().await {
                    Ok(()) => {}
                    Err(StoreError::Fenced(_)) => return,
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::warn!(error, "it can't be kept how far events were sent; trying again");
                        idle = true;
                    }
                }
            }
            if idle {
                tokio::time::sleep_until(self.wake()).await;
            }
        }
    }

    /// Reads and sends what can be now. False: there was nothing to do.
    async fn step(&mut self) -> bool {
        let read = match self.refill().await {
            Ok(read) => read,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the history can't be read for events; trying again");
                return false;
            }
        };
        let now = Instant::now();
        if self.rest.is_some_and(|until| now < until) {
            return false;
        }
        // One that is away is asked with a single event until it answers.
        let most = if self.failures == 0 { AT_ONCE } else { 1 };
        let ready = self.window.ready(now, most);
        if ready.is_empty() {
            return read;
        }
        let key = match self.key() {
            Ok(key) => key,
            Err(why) => {
                self.away(why, None);
                return true;
            }
        };
        let sent = join_all(ready.iter().map(|pending| self.send(pending, &key))).await;
        let failures: Vec<_> =
            ready.iter().zip(sent).filter_map(|(pending, result)| self.sent(pending, result)).collect();
        // However many of a round failed: the destination failed once.
        if let Some((why, _)) = failures.first().cloned() {
            let wait = failures.into_iter().filter_map(|(_, wait)| wait).max();
            self.away(why, wait);
        }
        true
    }

    /// Whether anything was read.
    async fn refill(&mut self) -> Result<bool, StoreError> {
        // Half a window at once: reading a row for each one that was sent would cost more than the sending.
        let room = self.window.room();
        if room < MOST / 2 {
            return Ok(false);
        }
        let entries = self.store.history_after(self.window.read(), room).await?;
        let any = !entries.is_empty();
        for entry in entries {
            let subject = self.wants(&entry).then(|| subject_of(&entry));
            self.window.take(entry, subject);
        }
        Ok(any)
    }

    fn wants(&self, entry: &Recorded) -> bool {
        let Destination { kinds, environments, .. } = &self.destination;
        // What is of no environment concerns them all.
        let here = environments.is_empty()
            || entry.place.environment.is_empty()
            || environments.contains(&entry.place.environment);
        here && kinds.iter().any(|kind| kind.covers(entry))
    }

    /// Read anew each time, so that it can be changed.
    fn key(&self) -> Result<hmac::Key, String> {
        let file = &self.destination.secret_file;
        let text = std::fs::read_to_string(file).map_err(|error| format!("its secret can't be read: {error}"))?;
        sign::key(&text).ok_or_else(|| format!("{} holds no secret that can be used", file.display()))
    }

    async fn send(&self, pending: &Pending, key: &hmac::Key) -> Result<(), DeliveryError> {
        let event = CloudEvent::of(&pending.entry, &self.source);
        let body = serde_json::to_vec(&event).map_err(|_| DeliveryError::Refused(0))?;
        deliver(&self.destination.url, key, &event.id, now().0 / 1000, body).await
    }

    /// Why the destination, and not the event, failed, and how long it wants to be left alone.
    fn sent(&mut self, pending: &Pending, result: Result<(), DeliveryError>) -> Option<(String, Option<Duration>)> {
        match result {
            Ok(()) => {
                self.window.settle(pending.entry.id);
                self.delivery.sent += 1;
                self.heard();
            }
            Err(DeliveryError::Away { why, wait }) => return Some((why, wait)),
            Err(DeliveryError::Refused(status)) => {
                // It answers: others may be taken.
                self.heard();
                self.refused(pending, status);
            }
        }
        None
    }

    /// The destination answers.
    fn heard(&mut self) {
        (self.failures, self.rest) = (0, None);
        if self.delivery.failing_since.take().is_some() {
            self.delivery.error = None;
            tracing::info!(destination = self.destination.name, "events are taken again");
        }
    }

    fn away(&mut self, why: String, wait: Option<Duration>) {
        let why: String = why.chars().take(MOST_SAID).collect();
        if self.delivery.failing_since.is_none() {
            self.delivery.failing_since = Some(now());
            tracing::warn!(destination = self.destination.name, why, "events can't be sent; they wait");
        }
        let pause = wait.unwrap_or_default().max(self.pause(self.failures));
        self.failures = self.failures.saturating_add(1);
        self.rest = Some(Instant::now() + pause);
        self.delivery.error = Some(why);
    }

    fn refused(&mut self, pending: &Pending, status: u16) {
        let (id, name, pace) = (pending.entry.id, self.destination.name.clone(), self.pace);
        let pause = self.pause(pending.tries);
        let Some(waiting) = self.window.find(id) else { return };
        let since = *waiting.refused_since.get_or_insert_with(Instant::now);
        if since.elapsed() < pace.refused {
            if waiting.tries == 0 {
                let subject = pending.subject.as_str();
                tracing::warn!(destination = name, id, subject, status, "an event is refused; it is tried again");
            }
            waiting.tries = waiting.tries.saturating_add(1);
            waiting.due = Some(Instant::now() + pause);
            return;
        }
        let subject = pending.subject.as_str();
        tracing::error!(
            destination = name,
            id,
            subject,
            status,
            "an event was refused again and again and is given up"
        );
        self.window.settle(id);
        self.delivery.given_up += 1;
    }

    /// With chance, so that destinations that failed together aren't asked together.
    fn pause(&self, failures: u32) -> Duration {
        let doubled = self.pace.first.saturating_mul(1 << failures.min(16));
        doubled.min(self.pace.longest).mul_f64(rand::random_range(0.5..1.0))
    }

    fn wake(&self) -> Instant {
        let look = Instant::now() + self.pace.look;
        match self.rest.filter(|until| *until > Instant::now()) {
            Some(rest) => rest.min(look),
            None => self.window.due().map_or(look, |due| due.min(look)),
        }
    }

    async fn save(&mut self) -> Result<(), StoreError> {
        self.delivery.entry = self.window.settled();
        self.delivery.waiting_since = self.window.oldest().map(|pending| pending.entry.recorded_at);
        self.saved_at = Instant::now();
        if self.delivery != self.saved {
            self.store.save_delivery(self.term, &self.delivery).await?;
            self.saved = self.delivery.clone();
        }
        self.tell().await
    }

    /// A destination that fails for long is a problem that people see, until it is over.
    async fn tell(&mut self) -> Result<(), StoreError> {
        let patience = i64::try_from(self.pace.problem.as_millis()).unwrap_or(i64::MAX);
        let long = |since: Timestamp| now().0 - since.0 >= patience;
        let fails = self.delivery.failing_since.filter(|since| long(*since));
        if fails.is_some() == self.told {
            return Ok(());
        }
        let name = &self.destination.name;
        match fails {
            Some(since) => {
                let why = self.delivery.error.as_deref().unwrap_or_default();
                tracing::error!(destination = name, why, "events haven't been taken for long; they wait");
                problem::show(&self.store, self.term, name, why, since).await?;
            }
            None => problem::hide(&self.store, self.term, &[name]).await?,
        }
        self.told = fails.is_some();
        Ok(())
    }
}
