//! What each environment is doing, for the API and for people. Written by the reconcilers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kedge_model::wire::Timestamp;

use super::steps::Stop;
use crate::metrics::StepName;
use crate::store::now;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ReconcileStatus {
    environments: Arc<Mutex<BTreeMap<String, EnvironmentStatus>>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnvironmentStatus {
    /// The last reconciliation that went all the way.
    pub done_at: Option<Timestamp>,
    /// What stops it now, and since when.
    pub stopped: Option<(Stop, Timestamp)>,
    /// When it is tried again without news.
    pub next_try: Option<Timestamp>,
    /// How long each step of the last reconciliation took.
    pub took: BTreeMap<&'static str, Duration>,
}

impl ReconcileStatus {
    pub fn all(&self) -> BTreeMap<String, EnvironmentStatus> {
        self.lock().clone()
    }

    pub(super) fn remove(&self, environment: &str) {
        self.lock().remove(environment);
    }

    pub(super) fn measured(&self, environment: &str, step: StepName, took: Duration) {
        let name = match step {
            StepName::Read => "read",
            StepName::Schedule => "schedule",
            StepName::Catalog => "catalog",
            StepName::Publish => "publish",
            StepName::Pack => "pack",
            StepName::Issue => "issue",
        };
        self.lock().entry(environment.to_owned()).or_default().took.insert(name, took);
    }

    pub(super) fn ended(&self, environment: &str, stop: Option<&Stop>, pause: Duration) {
        let mut environments = self.lock();
        let status = environments.entry(environment.to_owned()).or_default();
        let time = now();
        status.stopped = stop.map(|stop| {
            let since = status.stopped.as_ref().filter(|(before, _)| before.message == stop.message);
            (stop.clone(), since.map_or(time, |(_, since)| *since))
        });
        if stop.is_none() {
            status.done_at = Some(time);
        }
        let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
        status.next_try = Some(Timestamp(time.0.saturating_add(pause)));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, EnvironmentStatus>> {
        self.environments.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
