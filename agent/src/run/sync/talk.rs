//! What is said to the hub and when: polls one after the other, documents as soon as there is news, each with patience. What comes
//! back is taken in by `answer`.

mod answer;

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Envelope, Heads, PollAnswer};
use tokio::time::Instant;

use super::super::hub::{Hub, Pending};
use super::super::runtime::AgentRuntime;
use super::SyncLoop;
use crate::causes::chain;
use crate::link::{Backoff, LinkError, Next, Pace};
use crate::tally::{self, Counted};

pub(super) struct Talk {
    pub poll: Pending<Polled>,
    pub send: Pending<Sent>,
    pace: Pace,
    poll_at: Instant,
    /// The last poll was answered.
    online: bool,
    /// The code of a warning about the link, while it stands.
    trouble: Option<String>,
    /// When news are sent; a moment after they came, since more may come.
    news_at: Option<Instant>,
    backoff: Backoff,
    /// Not before this, after a failure.
    send_at: Instant,
    /// What the hub has.
    acknowledged: Option<Heads>,
    acknowledged_holds: Option<Envelope>,
    want_status: bool,
    want_proof: bool,
}

pub(super) struct Polled {
    result: Result<PollAnswer, LinkError>,
    took: Duration,
}

pub(super) struct Sent {
    what: Letter,
    result: Result<(), LinkError>,
}

enum Letter {
    Status(Heads),
    Holds(Envelope),
    Proof,
}

/// A transaction tells several things; they go together.
const GATHER: Duration = Duration::from_millis(700);
/// Seconds that the hub may hold the first poll after some without an answer.
const FIRST_WAIT: u64 = 1;

impl Talk {
    pub(super) fn new() -> Talk {
        let now = Instant::now();
        Talk {
            poll: Pending::default(),
            send: Pending::default(),
            pace: Pace::default(),
            poll_at: now,
            online: false,
            trouble: None,
            news_at: None,
            backoff: Backoff::default(),
            send_at: now,
            acknowledged: None,
            acknowledged_holds: None,
            want_status: false,
            want_proof: false,
        }
    }

    /// Something was told.
    pub(super) fn news(&mut self) {
        self.news_at.get_or_insert_with(|| Instant::now() + GATHER);
    }

    /// The document that the hub asked for is on its way: the next poll would be answered with the same question.
    fn is_answering(&self) -> bool {
        self.want_status && !self.send.is_free()
    }

    pub(super) fn is_online(&self) -> bool {
        self.online
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        let poll = (self.poll.is_free() && !self.is_answering()).then_some(self.poll_at);
        let wants = self.want_status || self.want_proof;
        let due = if wants { Some(self.send_at) } else { self.news_at.map(|at| at.max(self.send_at)) };
        let send = due.filter(|_| self.online && self.send.is_free());
        [poll, send].into_iter().flatten().min()
    }
}

impl<H: Hub> SyncLoop<H> {
    /// Begins what is due. A document goes before the next poll, over the same connection.
    pub(super) fn talk(&mut self) {
        let Some(hub) = self.hub.clone() else { return };
        let now = Instant::now();
        if self.talk.online && self.talk.send.is_free() && now >= self.talk.send_at {
            self.send_next(&hub, now);
        }
        if self.talk.poll.is_free() && now >= self.talk.poll_at && !self.talk.is_answering() {
            let mut request = self.memory.request_base();
            request.status = self.reporter.heads();
            request.look_age = self.reporter.look_age();
            request.profile = self.context.config.traffic;
            // A held poll doesn't tell that the hub is there, and documents wait for that.
            request.wait = (!self.talk.online).then_some(FIRST_WAIT);
            let patience = self.talk.pace.patience();
            self.talk.poll.begin(async move {
                let began = Instant::now();
                let result = hub.poll(&request, patience).await;
                Polled { result, took: began.elapsed() }
            });
        }
    }

