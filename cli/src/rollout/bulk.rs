//! `kedge rollout start`, `kedge restart`, `kedge reapply`: one command for every cluster that selectors name.

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::error::Exit;
use crate::get::columns::text;
use crate::hub::{Hub, HubArgs};
use crate::output::{Format, counted, print_json, print_yaml, say};

/// Start a workload's content again, or put a version of it somewhere
///
/// Without a version: what was stopped, aborted or rolled back starts again with the content of today. With --version or
/// --commit: the hub commits a Pin to the environment's branch, because what should last is in Git; it ends on its day, or when
/// the file is deleted.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  The failing machines are mended, go on with it:
    kedge rollout start -e prod --workload shop --reason \"power supplies replaced\"

  This version at that location, until a day:
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

    /// Until the beginning of this day in UTC (2026-12-01), or a moment [default: until the Pin is deleted]
    #[arg(long, value_name = "DATE")]
    until: Option<String>,

    /// Why; it is in the audit log and in the commit
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

    /// Windows and freezes of rollouts on their way don't hold it up
    #[arg(long)]
    now: bool,

    /// Why, for the audit log
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn start(hub: &Hub, args: &StartArgs) -> Result<Exit> {
    let mut body = Map::from_iter([
        ("environment".to_owned(), json!(args.environment)),
        ("workload".to_owned(), json!(args.workload)),
        ("reason".to_owned(), json!(args.reason)),
    ]);
    let wishes = [
        ("clusterType", &args.cluster_type),
        ("ring", &args.ring),
        ("version", &args.version),
        ("commit", &args.commit),
        ("until", &args.until),
    ];
    body.extend(wishes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
    let answer = hub.post(&["rollouts"], &Value::Object(body))?.document;
    report(&answer, args.output)
}

pub fn restart(args: &OperationArgs) -> Result<Exit> {
    args.ask("restart")
}

pub fn reapply(args: &OperationArgs) -> Result<Exit> {
    args.ask("reapply")
}

impl OperationArgs {
    fn ask(&self, kind: &str) -> Result<Exit> {
        let mut selector = Map::from_iter([("environment".to_owned(), json!(self.environment))]);
        let wishes = [("workload", &self.workload), ("clusterType", &self.cluster_type), ("ring", &self.ring)];
        selector.extend(wishes.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
        let body = json!({"kind": kind, "selector": selector, "now": self.now, "reason": self.reason});
        let answer = self.hub.open()?.post(&["operations"], &body)?.document;
        report(&answer, self.output)
    }
}

/// What was done, for whom, and what was left out: then the exit code says so.
fn report(answer: &Value, output: Format) -> Result<Exit> {
    match output {
        Format::Json => print_json(answer)?,
        Format::Yaml => print_yaml(answer)?,
        Format::Text => lines(answer).iter().for_each(|line| say(line)),
    }
    let left = |field: &str| answer[field].as_array().is_some_and(|items| !items.is_empty());
    Ok(if left("unfit") || left("held") { Exit::LeftOut } else { Exit::Success })
}

fn lines(answer: &Value) -> Vec<String> {
    let items = |field: &str| answer[field].as_array().into_iter().flatten();
    let mut lines = vec![text(&answer["done"])];
    for stream in items("streams") {
        let names: Vec<String> = stream["assignments"].as_array().into_iter().flatten().map(text).collect();
        let clusters = usize::try_from(stream["clusters"].as_u64().unwrap_or_default()).unwrap_or(usize::MAX);
        lines.push(format!(
            "  {}/{}: {} on {}",
            text(&stream["clusterType"]),
            text(&stream["ring"]),
            names.join(", "),
            counted(clusters, "cluster")
        ));
    }
    for unfit in items("unfit") {
        let ring = unfit["ring"].as_str().map(|ring| format!("/{ring}")).unwrap_or_default();
        let assignment = unfit["assignment"].as_str().map(|name| format!(" {name}")).unwrap_or_default();
        lines.push(format!("left out: {}{ring}{assignment}: {}", text(&unfit["clusterType"]), text(&unfit["why"])));
    }
    for held in items("held") {
        lines.push(format!(
            "left out: {} on {}: held by {}",
            text(&held["assignment"]),
            text(&held["cluster"]),
            text(&held["by"])
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_named_and_the_exit_code_says_so() {
        let answer = json!({
            "done": "restart asked for 1 assignment in 1 stream",
            "streams": [{"clusterType": "drone", "ring": "canary", "assignments": ["shop-line"], "clusters": 3}],
            "unfit": [{"clusterType": "large", "ring": "canary", "assignment": "shop-line", "why": "Flux applies it"}],
            "held": [{"cluster": "press-7", "clusterType": "drone", "ring": "canary", "assignment": "shop-line", "by": "ada"}],
        });
        assert_eq!(
            lines(&answer),
            [
                "restart asked for 1 assignment in 1 stream",
                "  drone/canary: shop-line on 3 clusters",
                "left out: large/canary shop-line: Flux applies it",
                "left out: shop-line on press-7: held by ada",
            ]
        );
        assert_eq!(report(&answer, Format::Text).unwrap(), Exit::LeftOut);
    }
}
