//! What is said to the hub and when: polls one after the other, documents as soon as there is news, each with patience.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Envelope, Heads, PollAnswer, Timestamp};
use kedge_status::Severity;
use tokio::time::Instant;

use super::super::host::chain;
use super::super::house::House;
use super::super::hub::{Hub, Slot};
use super::Desk;
use crate::contact::Contact;
use crate::desired::Accepted;
use crate::link::{Backoff, LinkError, Next, Pace};
use crate::records::Records;
use crate::worker::Job;

pub(super) struct Talk {
    pub poll: Slot<Polled>,
    pub send: Slot<Sent>,
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
/// Clocks of hosts drift; a minute is what people and certificates don't mind.
const CLOCK_TOLERANCE_MS: u64 = 60_000;

impl Talk {
    pub(super) fn new() -> Talk {
        let now = Instant::now();
        Talk {
            poll: Slot::default(),
            send: Slot::default(),
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

impl<H: Hub> Desk<H> {
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
            request.profile = self.site.config.traffic;
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
    pub(super) fn polled(&mut self, polled: Polled, house: &mut House) -> bool {
        let roll = rand::random_range(0.0..1.0);
        match polled.result {
            Ok(answer) => {
                let useful = self.take(&answer, house);
                let wait = self.talk.pace.answered(&answer, polled.took, useful, roll);
                self.talk.poll_at = Instant::now() + wait;
                false
            }
            Err(error) => {
                let wait = self.talk.pace.failed(&error, roll);
                self.talk.poll_at = Instant::now() + wait;
                self.missed(&error, house);
                error.next() == Next::Restart
            }
        }
    }

    /// Takes an answer in. True: it brought something that could be used.
    fn take(&mut self, answer: &PollAnswer, house: &mut House) -> bool {
        let now = self.site.clock.now();
        self.reporter.contact(answer.time);
        self.judge_clock(answer.time, now);
        let next =
            Timestamp(now.0.saturating_add(i64::try_from(answer.promise).unwrap_or(i64::MAX).saturating_mul(1000)));
        if let Err(error) = Contact::heard(&self.site.paths, now, answer.time, next) {
            tracing::debug!(%error, "the contact can't be noted");
        }
        if !self.talk.online {
            self.is_back(house);
        }
        self.talk.want_status |= answer.want_status;
        self.talk.want_proof |= answer.want_proof;
        let accepted = match self.memory.accept(answer) {
            Ok(accepted) => accepted,
            Err(error) => {
                let said = format!("what the hub says can't be kept: {}", chain(&error));
                tracing::warn!(said, "nothing of it is followed until it can");
                self.reporter.warn("MemoryUnsaved", Severity::Error, &said);
                return false;
            }
        };
        self.reporter.clear_warning("MemoryUnsaved");
        self.follow(&accepted, answer, house);
        accepted.changed()
    }

    fn follow(&mut self, accepted: &Accepted, answer: &PollAnswer, house: &mut House) {
        let came = [
            ("KeySetRefused", !answer.key_sets.is_empty()),
            ("MembershipRefused", answer.membership.is_some()),
            ("StateRefused", answer.state.is_some()),
            ("HoldsRefused", answer.holds.is_some()),
            ("Unsupported", answer.state.is_some() || answer.membership.is_some()),
        ];
        for (code, came) in came {
            let refused = accepted.refused.iter().find(|refusal| refusal.code == code);
            if came || refused.is_some() {
                self.warn_while(code, Severity::Error, refused.map(|refusal| refusal.message.clone()));
                self.talk.news();
            }
        }
        if accepted.keys_changed {
            tracing::info!(version = self.memory.keys().version, "new keys of the hub");
            if let Some(hub) = &self.hub
                && let Err(error) = hub.trust(self.memory.authorities())
            {
                self.trouble(&error);
            }
        }
        if accepted.membership_changed {
            let membership = self.memory.membership();
            tracing::info!(stream = %membership.stream, sequence = %membership.sequence, "new membership");
            if membership.retired {
                tracing::warn!("this cluster is retired: nothing is changed any more, and what runs stays");
            }
        }
        if accepted.state_changed
            && let Some(state) = self.memory.state()
        {
            tracing::info!(generation = %state.generation, assignments = state.entries.len(), "new desired state");
        }
        if accepted.holds_changed {
            self.take_holds(house);
        }
        if accepted.changed() {
            self.agenda.soon();
        }
    }

    fn take_holds(&mut self, house: &mut House) {
        if !self.keep_hub_holds() {
            return;
        }
        for assignment in self.read_holds() {
            self.agenda.give(&assignment);
            house.give(Job::Retry(assignment));
        }
        house.look_soon();
    }

    /// From what the hub said to what is obeyed. Doing it again changes nothing.
    pub(super) fn keep_hub_holds(&mut self) -> bool {
        let Some((_, envelope)) = self.memory.holds() else { return false };
        let kept = self.holds.take_from_hub(envelope, self.identity.cluster(), &self.memory.keys().trusted());
        if let Err(error) = &kept {
            tracing::error!(error = chain(error), "the hub's holds can't be kept");
        }
        kept.is_ok()
    }

    /// The first answer after some without.
    fn is_back(&mut self, house: &mut House) {
        self.talk.online = true;
        self.talk.news();
        self.content.hurry();
        let hub = self.hub.as_ref().map(|hub| hub.name()).unwrap_or_default();
        tracing::info!(hub, "the hub answers");
        house.service.say(format!("connected to {hub}"));
        if let Some(code) = self.talk.trouble.take() {
            self.reporter.clear_warning(&code);
        }
        // What failed for want of a network needn't wait for its turn.
        let Ok((records, _)) = Records::read_all(&*self.site.disk, &self.site.paths) else { return };
        let network = |failure: &crate::record::Failure| failure.passes && failure.reason == "Network";
        for (assignment, record) in records {
            if record.failed.is_some_and(|failed| network(&failed.failure)) {
                self.agenda.give(&assignment);
                house.give(Job::Retry(assignment));
            }
        }
    }

    fn missed(&mut self, error: &LinkError, house: &mut House) {
        let said = error.sentence();
        if self.talk.online {
            tracing::warn!(error = said, "the hub doesn't answer; what runs goes on, and it is asked again");
        } else {
            tracing::debug!(error = said, "the hub doesn't answer");
        }
        self.talk.online = false;
        house.service.say(format!("without a hub, running what is on the disk: {said}"));
        if let Err(error) = Contact::missed(&self.site.paths, &said) {
            tracing::debug!(%error, "the contact can't be noted");
        }
        if matches!(error.next(), Next::Rarely | Next::Renew) {
            self.trouble(error);
        }
    }

    /// A person is needed: it is shown here, and on the hub once it answers.
    fn trouble(&mut self, error: &LinkError) {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let (code, said) = (error.code().to_owned(), format!("{}{hint}", error.sentence()));
        if self.talk.trouble.as_ref() != Some(&code) {
            tracing::error!(code, said, "the hub refuses this host; what runs goes on");
            if let Some(old) = self.talk.trouble.replace(code.clone()) {
                self.reporter.clear_warning(&old);
            }
        }
        self.reporter.warn(&code, Severity::Error, &said);
    }

    fn judge_clock(&mut self, hub: Timestamp, now: Timestamp) {
        let off = hub.0.abs_diff(now.0);
        let said = (off > CLOCK_TOLERANCE_MS).then(|| {
            let (amount, unit) = match off / 60_000 {
                minutes if minutes < 120 => (minutes, "minutes"),
                minutes if minutes < 48 * 60 => (minutes / 60, "hours"),
                minutes => (minutes / (24 * 60), "days"),
            };
            let way = if now.0 < hub.0 { "behind" } else { "ahead of" };
            format!(
                "the clock is {amount} {unit} {way} the hub's; times are corrected on the hub (timedatectl shows it)"
            )
        });
        self.warn_while("ClockOff", Severity::Warning, said);
    }
}
