//! `kedge man`: manual pages made from the help texts. Called by `main`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use kedge_manual::Section;

use crate::command::Cli;
use crate::error::Exit;
use crate::output::print;

/// Print the manual page, or write one for each command.
///
/// Without a folder the page of `kedge` itself is printed; with one there is a page for every command.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Read the page:
    kedge man | man -l -

  Install the pages of all commands:
    kedge man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The folder to write kedge.1, kedge-render.1, … to
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub fn run(args: &ManArgs) -> Result<Exit> {
    match &args.out {
        None => print(&kedge_manual::page(Cli::command(), Section::Commands)?)?,
        Some(folder) => kedge_manual::write_pages(folder, Cli::command(), Section::Commands)
            .with_context(|| format!("the pages can't be written to `{}`", folder.display()))?,
    }
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_its_examples_in_a_section_of_their_own() {
        for subcommand in Cli::command().get_subcommands() {
            let page = String::from_utf8(kedge_manual::page(subcommand.clone(), Section::Commands).unwrap()).unwrap();
            assert!(page.contains("\n.SH EXAMPLES\n.nf\n") && !page.contains("EXTRA"), "{page}");
        }
    }
}
