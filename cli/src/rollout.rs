//! `kedge rollout`: changes on their way through the rings of an environment. Called by `main`.

mod bulk;
mod list;
mod status;
mod words;

use anyhow::Result;
use clap::Subcommand;
use kedge_api::rollouts::RolloutAction;

use crate::error::Exit;
use crate::hub::HubArgs;

pub use bulk::{OperationArgs, reapply, restart};
pub use list::{commit, rings};

/// Follow and control rollouts.
///
/// `show` takes a rollout's number, `list` and `start` take selectors, and every other command takes either: --environment,
/// --workload, --cluster-type. `status`, `watch`, `start`, `approve` and `override` take a --ring too; the other commands are about
/// the whole rollout. Selectors name whole streams, never single clusters; what doesn't fit is listed with the reason.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Does every cluster have it? The exit code is 0 only when it is complete:
    kedge rollout status -e prod --workload shop

  In an application's pipeline, after the push:
    kedge rollout status -e prod --source-commit $(git rev-parse HEAD) --wait --timeout 1h

  Which rollouts are active, and what do they wait for?
    kedge rollout list --unfinished
    kedge rollout show 12

  Approve it, pause it, roll it back:
    kedge rollout approve 12 --reason \"seen on the canary\"
    kedge rollout pause -e prod --workload shop --reason \"line 4 is being serviced\"
    kedge rollout rollback 12 --reason \"orders are lost\"

  Pin a version on a part of the fleet until a date; the Pin is written to Git:
    kedge rollout start -e prod --workload shop --cluster-type factory-line --version 1.4.2 --until 2026-12-01 --reason \"driver\"")]
pub struct RolloutArgs {
    #[command(subcommand)]
    command: RolloutCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum RolloutCommand {
    List(list::ListArgs),
    Show(list::ShowArgs),
    Status(status::StatusArgs),
    Watch(status::WatchArgs),
    Start(bulk::StartArgs),
    /// Pause: nothing further begins; what has begun on a cluster is finished
    #[command(after_help = "\
Examples:
  kedge rollout pause 12 --reason \"line 4 is being serviced\"
  kedge rollout pause -e prod --workload shop")]
    Pause(words::WordArgs),
    /// Continue after a pause or a stop; earlier failures no longer count
    #[command(after_help = "\
Examples:
  kedge rollout resume 12
  kedge rollout resume 12 --reason \"the registry is back\"")]
    Resume(words::WordArgs),
    /// Approve the ring that waits now, or the one that is named
    #[command(after_help = "\
Examples:
  kedge rollout approve 12 --reason \"seen on the canary\"
  kedge rollout approve -e prod --workload shop")]
    Approve(words::RingWordArgs),
    /// Override the gate of the waiting ring, or of the named one; requires a reason
    #[command(after_help = "\
Examples:
  kedge rollout override 12 --ring canary --reason \"the failing cluster is being scrapped\"")]
    Override(words::RingWordArgs),
    /// Ignore windows and freezes; gates and approvals still apply
    #[command(after_help = "\
Examples:
  kedge rollout now -e prod --workload shop --reason \"a security fix\"")]
    Now(words::WordArgs),
    /// Abort: no further ring begins, and clusters that were reached keep what they have
    #[command(after_help = "\
Examples:
  kedge rollout abort 12 --reason \"the wrong branch\"
  kedge rollout abort -e prod --cluster-type drone")]
    Abort(words::WordArgs),
    /// Roll back the clusters that were reached, even if the rollout is complete; requires a reason
    ///
    /// With selectors: all unfinished rollouts that they name; if there is none, the newest that is complete or aborted.
    #[command(after_help = "\
Examples:
  kedge rollout rollback 12 --reason \"orders are lost\"")]
    Rollback(words::WordArgs),
}

/// Which part of the fleet. Rings and cluster types, never single clusters.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectorArgs {
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,

    /// Only rollouts of this workload
    #[arg(short, long, value_name = "NAME")]
    pub workload: Option<String>,

    /// Only this cluster type
    #[arg(short = 't', long, value_name = "NAME")]
    pub cluster_type: Option<String>,
}

pub fn run(args: &RolloutArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    match &args.command {
        RolloutCommand::List(list) => list::list(&hub, list),
        RolloutCommand::Show(show) => list::show(&hub, show),
        RolloutCommand::Status(status) => status::status(&hub, status),
        RolloutCommand::Watch(watch) => status::watch(&hub, watch),
        RolloutCommand::Start(start) => bulk::start(&hub, start),
        RolloutCommand::Pause(word) => words::say(&hub, RolloutAction::Pause, word),
        RolloutCommand::Resume(word) => words::say(&hub, RolloutAction::Resume, word),
        RolloutCommand::Approve(word) => words::say_of_ring(&hub, RolloutAction::Approve, word),
        RolloutCommand::Override(word) => words::say_of_ring(&hub, RolloutAction::Override, word),
        RolloutCommand::Now(word) => words::say(&hub, RolloutAction::Now, word),
        RolloutCommand::Abort(word) => words::say(&hub, RolloutAction::Abort, word),
        RolloutCommand::Rollback(word) => words::say(&hub, RolloutAction::Rollback, word),
    }
}
