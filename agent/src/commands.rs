//! What people type at the host. One command is one file; all but `run` and `join` work without a network and without the daemon.

pub mod completions;
pub mod doctor;
pub mod elsewhere;
pub mod error;
pub mod export;
pub mod hold;
pub mod import;
pub mod join;
pub mod logs;
pub mod man;
pub mod names;
pub mod output;
pub mod peers;
mod person;
mod progress;
pub mod report;
pub mod request;
pub mod run;
#[cfg(test)]
pub(crate) mod sample;
pub mod status;
pub mod unhold;
pub mod why;

use std::path::PathBuf;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::paths::Paths;
use error::{CommandError, Exit};

/// Run what the fleet's hub assigned to this host.
///
/// The agent joins a hub, pulls what should run here, applies it in transactions that survive a power cut, and reports what runs.
/// What runs depends on nothing but the disk.
#[derive(Debug, Parser)]
#[command(
    name = "kedge-agent",
    version,
    max_term_width = 120,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  Join a hub with a token from the platform team:
    kedge-agent join --token-file token

  See what runs, and how the last change went:
    kedge-agent status
    kedge-agent why hello-prod

  Join and import content without a network:
    kedge-agent request -o /media/stick/request.kedge
    kedge-agent import /media/stick

  Prevent changes while you work on the machine:
    kedge-agent hold hello-prod --reason 'new sensor'
    kedge-agent unhold hello-prod

  Find out what is wrong:
    kedge-agent doctor

Exit codes: 0 success, 1 failed, 2 wrong usage, 3 done, but something needs attention (status, doctor, import)."
)]
pub struct Cli {
    /// Keep everything below this folder, without root: files and folders only, no debs, units and users [also: $KEDGE_ROOT]
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The configuration file [default: /etc/kedge/agent.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// In the order of a host's life.
#[derive(Debug, Subcommand)]
enum Command {
    Join(join::JoinArgs),
    Request(request::RequestArgs),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Run(run::RunArgs),
    Status(status::StatusArgs),
    Peers(peers::PeersArgs),
    Why(why::WhyArgs),
    Logs(logs::LogsArgs),
    Hold(hold::HoldArgs),
    Unhold(unhold::UnholdArgs),
    Doctor(doctor::DoctorArgs),
    Report(report::ReportArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Cli {
    pub fn run(self) -> Result<Exit, CommandError> {
        // What maintainer scripts make under the daemon is for everybody; its own secrets say so themselves.
        let umask = if matches!(self.command, Command::Run(_)) { 0o022 } else { 0o077 };
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(umask));
        let paths = self.paths()?;
        match self.command {
            Command::Join(args) => join::run(&args, &paths),
            Command::Request(args) => request::run(&args, &paths),
            Command::Import(args) => import::run(&args, self.config.as_deref(), &paths),
            Command::Export(args) => export::run(&args, &paths),
            Command::Run(args) => run::run(&args, self.config.as_deref(), paths),
            Command::Status(args) => status::run(&args, &paths),
            Command::Peers(args) => peers::run(&args, &paths),
            Command::Why(args) => why::run(&args, &paths),
            Command::Logs(args) => logs::run(&args, &paths),
            Command::Hold(args) => hold::run(&args, &paths),
            Command::Unhold(args) => unhold::run(&args, &paths),
            Command::Doctor(args) => doctor::run(&args, &paths),
            Command::Report(args) => report::run(&args, &paths),
            Command::Completions(args) => completions::run(&args, Cli::command()),
            Command::Man(args) => man::run(&args, Cli::command()),
        }
    }

    fn paths(&self) -> Result<Paths, CommandError> {
        // A pod says it once for all commands that people start in it.
        let said = || std::env::var_os("KEDGE_ROOT").filter(|root| !root.is_empty()).map(PathBuf::from);
        let Some(root) = &self.root.clone().or_else(said) else { return Ok(Paths::host()) };
        let failed = |source| CommandError::File { path: root.clone(), action: "found", source };
        Ok(Paths::below(&std::path::absolute(root).map_err(failed)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_relative_root_begins_where_it_was_typed() {
        let cli = Cli::try_parse_from(["kedge-agent", "status", "--root", "x"]).unwrap();
        assert_eq!(cli.paths().unwrap().root(), std::env::current_dir().unwrap().join("x"));
        let cli = Cli::try_parse_from(["kedge-agent", "status"]).unwrap();
        assert!(cli.paths().unwrap().is_host());
    }
}
