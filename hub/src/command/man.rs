//! `kedge-hub man`: manual pages made from the help texts.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory as _;
use kedge_manual::Section;

use super::output::print;

/// Print the manual page, or write one for each command.
///
/// Without a folder the page of `kedge-hub` itself is printed; with one there is a page for every command.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read the page:
    kedge-hub man | man -l -

  Install the pages of all commands:
    kedge-hub man --out /usr/local/share/man/man8")]
pub struct ManArgs {
    /// The folder to write kedge-hub.8, kedge-hub-serve.8, … to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &ManArgs) -> anyhow::Result<()> {
    match &args.out {
        None => Ok(print(&kedge_manual::page(super::Cli::command(), Section::Administration)?)?),
        Some(folder) => kedge_manual::write_pages(folder, super::Cli::command(), Section::Administration)
            .with_context(|| format!("the pages can't be written to `{}`", folder.display())),
    }
}