    fn send_next(&mut self, hub: &Arc<H>, now: Instant) {
        if self.talk.want_proof {
            self.talk.want_proof = false;
            if let Some(state) = self.memory.state_envelope().cloned() {
                let hub = Arc::clone(hub);
                self.talk.send.begin(async move { Sent { what: Letter::Proof, result: hub.prove(&state).await } });
                return;
            }
        }
        let news = self.talk.news_at.is_some_and(|at| now >= at);
        if !news && !self.talk.want_status {
            return;
        }
        self.talk.news_at = None;
        let heads = self.reporter.heads();
        if self.talk.want_status || self.talk.acknowledged.as_ref() != Some(&heads) {
            match self.reporter.seal(self.identity.signing_key()) {
                Ok(envelope) => {
                    let hub = Arc::clone(hub);
                    self.talk
                        .send
                        .begin(async move { Sent { what: Letter::Status(heads), result: hub.send(&envelope).await } });
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "the status can't be sent yet");
                    self.talk.send_at = now + self.talk.backoff.next(rand::random_range(0.0..1.0));
                    self.talk.news_at = Some(self.talk.send_at);
                }
            }
            return;
        }
        let holds = self.holds.documents().ok().and_then(|(technician, _)| technician);
        if let Some(envelope) = holds.filter(|envelope| self.talk.acknowledged_holds.as_ref() != Some(envelope)) {
            let hub = Arc::clone(hub);
            self.talk.send.begin(async move {
                let result = hub.send(&envelope).await;
                Sent { what: Letter::Holds(envelope), result }
            });
        }
    }

    pub(super) fn sent(&mut self, sent: Sent) {
        let Sent { what, result } = sent;
        // After one letter there may be another.
        self.talk.news();
        let error = match result {
            Ok(()) => {
                self.talk.backoff.reset();
                self.took(what);
                return;
            }
            Err(error) => error,
        };
        tracing::warn!(error = error.sentence(), "the hub didn't take a document");
        let too_large = matches!(&error, LinkError::Refused { status: 413, .. });
        match error.next() {
            Next::Drop if too_large && matches!(what, Letter::Status(_)) => match self.reporter.shrink() {
                Ok(true) => {}
                Ok(false) => self.took(what),
                Err(error) => tracing::warn!(error = chain(&error), "the status can't be made smaller yet"),
            },
            // As it is it will never be taken; the next change makes another one.
            Next::Drop => self.took(what),
            Next::After(wait) => self.talk.send_at = Instant::now() + wait,
            Next::Rarely => {
                self.trouble(&error);
                self.talk.send_at = Instant::now() + self.talk.pace.failed(&error, rand::random_range(0.0..1.0));
            }
            Next::Backoff | Next::Renew | Next::Restart => {
                self.talk.send_at = Instant::now() + self.talk.backoff.next(rand::random_range(0.0..1.0));
            }
        }
    }

    fn took(&mut self, what: Letter) {
        match what {
            Letter::Status(heads) => {
                self.talk.want_status = false;
                self.talk.acknowledged = Some(heads);
            }
            Letter::Holds(envelope) => self.talk.acknowledged_holds = Some(envelope),
            Letter::Proof => self.talk.poll_at = Instant::now(),
        }
    }

    /// True: the host joined again.
    pub(super) fn polled(&mut self, polled: Polled, agent: &mut AgentRuntime) -> bool {
        let roll = rand::random_range(0.0..1.0);
        match polled.result {
            Ok(answer) => {
                tally::add(Counted::Answered, 1);
                let useful = self.take(&answer, agent);
                let wait = self.talk.pace.answered(&answer, polled.took, useful, roll);
                self.talk.poll_at = Instant::now() + wait;
                false
            }
            Err(error) => {
                tally::add(Counted::Missed, 1);
                let wait = self.talk.pace.failed(&error, roll);
                self.talk.poll_at = Instant::now() + wait;
                self.missed(&error, agent);
                error.next() == Next::Restart
            }
        }
    }
}
