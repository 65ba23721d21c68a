//! An object that can't be changed is deleted and made again, where it says so itself. Before that the server is asked whether it would take
//! the new one: nothing is deleted for something that can't come.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::put::{Applied, Mode, PATIENCE, Trouble, metadata};
use super::{ApplyContext, refusal};
use crate::cluster::request::{ApiError, Call, address};
use crate::cluster::retry::{Backoff, persist};
use crate::goal::{ObjectGoal, ObjectId};
use crate::record::Failure;

/// Until everything that belongs to it is gone.
const GONE: Duration = Duration::from_secs(60);
const LONGEST_GAP: Duration = Duration::from_secs(1);
/// Under this name the new object is tried; it never exists.
const TRIAL: &str = "kedge-trial";

impl ApplyContext {
    pub(super) async fn recreate(
        &self,
        goal: &ObjectGoal,
        body: &Bytes,
        fields: &[String],
    ) -> Result<Applied, Failure> {
        let account = goal.account.as_deref();
        self.try_out(goal, body).await?;
        let live: Value = self.get(&goal.id, account).await.map_err(|error| self.failure(goal, Trouble::Api(error)))?;
        let uid = metadata(&live).uid;
        tracing::info!(object = %goal.id, fields = fields.join(", "), "deleted to be made again: it can't be changed");
        let deleted = self.delete(&goal.id, account, &uid, "Foreground").await;
        if !deleted.map_err(|error| self.failure(goal, Trouble::Api(error)))? {
            self.wait_for_end(&goal.id, account, &uid, GONE).await?;
        }
        let made = self.patch(&goal.id, account, body.clone(), Mode::Real, false).await;
        let object = made.map_err(|error| self.failure(goal, Trouble::Api(error)))?;
        Ok(Applied { object, live: None, left: Vec::new() })
    }

    /// The object of this uid goes. True: it is gone already, or another one has its name.
    pub(super) async fn delete(
        &self,
        id: &ObjectId,
        account: Option<&str>,
        uid: &str,
        propagation: &str,
    ) -> Result<bool, ApiError> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation, "preconditions": {"uid": uid},
        });
        let call = Call::delete(address(id), options.to_string().into()).by(account);
        let once = || async {
            match self.cluster.call::<Value>(&call).await {
                // What still has finalizers is answered with itself.
                Ok(answer) => Ok(answer["kind"] == "Status"),
                Err(error) if error.code() == Some(404) => Ok(true),
                // It was replaced since it was looked at.
                Err(ApiError::Passing { message, .. }) if message.contains("Precondition") => Ok(true),
                Err(error) => Err(error),
            }
        };
        persist(PATIENCE, &*self.gate, once).await
    }

    /// Until no object of this uid is there.
    pub(super) async fn wait_for_end(
        &self,
        id: &ObjectId,
        account: Option<&str>,
        uid: &str,
        time: Duration,
    ) -> Result<(), Failure> {
        let (began, mut backoff) = (Instant::now(), Backoff::new(LONGEST_GAP));
        loop {
            match self.get(id, account).await {
                Ok(live) if metadata(&live).uid != uid => return Ok(()),
                Err(error) if error.code() == Some(404) => return Ok(()),
                Err(error) => return Err(refusal::failure(&id.to_string(), error)),
                Ok(_) if began.elapsed() > time => {
                    let message = format!("{id} is still being deleted after {} s", time.as_secs());
                    return Err(Failure::passing("Terminating", message));
                }
                Ok(_) => tokio::time::sleep(backoff.gap()).await,
            }
        }
    }

    async fn try_out(&self, goal: &ObjectGoal, body: &Bytes) -> Result<(), Failure> {
        let Ok(mut content) = serde_json::from_slice::<Value>(body) else { return Ok(()) };
        content["metadata"]["name"] = TRIAL.into();
        let trial = ObjectId { name: TRIAL.to_owned(), ..goal.id.clone() };
        let tried = self.patch(&trial, goal.account.as_deref(), content.to_string().into(), Mode::Dry, true).await;
        tried.map(|_| ()).map_err(|error| self.failure(goal, Trouble::Api(error)))
    }
}
