//! What a refused write would have done, for the audit log: the same action, object and environment as of one that is done. The
//! address of the request says the most; a handler adds what only the body says. Called by the gate and by handlers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::Method;
use kedge_rollout::RolloutId;
use percent_encoding::percent_decode_str;

use super::ApiState;
use super::caller::Caller;
use crate::store::tokens::Role;

/// As the audit's entry names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    pub action: String,
    pub object: String,
    pub environment: String,
}

/// Where a handler writes down what it was asked for; the gate reads it when that is refused.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<Mutex<Written>>);

#[derive(Debug, Default)]
struct Written {
    attempt: Option<Attempt>,
    is_audited: bool,
}

/// Of a name from a stranger's address.
const MAX_NAME: usize = 200;

impl Asked {
    pub fn set(&self, action: &str, object: &str, environment: &str) {
        let attempt = Attempt { action: short(action), object: short(object), environment: short(environment) };
        self.written().attempt = Some(attempt);
    }

    /// The audit log has an entry of it, which says what becomes of it.
    pub fn audited(&self) {
        self.written().is_audited = true;
    }

    pub fn is_audited(&self) -> bool {
        self.written().is_audited
    }

    fn get(&self) -> Option<Attempt> {
        self.written().attempt.clone()
    }

    /// Nothing under this lock can be left half done.
    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempt {
    /// What a caller asked for with a request.
    pub async fn find(state: &ApiState, caller: &Caller, method: &Method, path: &str) -> Attempt {
        let mut attempt = caller.asked.get().unwrap_or_else(|| Attempt::of(method, path));
        // Of what a team doesn't see, its own log tells nothing either.
        if attempt.environment.is_empty() && caller.role != Role::Application {
            attempt.look_up(state, caller).await;
        }
        attempt
    }

    /// The environment of what is named by a number or a name. A database that doesn't answer leaves it out.
    async fn look_up(&mut self, state: &ApiState, caller: &Caller) {
        if let Some(id) = self.object.strip_prefix("rollout ").and_then(|id| id.parse().ok()) {
            if let Ok(Some(stored)) = state.store.rollout(RolloutId(id)).await {
                self.environment = stored.rollout.environment;
            }
        } else if self.action.starts_with("cluster.")
            && let Ok((_, seen)) = super::clusters::find(state, &caller.visible(), &self.object).await
        {
            (self.object, self.environment) = (super::clusters::label(&seen), seen.environment);
        }
    }

    /// What the address of a write says. One that nobody knows is named as it is.
    fn of(method: &Method, path: &str) -> Attempt {
        let parts: Vec<String> =
            path.split('/').skip(1).map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned()).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let gone = *method == Method::DELETE;
        let (action, object, environment) = match parts.as_slice() {
            ["promotions", environment, "start"] => ("promotion.promote".to_owned(), "", *environment),
            ["promotions", environment, "override"] => ("promotion.override".to_owned(), "", *environment),
            ["promotions", environment, "approve"] => ("promotion.approve".to_owned(), "", *environment),
            ["policy", "approve"] => ("policy.approve".to_owned(), "", ""),
            ["rollouts"] => ("rollout.start".to_owned(), "", ""),
            ["rollouts", id, word] => {
                let attempt = Attempt { action: short(&format!("rollout.{word}")), ..Attempt::default() };
                return Attempt { object: short(&format!("rollout {id}")), ..attempt };
            }
            ["operations"] => ("operation".to_owned(), "", ""),
            ["clusters", "sign"] => ("cluster.sign".to_owned(), "", ""),
            ["clusters", cluster] => ("cluster.change".to_owned(), *cluster, ""),
            ["clusters", cluster, verb] => (format!("cluster.{verb}"), *cluster, ""),
            ["environments", environment, "cluster-types", cluster_type, "confirm"] => {
                ("publish.confirm".to_owned(), *cluster_type, *environment)
            }
            ["join-tokens"] => ("join-token.create".to_owned(), "", ""),
            ["join-tokens", id] => ("join-token.revoke".to_owned(), *id, ""),
            ["access-tokens"] => ("access-token.create".to_owned(), "", ""),
            ["access-tokens", id] => ("access-token.revoke".to_owned(), *id, ""),
            ["people"] => ("person.add".to_owned(), "", ""),
            ["people", person] if gone => ("person.remove".to_owned(), *person, ""),
            ["people", person] => ("person.set".to_owned(), *person, ""),
            ["repositories", "fetch"] => ("repository.fetch".to_owned(), "", ""),
            ["status", "import"] => ("status.import".to_owned(), "", ""),
            _ => (format!("{method} {path}"), "", ""),
        };
        Attempt { action: short(&action), object: short(object), environment: short(environment) }
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_write_says_what_it_would_have_done() {
        let of = |method: Method, path: &str| {
            let Attempt { action, object, environment } = Attempt::of(&method, path);
            format!("{action}|{object}|{environment}")
        };
        assert_eq!(of(Method::POST, "/rollouts/7/rollback"), "rollout.rollback|rollout 7|");
        assert_eq!(of(Method::POST, "/promotions/prod/approve"), "promotion.approve||prod");
        assert_eq!(of(Method::POST, "/clusters/a%2Fb/hold"), "cluster.hold|a/b|");
        assert_eq!(of(Method::DELETE, "/people/anna"), "person.remove|anna|");
        assert_eq!(of(Method::POST, "/nowhere"), "POST /nowhere||");
        assert!(of(Method::POST, &format!("/{}", "x".repeat(999))).len() < 210);
    }
}
