//! What people say to rollouts: pause, resume, approve, override, now, abort, rollback. By number, or to all that selectors name.

use anyhow::Result;
use kedge_api::client::Client;
use kedge_api::rollouts::{RolloutAction, RolloutActionRequest, RolloutSummary};

use super::SelectorArgs;
use crate::error::{Exit, NotFound, UsageError};
use crate::get::columns::one_line;
use crate::output::say as remark;

// What each command does is said where they are listed: these are only its arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct WordArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// The reason; it stays with the rollout and in the evidence
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RingWordArgs {
    #[command(flatten)]
    which: WhichArgs,

    /// The ring [default: the one that waits now]
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// The reason, required for an override; it stays in the evidence for ever
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

pub fn say(hub: &Client, action: RolloutAction, args: &WordArgs) -> Result<Exit> {
    tell(hub, action, &args.which, &args.reason, None)
}

pub fn say_of_ring(hub: &Client, action: RolloutAction, args: &RingWordArgs) -> Result<Exit> {
    tell(hub, action, &args.which, &args.reason, args.ring.as_deref())
}

fn tell(hub: &Client, action: RolloutAction, which: &WhichArgs, reason: &str, ring: Option<&str>) -> Result<Exit> {
    if reason.trim().is_empty() && matches!(action, RolloutAction::Override | RolloutAction::Rollback) {
        return Err(UsageError::new(
            format!("{} needs a reason", action.as_str()),
            "say why with --reason: it stays for ever",
        )
        .into());
    }
    let ids = which.ids(hub, action)?;
    let request = RolloutActionRequest { reason: reason.to_owned(), ring: ring.map(str::to_owned) };
    let mut refused = false;
    for id in &ids {
        match hub.act_on_rollout(*id, action, &request) {
            Ok(answer) => remark(&told(&answer.read()?.rollout)),
            // Of several, one that can't be done doesn't keep the others from it.
            Err(error) if ids.len() > 1 => {
                remark(&format!("rollout {id}: {error}"));
                refused = true;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(if refused { Exit::LeftOut } else { Exit::Success })
}

impl WhichArgs {
    fn ids(&self, hub: &Client, action: RolloutAction) -> Result<Vec<u64>> {
        if !self.rollouts.is_empty() {
            return Ok(self.rollouts.clone());
        }
        if self.selector.environment.is_none() {
            let hint = "name a rollout (`kedge rollout list`), or an environment with -e";
            return Err(UsageError::new("say which rollout", hint).into());
        }
        let found = self.find(hub, true)?;
        let found = match (action, found.is_empty()) {
            // What is complete can still be taken back: the newest, and that alone.
            (RolloutAction::Rollback, true) => newest(self.find(hub, false)?),
            _ => found,
        };
        if found.is_empty() {
            return Err(NotFound::new("no active rollout matches the selectors", "kedge rollout list").into());
        }
        Ok(found.iter().map(|rollout| rollout.id).collect())
    }

    fn find(&self, hub: &Client, unfinished: bool) -> Result<Vec<RolloutSummary>> {
        let answer = hub.rollouts_page(&[
            ("environment", self.selector.environment.clone()),
            ("workload", self.selector.workload.clone()),
            ("clusterType", self.selector.cluster_type.clone()),
            ("unfinished", unfinished.then(|| "true".to_owned())),
            ("limit", Some("500".to_owned())),
        ])?;
        Ok(answer.read()?.items)
    }
}

/// The newest that wasn't taken over or taken back; they come the newest first.
fn newest(found: Vec<RolloutSummary>) -> Vec<RolloutSummary> {
    let ended = |rollout: &RolloutSummary| matches!(rollout.state.as_str(), "Complete" | "Aborted");
    found.into_iter().find(ended).into_iter().collect()
}

fn told(rollout: &RolloutSummary) -> String {
    let why = one_line(&rollout.why);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    format!(
        "rollout {} of {} is {}{why} ({})",
        rollout.id,
        one_line(&rollout.environment),
        one_line(&rollout.state),
        super::list::rings(&rollout.rings)
    )
}
