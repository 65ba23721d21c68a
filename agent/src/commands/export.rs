//! `kedge-agent export`: what this host tells, for who carries it to the hub. The work is in `crate::airgap::export`.

use std::path::PathBuf;

use kedge_durable::RealDisk;

use super::error::{CommandError, Exit};
use super::output::{harmless, print};
use super::person;
use crate::airgap::export::{self, Exported};
use crate::causes::chain;
use crate::clock::{Clock as _, SystemClock};
use crate::daemon;
use crate::paths::Paths;

/// Write this host's status to a file for the hub.
///
/// The file contains this host's status document with its history, the holds of technicians and a check-in with the current time,
/// all signed by the host, and what the host carries for others of its site. On a machine that reaches the hub, import it with
/// `kedge status import`. The hub shows it with the time at which it was written here.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  On the host:
    kedge-agent export -o /media/stick/line-7-status.kedge

  On a machine that reaches the hub:
    kedge status import line-7-status.kedge")]
pub struct ExportArgs {
    /// Where it is written
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: &ExportArgs, paths: &Paths) -> Result<Exit, CommandError> {
    let identity = person::identity(paths)?;
    let runs = daemon::holder(paths).is_some();
    let exported = export::export(&RealDisk, paths, &identity, (SystemClock.now(), runs), &args.output);
    let exported = exported.map_err(|error| CommandError::refused(chain(&error), error.hint().unwrap_or_default()))?;
    print(&harmless(&text(&exported, &args.output.display().to_string(), runs)))?;
    Ok(Exit::Success)
}

fn text(exported: &Exported, file: &str, runs: bool) -> String {
    let mut text = match exported.status {
        true => format!("{file} has the status of this host"),
        false => format!("{file} contains no status yet: this host hasn't reported anything"),
    };
    if exported.others > 0 {
        text.push_str(&format!(" and the status of {} other clusters of its site", exported.others));
    }
    text.push_str(". Bring it in: kedge status import\n");
    if !exported.presence {
        let why = if runs { "hasn't looked at what runs yet" } else { "doesn't run" };
        text.push_str(&format!("The agent {why}: the file doesn't say that the host is alive.\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::commands::sample;
    use crate::link::fake::Authority;

    #[test]
    fn a_host_that_rests_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let args = ExportArgs { output: folder.path().join("x.kedge") };
        assert!(matches!(run(&args, &paths), Err(CommandError::NotJoined)));
        sample::join(&paths, &Authority::new(), "https://127.0.0.1:1");
        assert_eq!(run(&args, &paths).unwrap(), Exit::Success);
        let said = text(&Exported { status: true, presence: false, others: 2 }, "x", false);
        assert!(said.contains("2 other clusters") && said.contains("The agent doesn't run"), "{said}");
    }
}
