//! Server-side apply of one object: first without force, so that a conflict is heard of; then as the conflict's ruling says. A definition is
//! waited for until it is established.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;

use super::account::with_way_out;
use super::fields::{self, Rights};
use super::ready::{Readiness, ready};
use super::{ApplyContext, Note, refusal};
use crate::cluster::metadata::Metadata;
use crate::cluster::request::{ApiError, Call, Refusal, address};
use crate::cluster::retry::{Backoff, persist};
use crate::cluster::watches::KindKey;
use crate::cluster::{ASSIGNMENT, MANAGER};
use crate::content::kubernetes::accounts;
use crate::goal::{ObjectGoal, ObjectId, Stage};
use crate::record::Failure;

/// What applying came to.
#[derive(Debug)]
pub(super) struct Applied {
    /// The object as it is now, or would be.
    pub object: Value,
    /// As it was before, where it had to be asked for.
    pub live: Option<Value>,
    /// Fields that were left to others.
    pub left: Vec<String>,
}

/// Whether it is done, or only what would be done is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Real,
    Dry,
}

/// Why it wasn't applied.
#[derive(Debug)]
pub(super) enum Trouble {
    Api(ApiError),
    /// Fields and their managers, in a sentence.
    Conflict(String),
}

/// What passes is tried again for so long within a step.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// A look is repeated anyway, and nothing else happens meanwhile.
const LOOK_PATIENCE: Duration = Duration::from_secs(20);
/// The server refuses more than 3 MiB, etcd more than 1.5.
const MAX_OBJECT: u64 = 4 * 1024 * 1024;
const ESTABLISHED: Duration = Duration::from_secs(60);
/// A kind whose definition came just before is served this soon.
const SERVED: Duration = Duration::from_secs(15);
/// The server's authorizer hears of a role that came just before this soon: the account's rights are often in the same change.
const AUTHORIZED: Duration = Duration::from_secs(5);
/// What is being deleted when it should be applied.
const DYING: Duration = Duration::from_secs(10);
const LONGEST_GAP: Duration = Duration::from_secs(1);

impl Mode {
    pub(super) fn patience(self) -> Duration {
        match self {
            Mode::Real => PATIENCE,
            Mode::Dry => LOOK_PATIENCE,
        }
    }
}

impl ApplyContext {
    /// The object as the server has it now.
    pub(super) async fn put(&self, goal: &ObjectGoal) -> Result<(Value, Note), Failure> {
        let body = self.content(goal)?;
        let again = self.watches.seen().good(&goal.id).is_some_and(|good| good.is_of(&goal.content));
        let rights = Rights { take: goal.take, again };
        let began = Instant::now();
        let mut backoff = Backoff::new(LONGEST_GAP);
        loop {
            let applied = match self.apply(goal, &body, Mode::Real, rights).await {
                Ok(applied) => applied,
                Err(Trouble::Api(ApiError::Refused(refusal)))
                    if refusal::is_unserved(&refusal) && began.elapsed() < SERVED =>
                {
                    tokio::time::sleep(backoff.gap()).await;
                    continue;
                }
                Err(Trouble::Api(ApiError::Refused(refusal)))
                    if refusal.code == 403 && began.elapsed() < AUTHORIZED =>
                {
                    tokio::time::sleep(backoff.gap()).await;
                    // Somebody may have taken the account's bindings away.
                    if let Some(namespace) = goal.account.as_deref().and_then(accounts::namespace) {
                        self.accounts.forget(namespace);
                        self.make_account(goal).await?;
                    }
                    continue;
                }
                Err(Trouble::Api(ApiError::Refused(refusal))) if goal.recreate => match refusal::immutable(&refusal) {
                    Some(fields) => self.recreate(goal, &body, &fields).await?,
                    None => return Err(self.failure(goal, Trouble::Api(ApiError::Refused(refusal)))),
                },
                Err(trouble) => return Err(self.failure(goal, trouble)),
            };
            let metadata = metadata(&applied.object);
            if metadata.deletion_timestamp.is_some() {
                self.wait_for_end(&goal.id, goal.account.as_deref(), &metadata.uid, DYING).await?;
                continue;
            }
            self.watches.approve(&goal.id, &metadata, &goal.content);
            let object = match goal.stage {
                Stage::Definitions => self.establish(goal, applied.object).await?,
                _ => applied.object,
            };
            let note = (!applied.left.is_empty())
                .then(|| format!("leaves {} to whoever scales or applies it", applied.left.join(", ")));
            return Ok((object, note));
        }
    }

