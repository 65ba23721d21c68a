//! What a file brought: judged as a poll's answer is, and followed the same way. The hub isn't heard by it, so neither the clock nor the
//! promise is touched.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{Envelope, KeySet, Membership, Payload, PollAnswer};
use kedge_status::Severity;
use tokio::time::Instant;

use super::super::hub::Hub;
use super::super::runtime::AgentRuntime;
use super::SyncLoop;
use crate::airgap::inbox::Inbox;
use crate::causes::chain;

/// A disk that is full may have room again.
const AGAIN: Duration = Duration::from_secs(30);

impl<H: Hub> SyncLoop<H> {
    pub(super) fn read_inbox(&mut self, agent: &mut AgentRuntime) {
        self.inbox_at = None;
        let inbox = Inbox::on(Arc::clone(&self.context.disk), &self.context.paths);
        match inbox.take(|answer| self.take_file(answer, agent)) {
            Ok(true) => {}
            Ok(false) => self.inbox_at = Some(Instant::now() + AGAIN),
            Err(error) => {
                tracing::warn!(%error, "the inbox can't be read; trying again");
                self.inbox_at = Some(Instant::now() + AGAIN);
            }
        }
    }

    /// False: it can't be kept now.
    fn take_file(&mut self, answer: &PollAnswer, agent: &mut AgentRuntime) -> bool {
        let answer = self.still_new(answer);
        match self.memory.accept(&answer) {
            Ok(accepted) => {
                tracing::info!(changed = accepted.changed(), refused = accepted.refused.len(), "a file was taken");
                self.reporter.clear_warning("MemoryUnsaved");
                self.follow(&accepted, &answer, agent);
                // Content may have come for what is known already.
                self.content.hurry();
                self.tasks.soon();
                true
            }
            Err(error) => {
                let said = format!("what a file brought can't be kept: {}", chain(&error));
                tracing::warn!(said, "trying again");
                self.reporter.warn("MemoryUnsaved", Severity::Error, &said);
                false
            }
        }
    }

    /// Without what is known by now, from the hub itself or from an import before: that is no news, and no reason to complain. The
    /// hub's time only goes on.
    fn still_new(&self, answer: &PollAnswer) -> PollAnswer {
        let (keys, membership) = (self.memory.keys().version, self.memory.membership().sequence);
        let newer = |envelope: &&Envelope| payload::<KeySet>(envelope).is_some_and(|set| set.version > keys);
        let moved = |envelope: &&Envelope| payload::<Membership>(envelope).is_none_or(|one| one.sequence != membership);
        PollAnswer {
            time: answer.time.max(self.memory.hub_time()),
            key_sets: answer.key_sets.iter().filter(newer).cloned().collect(),
            membership: answer.membership.as_ref().filter(moved).cloned(),
            state: answer.state.clone().filter(|state| self.memory.state_envelope() != Some(state)),
            holds: answer.holds.clone().filter(|holds| self.memory.holds().is_none_or(|(_, known)| known != holds)),
            ..answer.clone()
        }
    }
}

fn payload<T: Payload>(envelope: &Envelope) -> Option<T> {
    serde_json::from_slice(&envelope.payload).ok()
}
