//! What is told of the assignments that others bring: what they said, or what the observer sees of them in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::Timestamp;
use kedge_status::Severity;

use super::super::hub::Hub;
use super::super::runtime::instant;
use super::super::surroundings::Observer;
use super::SyncLoop;
use crate::causes::chain;
use crate::external::{self, Sightings};
use crate::record::Record;
use crate::told::Told;

/// Who reads the platform's branch in this cluster, on the hub's page.
const PLATFORM_FACT: &str = "platformSource";

/// Until the observer, where there is one, has something new to say.
pub(super) async fn next(observer: &mut Option<Box<dyn Observer>>) {
    match observer {
        Some(observer) => observer.next().await,
        None => std::future::pending().await,
    }
}

impl<H: Hub> SyncLoop<H> {
    /// What other reconcilers came to with the assignments that are theirs; and what neither they nor we have any more.
    pub(super) fn tell_observed(&mut self, records: &BTreeMap<String, Record>) {
        let seen = self.look_around();
        let Some(state) = self.memory.state() else { return };
        let now = self.context.clock.now();
        let results = self.external.read().unwrap_or_else(|error| {
            tracing::error!(error = chain(&error), "what other reconcilers reported can't be read");
            BTreeMap::new()
        });
        let mut told = external::assignment_statuses(state, &results, &seen, now);
        let named: BTreeSet<&str> = state.entries.iter().map(|entry| entry.assignment.as_str()).collect();
        let gone = |name: &String| !named.contains(name.as_str()) && !records.contains_key(name);
        let gone = self.reporter.assignments().into_iter().filter(gone);
        told.extend(gone.map(|assignment| Told::Gone { assignment, at: now }));
        for mut told in told {
            self.keep_running(&mut told);
            self.keep_order(&mut told, now);
            self.tell(&told);
        }
    }

    /// What another reconciler didn't get to leaves what it had: the same revision runs on.
    fn keep_running(&self, told: &mut Told) {
        if let Told::AssignmentStatus { assignment, running: running @ None, version: version @ Some(_), .. } = told
            && let Some((key, before)) = self.reporter.running(assignment)
            && before == *version
        {
            *running = Some(key);
        }
    }

    /// What became true after something else can't be older than that.
    fn keep_order(&self, told: &mut Told, now: Timestamp) {
        if let Told::AssignmentStatus { assignment, at, .. } = told
            && let Some(since) = self.reporter.since(assignment)
        {
            *at = (*at).max(since.min(now));
        }
    }

    /// What the observer sees; its warnings are told at once.
    fn look_around(&mut self) -> Sightings {
        let (Some(observer), Some(state)) = (&mut self.observer, self.memory.state()) else {
            return Sightings::new();
        };
        observer.follow(state);
        let running = |assignment: &str| self.reporter.running(assignment).map(|(key, _)| key);
        let seen = observer.report(state, &running, self.context.clock.now());
        if let Some(platform) = &seen.platform {
            self.reporter.fact(PLATFORM_FACT, platform);
        }
        if let Some(again) = seen.again {
            self.tasks.not_after(instant(again, &*self.context.clock));
        }
        for (code, warning) in seen.warnings {
            self.warn_while(code, Severity::Warning, warning);
        }
        seen.sightings
    }
}