    pub(super) fn content(&self, goal: &ObjectGoal) -> Result<Bytes, Failure> {
        let read = self.objects.read_small(&goal.content, MAX_OBJECT);
        read.map(Bytes::from).map_err(|error| {
            Failure::passing("ContentMissing", format!("the content of {} can't be read: {error}", goal.id))
        })
    }

    /// Asks once without force, and once more where a conflict allows it.
    pub(super) async fn apply(
        &self,
        goal: &ObjectGoal,
        body: &Bytes,
        mode: Mode,
        rights: Rights,
    ) -> Result<Applied, Trouble> {
        let refusal = match self.patch(&goal.id, goal.account.as_deref(), body.clone(), mode, false).await {
            Ok(object) => return Ok(Applied { object, live: None, left: Vec::new() }),
            Err(ApiError::Refused(refusal)) if refusal.code == 409 => refusal,
            Err(error) => return Err(Trouble::Api(error)),
        };
        let live = self.ask(&goal.id, goal.account.as_deref(), mode.patience()).await.map_err(Trouble::Api)?;
        let (body, left) = settle(&refusal, &live, body, rights)?;
        let object = self.patch(&goal.id, goal.account.as_deref(), body, mode, true).await.map_err(Trouble::Api)?;
        Ok(Applied { object, live: Some(live), left })
    }

    pub(super) async fn patch(
        &self,
        id: &ObjectId,
        account: Option<&str>,
        body: Bytes,
        mode: Mode,
        force: bool,
    ) -> Result<Value, ApiError> {
        let dry = if mode == Mode::Dry { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager={MANAGER}&force={force}{dry}", address(id));
        let call = Call::patch(path, body).by(account);
        persist(mode.patience(), &*self.gate, || self.cluster.call(&call)).await
    }

    pub(super) async fn get(&self, id: &ObjectId, account: Option<&str>) -> Result<Value, ApiError> {
        self.ask(id, account, PATIENCE).await
    }

    pub(super) async fn ask(&self, id: &ObjectId, account: Option<&str>, time: Duration) -> Result<Value, ApiError> {
        let call = Call::get(address(id)).by(account);
        persist(time, &*self.gate, || self.cluster.call(&call)).await
    }

    /// Watches kinds that are applied or looked at.
    pub(super) fn watch<'a>(&self, ids: impl Iterator<Item = &'a ObjectId>) -> BTreeSet<KindKey> {
        let kinds: BTreeSet<KindKey> = ids.map(KindKey::of).collect();
        self.watches.need(&kinds);
        kinds
    }

    pub(super) fn failure(&self, goal: &ObjectGoal, trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Api(error) => with_way_out(refusal::failure(&goal.id.to_string(), error), goal.account.as_deref()),
            Trouble::Conflict(what) => {
                let way = "conflicts: take in its Delivery would take it over";
                Failure::new("Conflict", format!("{}: {what}; {way}", goal.id))
            }
        }
    }

    /// Until its kind can be used.
    async fn establish(&self, goal: &ObjectGoal, mut object: Value) -> Result<Value, Failure> {
        let (began, mut backoff) = (Instant::now(), Backoff::new(LONGEST_GAP));
        loop {
            let why = match ready(&goal.id, &object) {
                Readiness::Ready => break,
                Readiness::Failed { message, reason } => return Err(Failure::new(&reason, message)),
                Readiness::Waiting { message, .. } => message,
            };
            if began.elapsed() > ESTABLISHED {
                let seconds = ESTABLISHED.as_secs();
                return Err(Failure::new("NotReady", format!("not established within {seconds} s: {why}")));
            }
            tokio::time::sleep(backoff.gap()).await;
            let live = self.get(&goal.id, goal.account.as_deref()).await;
            object = live.map_err(|error| refusal::failure(&goal.id.to_string(), error))?;
        }
        self.kinds.refresh();
        // Other assignments may name its kind at once.
        let served = Instant::now() + SERVED;
        while !self.kinds.serves(&object["spec"]).await && Instant::now() < served {
            tokio::time::sleep(backoff.gap()).await;
        }
        self.watches.retry_unserved();
        Ok(object)
    }
}

