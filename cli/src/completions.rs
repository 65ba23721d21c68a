//! `kedge completions`: a script that completes commands and options in a shell. Called by `main`.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::command::Cli;
use crate::error::Exit;
use crate::output::print;

/// Print a completion script for a shell.
///
/// The script completes commands, options and file names.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For bash, once:
    kedge completions bash > ~/.local/share/bash-completion/completions/kedge

  For zsh, in a folder of $fpath:
    kedge completions zsh > ~/.zfunc/_kedge

  For fish:
    kedge completions fish > ~/.config/fish/completions/kedge.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: &CompletionsArgs) -> Result<Exit> {
    print(&kedge_manual::completions(args.shell, Cli::command()))?;
    Ok(Exit::Success)
}
