//! What tests of a harbour wait for: the hub's word about an assignment, and what is in the cluster.

use std::time::Duration;

use kedge_model::wire::{Digest, PackagesKey};
use serde_json::Value;

use super::{CLUSTER, Harbour};
use crate::lab::{await_or_tell, stays_or_tell};

/// A change with readiness and soak, or a failure with its timeout and the way back, on a busy machine.
pub const CHANGED_WITHIN: Duration = Duration::from_secs(90);

/// What the hub knows of an assignment in the cluster.
#[derive(Debug, Clone)]
pub struct Seen {
    pub condition: String,
    pub reason: String,
    pub message: String,
    pub whole: Value,
}

impl Harbour {
    /// What the hub knows of a target's assignment; none while it knows nothing.
    pub fn seen(&self, target: &str) -> Option<Seen> {
        let answer = self.world.api.ask(http::Method::GET, &format!("/api/v1/clusters/{CLUSTER}"), None, &[]);
        let cluster = (answer.status == 200).then(|| answer.json())?;
        let assignment = self.assignment(target);
        let conditions = cluster["conditions"].as_array()?;
        let own = conditions.iter().find(|one| one["assignment"] == assignment.as_str())?;
        let text = |key: &str| own[key].as_str().unwrap_or_default().to_owned();
        Some(Seen {
            condition: text("condition"),
            reason: text("reason"),
            message: text("message"),
            whole: own.clone(),
        })
    }

    /// Looks until it is so; else the test fails with what is known.
    #[track_caller]
    pub fn await_so(&self, what: &str, within: Duration, mut look: impl FnMut(&Harbour) -> bool) {
        await_or_tell(what, within, || self.story(), || look(self));
    }

    /// It stays so for a while: what must not happen doesn't.
    #[track_caller]
    pub fn stays_so(&self, what: &str, during: Duration, mut look: impl FnMut(&Harbour) -> bool) {
        stays_or_tell(what, during, || self.story(), || look(self));
    }

    /// The hub knows that the target runs what it should, in the newest content.
    #[track_caller]
    pub fn await_converged(&self, target: &str) {
        self.await_so(&format!("{target} is Converged"), CHANGED_WITHIN, |harbour| {
            let wanted = harbour.entry(target);
            harbour
                .seen(target)
                .is_some_and(|seen| seen.condition == "Converged" && is_of(&seen.whole, wanted.as_ref()))
        });
    }

    /// The hub knows that it failed for this reason; the message.
    #[track_caller]
    pub fn await_failed(&self, target: &str, reason: &str) -> String {
        let mut message = String::new();
        self.await_so(&format!("{target} is Failed ({reason})"), CHANGED_WITHIN, |harbour| {
            let wanted = harbour.entry(target);
            let seen = harbour.seen(target);
            let seen = seen.filter(|seen| {
                seen.condition == "Failed" && seen.reason == reason && is_of(&seen.whole, wanted.as_ref())
            });
            seen.map(|seen| message = seen.message).is_some()
        });
        message
    }

    /// The hub's log of an assignment, the newest first.
    pub fn history(&self, target: &str) -> Vec<Value> {
        self.world.api.list(&format!("/api/v1/history?environment=dev&assignment={}", self.assignment(target)))
    }

    /// The path of an object in a target's namespace: `/apis/apps/v1`, `deployments`, `web`.
    pub fn path(&self, target: &str, api: &str, plural: &str, name: &str) -> String {
        format!("{api}/namespaces/{}/{plural}/{name}", self.namespace(target))
    }

    /// A Deployment of a target; none when there is none.
    pub fn deployment(&self, target: &str, name: &str) -> Option<Value> {
        self.kubernetes.get(&self.path(target, "/apis/apps/v1", "deployments", name))
    }

    /// The image's tag of its container.
    pub fn version(&self, target: &str, name: &str) -> Option<String> {
        let deployment = self.deployment(target, name)?;
        let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str()?;
        Some(image.rsplit_once(':')?.1.to_owned())
    }

    #[track_caller]
    pub fn await_version(&self, target: &str, name: &str, version: &str) {
        self.await_so(&format!("{name} of {target} has version {version}"), CHANGED_WITHIN, |harbour| {
            harbour.version(target, name).as_deref() == Some(version)
        });
    }

    /// kubectl in a target's namespace.
    #[track_caller]
    pub fn kubectl(&self, target: &str, arguments: &[&str]) -> String {
        let namespace = self.namespace(target);
        self.kubernetes.kubectl(&[arguments, &["--namespace", &namespace]].concat())
    }

    /// Everything that a reader of a failed test wants to know.
    pub fn story(&self) -> String {
        let answer = self.world.api.ask(http::Method::GET, &format!("/api/v1/clusters/{CLUSTER}"), None, &[]);
        let problems = self.world.api.problems();
        format!("the hub knows: {:#}\nproblems: {problems:?}", answer.json())
    }
}

/// Whether a condition is about the content that is wanted now.
fn is_of(seen: &Value, wanted: Option<&Value>) -> bool {
    let digest = |part: &str| wanted?[part]["digest"].as_str()?.parse::<Digest>().ok();
    let (Some(platform), Some(workload)) = (digest("platform"), digest("workload")) else { return true };
    let key = PackagesKey::of_packages(&platform, &workload).to_string();
    seen["desired"].as_str() == Some(&key)
}
