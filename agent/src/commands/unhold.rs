//! `kedge-agent unhold`: takes a technician's hold back. Called by `main`.

use super::elsewhere::{self, Target};
use super::error::{CommandError, Exit};
use super::hold::failed;
use super::output::print;
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::holds::Holds;
use crate::overview::Overview;
use crate::paths::Paths;
use crate::peers::shown::Shown;

/// Release a hold of an assignment.
///
/// Releases the hold that was made on this host, or with --cluster the one that was made here for another cluster of the site. A
/// hold that was made at the hub must be released there. So must one that was made at another agent, unless you override it with
/// --peers.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  The work is done:
    sudo kedge-agent unhold camera-line

  Release a hold for another cluster that was made here:
    sudo kedge-agent unhold --cluster press-3 camera-line

  Override a hold of another agent whose owner can't be reached:
    sudo kedge-agent unhold camera-line --peers

  See what it does then:
    sudo kedge-agent logs camera-line -f

Exit codes: 0 it isn't held any more, 1 the command failed, 2 wrong usage, 3 somebody else still holds it.")]
pub struct UnholdArgs {
    /// Its name, as status shows it
    pub(super) assignment: String,
    /// On another cluster of the site: its name, or its id
    #[arg(long, value_name = "NAME|ID", conflicts_with = "peers")]
    pub(super) cluster: Option<String>,
    /// Also override holds of people at other agents of the site
    #[arg(long)]
    pub(super) peers: bool,
}

pub fn run(args: &UnholdArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let overview = Overview::read(paths)?;
    let identity = person::identity(paths)?;
    if let Some(cluster) = &args.cluster
        && let Target::Other(target) = elsewhere::find(&overview, Shown::read(paths).as_ref(), cluster)?
    {
        return elsewhere::unhold(&target, &identity, paths, &args.assignment);
    }
    let name = &overview.find(&args.assignment)?.name;
    let (holds, key, now) = (Holds::of(paths), identity.signing_key(), SystemClock.now());
    let unheld = if args.peers { holds.unhold_with_peers(key, name, now) } else { holds.unhold(key, name, now) };
    let unheld = unheld.map_err(failed)?;
    print(&format!("{unheld}\n"))?;
    Ok(if unheld.still.is_some() { Exit::Findings } else { Exit::Success })
}
