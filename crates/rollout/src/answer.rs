//! The answer to the one question: how many of those that should have it do? Made by the hub from its counts, printed by the CLI.

use std::fmt;

use kedge_model::kinds::Offline;
use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::gate::Counts;
use crate::moment::Utc;

/// Clusters, by the status of the exact packages that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// Should have it.
    pub targeted: u64,
    /// All clusters that the question is about.
    pub of: u64,
    pub converged: u64,
    pub converging: u64,
    pub failed: u64,
    /// The most frequent first.
    pub failed_reasons: Vec<(String, u64)>,
    pub offline: u64,
    /// Since when the longest of them is away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_since: Option<Timestamp>,
    /// In contact, and hasn't got it yet.
    pub waiting: u64,
    pub not_targeted: u64,
    /// A Pin keeps them on other content: they are neither targeted nor among those that aren't.
    #[serde(default)]
    pub pinned: u64,
    pub complete: bool,
    /// Whether clusters that are away leave it complete: the policy's word.
    pub offline_counts_as: Offline,
}

/// So many reasons are printed.
const REASONS: usize = 3;

impl Answer {
    /// `of` are all clusters of the question, `counts` those that should have it.
    pub fn new(of: u64, counts: Counts, offline: Offline) -> Answer {
        let targeted = counts.members();
        let settled = counts.converged > 0 && counts.converging == 0 && counts.failed == 0 && counts.waiting == 0;
        Answer {
            targeted,
            of: of.max(targeted),
            converged: counts.converged,
            converging: counts.converging,
            failed: counts.failed,
            failed_reasons: Vec::new(),
            offline: counts.offline,
            offline_since: None,
            waiting: counts.waiting,
            not_targeted: of.saturating_sub(targeted),
            pinned: 0,
            complete: settled && (counts.offline == 0 || offline == Offline::Complete),
            offline_counts_as: offline,
        }
    }

    pub fn with_reasons(mut self, mut reasons: Vec<(String, u64)>) -> Answer {
        reasons.retain(|(_, number)| *number > 0);
        reasons.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        self.failed_reasons = reasons;
        self
    }

    /// So many of the rest have other content because of a Pin.
    pub fn with_pinned(mut self, pinned: u64) -> Answer {
        self.pinned = pinned;
        self.not_targeted = self.not_targeted.saturating_sub(pinned);
        self
    }

    pub fn with_offline_since(mut self, since: Option<Timestamp>) -> Answer {
        self.offline_since = since;
        self
    }

    /// Whether it is complete, and what that hangs on.
    pub fn completeness(&self) -> String {
        let away = self.offline > 0;
        if self.complete {
            return match away {
                true => "complete: the policy leaves offline clusters out".to_owned(),
                false => "complete".to_owned(),
            };
        }
        if self.targeted == 0 && self.pinned > 0 {
            return "not complete: no other cluster is targeted".to_owned();
        }
        if self.targeted == 0 {
            return "not complete: nothing to observe".to_owned();
        }
        let mut open: Vec<String> = Vec::new();
        let counted_away = if self.offline_counts_as == Offline::Incomplete { self.offline } else { 0 };
        for (number, word) in [
            (self.converging, "converging"),
            (self.waiting, "waiting"),
            (self.failed, "failed"),
            (counted_away, "offline, which the policy counts"),
        ] {
            if number > 0 {
                open.push(format!("{number} {word}"));
            }
        }
        if open.is_empty() {
            open.push("no cluster was reached".to_owned());
        }
        format!("not complete: {}", open.join(", "))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {} converged", self.targeted, self.of, self.converged)?;
        if self.converging > 0 {
            write!(f, ", {} converging", self.converging)?;
        }
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
            match self.failed_reasons.as_slice() {
                [] => {}
                [(reason, _)] => write!(f, " ({reason})")?,
                reasons => {
                    let shown: Vec<String> =
                        reasons.iter().take(REASONS).map(|(reason, number)| format!("{reason} {number}")).collect();
                    write!(f, " ({}{})", shown.join(", "), if reasons.len() > REASONS { ", …" } else { "" })?;
                }
            }
        }
        if self.waiting > 0 {
            write!(f, ", {} waiting", self.waiting)?;
        }
        if self.offline > 0 {
            write!(f, ", {} offline", self.offline)?;
            if let Some(since) = self.offline_since {
                write!(f, " since {}", Utc(since))?;
            }
        }
        if self.pinned > 0 {
            write!(f, "; {} pinned to other content", self.pinned)?;
        }
        if self.not_targeted > 0 {
            write!(f, "; {} not targeted", self.not_targeted)?;
        }
        write!(f, "; {}", self.completeness())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: Counts = Counts { converged: 66, converging: 2, failed: 1, offline: 4, waiting: 0 };

    #[test]
    fn it_reads_as_one_sentence() {
        let answer = Answer::new(100, COUNTS, Offline::Complete)
            .with_reasons(vec![("ImagePull".to_owned(), 1), ("Timeout".to_owned(), 0)])
            .with_offline_since(Some(Timestamp(1_794_830_400_000)));
        assert_eq!(
            answer.to_string(),
            "73 of 100: 66 converged, 2 converging, 1 failed (ImagePull), 4 offline since 2026-11-16T12:00:00Z; \
             27 not targeted; not complete: 2 converging, 1 failed"
        );
    }

    #[test]
    fn several_reasons_are_counted() {
        let reasons = ["D", "A", "B", "C"].iter().zip([1, 3, 3, 2]).map(|(name, number)| ((*name).to_owned(), number));
        let counts = Counts { failed: 9, ..Counts::default() };
        let answer = Answer::new(9, counts, Offline::Complete).with_reasons(reasons.collect());
        assert_eq!(answer.to_string(), "9 of 9: 0 converged, 9 failed (A 3, B 3, C 2, …); not complete: 9 failed");
    }

    #[test]
    fn the_policy_says_whether_offline_clusters_leave_it_complete() {
        let counts = Counts { converged: 69, offline: 4, ..Counts::default() };
        let complete = Answer::new(73, counts, Offline::Complete);
        assert!(complete.complete);
        assert_eq!(complete.completeness(), "complete: the policy leaves offline clusters out");
        let not = Answer::new(73, counts, Offline::Incomplete);
        assert!(!not.complete);
        assert_eq!(not.completeness(), "not complete: 4 offline, which the policy counts");
    }

    #[test]
    fn who_is_pinned_to_other_content_is_counted_apart() {
        let one = Counts { converged: 1, ..Counts::default() };
        let answer = Answer::new(3, one, Offline::Complete).with_pinned(1);
        assert_eq!(answer.to_string(), "1 of 3: 1 converged; 1 pinned to other content; 1 not targeted; complete");
        let all = Answer::new(2, Counts::default(), Offline::Complete).with_pinned(2);
        assert!(!all.complete);
        assert_eq!(
            all.to_string(),
            "0 of 2: 0 converged; 2 pinned to other content; not complete: no other cluster is targeted"
        );
    }

    #[test]
    fn nobody_to_ask_is_never_complete() {
        assert!(!Answer::new(0, Counts::default(), Offline::Complete).complete);
        let away = Answer::new(3, Counts { offline: 3, ..Counts::default() }, Offline::Complete);
        assert_eq!(away.completeness(), "not complete: no cluster was reached");
    }
}
