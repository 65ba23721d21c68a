//! `kedge-agent man`: manual pages made from the help texts. Called by `main`.

use std::path::PathBuf;

use kedge_manual::Section;

use super::error::{CommandError, Exit};
use super::output::print;

/// Print the manual page, or write one for each command.
///
/// Without a folder the page of `kedge-agent` itself is printed; with one there is a page for every command. The Debian package
/// installs them.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read the page:
    kedge-agent man | man -l -

  Install the pages of all commands:
    kedge-agent man --out /usr/local/share/man/man8")]
pub struct ManArgs {
    /// The folder to write kedge-agent.8, kedge-agent-status.8, … to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// `command` is the whole tree.
pub fn run(args: &ManArgs, command: clap::Command) -> Result<Exit, CommandError> {
    match &args.out {
        None => print(&String::from_utf8_lossy(&kedge_manual::page(command, Section::Administration)?))?,
        Some(folder) => {
            let failed = |source| CommandError::File { path: folder.clone(), action: "filled", source };
            kedge_manual::write_pages(folder, command, Section::Administration).map_err(failed)?;
        }
    }
    Ok(Exit::Success)
}
