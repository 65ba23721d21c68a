//! Kinds that keep a number of pods: how many of them must be new and ready.

use serde_json::Value;

use super::condition::{self, find, is_unseen, is_unseen_or_new};
use super::{Readiness, failed, waiting};

/// The server's default where nothing is said.
const REPLICAS: i64 = 1;

pub(super) fn deployment(live: &Value) -> Readiness {
    if let Some(unseen) = is_unseen_or_new(live) {
        return unseen;
    }
    let late = find(live, "Progressing").filter(|progress| progress.reason == "ProgressDeadlineExceeded");
    let (wanted, has) = (wanted(live), |key: &str| count(live, key));
    let left = match () {
        () if has("updatedReplicas") < wanted => format!("has {} of {wanted} new pods", has("updatedReplicas")),
        () if has("replicas") > has("updatedReplicas") => {
            format!("still has {} old pods", has("replicas").saturating_sub(has("updatedReplicas")))
        }
        () if has("availableReplicas") < wanted => {
            format!("has {} of {wanted} pods available", has("availableReplicas"))
        }
        () if find(live, "Available").is_some_and(|available| available.status == "False") => {
            "isn't available".to_owned()
        }
        () => return Readiness::Ready,
    };
    if live["spec"]["paused"] == true {
        return waiting(format!("{left} and is paused"));
    }
    if let Some(refused) = refused(live) {
        return waiting(format!("{left}: {refused}"));
    }
    match late {
        Some(late) => failed(format!("{left} and makes no progress{}", late.said())),
        None => waiting(left),
    }
}

pub(super) fn stateful_set(live: &Value) -> Readiness {
    if let Some(unseen) = is_unseen_or_new(live) {
        return unseen;
    }
    let (wanted, has) = (wanted(live), |key: &str| count(live, key));
    if has("readyReplicas") < wanted {
        return waiting(format!("has {} of {wanted} pods ready", has("readyReplicas")));
    }
    if has("replicas") > wanted {
        return waiting(format!("has {} pods too many", has("replicas").saturating_sub(wanted)));
    }
    let strategy = &live["spec"]["updateStrategy"];
    // The others are renewed when somebody deletes them.
    if strategy["type"] == "OnDelete" {
        return Readiness::Ready;
    }
    // Pods below the partition stay as they are.
    let partition = strategy["rollingUpdate"]["partition"].as_i64().unwrap_or(0);
    let new = wanted.saturating_sub(partition).max(0);
    let is_through = live["status"]["currentRevision"] == live["status"]["updateRevision"];
    match !is_through && has("updatedReplicas") < new {
        true => waiting(format!("has {} of {new} new pods", has("updatedReplicas"))),
        false => Readiness::Ready,
    }
}

pub(super) fn daemon_set(live: &Value) -> Readiness {
    if let Some(unseen) = is_unseen_or_new(live) {
        return unseen;
    }
    let has = |key: &str| count(live, key);
    let wanted = has("desiredNumberScheduled");
    let is_rolled = live["spec"]["updateStrategy"]["type"] != "OnDelete";
    let left = match () {
        () if has("currentNumberScheduled") < wanted => {
            format!("is on {} of {wanted} nodes", has("currentNumberScheduled"))
        }
        () if is_rolled && has("updatedNumberScheduled") < wanted => {
            format!("has {} of {wanted} new pods", has("updatedNumberScheduled"))
        }
        () if has("numberReady") < wanted => format!("has {} of {wanted} pods ready", has("numberReady")),
        () if has("numberAvailable") < wanted => format!("has {} of {wanted} pods available", has("numberAvailable")),
        () => return Readiness::Ready,
    };
    waiting(left)
}

/// Also of a ReplicationController, which is its ancestor.
pub(super) fn replica_set(live: &Value) -> Readiness {
    if let Some(unseen) = is_unseen(live) {
        return unseen;
    }
    let (wanted, has) = (wanted(live), |key: &str| count(live, key));
    let left = match () {
        () if has("replicas") > wanted => format!("has {} pods too many", has("replicas").saturating_sub(wanted)),
        () if has("readyReplicas") < wanted => format!("has {} of {wanted} pods ready", has("readyReplicas")),
        () if has("availableReplicas") < wanted => {
            format!("has {} of {wanted} pods available", has("availableReplicas"))
        }
        () => return Readiness::Ready,
    };
    match refused(live) {
        Some(refused) => waiting(format!("{left}: {refused}")),
        None => waiting(left),
    }
}

/// Why the server doesn't let its pods be made: a quota, a policy.
fn refused(live: &Value) -> Option<String> {
    let failure = find(live, "ReplicaFailure").filter(|failure| failure.status == "True")?;
    Some(format!("pods can't be made: {}", condition::plain(failure.message)))
}

fn wanted(live: &Value) -> i64 {
    live["spec"]["replicas"].as_i64().unwrap_or(REPLICAS)
}

/// A number that isn't there is zero: the server leaves those out.
fn count(live: &Value, key: &str) -> i64 {
    live["status"][key].as_i64().unwrap_or(0)
}
