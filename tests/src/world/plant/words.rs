//! What people say to the plant's hub, and how rollouts answer.

use http::Method;
use serde_json::{Value, json};

use crate::world::api::{Answer, Api};

use super::{MOVED_WITHIN, Plant};

/// Which of an environment's changes is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Platform,
    /// The application's source.
    Source,
}

impl Plant {
    /// A new person of this name, by its token.
    #[track_caller]
    pub fn person(&self, name: &str, role: &str) -> Api {
        let workspaces: &[&str] = if role == "application" { &["hello-team"] } else { &[] };
        let made = self.world.person(name, role, workspaces);
        self.world.api.with_token(made["token"].as_str().unwrap_or_else(|| panic!("{made}")))
    }

    /// The newest rollout of an environment's lane.
    pub fn rollout(&self, environment: &str, lane: Lane) -> Option<Value> {
        let platform = |rollout: &Value| rollout["lane"].to_string().contains("platform");
        let fits = |rollout: &Value| platform(rollout) == (lane == Lane::Platform);
        self.rollouts(environment).into_iter().filter(fits).max_by_key(id_of)
    }

    /// Waits until the newest rollout of a lane is in this state; it.
    #[track_caller]
    pub fn await_state(&self, environment: &str, lane: Lane, state: &str) -> Value {
        let mut found = None;
        self.await_so(&format!("the rollout of {environment}, {lane:?}, is {state}"), MOVED_WITHIN, |plant| {
            found = plant.rollout(environment, lane).filter(|rollout| state_of(rollout) == state);
            found.is_some()
        });
        found.expect("it was awaited")
    }

    /// The same for the rollout of this commit (of the lane, or of main).
    #[track_caller]
    pub fn await_rollout(&self, environment: &str, commit: &str, state: &str) -> Value {
        let mut found = None;
        self.await_so(&format!("the rollout of {commit} in {environment} is {state}"), MOVED_WITHIN, |plant| {
            found = plant.rollout_of(environment, commit).filter(|rollout| state_of(rollout) == state);
            found.is_some()
        });
        found.expect("it was awaited")
    }

    pub fn rollout_of(&self, environment: &str, commit: &str) -> Option<Value> {
        self.rollouts(environment).into_iter().filter(|rollout| rollout.to_string().contains(commit)).max_by_key(id_of)
    }

    /// The state of a ring in a rollout.
    pub fn ring_of(&self, rollout: &Value, ring: &str) -> String {
        let whole = self.world.api.get(&format!("/api/v1/rollouts/{}", id_of(rollout)));
        let rings = whole["rings"].as_array().cloned().unwrap_or_default();
        let found = rings.iter().find(|progress| progress["ring"] == ring || progress["name"] == ring);
        found.and_then(|progress| progress["state"].as_str()).unwrap_or_default().to_owned()
    }

    /// Says a word about a rollout, as a person.
    pub fn say(&self, who: &Api, rollout: &Value, word: &str, reason: &str) -> Answer {
        let path = format!("/api/v1/rollouts/{}/{word}", id_of(rollout));
        who.ask(Method::POST, &path, Some(&json!({"reason": reason})), &[])
    }

    /// Approves what waits to enter an environment.
    pub fn approve(&self, who: &Api, environment: &str, reason: &str) -> Answer {
        let path = format!("/api/v1/promotions/{environment}/approve");
        who.ask(Method::POST, &path, Some(&json!({"reason": reason})), &[])
    }
}

pub fn id_of(rollout: &Value) -> u64 {
    rollout["id"].as_u64().unwrap_or_default()
}

pub fn state_of(rollout: &Value) -> &str {
    rollout["state"].as_str().unwrap_or_default()
}
