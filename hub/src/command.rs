//! What people type at the hub's own host: serve, render, look at the configuration, back up, restore, change keys, add an administrator. One
//! command is one file. Called by `main`.

mod administrator;
mod backup;
mod check_config;
mod completions;
mod keys;
mod man;
mod output;
mod renderer;
mod serve;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use crate::backup::BackupError;
use crate::config::{Config, ConfigError, Flags};
use crate::keys::KeysError;
use crate::pack::renderer::server::ServerError;
use crate::run::data::DataError;

/// Run the control plane of a fleet.
///
/// The hub reads Git, schedules, publishes, packs, signs and serves desired states, and collects the status of agents. It needs
/// no Kubernetes and, to start with, no configuration.
#[derive(Debug, Parser)]
#[command(
    name = "kedge-hub",
    version,
    max_term_width = 120,
    after_help = "\
Examples:
  Try it, with everything below one folder:
    kedge-hub serve --data ./hub --control-plane ./demo/control-plane.git

  Check a configuration, and run with it:
    kedge-hub check-config --config /etc/kedge/hub.toml
    kedge-hub serve --config /etc/kedge/hub.toml

  Back up a running hub, and restore it:
    kedge-hub backup --config /etc/kedge/hub.toml -o hub.backup
    kedge-hub restore --data /var/lib/kedge-hub hub.backup

  Rotate the signing key: announce a new one, wait until the agents know it, activate it, retire the old one:
    kedge-hub keys announce
    kedge-hub keys activate ID
    kedge-hub keys retire ID

  Add an administrator if nobody can create access tokens:
    kedge-hub administrator --name anna > anna.token

Exit codes: 0 done, 1 failed, 2 wrong usage."
)]
pub struct Cli {
    /// How to write the log (stderr); KEDGE_LOG chooses what, such as `info,kedge_hub::git=debug`
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "KEDGE_LOG_FORMAT")]
    log: LogFormat,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

/// In the order of a hub's life.
#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    CheckConfig(check_config::CheckConfigArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    #[command(subcommand)]
    Keys(keys::KeysCommand),
    Administrator(administrator::AdministratorArgs),
    Renderer(renderer::RendererArgs),
    #[command(hide = true)]
    RendererExec(renderer::ExecArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Where the settings come from.
#[derive(Clone, Debug, Args)]
struct Settings {
    /// The configuration file (TOML) [default: the built-in defaults]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder for keys, database, mirrors and packages [default: /var/lib/kedge-hub for root, else the user's own]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The control-plane repository: an https or ssh address, or a path
    #[arg(long, value_name = "URL|PATH")]
    control_plane: Option<String>,
}

impl Cli {
    pub async fn run(self) -> anyhow::Result<()> {
        start_log(self.log);
        // Whatever this process makes, others can't read it.
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
        match self.command {
            Command::Serve(args) => serve::run(args).await,
            Command::CheckConfig(args) => check_config::run(&args).await,
            Command::Backup(args) => backup::run(args).await,
            Command::Restore(args) => backup::restore(args).await,
            Command::Keys(command) => keys::run(command).await,
            Command::Administrator(args) => administrator::run(args).await,
            Command::Renderer(args) => renderer::run(args).await,
            Command::RendererExec(args) => renderer::exec(args),
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        }
    }
}

impl Settings {
    /// The settings in force; warnings are printed.
    fn load(&self) -> Result<Config, ConfigError> {
        let control_plane = self.control_plane.as_ref().map(|given| match std::path::absolute(given) {
            // Relative to where it was typed, not to the data folder.
            Ok(path) if path.exists() && !given.contains("://") => path.display().to_string(),
            _ => given.clone(),
        });
        let flags = Flags { data: self.data.clone(), control_plane };
        let Some(path) = &self.config else { return Ok(Config::of_flags(&flags)) };
        let loaded = Config::load_with(path, &flags)?;
        loaded.warnings.iter().for_each(|warning| eprintln!("{warning}"));
        Ok(loaded.config)
    }
}

/// Prints the error and its causes and says how to exit.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(ConfigError::Invalid { report }) = error.downcast_ref() {
        eprintln!("{report}");
        return ExitCode::FAILURE;
    }
    let mut said = error.to_string();
    eprintln!("Error: {said}");
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        // Libraries repeat a cause in their own text; it is said once.
        if !said.contains(&text) {
            eprintln!("Caused by: {text}");
        }
        said = text;
    }
    if let Some(hint) = error.chain().find_map(hint) {
        eprintln!("Hint: {hint}");
    }
    ExitCode::FAILURE
}

/// A hint lives where the knowledge is.
fn hint(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<KeysError>() {
        error.hint().map(str::to_owned)
    } else if let Some(error) = error.downcast_ref::<BackupError>() {
        error.hint().map(str::to_owned)
    } else if let Some(ServerError::NotEnclosed(lack)) = error.downcast_ref() {
        lack.hint().map(str::to_owned)
    } else {
        error.downcast_ref::<DataError>().and_then(DataError::hint)
    }
}

/// A broken status document is told with its cluster where it is refused, not by the library that reads it.
const QUIET: &str = "automerge=off";

fn log_filter(filter: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{QUIET},{filter}"))
}

fn start_log(format: LogFormat) {
    // A filter that can't be read falls back to what is usual rather than to silence.
    let filter = std::env::var("KEDGE_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = filter.and_then(|filter| log_filter(&filter).ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new(format!("{QUIET},info")));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // There is one subscriber per process; a second call leaves the first in place.
    let _ = match format {
        LogFormat::Text => {
            use std::io::IsTerminal as _;
            log.with_ansi(std::io::stderr().is_terminal()).try_init()
        }
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_reads_documents_is_silent_unless_somebody_asks_for_it() {
        let shown = |filter: &str| log_filter(filter).unwrap().to_string();
        assert!(shown("info").contains("automerge=off"), "{}", shown("info"));
        let asked = shown("info,automerge=debug");
        assert!(asked.contains("automerge=debug") && !asked.contains("off"), "{asked}");
        assert!(log_filter("kedge_hub=loud").is_err());
    }
}
