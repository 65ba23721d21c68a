//! `kedge-hub completions`: a script that completes commands and options in a shell.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::output::print;

/// Print a completion script for a shell.
///
/// The Debian package installs those of bash, zsh and fish.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For bash, once:
    kedge-hub completions bash > /etc/bash_completion.d/kedge-hub")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    Ok(print(&kedge_manual::completions(args.shell, super::Cli::command()))?)
}
