//! The honest observer beside Flux and Argo CD: it watches the objects that the desired state's observed assignments name, what they read
//! from, and the cluster's own source of the platform's branch, and says what they come to. It reads, and changes nothing. Made by the
//! mode `run --kubernetes` and driven by the sync loop; it owns one task per watch.

mod argo;
mod conditions;
mod flux;
mod judged;
mod name;
mod observations;
mod platform;
mod seen;
mod served;
#[cfg(test)]
mod tests;
mod wanted;
mod watch;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{DesiredState, PackagesKey, Timestamp};
use kedge_status::Condition;
use kube::Client;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::external::{ObserverReport, Sighting};
use observations::{Fare, Observations, Scope};
use wanted::Wanted;
use whole::{AGAIN_PATIENCE_MS, Whole};

pub struct Observer {
    client: Client,
    /// Where the client's connections live.
    runtime: Handle,
    observations: Arc<Observations>,
    wanted: Wanted,
    tasks: JoinSet<()>,
    watches: BTreeMap<Scope, AbortHandle>,
    /// When what has changed is told.
    due: Option<Instant>,
}

/// The cluster's own source of the platform's branch fails, is behind, or isn't there.
pub const PLATFORM_SOURCE: &str = "PlatformSource";
/// Objects that the agent can't see.
pub const NOT_OBSERVED: &str = "NotObserved";

/// A controller writes several times in a row; what it came to is told once.
const SETTLE: Duration = Duration::from_millis(500);
/// A warning names the first few.
const MAX_SAID: usize = 3;

impl Observer {
    /// The watches run on `runtime`.
    pub fn new(client: Client, runtime: Handle) -> Observer {
        Observer {
            client,
            runtime,
            observations: Arc::default(),
            wanted: Wanted::default(),
            tasks: JoinSet::new(),
            watches: BTreeMap::new(),
            due: None,
        }
    }

    /// Watches what this state's observed assignments name, and nothing else.
    pub fn follow(&mut self, state: &DesiredState) {
        let wanted = Wanted::of(state);
        if self.wanted != wanted {
            self.wanted = wanted;
            self.watch();
        }
    }

    /// Returns when there may be something new to say. May be dropped and called again.
    pub async fn next(&mut self) {
        loop {
            let Some(due) = self.due else {
                self.observations.changed().await;
                self.due = Some(Instant::now() + SETTLE);
                continue;
            };
            tokio::time::sleep_until(due).await;
            self.due = None;
            self.watch();
            return;
        }
    }

    /// What is seen of every observed assignment. `running` is what was last told to run: published files that are new to an assignment
    /// are in force only once the cluster has read the platform's branch that far.
    pub fn observed(
        &self,
        state: &DesiredState,
        running: impl Fn(&str) -> Option<PackagesKey>,
        now: Timestamp,
    ) -> ObserverReport {
        let facts = self.observations.facts();
        let platform = platform::platform(state, self.wanted.wide(), &facts, now);
        let behind = platform.as_ref().and_then(|platform| platform.behind.as_deref());
        let (mut observed, mut hidden) = (ObserverReport::default(), BTreeSet::new());
        for (assignment, observation) in wanted::observed(state).filter(|(_, one)| !one.objects.is_empty()) {
            let behind = behind.filter(|_| running(assignment) != Some(observation.key()));
            let sighting = match whole::whole(observation, &facts, behind, now) {
                Whole::NotYet => None,
                Whole::Seen(sighting) => Some(sighting),
                Whole::Hidden(why) => {
                    hidden.extend(why);
                    Some(Sighting {
                        condition: Condition::Unknown,
                        drift: None,
                        version: None,
                        reached: false,
                        since: None,
                    })
                }
            };
            observed.sightings.insert(assignment.to_owned(), sighting);
        }
        hidden.extend(facts.watches.iter().filter_map(|(scope, watched)| match &watched.fare {
            Fare::Broken(why) => Some(format!("{}: {why}; what is said of it may be old", scope.kind)),
            _ => None,
        }));
        observed.warnings.insert(NOT_OBSERVED, said(&hidden));
        if let Some(platform) = &platform {
            observed.warnings.insert(PLATFORM_SOURCE, platform.warning.clone());
            observed.platform.clone_from(&platform.fact);
        }
        let stuck = facts.objects.values().filter_map(|judged| judged.again);
        let stuck = stuck.map(|again| Timestamp(again.0.saturating_add(AGAIN_PATIENCE_MS + 1)));
        let again = stuck.chain(platform.and_then(|platform| platform.again));
        observed.again = again.filter(|again| *again > now).min();
        observed
    }

    /// Begins the watches that are wanted now, and ends the others.
    fn watch(&mut self) {
        let scopes = self.wanted.scopes(&self.observations.facts());
        self.watches.retain(|scope, task| {
            let stays = scopes.contains(scope);
            if !stays {
                task.abort();
            }
            stays
        });
        self.observations.settle(&scopes);
        while self.tasks.try_join_next().is_some() {}
        for scope in scopes {
            let (client, observations) = (self.client.clone(), Arc::clone(&self.observations));
            let (tasks, runtime) = (&mut self.tasks, &self.runtime);
            self.watches.entry(scope).or_insert_with_key(|scope| {
                tracing::debug!(kind = %scope.kind, namespace = scope.namespace, only = scope.only, "observing");
                tasks.spawn_on(watch::run(client, scope.clone(), observations), runtime)
            });
        }
    }
}

fn said(hidden: &BTreeSet<String>) -> Option<String> {
    let first: Vec<&str> = hidden.iter().take(MAX_SAID).map(String::as_str).collect();
    let more = hidden.len().saturating_sub(MAX_SAID);
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!first.is_empty()).then(|| format!("not everything can be observed: {}{tail}", first.join("; ")))
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("wanted", &self.wanted).field("watches", &self.watches.len()).finish()
    }
}
