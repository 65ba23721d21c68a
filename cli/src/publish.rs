//! `kedge publish confirm`: a person's word before many removals. Called by `main`.

use anyhow::Result;
use clap::Subcommand;

use crate::error::Exit;
use crate::hub::HubArgs;
use crate::output::say;

/// Confirm a publish that waits because it removes most of a cluster type.
///
/// A publish that would remove more than half of a cluster type's assignments since the last confirmed set waits before it
/// reaches Git. `kedge describe environment` shows what would be removed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What waits?
    kedge get environments
    kedge describe environment dev

  Confirm the removals:
    kedge publish confirm dev drone")]
pub struct PublishArgs {
    #[command(subcommand)]
    command: PublishCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum PublishCommand {
    /// Confirm that the removals are intended
    Confirm(ConfirmArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge publish confirm dev drone")]
struct ConfirmArgs {
    #[arg(value_name = "ENVIRONMENT")]
    environment: String,

    #[arg(value_name = "CLUSTER-TYPE")]
    cluster_type: String,
}

pub fn run(args: &PublishArgs) -> Result<Exit> {
    let PublishCommand::Confirm(confirm) = &args.command;
    args.hub.open()?.confirm_publish(&confirm.environment, &confirm.cluster_type)?;
    say(&format!(
        "confirmed: {} in {} is published without what was removed",
        confirm.cluster_type, confirm.environment
    ));
    Ok(Exit::Success)
}