/// What is sent with force: the content without what is left to others.
fn settle(refusal: &Refusal, live: &Value, body: &Bytes, rights: Rights) -> Result<(Bytes, Vec<String>), Trouble> {
    let about = metadata(live);
    let unreadable = |error: serde_json::Error| Trouble::Conflict(format!("its content can't be read: {error}"));
    let mut content: Value = serde_json::from_slice(body).map_err(unreadable)?;
    let label = content["metadata"]["labels"][ASSIGNMENT].as_str();
    let applied = about.managed_fields.iter().any(|managed| managed.is_ours());
    let theirs = about.labels.get(ASSIGNMENT).map(String::as_str);
    // Who took the label away may have taken every field of ours.
    let known = (theirs == label && (applied || rights.again)) || (theirs.is_none() && rights.again);
    let ours = label.is_some() && known;
    let ruling = fields::rule(&refusal.details.causes, &about, ours, rights);
    if !ruling.refused.is_empty() {
        let one =
            |(field, manager): &(String, String)| format!("{} is managed by {manager}", field.trim_start_matches('.'));
        return Err(Trouble::Conflict(ruling.refused.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    if ruling.left.is_empty() {
        return Ok((body.clone(), Vec::new()));
    }
    ruling.left.iter().for_each(|path| fields::remove(&mut content, path));
    let bytes = serde_json::to_vec(&content).map_err(unreadable)?;
    Ok((bytes.into(), ruling.left_names))
}

pub(super) fn metadata(object: &Value) -> Metadata {
    Metadata::deserialize(&object["metadata"]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use serde_json::json;

    use super::*;

    fn refusal() -> Refusal {
        serde_json::from_value(json!({"code": 409, "details": {"causes": [
            {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\"", "field": ".spec.replicas"},
        ]}}))
        .unwrap()
    }

    fn live(label: &str, subresource: &str) -> Value {
        json!({"metadata": {"labels": {"kedge.dev/assignment": label}, "managedFields": [
            {"manager": "kedge", "operation": "Apply", "fieldsV1": {}},
            {"manager": "kubectl", "operation": "Update", "subresource": subresource, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        ]}})
    }

    #[test]
    fn replicas_that_somebody_scaled_are_not_sent() {
        let body =
            json!({"metadata": {"labels": {"kedge.dev/assignment": "web"}}, "spec": {"replicas": 2, "paused": false}});
        let body = Bytes::from(body.to_string());
        let (sent, left) = settle(&refusal(), &live("web", "scale"), &body, Rights::default()).unwrap();
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!((&sent["spec"], left), (&json!({"paused": false}), vec!["spec.replicas".to_owned()]));
        let (whole, left) = settle(&refusal(), &live("web", ""), &body, Rights::default()).unwrap();
        assert!(whole == body && left.is_empty(), "a hand's edit is taken back");
    }

    #[test]
    fn an_object_of_somebody_else_is_not_taken() {
        let body = Bytes::from(json!({"metadata": {"labels": {"kedge.dev/assignment": "web"}}}).to_string());
        let Err(Trouble::Conflict(what)) = settle(&refusal(), &live("other", ""), &body, Rights::default()) else {
            panic!()
        };
        assert_eq!(what, "spec.replicas is managed by kubectl");
    }
}
