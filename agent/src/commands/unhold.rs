//! `kedge-agent unhold`: takes a technician's hold back. Called by `main`.

use super::error::{CommandError, Exit};
use super::hold::failed;
use super::output::print;
use super::overview::Overview;
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::holds::Holds;
use crate::paths::Paths;

/// Let the agent change an assignment again.
///
/// Takes back the hold that was made on this host. One that was made at the hub stays until it is taken back there.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  The work is done:
    sudo kedge-agent unhold camera-line

  See what it does then:
    sudo kedge-agent logs camera-line -f

Exit codes: 0 it isn't held any more, 1 the command failed, 2 wrong usage, 3 the hub still holds it.")]
pub struct UnholdArgs {
    /// Its name, as status shows it
    pub(super) assignment: String,
}

pub fn run(args: &UnholdArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let identity = person::identity(paths)?;
    let name = &overview.find(&args.assignment)?.name;
    let unheld = Holds::of(paths).unhold(identity.signing_key(), name, SystemClock.now()).map_err(failed)?;
    print(&format!("{unheld}\n"))?;
    Ok(if unheld.still.is_some() { Exit::Findings } else { Exit::Success })
}
