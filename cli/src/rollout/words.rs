//! What people say to rollouts: pause, resume, approve, override, now, abort, rollback. By number, or to all that selectors name.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::SelectorArgs;
use crate::error::{Exit, NotFound, UsageError};
use crate::get::columns::text;
use crate::hub::{Hub, HubError};
use crate::output::say as remark;

// What each command does is said where they are listed: these are only its arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct WordArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// Why; it stays with the rollout and in the evidence
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RingWordArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// The ring that it is about [default: the one that waits now]
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// Why; an override needs it, and it stays in the evidence for ever
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Clone, Debug, clap::Args)]
struct WhichArgs {
    /// A rollout's number, or several
    #[arg(value_name = "ROLLOUT", value_parser = crate::output::number,
        conflicts_with_all = ["environment", "workload", "cluster_type"])]
    rollouts: Vec<u64>,

    #[command(flatten)]
    selector: SelectorArgs,
}

pub fn say(hub: &Hub, verb: &str, args: &WordArgs) -> Result<Exit> {
    tell(hub, verb, &args.which, &args.reason, None)
}

pub fn say_of_ring(hub: &Hub, verb: &str, args: &RingWordArgs) -> Result<Exit> {
    tell(hub, verb, &args.which, &args.reason, args.ring.as_deref())
}

fn tell(hub: &Hub, verb: &str, which: &WhichArgs, reason: &str, ring: Option<&str>) -> Result<Exit> {
    if reason.trim().is_empty() && matches!(verb, "override" | "rollback") {
        return Err(
            UsageError::new(format!("{verb} needs a reason"), "say why with --reason: it stays for ever").into()
        );
    }
    let ids = which.ids(hub, verb)?;
    let mut body = Map::from_iter([("reason".to_owned(), json!(reason))]);
    body.extend(ring.map(|ring| ("ring".to_owned(), json!(ring))));
    let body = Value::Object(body);
    let mut refused = None;
    for id in &ids {
        match hub.post(&["rollouts", &id.to_string(), verb], &body) {
            Ok(answer) => remark(&told(&answer.document)),
            // Of several, one that can't be done doesn't keep the others from it.
            Err(error) if ids.len() > 1 && error.is::<HubError>() => {
                remark(&format!("rollout {id}: {error}"));
                refused = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match refused {
        Some(_) => Ok(Exit::LeftOut),
        None => Ok(Exit::Success),
    }
}

impl WhichArgs {
    fn ids(&self, hub: &Hub, verb: &str) -> Result<Vec<u64>> {
        if !self.rollouts.is_empty() {
            return Ok(self.rollouts.clone());
        }
        if self.selector.environment.is_none() {
            let hint = "name a rollout (`kedge rollout list`), or an environment with -e";
            return Err(UsageError::new("say which rollout", hint).into());
        }
        let found = self.find(hub, true)?;
        let found = match (verb, found.is_empty()) {
            // What is complete can still be taken back: the newest, and that alone.
            ("rollback", true) => newest(self.find(hub, false)?),
            _ => found,
        };
        if found.is_empty() {
            return Err(NotFound::new("no rollout that the selectors name is on its way", "kedge rollout list").into());
        }
        Ok(found.iter().filter_map(|item| item["id"].as_u64()).collect())
    }

    fn find(&self, hub: &Hub, unfinished: bool) -> Result<Vec<Value>> {
        let answer = hub.get(
            &["rollouts"],
            &[
                ("environment", self.selector.environment.clone()),
                ("workload", self.selector.workload.clone()),
                ("clusterType", self.selector.cluster_type.clone()),
                ("unfinished", unfinished.then(|| "true".to_owned())),
                ("limit", Some("500".to_owned())),
            ],
        )?;
        Ok(answer.document["items"].as_array().cloned().unwrap_or_default())
    }
}

/// The newest that wasn't taken over or taken back; they come the newest first.
fn newest(items: Vec<Value>) -> Vec<Value> {
    items.into_iter().find(|item| item["state"] == "Complete" || item["state"] == "Aborted").into_iter().collect()
}

fn told(rollout: &Value) -> String {
    let why = text(&rollout["why"]);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!(
        "rollout {} of {} is {}{why} ({})",
        text(&rollout["id"]),
        text(&rollout["environment"]),
        text(&rollout["state"]),
        super::list::rings(rollout)
    )
}
