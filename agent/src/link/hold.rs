//! How long a poll may be held on this network. A hub holds for minutes; a firewall or an address translation on the way may forget
//! a silent connection sooner. Found out from polls that broke, and asked of the hub then; forgotten again when it goes well.

use std::time::Duration;

use super::error::LinkError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// None: as long as the hub likes.
    most: Option<Duration>,
    /// Polls in a row that were held so long and answered.
    good: u32,
}

/// Whatever breaks sooner has another reason.
const SHORTEST: Duration = Duration::from_secs(20);
/// Longer than a hub holds.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// So many good ones, and a longer hold is tried.
const TRY_LONGER_AFTER: u32 = 50;
/// After what was asked for, the answer is due within this.
const GRACE: Duration = Duration::from_secs(60);

impl Hold {
    /// Seconds to ask for.
    pub fn ask(&self) -> Option<u64> {
        self.most.map(|most| most.as_secs())
    }

    /// How long an answer is waited for, of what the caller would wait.
    pub fn patience(&self, patience: Duration) -> Duration {
        self.most.map_or(patience, |most| patience.min(most + GRACE))
    }

    pub fn answered(&mut self, took: Duration) {
        let Some(most) = self.most.filter(|most| took >= *most / 2) else { return };
        self.good += 1;
        if self.good >= TRY_LONGER_AFTER {
            *self = Hold { most: Some(most * 2).filter(|longer| *longer < LONGEST), good: 0 };
        }
    }

    /// A poll ended without an answer.
    pub fn failed(&mut self, error: &LinkError, took: Duration) {
        let most = match error {
            _ if took < SHORTEST => return,
            LinkError::Broken { .. } => took / 2,
            // Nobody knows when within this time the connection was forgotten.
            LinkError::Slow { .. } => took / 4,
            _ => return,
        };
        *self = Hold { most: Some(most.clamp(SHORTEST, LONGEST)), good: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> LinkError {
        LinkError::Broken { hub: String::new(), source: "cut".into() }
    }

    fn slow() -> LinkError {
        LinkError::Slow { hub: String::new(), step: "answer", seconds: 0 }
    }

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_network_that_forgets_after_a_minute_is_found_out() {
        let mut hold = Hold::default();
        let mut failures = 0;
        // The hub would hold for four minutes; the connection is forgotten after one, without a word.
        while hold.ask().is_none_or(|asked| asked > 60) {
            let waited = hold.patience(seconds(660));
            hold.failed(&slow(), waited);
            failures += 1;
        }
        assert_eq!((failures, hold.ask()), (2, Some(56)));
    }

    #[test]
    fn a_cut_asks_for_less_and_good_polls_for_more_again() {
        let mut hold = Hold::default();
        hold.failed(&broken(), seconds(100));
        assert_eq!((hold.ask(), hold.patience(seconds(660))), (Some(50), seconds(110)));
        for _ in 0..TRY_LONGER_AFTER {
            hold.answered(seconds(45));
        }
        assert_eq!(hold.ask(), Some(100));
        for _ in 0..4 * TRY_LONGER_AFTER {
            hold.answered(seconds(600));
        }
        assert_eq!(hold, Hold::default());
    }

    #[test]
    fn what_breaks_at_once_or_was_refused_says_nothing_about_the_network() {
        let mut hold = Hold::default();
        hold.failed(&broken(), seconds(1));
        hold.failed(&LinkError::TooLarge(1), seconds(100));
        hold.answered(seconds(1));
        assert_eq!(hold, Hold::default());
    }
}
