//! This cluster's turn to follow a state that came from a peer: the hub gives it in answer to a sign of life, and it counts for a few
//! minutes from that one on. Who waits says more often that it lives.

use std::time::Duration;

use kedge_model::wire::turn::TURN_LASTS;
use kedge_model::wire::{Envelope, Timestamp, Turn};
use kedge_peer::Name;
use tokio::time::Instant;

use super::super::Own;
use super::Driver;

/// The hub's promise to others is longer than two of these.
const PRESENCE_EVERY: Duration = Duration::from_secs(120);
/// A permit that is free should be taken soon.
const WAITING_EVERY: Duration = Duration::from_secs(15);
/// For each member of the site: all of them together ask about twice a second, however many wait.
const FOR_EACH: Duration = Duration::from_millis(500);
/// More signs of life than are made in the time that a turn lasts.
const MAX_SIGNS: usize = 256;

impl Driver {
    /// From one sign of life to the next.
    pub(super) fn pace(&self) -> Duration {
        if self.own.borrow().waits.is_none() {
            return PRESENCE_EVERY;
        }
        let members = u32::try_from(self.node.store().members().count()).unwrap_or(u32::MAX);
        FOR_EACH.saturating_mul(members).clamp(WAITING_EVERY, PRESENCE_EVERY)
    }

    /// A state waits that didn't before: the hub hears soon of it, not from all at the same moment.
    pub(super) fn note_waiting(&mut self, own: &Own) {
        if own.waits.is_some() && own.waits != self.waits {
            let soon = self.pace().mul_f64(rand::random_range(0.0..1.0));
            self.presence_at = self.presence_at.min(Instant::now() + soon);
        }
        self.stale |= self.waits != own.waits;
        self.waits = own.waits;
    }

    pub(super) fn note_sign(&mut self, at: Timestamp) {
        self.signs.push_back((at, Instant::now()));
        while self.signs.len() > MAX_SIGNS || self.signs.front().is_some_and(|(_, made)| !lasts(*made)) {
            self.signs.pop_front();
        }
    }

    /// The turn that the hub gave this cluster, while it counts. After a restart there is none until the hub is asked again.
    pub(super) fn turn(&self) -> Option<Envelope> {
        let envelope = self.node.store().get(&Name::Turn(self.me))?;
        // The store judged it when it came.
        let turn: Turn = serde_json::from_slice(&envelope.payload).ok()?;
        let answers = |asked| self.signs.iter().any(|(at, made)| *at == asked && lasts(*made));
        turn.asked.is_none_or(answers).then(|| envelope.clone())
    }
}

fn lasts(made: Instant) -> bool {
    made.elapsed().as_millis() < u128::from(TURN_LASTS.unsigned_abs())
}
