//! `kedge-agent completions`: a script that completes commands and options in a shell. Called by `main`.

use clap_complete::Shell;

use super::error::{CommandError, Exit};
use super::output::print;

/// Print a completion script for a shell.
///
/// The Debian package installs those of bash, zsh and fish.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For bash, once:
    kedge-agent completions bash > /etc/bash_completion.d/kedge-agent

  For fish:
    kedge-agent completions fish > ~/.config/fish/completions/kedge-agent.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// `command` is the whole tree.
pub fn run(args: &CompletionsArgs, command: clap::Command) -> Result<Exit, CommandError> {
    print(&String::from_utf8_lossy(&kedge_manual::completions(args.shell, command)))?;
    Ok(Exit::Success)
}
