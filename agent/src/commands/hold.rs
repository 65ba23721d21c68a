//! `kedge-agent hold`: a technician on the spot says "don't touch this". Called by `main`.

use super::error::{CommandError, Exit};
use super::output::print;
use super::overview::Overview;
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::holds::{HoldError, Holds};
use crate::paths::Paths;

/// Keep an assignment as it is.
///
/// While it is held the agent neither changes nor repairs nor removes it; what is true of it is still reported, and the hold is shown
/// on the hub with your name. It works without a network, and the hub learns of it later.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Work on the camera without being disturbed:
    sudo kedge-agent hold camera-line --reason 'new lens, until noon'

  See who holds what:
    sudo kedge-agent status

  Let the agent go on:
    sudo kedge-agent unhold camera-line")]
pub struct HoldArgs {
    /// Its name, as status shows it
    assignment: String,
    /// Why, for those who see the hold on the hub
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

pub fn run(args: &HoldArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let identity = person::identity(paths)?;
    let name = &overview.find(&args.assignment)?.name;
    let by = person::name();
    Holds::of(paths).hold(identity.signing_key(), name, &by, &args.reason, SystemClock.now()).map_err(failed)?;
    print(&format!("{name} is held by {by}: it isn't changed, repaired or removed until kedge-agent unhold {name}\n"))?;
    Ok(Exit::Success)
}

pub fn failed(error: HoldError) -> CommandError {
    CommandError::failed("the hold can't be changed", error)
}
