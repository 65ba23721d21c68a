//! What people ask the plant's hub, and what tests wait for.

use std::time::Duration;

use serde_json::Value;

use crate::lab::{await_or_tell, stays_or_tell};
use crate::world::kedge::Run;

use super::{Plant, assignment};

/// A change reaches all boxes of an environment, with health and soak, on a busy machine.
pub const MOVED_WITHIN: Duration = Duration::from_secs(60);

/// A promise is broken and known to be.
pub const AWAY_WITHIN: Duration = Duration::from_secs(90);

impl Plant {
    /// Looks until it is so; else the test fails with what is known of all rollouts.
    #[track_caller]
    pub fn await_so(&self, what: &str, within: Duration, mut look: impl FnMut(&Plant) -> bool) {
        await_or_tell(what, within, || self.story(), || look(self));
    }

    /// It stays so for a while: what must not happen doesn't.
    #[track_caller]
    pub fn stays_so(&self, what: &str, during: Duration, mut look: impl FnMut(&Plant) -> bool) {
        stays_or_tell(what, during, || self.story(), || look(self));
    }

    /// The environment's first files are on its GitOps branch.
    pub fn await_published(&self, environment: &str) {
        let path = format!("{}/{}", super::LINE, assignment(environment));
        self.await_so(&format!("{environment} is published"), MOVED_WITHIN, |plant| {
            let head = plant.world.git.head("gitops", environment);
            head.is_some() && {
                plant.world.sample.gitops.fetch();
                plant
                    .world
                    .sample
                    .gitops
                    .files(&format!("origin/{environment}"))
                    .iter()
                    .any(|file| file.contains(&path))
            }
        });
    }

    /// All boxes of these names run this text of the application.
    #[track_caller]
    pub fn await_text(&self, names: &[&str], text: &str) {
        self.await_so(&format!("{names:?} run {text:?}"), MOVED_WITHIN, |plant| {
            names.iter().all(|name| plant.text_on(name).as_deref() == Some(text))
        });
    }

    #[track_caller]
    pub fn await_greeting(&self, names: &[&str], greeting: &str) {
        self.await_so(&format!("{names:?} greet with {greeting:?}"), MOVED_WITHIN, |plant| {
            names.iter().all(|name| plant.greeting_on(name).as_deref() == Some(greeting))
        });
    }

    /// What the hub knows of a box.
    pub fn seen(&self, name: &str) -> Value {
        self.world.api.get(&format!("/api/v1/clusters/{name}"))
    }

    /// The hub knows that so a box is, for the assignment of its environment.
    #[track_caller]
    pub fn await_condition(&self, name: &str, condition: &str) {
        let within = if condition == "Unknown" { AWAY_WITHIN } else { MOVED_WITHIN };
        self.await_so(&format!("{name} is {condition}"), within, |plant| plant.condition(name) == condition);
    }

    /// The condition of the environment's assignment on a box, as the hub knows it; empty when it knows none.
    pub fn condition(&self, name: &str) -> String {
        let environment = name.split('-').next().unwrap_or_default();
        let seen = self.seen(name);
        let conditions = seen["conditions"].as_array().cloned().unwrap_or_default();
        let own = conditions.iter().find(|one| one["assignment"] == assignment(environment));
        own.and_then(|one| one["condition"].as_str()).unwrap_or_default().to_owned()
    }

    /// All boxes of an environment run what they should.
    #[track_caller]
    pub fn await_converged(&self, environment: &str) {
        self.await_so(&format!("all of {environment} is Converged"), MOVED_WITHIN, |plant| {
            plant.boxes(environment).all(|name| plant.condition(name) == "Converged")
        });
    }

    /// The main commit that an environment's branch names.
    pub fn named(&self, environment: &str) -> Option<String> {
        let text = self.world.sample.control_plane.read_remote(environment, "base-repo.yaml")?;
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix("commit:"))?;
        Some(line.trim().trim_matches('"').to_owned())
    }

    #[track_caller]
    pub fn await_named(&self, environment: &str, commit: &str) {
        self.await_so(&format!("{environment} names {commit}"), MOVED_WITHIN, |plant| {
            plant.named(environment).as_deref() == Some(commit)
        });
    }

    /// The newest generation of a ring's stream and the entry of the environment's assignment in it.
    pub fn entry(&self, environment: &str, cluster_type: &str, ring: &str) -> Option<(u64, Value)> {
        let path = format!("/api/v1/desired-states/{environment}/{cluster_type}/{ring}");
        let answer = self.world.api.ask(http::Method::GET, &path, None, &[]);
        let state = (answer.status == 200).then(|| answer.json())?;
        let entries = state["entries"].as_array()?;
        let entry = entries.iter().find(|entry| entry["assignment"] == assignment(environment))?;
        Some((state["generation"].as_u64()?, entry.clone()))
    }

    /// `kedge rollout status` for an environment, with further arguments.
    pub fn status(&self, environment: &str, more: &[&str]) -> Run {
        let arguments = [&["rollout", "status", "--environment", environment], more].concat();
        self.world.kedge.try_run(arguments)
    }

    /// Rollouts of an environment, the newest first.
    pub fn rollouts(&self, environment: &str) -> Vec<Value> {
        self.world.api.list(&format!("/api/v1/rollouts?environment={environment}"))
    }

    /// Where an environment is on the chain.
    pub fn promotion(&self, environment: &str) -> Value {
        self.world.api.get(&format!("/api/v1/promotions/{environment}"))
    }

    /// Everything that a reader of a failed test wants to know of rollouts.
    fn story(&self) -> String {
        let mut story = String::new();
        for path in ["/api/v1/promotions", "/api/v1/rollouts", "/api/v1/findings"] {
            if let Ok(answer) = self.world.api.try_ask(http::Method::GET, path, None, &[]) {
                story.push_str(&format!("{path}: {} {}\n", answer.status, answer.text));
            }
        }
        story
    }
}
