//! How long a cluster may be silent. One whose certificate has expired meanwhile may renew it, but not for ever: after the longest
//! silence a person lets it back in. What it runs goes on, and what a person brings on a stick is a sign of life. Asked by `renew`,
//! `site` and the API.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use kedge_model::wire::{ClusterId, Timestamp};

use super::answer::Refusal;
use crate::config;
use crate::store::{Store, StoreError, now};

/// The rule, per environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// None: for ever.
    longest: Option<Duration>,
    unlimited: BTreeSet<String>,
}

pub const REASON: &str = "ReadmissionNeeded";

impl Silence {
    pub fn of(config: &config::Agents) -> Silence {
        Silence { longest: config.longest_silence, unlimited: config.unlimited_silence.iter().cloned().collect() }
    }

    /// None: a cluster of this environment may be silent for ever.
    pub fn longest(&self, environment: &str) -> Option<Duration> {
        self.longest.filter(|_| !self.unlimited.contains(environment))
    }

    /// Whether a cluster that was heard, or let in, at this time has been silent for too long.
    pub fn is_over(&self, environment: &str, heard: Timestamp, now: Timestamp) -> bool {
        let Some(longest) = self.longest(environment) else { return false };
        let longest = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
        now.0.saturating_sub(heard.0) > longest
    }

    /// Refuses a cluster that a person has to let in again.
    pub async fn check(&self, store: &Store, environment: &str, cluster: &ClusterId) -> Result<(), Refusal> {
        match self.over(store, environment, cluster).await? {
            false => Ok(()),
            true => Err(Refusal::new(
                StatusCode::FORBIDDEN,
                REASON,
                "this cluster was offline for too long: a person must readmit it",
            )
            .hint("the platform team readmits it with `kedge cluster readmit NAME`; what runs here continues")),
        }
    }

    pub async fn over(&self, store: &Store, environment: &str, cluster: &ClusterId) -> Result<bool, StoreError> {
        if self.longest(environment).is_none() {
            return Ok(false);
        }
        let heard = store.heard_or_readmitted(cluster).await?;
        Ok(heard.is_some_and(|heard| self.is_over(environment, heard, now())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600 * 1000;

    #[test]
    fn a_year_is_too_long_unless_the_environment_has_no_limit() {
        let silence = Silence {
            longest: Some(Duration::from_secs(365 * 24 * 3600)),
            unlimited: BTreeSet::from(["ships".to_owned()]),
        };
        let now = Timestamp(1000 * DAY);
        let heard = |days: i64| Timestamp(now.0 - days * DAY);
        assert!(!silence.is_over("prod", heard(365), now));
        assert!(silence.is_over("prod", heard(366), now));
        assert!(!silence.is_over("ships", heard(3660), now));
        assert!(!Silence::default().is_over("prod", heard(3660), now));
        // A clock that was set back doesn't shut anybody out.
        assert!(!silence.is_over("prod", Timestamp(now.0 + DAY), now));
    }
}
