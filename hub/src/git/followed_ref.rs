//! A branch or a tag while it is followed: what is known of it, and whether anybody still wants to know. Held by the repository's
//! task, which says here what its server answered.

use std::time::{Duration, Instant};

use kedge_hub_types::git::{Failure, Forced, RefName, Tracked};

use super::What;
use super::transfer::Found;
use crate::store::now;

#[derive(Debug, Default)]
pub(super) struct FollowedRef {
    pub tracked: Tracked,
    /// The server was asked for it since the start, in vain or not.
    pub tried: bool,
    /// When somebody last wanted to know.
    pub wanted: Option<Instant>,
}

/// What nobody asked about for so long isn't asked for any more: it left the platform.
const FORGOTTEN: Duration = Duration::from_secs(3600);

impl FollowedRef {
    /// As the database remembers it.
    pub fn restored(tracked: Tracked) -> FollowedRef {
        FollowedRef { tracked, tried: false, wanted: Some(Instant::now()) }
    }

    /// A head that can be used.
    pub fn take(&mut self, repo: &str, name: &RefName, found: Found) -> Option<What> {
        let commit = found.commit.to_string();
        let mended = self.tracked.failing.take().is_some();
        if self.tracked.commit.as_deref() == Some(commit.as_str()) {
            return mended.then_some(What::Recovered);
        }
        let from = self.tracked.commit.replace(commit.clone());
        self.tracked.moved_at = Some(now());
        if let (true, Some(from)) = (found.forced, &from) {
            tracing::warn!(repo, reference = %name, from, to = commit, "the branch was rewritten; its new head is followed");
            self.tracked.forced = Some(Forced { from: from.clone(), to: commit.clone(), at: now() });
        } else {
            tracing::info!(repo, reference = %name, commit, "new commit");
        }
        Some(What::Moved { reference: name.clone(), commit, forced: found.forced })
    }

    /// Nobody asked about it for long.
    pub fn is_forgotten(&self) -> bool {
        self.wanted.is_some_and(|wanted| wanted.elapsed() > FORGOTTEN)
    }

    /// A head that can't: the last good one stays.
    pub fn refuse(&mut self, repo: &str, name: &RefName, what: &str, hint: &str) -> Option<What> {
        let error = format!("{name} {what}");
        let attempts = self.tracked.failing.as_ref().map_or(0, |failing| failing.attempts).saturating_add(1);
        let since = self.tracked.failing.as_ref().map_or_else(now, |failing| failing.since);
        let is_new = self.tracked.failing.as_ref().is_none_or(|failing| failing.error != error);
        self.tracked.failing =
            Some(Failure { error: error.clone(), hint: hint.to_owned(), since, attempts, firm: true });
        if is_new {
            tracing::warn!(repo, error, "the last good commit stays");
        }
        is_new.then_some(What::Failing)
    }
}
