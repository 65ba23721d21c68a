//! `kedge hold` and `kedge unhold`: a person keeps Kedge from changing an assignment on one cluster. Called by `main`.

use anyhow::Result;
use kedge_api::holds::{HoldRequest, ReleaseRequest};

use crate::error::Exit;
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::say;

/// Hold an assignment on a cluster: nothing changes it there.
///
/// Until `kedge unhold`, the assignment isn't updated, repaired or removed there. What runs continues, and its condition is still
/// reported. A technician's hold on the host (`kedge-agent hold`) applies in addition to this one.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  While somebody works on the machine:
    kedge hold press-7 camera-line --reason \"sensor is being replaced\"

  See what is held, by whom, and whether it is in effect:
    kedge describe cluster press-7

  Go on:
    kedge unhold press-7 camera-line")]
pub struct HoldArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    cluster: String,

    /// The assignment, WORKLOAD-TARGET
    #[arg(value_name = "ASSIGNMENT")]
    assignment: String,

    /// The reason, shown with the hold
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    #[command(flatten)]
    hub: HubArgs,
}

/// Release a hold of an assignment on a cluster.
///
/// Without --peers it releases the hub's hold, with --peers the holds of other clusters of the site. A technician's hold is
/// released on the host with `kedge-agent unhold`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge unhold press-7 camera-line

  A host of the site was stolen and holds everything; end that, then its membership:
    kedge unhold press-7 camera-line --peers --reason \"gate-1 was stolen\"
    kedge cluster revoke gate-1")]
pub struct UnholdArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    cluster: String,

    /// The assignment, WORKLOAD-TARGET
    #[arg(value_name = "ASSIGNMENT")]
    assignment: String,

    /// Release the holds of other clusters of the site instead of the hub's own
    #[arg(long)]
    peers: bool,

    /// With --peers: the reason
    #[arg(long, value_name = "TEXT", requires = "peers", default_value = "", hide_default_value = true)]
    reason: String,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn hold(args: &HoldArgs) -> Result<Exit> {
    let assignment = short(&args.assignment);
    let request = HoldRequest { assignment: assignment.to_owned(), reason: args.reason.clone() };
    let now = args.hub.open()?.hold(&args.cluster, &request)?.read()?.cluster;
    say(&format!("{assignment} is held on {}; the hold takes effect at its next check-in", one_line(&now.name)));
    Ok(Exit::Success)
}

pub fn unhold(args: &UnholdArgs) -> Result<Exit> {
    let assignment = short(&args.assignment);
    let reason = if args.peers { args.reason.clone() } else { String::new() };
    let request = ReleaseRequest { assignment: assignment.to_owned(), peers: args.peers, reason };
    let now = args.hub.open()?.release(&args.cluster, &request)?.read()?;
    let name = one_line(&now.cluster.name);
    match now.holds.iter().find(|hold| hold.assignment == assignment) {
        Some(hold) => say(&format!(
            "{} {assignment} on {name}; {} still holds it",
            if args.peers { "the site's other clusters no longer hold" } else { "the hub no longer holds" },
            one_line(&hold.by)
        )),
        None => say(&format!("{assignment} is no longer held on {name}")),
    }
    Ok(Exit::Success)
}

/// The cluster's type is known: what stands before the slash adds nothing.
fn short(assignment: &str) -> &str {
    assignment.rsplit_once('/').map_or(assignment, |(_, name)| name)
}
