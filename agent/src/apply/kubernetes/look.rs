//! Whether objects are as they were applied. The watches know it of nearly all; only where a field of ours changed hands is the server
//! asked what applying again would change.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::Value;

use super::account::Account;
use super::fields::Rights;
use super::put::{Mode, Trouble, metadata};
use super::{ApplyContext, BESIDE, compare};
use crate::cluster::metadata::Stamp;
use crate::cluster::request::ApiError;
use crate::cluster::watches::{Sight, Standing};
use crate::content::kubernetes::accounts;
use crate::goal::{ObjectGoal, ObjectId, OnDrift};
use crate::observed::ObjectState;
use crate::record::Failure;

/// What can be told without a request, and what needs one.
enum First {
    Known(ObjectState),
    Compare(Stamp),
    /// It was there, and isn't among those with our label any more.
    Missing,
    /// Nobody can look: nothing is said of it.
    Unknown,
}

/// Controllers write to what they have just seen.
const TRIES: usize = 5;
/// A kind is listed once, when it is first named.
const LISTED: Duration = Duration::from_secs(15);

impl ApplyContext {
    pub(super) async fn look(
        &self,
        goals: &BTreeMap<ObjectId, ObjectGoal>,
    ) -> Result<BTreeMap<ObjectId, ObjectState>, Failure> {
        let watched = goals.values().filter(|goal| goal.drift != OnDrift::Ignore);
        let kinds = self.watch(watched.map(|goal| &goal.id));
        let settled = self.watches.settle(&kinds, LISTED).await;
        settled.map_err(|why| Failure::passing("ApiServer", why))?;
        let (mut states, mut open) = (BTreeMap::new(), Vec::new());
        for (id, goal) in goals {
            match self.first(goal) {
                First::Known(state) => _ = states.insert(id.clone(), state),
                First::Unknown => {}
                First::Compare(stamp) => open.push((goal, Some(stamp))),
                First::Missing => open.push((goal, None)),
            }
        }
        let all = stream::iter(open).map(|(goal, stamp)| async move { (goal, self.compare(goal, stamp).await) });
        let mut all = std::pin::pin!(all.buffer_unordered(BESIDE));
        while let Some((goal, state)) = all.next().await {
            states.extend(state?.map(|state| (goal.id.clone(), state)));
        }
        Ok(states)
    }

    fn first(&self, goal: &ObjectGoal) -> First {
        if goal.drift == OnDrift::Ignore {
            return First::Known(ObjectState::AsApplied);
        }
        let seen = self.watches.seen();
        let good = seen.good(&goal.id);
        match (seen.sight(&goal.id), good) {
            (Sight::There(stamp), _) if stamp.deleting => {
                First::Known(ObjectState::Differs("is being deleted".to_owned()))
            }
            (Sight::There(stamp), Some(good)) if good.stamp.is_same(&stamp) => {
                First::Known(match good.is_of(&goal.content) {
                    true => ObjectState::AsApplied,
                    false => ObjectState::Differs("holds other content than this".to_owned()),
                })
            }
            (Sight::There(stamp), _) => First::Compare(stamp),
            (Sight::Absent, Some(_)) => First::Missing,
            (Sight::Absent, None) => First::Known(ObjectState::Absent),
            (Sight::Unknown(Standing::Refused(_)), _) => First::Unknown,
            (Sight::Unknown(_), _) => First::Missing,
        }
    }

