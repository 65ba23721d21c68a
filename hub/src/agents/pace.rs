//! How long a poll is held, when the next one comes, and by when it must come: pure, by the load and the cluster's traffic profile.
//! Everything is spread by a dice roll, so that a fleet that was told the same doesn't come back as one.

use std::time::Duration;

use kedge_model::wire::Profile;

use crate::config;

/// What is known when a poll arrives.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Polls that are held now.
    pub held: usize,
    pub profile: Profile,
    /// Seconds that the agent would wait at most.
    pub asked: Option<u64>,
    /// 0 to 1, by chance.
    pub roll: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Without news the answer waits so long.
    pub hold: Duration,
    /// Seconds until the next poll, after an answer without news.
    pub idle: u64,
    /// The same after news: all who hold are told at once and come back spread.
    pub news: u64,
    /// Whether the connection is worth keeping until then.
    pub keep: bool,
}

/// Polls that a hub takes in a second without noticing.
const POLLS_PER_SECOND: usize = 2000;
/// Below the time for which an idle connection is kept.
const SPREAD_AT_MOST: u64 = 30;
/// A connection that is needed again within this is kept.
const KEEP_BELOW: u64 = 30;
/// For a lost packet, a busy host, a new handshake.
const GRACE: u64 = 30;

impl Pace {
    pub fn choose(config: &config::Agents, load: Load) -> Pace {
        let roll = load.roll.clamp(0.0, 1.0);
        let spread = ((load.held / POLLS_PER_SECOND) as u64).min(SPREAD_AT_MOST);
        let news = (spread as f64 * roll).round() as u64;
        let wait = load.asked.map_or(config.wait, |asked| config.wait.min(Duration::from_secs(asked)));
        // Near the bound connections are for those who come and go.
        let crowded = load.held >= config.max_connections / 4 * 3;
        if load.profile == Profile::Low {
            let interval = (config.low_interval.as_secs_f64() * (0.9 + 0.2 * roll)).round() as u64;
            return Pace {
                hold: Duration::ZERO,
                idle: interval,
                news: news.min(interval),
                keep: interval < KEEP_BELOW,
            };
        }
        if crowded || wait.is_zero() {
            let interval = ((config.wait.as_secs_f64() * (0.8 + 0.4 * roll)).round() as u64).max(1);
            return Pace { hold: Duration::ZERO, idle: interval, news, keep: interval < KEEP_BELOW && !crowded };
        }
        Pace { hold: wait.mul_f64(0.8 + 0.2 * roll), idle: 0, news, keep: true }
    }

    /// Seconds within which the next poll is expected, when it should begin after `next`. A long pause gets a longer grace.
    pub fn promise(next: u64) -> u64 {
        next + next / 2 + GRACE
    }

    /// From the arrival of a poll: how long until its successor is overdue.
    pub fn check_in_within(&self) -> Duration {
        self.hold + Duration::from_secs(Pace::promise(self.idle.max(self.news)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> config::Agents {
        config::Agents {
            listen: ([127, 0, 0, 1], 0).into(),
            address: "https://hub:7443".to_owned(),
            names: Vec::new(),
            wait: Duration::from_secs(60),
            low_interval: Duration::from_secs(900),
            certificate_lifetime: Duration::from_secs(86_400),
            longest_silence: None,
            unlimited_silence: Vec::new(),
            max_connections: 40_000,
        }
    }

    fn load(held: usize, roll: f64) -> Load {
        Load { held, profile: Profile::Normal, asked: None, roll }
    }

    #[test]
    fn an_idle_hub_holds_for_its_wait_and_wants_the_next_poll_at_once() {
        let pace = Pace::choose(&config(), load(10, 1.0));
        assert_eq!(pace, Pace { hold: Duration::from_secs(60), idle: 0, news: 0, keep: true });
    }

    #[test]
    fn after_news_ten_thousand_come_back_over_seconds() {
        let (early, late) = (Pace::choose(&config(), load(10_000, 0.0)), Pace::choose(&config(), load(10_000, 1.0)));
        assert_eq!((early.news, late.news), (0, 5));
        assert!(early.hold < late.hold);
    }

    #[test]
    fn the_agent_may_ask_for_less_and_never_for_more() {
        let asked = |seconds| Pace::choose(&config(), Load { asked: Some(seconds), ..load(1, 1.0) }).hold.as_secs();
        assert_eq!((asked(10), asked(600)), (10, 60));
    }

    #[test]
    fn the_low_profile_is_answered_at_once_and_comes_back_after_its_interval() {
        let pace = Pace::choose(&config(), Load { profile: Profile::Low, ..load(1, 0.5) });
        assert_eq!(pace, Pace { hold: Duration::ZERO, idle: 900, news: 0, keep: false });
        assert!(Pace::promise(900) > 900 + 90);
    }

    #[test]
    fn a_crowded_hub_no_longer_holds() {
        let pace = Pace::choose(&config(), load(30_000, 0.5));
        assert_eq!((pace.hold, pace.idle, pace.keep), (Duration::ZERO, 60, false));
    }
}
