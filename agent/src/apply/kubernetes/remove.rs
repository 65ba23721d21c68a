//! Removal of one object: only the one that is ours, and not what holds what others put into it. What stays is said.

use std::time::Duration;

use super::account::Account;
use super::put::{PATIENCE, Trouble};
use super::{ApplyContext, Note};
use crate::cluster::ASSIGNMENT;
use crate::cluster::metadata::{Metadata, Partial};
use crate::cluster::request::{ApiError, Call, METADATA, address};
use crate::cluster::retry::persist;
use crate::goal::ObjectGoal;
use crate::record::Failure;

/// Longer finalizers are nobody's reason to wait.
const GONE: Duration = Duration::from_secs(30);
/// What an object itself says about its removal.
const PRUNE: &str = "kedge.dev/prune";
/// The cluster's own.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl ApplyContext {
    pub(super) async fn remove(&self, goal: &ObjectGoal) -> Result<Note, Failure> {
        let account = goal.account.as_deref();
        match self.make_account(goal).await {
            Ok(Account::There) => {}
            // What was in a namespace went with it.
            Ok(Account::NoNamespace) => return Ok(self.removed(goal)),
            // Where it may not be it can't have been applied.
            Err(failure) if failure.reason == "Forbidden" && self.watches.seen().good(&goal.id).is_none() => {
                return Ok(Some(format!("wasn't applied: {}", failure.message)));
            }
            Err(failure) => return Err(failure),
        }
        let call = Call::get(address(&goal.id)).with_accept(METADATA).by(account);
        let about: Metadata = match persist(PATIENCE, &*self.gate, || self.cluster.call::<Partial>(&call)).await {
            Ok(partial) => partial.metadata,
            Err(error) if error.code() == Some(404) => return Ok(self.removed(goal)),
            // What we may not even see we can't have applied.
            Err(ApiError::Refused(refusal)) if refusal.code == 403 && self.watches.seen().good(&goal.id).is_none() => {
                return Ok(Some(format!("wasn't applied and can't be looked at: {}", refusal.sentence())));
            }
            Err(error) => return Err(self.failure(goal, Trouble::Api(error))),
        };
        if !self.is_ours(goal, &about) {
            return Ok(Some("stays: somebody replaced it or removed Kedge's label".to_owned()));
        }
        if about.deletion_timestamp.is_none() {
            if let Some(why) = self.keeps(goal, &about).await? {
                return Ok(Some(format!("stays: {why}")));
            }
            let deleted = self.delete(&goal.id, account, &about.uid, "Background").await;
            if deleted.map_err(|error| self.failure(goal, Trouble::Api(error)))? {
                return Ok(self.removed(goal));
            }
        }
        match self.wait_for_end(&goal.id, account, &about.uid, GONE).await {
            Ok(()) => Ok(self.removed(goal)),
            Err(failure) if failure.reason == "Terminating" => {
                self.removed(goal);
                Ok(Some("is still terminating; it is deleted when its finalizers are done".to_owned()))
            }
            Err(failure) => Err(failure),
        }
    }

    fn removed(&self, goal: &ObjectGoal) -> Note {
        if goal.id.kind == "Namespace" {
            self.accounts.forget(&goal.id.name);
        }
        self.watches.seen().disown(&goal.id);
        None
    }

    fn is_ours(&self, goal: &ObjectGoal, about: &Metadata) -> bool {
        let label = about.labels.get(ASSIGNMENT).map(String::as_str);
        let content = self.content(goal).ok();
        let content = content.and_then(|bytes| serde_json::from_slice::<Partial>(&bytes).ok());
        match content.as_ref().and_then(|content| content.metadata.labels.get(ASSIGNMENT)) {
            Some(wanted) => label == Some(wanted),
            // Its content was collected: the label alone has to do.
            None => label.is_some(),
        }
    }

    /// Why an object of ours isn't deleted.
    async fn keeps(&self, goal: &ObjectGoal, about: &Metadata) -> Result<Note, Failure> {
        let asked = about.annotations.get(PRUNE).map(String::as_str);
        if asked == Some("never") {
            return Ok(Some(format!("it is annotated with {PRUNE}: never")));
        }
        let held = match (goal.id.group.as_str(), goal.id.kind.as_str()) {
            ("", "PersistentVolumeClaim") if asked != Some("always") => {
                return Ok(Some(format!("it holds data; {PRUNE}: always would let it go")));
            }
            ("", "Namespace") if SYSTEM_NAMESPACES.contains(&goal.id.name.as_str()) => {
                return Ok(Some("it is the cluster's own".to_owned()));
            }
            ("", "Namespace") => self.in_namespace(&goal.id.name).await,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => self.of_definition(goal).await,
            _ => return Ok(None),
        };
        match held {
            Ok(held) => Ok(held.map(|what| format!("it still holds {what}"))),
            // Who can't look doesn't delete.
            Err(ApiError::Refused(refusal)) => {
                Ok(Some(format!("what it holds can't be looked at: {}", refusal.sentence())))
            }
            Err(error) => Err(self.failure(goal, Trouble::Api(error))),
        }
    }
}
