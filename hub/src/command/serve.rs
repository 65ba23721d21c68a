//! `kedge-hub serve`: the hub itself, until SIGTERM or SIGINT.

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::Settings;
use super::output::line;
use crate::run::{Hub, notify};
use crate::signal::stopped as told_to_stop;

/// Run the hub until SIGTERM or Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub serve --data ./hub --control-plane ./demo/control-plane.git
  kedge-hub serve --config /etc/kedge/hub.toml")]
pub(super) struct ServeArgs {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: ServeArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    let (stop, stopped) = watch::channel(false);
    raise_file_limit();
    // Before the start: a signal meanwhile must not kill a half-made hub.
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let signals = tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        notify::stopping();
        stop.send_replace(true);
    });
    let mut early = stopped.clone();
    let hub = tokio::select! {
        hub = Hub::start(config) => hub?,
        () = told_to_stop(&mut early) => return Ok(()),
    };
    if let Some(tokens) = &hub.first_tokens {
        line!(
            "The first administrator's token is in {}: it can add people and create tokens.",
            tokens.administrator.display()
        )?;
        line!("The platform team's first token is in {}", tokens.platform.display())?;
        line!("Log in: kedge login http://{} --token-file {}", hub.api, tokens.platform.display())?;
    }
    notify::ready(&format!("serves on {} (API) and {} (agents)", hub.api, hub.agents));
    tokio::spawn(notify::watchdog(stopped.clone()));
    let outcome = hub.finish(stopped).await;
    signals.abort();
    Ok(outcome?)
}

/// Each agent is a connection: take as many files as the system gives.
fn raise_file_limit() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let raised = getrlimit(Resource::RLIMIT_NOFILE)
        .and_then(|(soft, hard)| if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) });
    if let Err(error) = raised {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
}
