//! What the hub's answer, or its silence, means here: what can be believed is kept and followed, the rest is told.

use kedge_model::wire::{PollAnswer, Timestamp};
use kedge_status::Severity;

use super::super::super::hub::Hub;
use super::super::super::runtime::AgentRuntime;
use super::super::SyncLoop;
use crate::causes::chain;
use crate::contact::Contact;
use crate::desired::Accepted;
use crate::link::{LinkError, Next};
use crate::record::Failure;
use crate::records::Records;
use crate::worker::Job;

/// Clocks of hosts drift; a minute is what people and certificates don't mind.
const CLOCK_TOLERANCE_MS: u64 = 60_000;

impl<H: Hub> SyncLoop<H> {
    /// Takes an answer in. True: it brought something that could be used.
    pub(super) fn take(&mut self, answer: &PollAnswer, agent: &mut AgentRuntime) -> bool {
        let now = self.context.clock.now();
        self.reporter.contact(answer.time);
        self.judge_clock(answer.time, now);
        let next =
            Timestamp(now.0.saturating_add(i64::try_from(answer.promise).unwrap_or(i64::MAX).saturating_mul(1000)));
        if let Err(error) = Contact::heard(&self.context.paths, now, answer.time, next) {
            tracing::debug!(%error, "the contact can't be noted");
        }
        if !self.talk.online {
            self.is_back(agent);
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
        self.follow(&accepted, answer, agent);
        accepted.changed()
    }

    pub(in crate::run::sync) fn follow(&mut self, accepted: &Accepted, answer: &PollAnswer, agent: &mut AgentRuntime) {
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
            self.sharing.came(&answer.key_sets);
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
            self.take_holds(agent);
        }
        if accepted.changed() {
            self.tasks.soon();
            self.sharing.soon();
        }
    }

    fn take_holds(&mut self, agent: &mut AgentRuntime) {
        if self.keep_hub_holds() {
            self.follow_holds(agent);
        }
    }

    /// What isn't held any more is tried again, and everything is looked at.
    pub(in crate::run::sync) fn follow_holds(&mut self, agent: &mut AgentRuntime) {
        for assignment in self.read_holds() {
            self.tasks.give(&assignment);
            agent.give(Job::Retry(assignment));
        }
        agent.look_soon();
    }

    /// From what the hub said to what is obeyed. Doing it again changes nothing.
    pub(in crate::run::sync) fn keep_hub_holds(&mut self) -> bool {
        let Some((_, envelope)) = self.memory.holds() else { return false };
        let kept = self.holds.take_from_hub(envelope, self.identity.cluster(), &self.memory.keys().trusted());
        if let Err(error) = &kept {
            tracing::error!(error = chain(error), "the hub's holds can't be kept");
        }
        kept.is_ok()
    }

    /// The first answer after some without.
    fn is_back(&mut self, agent: &mut AgentRuntime) {
        self.talk.online = true;
        self.sharing.soon();
        self.talk.news();
        self.content.hurry();
        let hub = self.hub.as_ref().map(|hub| hub.name()).unwrap_or_default();
        tracing::info!(hub, "the hub answers");
        agent.service.say(format!("connected to {hub}"));
        if let Some(code) = self.talk.trouble.take() {
            self.reporter.clear_warning(&code);
        }
        // What failed for want of a network needn't wait for its turn.
        let Ok((records, _)) = Records::read_all(&*self.context.disk, &self.context.paths) else { return };
        let network = |failure: &Failure| failure.passes && failure.reason == "Network";
        for (assignment, record) in records {
            if record.failed.is_some_and(|failed| network(&failed.failure)) {
                self.tasks.give(&assignment);
                agent.give(Job::Retry(assignment));
            }
        }
    }

    pub(super) fn missed(&mut self, error: &LinkError, agent: &mut AgentRuntime) {
        let said = error.sentence();
        if self.talk.online {
            tracing::warn!(error = said, "the hub doesn't answer; what runs goes on, and it is asked again");
        } else {
            tracing::debug!(error = said, "the hub doesn't answer");
        }
        if std::mem::take(&mut self.talk.online) {
            self.sharing.soon();
        }
        agent.service.say(format!("without a hub, running what is on the disk: {said}"));
        if let Err(error) = Contact::missed(&self.context.paths, &said) {
            tracing::debug!(%error, "the contact can't be noted");
        }
        if matches!(error.next(), Next::Rarely | Next::Renew) {
            self.trouble(error);
        }
    }

    /// A person is needed: it is shown here, and on the hub once it answers.
    pub(super) fn trouble(&mut self, error: &LinkError) {
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
