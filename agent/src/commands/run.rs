//! `kedge-agent run`: the daemon, as systemd starts it. Sets the process up and hands over to `crate::run`.

use std::path::Path;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

use super::error::{CommandError, Exit};
use crate::config::{Config, ConfigError, Level};
use crate::paths::Paths;
use crate::run::Signals;

/// Run the agent until it is stopped.
///
/// The Debian package's service does this. SIGTERM ends the step under way and stops; the journal keeps the rest for the next
/// start. SIGHUP looks at everything at once.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  As the package's service does:
    systemctl enable --now kedge-agent

  By hand, below a folder, without root:
    kedge-agent run --root ~/kedge")]
pub struct RunArgs {}

pub fn run(_: &RunArgs, config: Option<&Path>, paths: Paths) -> Result<Exit, CommandError> {
    let config = Config::load(config, &paths).map_err(|error| match error {
        ConfigError::Invalid { report } => CommandError::refused(report, ""),
        error => CommandError::failed("the settings can't be used", error),
    })?;
    start_log(config.log);
    // Huge pages would make a few resident megabytes tens of them.
    _ = nix::sys::prctl::set_thp_disable(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::failed("the runtime can't start", error))?;
    runtime.block_on(serve(config, paths))
}

async fn serve(config: Config, paths: Paths) -> Result<Exit, CommandError> {
    let failed = |error| CommandError::failed("signals can't be listened to", error);
    let (stop, shutdown) = watch::channel(false);
    let look = Arc::new(Notify::new());
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let wake = Arc::clone(&look);
    let listener = tokio::spawn(async move {
        loop {
            _ = tokio::select! {
                _ = terminate.recv() => stop.send_replace(true),
                _ = interrupt.recv() => stop.send_replace(true),
                _ = hangup.recv() => {
                    wake.notify_one();
                    false
                }
            };
        }
    });
    let ran = crate::run::run(config, paths, Signals { shutdown, look }).await;
    listener.abort();
    ran.map(|()| Exit::Success).map_err(|error| match error.hint() {
        Some(hint) => CommandError::refused(error.to_string(), hint),
        None => CommandError::failed("the agent can't run", error),
    })
}

/// To stderr: systemd's journal adds the time.
fn start_log(level: Level) {
    use std::io::IsTerminal as _;
    let is_terminal = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_max_level(level.filter()).with_writer(std::io::stderr).with_target(false);
    // There is one subscriber per process; a second call leaves the first in place.
    _ = match is_terminal {
        true => log.with_ansi(true).try_init(),
        false => log.with_ansi(false).without_time().try_init(),
    };
}
