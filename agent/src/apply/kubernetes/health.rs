//! Readiness of applied objects, asked for only when something changed: an object that was ready in a version is ready until the watches
//! show another one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::Handle;

use super::ApplyContext;
use super::put::metadata;
use super::ready::{self, Around, Readiness};
use crate::cluster::metadata::{digest, or_default};
use crate::cluster::request::{ApiError, Call, address, collection, encode};
use crate::cluster::watches::Sight;
use crate::goal::ObjectId;
use crate::record::Failure;

/// What was found of each object.
#[derive(Debug, Default)]
pub(super) struct Readied(Mutex<HashMap<u64, Found>>);

#[derive(Clone, Debug)]
struct Found {
    /// Of the object.
    version: u64,
    /// None: it was ready.
    why: Option<Box<Failure>>,
    at: Instant,
    /// Since when it isn't ready.
    since: Instant,
}

/// Asks from the applier's thread.
struct Neighbours<'a> {
    context: &'a ApplyContext,
    runtime: &'a Handle,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct List {
    #[serde(deserialize_with = "or_default")]
    items: Vec<Value>,
}

/// An object that isn't ready has pods, which change without it.
const STALE: Duration = Duration::from_secs(2);
/// Most become ready sooner; only what takes longer is asked why.
const UNEXPLAINED: Duration = Duration::from_secs(2);
/// Pods that are looked at for a reason.
const MOST_PODS: usize = 20;
const MOST_EVENTS: usize = 100;
const ANSWER: Duration = Duration::from_secs(5);
/// Of a container's log.
const MAX_LINE: u32 = 4096;

impl Readied {
    /// An answer of the server that came anyway.
    pub(super) fn note(&self, id: &ObjectId, live: &Value) {
        if ready::ready(id, live) == Readiness::Ready {
            self.set(id, metadata(live).stamp().version, None, Instant::now());
        } else {
            self.forget(id);
        }
    }

    pub(super) fn forget(&self, id: &ObjectId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(id));
    }

    /// The first that isn't ready.
    pub(super) fn check(&self, ids: &[ObjectId], context: &ApplyContext, runtime: &Handle) -> Result<(), Failure> {
        ids.iter().try_for_each(|id| self.check_one(id, context, runtime))
    }

    fn check_one(&self, id: &ObjectId, context: &ApplyContext, runtime: &Handle) -> Result<(), Failure> {
        let version = match context.watches.sight(id) {
            Sight::There(stamp) => Some(stamp.version),
            Sight::Absent => {
                return Err(Failure::new(ready::NOT_READY, format!("{id} isn't there")));
            }
            Sight::Unknown(_) => None,
        };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&digest(id)).cloned();
        if let Some(known) = &known {
            let same = version == Some(known.version);
            let fresh = known.at.elapsed() < STALE && (same || version.is_none());
            if fresh || (same && known.why.is_none()) {
                return known.result();
            }
        }
        let call = Call::get(address(id));
        let asked = async { tokio::time::timeout(ANSWER, context.cluster.call::<Value>(&call)).await };
        let live = match runtime.block_on(asked) {
            Ok(Ok(live)) => live,
            Ok(Err(ApiError::Refused(refusal))) => {
                return Err(Failure::new(ready::NOT_READY, format!("{id}: {}", refusal.sentence())));
            }
            // A server that doesn't answer has no news: what was healthy isn't taken back for that.
            unanswered => {
                let why = match unanswered {
                    Ok(Err(error)) => error.to_string(),
                    _ => format!("the API server doesn't answer within {} s", ANSWER.as_secs()),
                };
                let unknown = || Err(Failure::passing("ApiServer", format!("{id}: {why}")));
                return known.map_or_else(unknown, |known| known.result());
            }
        };
        let since = known.filter(|known| known.why.is_some()).map_or_else(Instant::now, |known| known.since);
        let judged = match since.elapsed() < UNEXPLAINED && can_wait(id) {
            true => ready::ready(id, &live),
            false => ready::explain(id, &live, &Neighbours { context, runtime }),
        };
        let judged = judged.into_result();
        self.set(id, metadata(&live).stamp().version, judged.clone().err(), since);
        judged
    }

    fn set(&self, id: &ObjectId, version: u64, why: Option<Failure>, since: Instant) {
        let found = Found { version, why: why.map(Box::new), at: Instant::now(), since };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(digest(id), found);
    }
}

/// A claim may be ready by what is around it.
fn can_wait(id: &ObjectId) -> bool {
    id.kind != "PersistentVolumeClaim"
}

impl Found {
    fn result(&self) -> Result<(), Failure> {
        self.why.as_deref().map_or(Ok(()), |why| Err(why.clone()))
    }
}

impl Neighbours<'_> {
    fn ask<T: serde::de::DeserializeOwned>(&self, path: String) -> Option<T> {
        let call = Call::get(path);
        let asked = async { tokio::time::timeout(ANSWER, self.context.cluster.call(&call)).await };
        match self.runtime.block_on(asked) {
            Ok(Ok(found)) => Some(found),
            Ok(Err(error)) => {
                tracing::debug!(path = call.path, %error, "what explains an object can't be had");
                None
            }
            Err(_) => None,
        }
    }

    fn list(&self, path: String) -> Vec<Value> {
        self.ask::<List>(path).map(|list| list.items).unwrap_or_default()
    }
}

impl Around for Neighbours<'_> {
    fn pods(&self, namespace: &str, selector: &str) -> Vec<Value> {
        let path = collection("", "v1", "pods", Some(namespace));
        self.list(format!("{path}?limit={MOST_PODS}&labelSelector={}", encode(selector)))
    }

    fn warnings(&self, namespace: &str) -> Vec<Value> {
        let path = collection("", "v1", "events", Some(namespace));
        self.list(format!("{path}?limit={MOST_EVENTS}&fieldSelector=type%3DWarning"))
    }

    fn storage_class(&self, name: Option<&str>) -> Option<Value> {
        let path = collection("storage.k8s.io", "v1", "storageclasses", None);
        match name {
            Some(name) => self.ask(format!("{path}/{}", encode(name))),
            None => {
                let is_default = |class: &Value| {
                    class["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"] == "true"
                };
                self.list(path).into_iter().find(is_default)
            }
        }
    }

    fn last_line(&self, namespace: &str, pod: &str, container: &str) -> Option<String> {
        let path = collection("", "v1", "pods", Some(namespace));
        let path = format!("{path}/{}/log?container={}", encode(pod), encode(container));
        let lines = |previous: bool| {
            let call = Call::get(format!("{path}&previous={previous}&tailLines=1&limitBytes={MAX_LINE}"));
            let asked = async { tokio::time::timeout(ANSWER, self.context.cluster.text(&call)).await };
            self.runtime.block_on(asked).ok()?.ok().filter(|text| !text.trim().is_empty())
        };
        lines(true).or_else(|| lines(false)).map(|text| text.trim().to_owned())
    }
}