    /// None: it can't be told.
    async fn compare(&self, goal: &ObjectGoal, stamp: Option<Stamp>) -> Result<Option<ObjectState>, Failure> {
        let body = self.content(goal)?;
        if let Some(namespace) = goal.account.as_deref().and_then(accounts::namespace) {
            // With its namespace an account lost its rights: it couldn't even be told that the object is missing.
            if stamp.is_none() {
                self.accounts.forget(namespace);
            }
            match self.make_account(goal).await {
                Ok(Account::There) => {}
                Ok(Account::NoNamespace) => {
                    self.watches.seen().disown(&goal.id);
                    return Ok(Some(ObjectState::Absent));
                }
                Err(failure) if failure.passes => return Err(failure),
                Err(failure) => {
                    tracing::warn!(object = %goal.id, why = failure.message, "can't be compared with what was applied");
                    return Ok(None);
                }
            }
        }
        if stamp.is_none() {
            match self.ask(&goal.id, goal.account.as_deref(), Mode::Dry.patience()).await {
                Ok(_) => {}
                // It was done, and the cluster has cleared it away as it was told to.
                Err(error) if error.code() == Some(404) && ends_by_itself(goal, &body) => {
                    return Ok(Some(ObjectState::AsApplied));
                }
                Err(error) if error.code() == Some(404) => {
                    self.watches.seen().disown(&goal.id);
                    return Ok(Some(ObjectState::Absent));
                }
                Err(error) => return untold(goal, error),
            }
        }
        for _ in 0..TRIES {
            if let Some(state) = self.compare_once(goal, &body, stamp).await? {
                return Ok(state);
            }
        }
        // It changes all the time: the next event asks again.
        Ok(None)
    }

    /// None: somebody wrote between both answers, so they can't be compared.
    async fn compare_once(
        &self,
        goal: &ObjectGoal,
        body: &Bytes,
        stamp: Option<Stamp>,
    ) -> Result<Option<Option<ObjectState>>, Failure> {
        let rights = Rights { take: goal.take, again: true };
        let applied = match self.apply(goal, body, Mode::Dry, rights).await {
            Ok(applied) => applied,
            Err(Trouble::Conflict(what)) => {
                return Ok(Some(Some(ObjectState::Differs(format!("conflicts: {what}")))));
            }
            Err(Trouble::Api(error)) => return untold(goal, error).map(Some),
        };
        let would = metadata(&applied.object);
        let unchanged = applied.live.is_none() && stamp.is_some_and(|stamp| stamp.is_same(&would.stamp()));
        if unchanged {
            self.watches.approve(&goal.id, &would, &goal.content);
            return Ok(Some(Some(ObjectState::AsApplied)));
        }
        let live = match applied.live {
            Some(live) => live,
            None => match self.ask(&goal.id, goal.account.as_deref(), Mode::Dry.patience()).await {
                Ok(live) => live,
                Err(error) if error.code() == Some(404) => return Ok(Some(Some(ObjectState::Absent))),
                Err(error) => return untold(goal, error).map(Some),
            },
        };
        let is = metadata(&live);
        // What would be done names the version that it would be done to.
        if (&is.uid, &is.resource_version) != (&would.uid, &would.resource_version) {
            return Ok(None);
        }
        Ok(Some(Some(match compare::difference(&live, &applied.object) {
            Some(what) => ObjectState::Differs(what),
            None => {
                self.watches.approve(&goal.id, &is, &goal.content);
                ObjectState::AsApplied
            }
        })))
    }
}

/// A Job that is deleted some time after it finished.
fn ends_by_itself(goal: &ObjectGoal, body: &[u8]) -> bool {
    let is_job = (goal.id.group.as_str(), goal.id.kind.as_str()) == ("batch", "Job");
    let ttl = |content: Value| content["spec"]["ttlSecondsAfterFinished"].is_u64();
    is_job && serde_json::from_slice::<Value>(body).is_ok_and(ttl)
}

/// The server doesn't let us compare it.
fn untold(goal: &ObjectGoal, error: ApiError) -> Result<Option<ObjectState>, Failure> {
    match error {
        ApiError::Refused(refusal) if refusal.code == 403 => {
            tracing::warn!(object = %goal.id, why = refusal.sentence(), "can't be compared with what was applied");
            Ok(None)
        }
        ApiError::Refused(refusal) => {
            Ok(Some(ObjectState::Differs(format!("can't be as applied: {}", refusal.sentence()))))
        }
        error => Err(super::refusal::failure(&goal.id.to_string(), error)),
    }
}
