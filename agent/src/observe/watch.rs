//! One watch: get, list and watch of one kind, for as long as the observer wants it. Judgements go to the `observations`; no object is
//! kept.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};

use super::name::Name;
use super::observations::{Fare, Observations, Scope};
use super::seen::Seen;
use super::served::{self, Served};
use crate::causes::innermost;

/// Full objects: a page of the largest Applications stays below some megabytes.
const PAGE: u32 = 25;
/// A kind may be installed, or a right given, any time; nobody waits for it at once.
const FIRST_GAP: Duration = Duration::from_secs(2);
const LAST_GAP: Duration = Duration::from_secs(300);
/// An API server that is away is back sooner.
const BROKEN_GAP: Duration = Duration::from_secs(30);

/// Why a watch has to begin again.
enum Ended {
    /// It was too far behind; a new list mends that.
    Old,
    NotServed,
    Forbidden(String),
    Broken(String),
}

/// Runs until it is aborted.
pub async fn run(client: Client, scope: Scope, observations: Arc<Observations>) {
    let mut gap = FIRST_GAP;
    loop {
        let found = served::find(&client, &scope.kind, &scope.version).await;
        let ended = match found {
            Ok(Some(served)) => follow(&client, &scope, &served, &observations, &mut gap).await,
            Ok(None) => Ended::NotServed,
            Err(error) => Ended::of(&error),
        };
        match ended {
            Ended::Old => tracing::debug!(kind = %scope.kind, "a watch is too far behind; it lists again"),
            Ended::NotServed => {
                // Its objects went with the kind.
                observations.keep(&scope, &BTreeSet::new());
                observations.fare(&scope, Fare::NotServed);
            }
            Ended::Forbidden(why) => {
                tracing::warn!(kind = %scope.kind, why, "not allowed to observe; trying again");
                observations.fare(&scope, Fare::Forbidden(why));
            }
            Ended::Broken(why) => {
                tracing::warn!(kind = %scope.kind, why, "the API server doesn't tell; trying again");
                observations.fare(&scope, Fare::Broken(why));
                gap = gap.min(BROKEN_GAP);
            }
        }
        tokio::time::sleep(gap.mul_f64(0.8 + 0.4 * rand::random::<f64>())).await;
        gap = (gap * 2).min(LAST_GAP);
    }
}

/// Until the watch can't go on.
async fn follow(
    client: &Client,
    scope: &Scope,
    served: &Served,
    observations: &Observations,
    gap: &mut Duration,
) -> Ended {
    let api: Api<Seen> = match scope.namespace.as_deref().filter(|_| served.namespaced) {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &served.resource),
        None => Api::all_with(client.clone(), &served.resource),
    };
    let mut config = watcher::Config::default().page_size(PAGE);
    if let Some(only) = &scope.only {
        config = config.fields(&format!("metadata.name={only}"));
    }
    let mut events = pin!(watcher(api, config));
    let mut listed: Option<BTreeSet<Name>> = None;
    loop {
        let Some(event) = poll_fn(|context| events.as_mut().poll_next(context)).await else {
            return Ended::Broken("the watch ended".to_owned());
        };
        match event {
            Ok(Event::Init) => listed = Some(BTreeSet::new()),
            Ok(Event::InitApply(seen)) => {
                if let (Some(name), Some(listed)) = (seen.name(&scope.kind), &mut listed) {
                    listed.insert(name);
                }
                put(&seen, scope, observations);
            }
            Ok(Event::InitDone) => {
                observations.keep(scope, &listed.take().unwrap_or_default());
                *gap = FIRST_GAP;
            }
            Ok(Event::Apply(seen)) => put(&seen, scope, observations),
            Ok(Event::Delete(seen)) => {
                if let Some(name) = seen.name(&scope.kind) {
                    observations.remove(&name);
                }
            }
            Err(error) => return Ended::of_watch(&error),
        }
    }
}

fn put(seen: &Seen, scope: &Scope, observations: &Observations) {
    if let Some(name) = seen.name(&scope.kind) {
        observations.put(name, seen.judge(&scope.kind));
    }
}

impl Ended {
    fn of(error: &kube::Error) -> Ended {
        match error {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => Ended::Forbidden(status.message.clone()),
            kube::Error::Api(status) if status.code == 410 => Ended::Old,
            error if served::is_absent(error) => Ended::NotServed,
            kube::Error::Api(status) => Ended::Broken(status.message.clone()),
            error => Ended::Broken(innermost(error)),
        }
    }

    fn of_watch(error: &watcher::Error) -> Ended {
        match error {
            watcher::Error::WatchError(status) => Ended::of(&kube::Error::Api(status.clone())),
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Ended::of(error),
            watcher::Error::NoResourceVersion => Ended::Broken("the kind can't be watched".to_owned()),
        }
    }
}
