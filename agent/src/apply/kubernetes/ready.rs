//! Whether an object of the API server is ready, as its kind means it, and why not. Pure over the object as the server gives it; what is
//! around it (pods, events) comes through a trait. The Kubernetes applier asks it for every object of a goal while a change settles.

mod condition;
mod job;
mod pods;
mod selector;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::Value;

use crate::goal::ObjectId;
use crate::record::Failure;
pub use pods::{Trouble, pods_reason};
pub use selector::selector_of;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// It may come by itself.
    Waiting {
        reason: String,
        message: String,
    },
    /// Nothing that was asked for can make it ready any more.
    Failed {
        reason: String,
        message: String,
    },
}

/// What explains an object that isn't ready. The API server is behind it; what can't be had is left out.
pub trait Around {
    /// Pods of a namespace that a label selector names.
    fn pods(&self, namespace: &str, selector: &str) -> Vec<Value>;
    /// Warnings of a namespace, of whatever object.
    fn warnings(&self, namespace: &str) -> Vec<Value>;
    /// None as the name: the cluster's default.
    fn storage_class(&self, name: Option<&str>) -> Option<Value>;
    /// What a container that ended wrote last.
    fn last_line(&self, namespace: &str, pod: &str, container: &str) -> Option<String>;
}

/// The word for everything that no other word fits.
pub const NOT_READY: &str = "NotReady";
pub const JOB_FAILED: &str = "JobFailed";

/// By the object alone. Its message names the object.
pub fn ready(id: &ObjectId, live: &Value) -> Readiness {
    if live["metadata"]["deletionTimestamp"].is_string() {
        return waiting(format!("{id} is being deleted"));
    }
    let judged = match (id.group.as_str(), id.kind.as_str()) {
        ("apps", "Deployment") => workload::deployment(live),
        ("apps", "StatefulSet") => workload::stateful_set(live),
        ("apps", "DaemonSet") => workload::daemon_set(live),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workload::replica_set(live),
        ("batch", "Job") => job::job(live),
        ("", "Pod") => job::pod(live),
        ("", "PersistentVolumeClaim") => claim(live),
        ("", "Service") => service(live),
        ("", "Namespace") => phase(live, "Active"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => condition::definition(live),
        ("apiregistration.k8s.io", "APIService") => condition::must_be_true(live, "Available"),
        // Made when their time comes; an address comes when somebody serves the class.
        ("batch", "CronJob") | ("networking.k8s.io" | "extensions", "Ingress") => Readiness::Ready,
        // Settings: what they have as status isn't about them.
        ("", "ConfigMap" | "Secret" | "ServiceAccount") | ("rbac.authorization.k8s.io", _) => Readiness::Ready,
        _ => condition::any(live),
    };
    judged.named(&id.to_string())
}

/// By the object, and where it isn't ready by what is around it.
pub fn explain(id: &ObjectId, live: &Value, around: &dyn Around) -> Readiness {
    let judged = ready(id, live);
    if judged == Readiness::Ready {
        return judged;
    }
    let namespace = id.namespace.as_deref().unwrap_or_default();
    if (id.group.as_str(), id.kind.as_str()) == ("", "PersistentVolumeClaim") {
        return match is_bound_later(live, around) {
            true => Readiness::Ready,
            false => judged,
        };
    }
    let pods = match (id.group.as_str(), id.kind.as_str()) {
        ("", "Pod") => vec![live.clone()],
        // A Service's pods are somebody else's, and a claim's selector means volumes.
        ("", kind) if kind != "ReplicationController" => return judged,
        _ => match selector_of(live) {
            Some(selector) => around.pods(namespace, &selector),
            None => return judged,
        },
    };
    let warnings = around.warnings(namespace);
    let Some(mut trouble) = pods_reason(&pods, &warnings).or_else(|| pods::own_warning(id, &warnings)) else {
        return judged;
    };
    if trouble.wants_last_line()
        && let Some(container) = &trouble.container
        && let Some(line) = around.last_line(namespace, &trouble.pod, container)
    {
        trouble.add_last_line(&line);
    }
    judged.because(&trouble)
}

/// A claim that its storage class binds when the first pod uses it has nothing to wait for before.
fn is_bound_later(live: &Value, around: &dyn Around) -> bool {
    let class = match &live["spec"]["storageClassName"] {
        // No class at all: somebody makes the volume by hand.
        Value::String(name) if name.is_empty() => return false,
        Value::String(name) => around.storage_class(Some(name)),
        _ => around.storage_class(None),
    };
    // With a node chosen a pod uses it, and the volume is being made.
    let is_used = live["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].is_string();
    !is_used && class.is_some_and(|class| class["volumeBindingMode"] == "WaitForFirstConsumer")
}

fn claim(live: &Value) -> Readiness {
    match live["status"]["phase"].as_str() {
        Some("Bound") => Readiness::Ready,
        Some("Lost") => failed("has lost its volume"),
        phase => waiting(format!("has no volume yet ({})", phase.unwrap_or("no status"))),
    }
}

fn service(live: &Value) -> Readiness {
    let has_address = live["status"]["loadBalancer"]["ingress"].as_array().is_some_and(|list| !list.is_empty());
    match live["spec"]["type"] == "LoadBalancer" && !has_address {
        true => waiting("has no address of a load balancer yet"),
        false => Readiness::Ready,
    }
}

fn phase(live: &Value, wanted: &str) -> Readiness {
    match live["status"]["phase"].as_str() {
        Some(phase) if phase == wanted => Readiness::Ready,
        phase => waiting(format!("is {}, not {wanted}", phase.unwrap_or("without a phase"))),
    }
}

fn waiting(message: impl Into<String>) -> Readiness {
    Readiness::Waiting { reason: NOT_READY.to_owned(), message: message.into() }
}

fn failed(message: impl Into<String>) -> Readiness {
    Readiness::Failed { reason: NOT_READY.to_owned(), message: message.into() }
}

impl Readiness {
    /// As the engine takes it.
    pub fn into_result(self) -> Result<(), Failure> {
        match self {
            Readiness::Ready => Ok(()),
            Readiness::Waiting { reason, message } | Readiness::Failed { reason, message } => {
                Err(Failure::new(&reason, message))
            }
        }
    }

    /// With the subject of its sentence.
    fn named(self, subject: &str) -> Readiness {
        self.map(|reason, message| match message.starts_with(subject) {
            true => (reason, message),
            false => (reason, format!("{subject} {message}")),
        })
    }

    fn because(self, trouble: &Trouble) -> Readiness {
        // A Job that failed has failed, whatever its pods say; they say why.
        self.map(|reason, message| {
            let reason = if reason == JOB_FAILED { reason } else { trouble.reason.to_owned() };
            (reason, format!("{message}: {}", trouble.message))
        })
    }

    fn map(self, change: impl FnOnce(String, String) -> (String, String)) -> Readiness {
        match self {
            Readiness::Ready => Readiness::Ready,
            Readiness::Waiting { reason, message } => {
                let (reason, message) = change(reason, message);
                Readiness::Waiting { reason, message }
            }
            Readiness::Failed { reason, message } => {
                let (reason, message) = change(reason, message);
                Readiness::Failed { reason, message }
            }
        }
    }
}
