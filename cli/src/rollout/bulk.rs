//! `kedge rollout start`, `kedge restart`, `kedge reapply`: one command for every cluster that selectors name.

use anyhow::Result;
use kedge_api::client::{Answer, Client};
use kedge_api::operations::{OperationKind, OperationRequest, OperationResult, OperationSelector, StartRolloutRequest};

use crate::error::Exit;
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::{Format, counted, print_json, print_yaml, say};

/// Restart the rollout of a workload's content, or pin a version
///
/// Without a version, content that was stopped, aborted or rolled back starts again, as it is in Git now. With --version or
/// --commit, the hub commits a Pin to the environment's branch, because lasting settings belong in Git. The Pin ends on its date,
/// or when the file is deleted.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  The failing machines are repaired; start it again:
    kedge rollout start -e prod --workload shop --reason \"power supplies replaced\"

  Pin this version on that cluster type, until a date:
    kedge rollout start -e prod --workload shop --cluster-type factory-line --version 1.4.2 --until 2026-12-01 --reason \"driver\"")]
pub struct StartArgs {
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,

    /// The workload
    #[arg(short, long, value_name = "NAME")]
    workload: String,

    /// Only this cluster type
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// Only this ring
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// Pin the workload to this version
    #[arg(long, value_name = "VERSION", conflicts_with = "commit")]
    version: Option<String>,

    /// Pin the workload to this commit of its source, all its digits
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,

    /// Until the start of this day in UTC (2026-12-01), or a time [default: until the Pin is deleted]
    #[arg(long, value_name = "DATE")]
    until: Option<String>,

    /// The reason, for the audit log and the commit
    #[arg(long, value_name = "TEXT")]
    reason: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// Restart a workload, or try again what failed, on every cluster that the selectors name
///
/// The next generation of each stream tells its clusters, all of them at once. `restart` restarts the
/// workload's units or pods; `reapply` does so only in streams where something failed, and tries the failed content again.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge restart -e prod --workload shop --cluster-type drone --reason \"a leak\"
  kedge reapply -e prod --workload shop --now --reason \"the registry is back\"")]
pub struct OperationArgs {
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,

    /// Only this workload [default: all]
    #[arg(short, long, value_name = "NAME")]
    workload: Option<String>,

    /// Only this cluster type
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// Only this ring
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// Ignore windows and freezes of active rollouts
    #[arg(long)]
    now: bool,

    /// The reason, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn start(hub: &Client, args: &StartArgs) -> Result<Exit> {
    let request = StartRolloutRequest {
        environment: args.environment.clone(),
        workload: args.workload.clone(),
        cluster_type: args.cluster_type.clone(),
        ring: args.ring.clone(),
        version: args.version.clone(),
        commit: args.commit.clone(),
        until: args.until.clone(),
        reason: args.reason.clone(),
    };
    let answer = hub.start_rollout(&request)?;
    report(&answer, args.output)
}

pub fn restart(args: &OperationArgs) -> Result<Exit> {
    args.ask(OperationKind::Restart)
}

pub fn reapply(args: &OperationArgs) -> Result<Exit> {
    args.ask(OperationKind::Reapply)
}

impl OperationArgs {
    fn ask(&self, kind: OperationKind) -> Result<Exit> {
        let selector = OperationSelector {
            environment: self.environment.clone(),
            workload: self.workload.clone(),
            cluster_type: self.cluster_type.clone(),
            ring: self.ring.clone(),
        };
        let request = OperationRequest { kind, selector, now: self.now, reason: self.reason.clone() };
        let answer = self.hub.open()?.operate(&request)?;
        report(&answer, self.output)
    }
}

/// What was done, for whom, and what was left out: then the exit code says so.
fn report(answer: &Answer<OperationResult>, output: Format) -> Result<Exit> {
    let result = answer.read()?;
    match output {
        Format::Json => print_json(&answer.document)?,
        Format::Yaml => print_yaml(&answer.document)?,
        Format::Text => lines(&result).iter().for_each(|line| say(line)),
    }
    Ok(exit(&result))
}

fn exit(result: &OperationResult) -> Exit {
    if result.not_applicable.is_empty() && result.held.is_empty() { Exit::Success } else { Exit::LeftOut }
}

fn lines(result: &OperationResult) -> Vec<String> {
    let mut lines = vec![one_line(&result.done)];
    for stream in &result.streams {
        let names: Vec<String> = stream.assignments.iter().map(|name| one_line(name)).collect();
        let clusters = usize::try_from(stream.clusters).unwrap_or(usize::MAX);
        lines.push(format!(
            "  {}/{}: {} on {}",
            one_line(&stream.cluster_type),
            one_line(&stream.ring),
            names.join(", "),
            counted(clusters, "cluster")
        ));
    }
    for one in &result.not_applicable {
        let ring = one.ring.as_ref().map(|ring| format!("/{ring}")).unwrap_or_default();
        let assignment = one.assignment.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        lines.push(format!("left out: {}{ring}{assignment}: {}", one_line(&one.cluster_type), one_line(&one.why)));
    }
    for held in &result.held {
        lines.push(format!(
            "left out: {} on {}: held by {}",
            one_line(&held.assignment),
            one_line(&held.cluster),
            one_line(&held.by)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_named_and_the_exit_code_says_so() {
        let answer = json!({
            "done": "restart asked for 1 assignment in 1 stream",
            "streams": [{"clusterType": "drone", "ring": "canary", "assignments": ["shop-line"], "clusters": 3}],
            "notApplicable": [{"clusterType": "large", "ring": "canary", "assignment": "shop-line", "why": "Flux applies it"}],
            "held": [{"cluster": "press-7", "clusterType": "drone", "ring": "canary", "assignment": "shop-line", "by": "ada"}],
        });
        let result: OperationResult = serde_json::from_value(answer).unwrap();
        assert_eq!(
            lines(&result),
            [
                "restart asked for 1 assignment in 1 stream",
                "  drone/canary: shop-line on 3 clusters",
                "left out: large/canary shop-line: Flux applies it",
                "left out: shop-line on press-7: held by ada",
            ]
        );
        assert_eq!(exit(&result), Exit::LeftOut);
    }
}
