//! When the hub is asked next: pure, by its answers and by errors. Everything is spread by a dice roll, so that a site that lost its
//! uplink doesn't come back as one.

use std::time::Duration;

use kedge_model::wire::PollAnswer;

use super::error::{LinkError, Next};

/// Waits that double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    tries: u32,
}

/// The loop's sense of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    backoff: Backoff,
    /// Answers in a row that came at once and were of no use.
    idle_turns: Backoff,
    /// The longest that a poll was held: one that takes far longer is lost.
    held: Duration,
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);
/// A person is needed: what was refused is asked again so often.
const RARELY: Duration = Duration::from_secs(15 * 60);
/// An answer within this was not held.
const AT_ONCE: Duration = Duration::from_secs(2);
/// Before the first answer nobody knows how long the hub holds.
const HOLD_UNKNOWN: Duration = Duration::from_secs(10 * 60);
/// For a lost packet, a busy hub.
const GRACE: Duration = Duration::from_secs(60);
/// No hub has a host wait longer than this, whatever it says.
const MAX_NEXT: Duration = Duration::from_secs(24 * 60 * 60);

impl Backoff {
    /// The next wait, between half and the whole of a doubled second; `roll` is from 0 to 1.
    pub fn next(&mut self, roll: f64) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries = self.tries.saturating_add(1);
        whole.mul_f64(0.5 + 0.5 * roll.clamp(0.0, 1.0))
    }

    pub fn reset(&mut self) {
        self.tries = 0;
    }

    pub fn tries(&self) -> u32 {
        self.tries
    }
}

impl Pace {
    /// The hub answered: how long until the next poll begins. `useful` is false when the answer's news were refused: a hub that
    /// repeats them at once must not keep both busy.
    pub fn answered(&mut self, answer: &PollAnswer, took: Duration, useful: bool, roll: f64) -> Duration {
        self.backoff.reset();
        let is_news = answer.state.is_some()
            || answer.membership.is_some()
            || answer.holds.is_some()
            || !answer.key_sets.is_empty();
        // Only an answer that was held to the end tells how long the hub holds.
        if !is_news && !answer.want_status && !answer.want_proof && took >= AT_ONCE {
            self.held = self.held.max(took);
        }
        let told = Duration::from_secs(answer.next).min(MAX_NEXT);
        if took < AT_ONCE && told < AT_ONCE && !(is_news && useful) {
            return self.idle_turns.next(roll).max(told);
        }
        self.idle_turns.reset();
        told
    }

    /// The poll failed: how long until the next try.
    pub fn failed(&mut self, error: &LinkError, roll: f64) -> Duration {
        if matches!(error, LinkError::Slow { .. }) {
            // Perhaps the hub holds longer than it used to.
            self.held = (self.held * 2).min(HOLD_UNKNOWN);
        }
        match error.next() {
            Next::After(told) => told.max(FIRST) + FIRST.mul_f64(roll.clamp(0.0, 1.0)),
            Next::Rarely => RARELY.mul_f64(0.9 + 0.2 * roll.clamp(0.0, 1.0)),
            Next::Backoff | Next::Drop | Next::Renew => self.backoff.next(roll),
            Next::Restart => Duration::ZERO,
        }
    }

    /// How long an answer is waited for.
    pub fn patience(&self) -> Duration {
        match self.held.is_zero() {
            true => HOLD_UNKNOWN + GRACE,
            false => self.held * 2 + GRACE,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use kedge_model::wire::{Envelope, Timestamp, WireProblem};

    use super::*;

    fn answer(next: u64) -> PollAnswer {
        PollAnswer {
            time: Timestamp(0),
            next,
            promise: next.saturating_add(30),
            key_sets: Vec::new(),
            membership: None,
            state: None,
            holds: None,
            want_status: false,
            want_proof: false,
        }
    }

    fn unreachable() -> LinkError {
        let source = std::io::ErrorKind::ConnectionRefused.into();
        LinkError::Unreachable { hub: "hub:1".to_owned(), source }
    }

    #[test]
    fn waits_double_from_a_second_to_five_minutes_and_begin_again_after_an_answer() {
        let mut pace = Pace::default();
        let waits: Vec<u64> = (0..12).map(|_| pace.failed(&unreachable(), 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        pace.answered(&answer(0), Duration::from_secs(50), true, 1.0);
        assert_eq!(pace.failed(&unreachable(), 0.0), Duration::from_millis(500));
    }

    #[test]
    fn the_hubs_words_about_time_are_kept() {
        let mut pace = Pace::default();
        assert_eq!(pace.answered(&answer(900), Duration::ZERO, true, 0.5), Duration::from_secs(900));
        assert_eq!(pace.answered(&answer(u64::MAX), Duration::ZERO, true, 0.5), MAX_NEXT);
        let problem = WireProblem { reason: "Busy".to_owned(), message: String::new(), hint: None };
        let busy = LinkError::Refused { status: 503, problem, after: Some(Duration::from_secs(7)) };
        assert_eq!(pace.failed(&busy, 0.0), Duration::from_secs(7));
        let problem = WireProblem { reason: "Revoked".to_owned(), message: String::new(), hint: None };
        let revoked = LinkError::Refused { status: 403, problem, after: None };
        assert!(pace.failed(&revoked, 0.0) >= Duration::from_secs(13 * 60));
    }

    #[test]
    fn a_hub_that_repeats_refused_news_at_once_is_asked_ever_more_slowly() {
        let envelope = Envelope { payload_type: String::new(), payload: Vec::new(), signatures: Vec::new() };
        let forged = PollAnswer { state: Some(envelope), ..answer(0) };
        let mut pace = Pace::default();
        let waits: Vec<u64> = (0..4).map(|_| pace.answered(&forged, Duration::ZERO, false, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8]);
        assert_eq!(pace.answered(&forged, Duration::ZERO, true, 1.0), Duration::ZERO, "good news are not slowed");
        assert_eq!(pace.answered(&answer(0), Duration::ZERO, true, 1.0).as_secs(), 1);
    }

    #[test]
    fn patience_follows_what_the_hub_does() {
        let mut pace = Pace::default();
        assert_eq!(pace.patience(), Duration::from_secs(660));
        let asks = PollAnswer { want_status: true, ..answer(0) };
        pace.answered(&asks, Duration::from_secs(5), true, 0.0);
        pace.answered(&answer(0), Duration::from_millis(3), true, 0.0);
        assert_eq!(pace.patience(), Duration::from_secs(660), "none of them was held to the end");
        pace.answered(&answer(0), Duration::from_secs(50), true, 0.0);
        assert_eq!(pace.patience(), Duration::from_secs(160));
        pace.failed(&LinkError::Slow { hub: String::new(), step: "answer", seconds: 160 }, 0.0);
        assert_eq!(pace.patience(), Duration::from_secs(260), "a hub that holds longer now is found out");
    }

    proptest! {
        #[test]
        fn no_wait_is_endless_and_none_of_errors_is_nothing(tries in 0u32..100, roll in any::<f64>()) {
            let mut backoff = Backoff { tries };
            let wait = backoff.next(if roll.is_nan() { 0.0 } else { roll });
            prop_assert!(wait >= FIRST / 2 && wait <= LONGEST);
        }
    }
}
