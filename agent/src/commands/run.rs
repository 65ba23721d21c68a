//! `kedge-agent run`: the daemon, as systemd starts it. Sets the process up and hands over to `crate::run`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};

use super::error::{CommandError, Exit};
use crate::config::{Config, ConfigError, Level};
use crate::paths::Paths;
use crate::run::Signals;
use crate::run::mode::{ClusterSettings, LEASE, Mode};

/// Run the agent until it is stopped.
///
/// The Debian package's service runs this command. SIGTERM finishes the current step and stops; the journal keeps the rest for
/// the next start. SIGHUP starts a full check at once.
///
/// With --kubernetes it is the agent of a cluster. Of all agents in the cluster, the one that holds the Lease works, and it keeps
/// its state in Secrets of its namespace. With --cache-of it only caches that agent's content on a node, and needs no rights.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  As a service:
    systemctl enable --now kedge-agent

  By hand, below a folder, without root:
    kedge-agent run --root ~/kedge

  In a pod, for its cluster:
    kedge-agent run --kubernetes --root /var/lib/kedge

  For a cluster, from outside of it:
    kedge-agent run --kubernetes --kubeconfig ~/.kube/config --root ~/kedge")]
pub struct RunArgs {
    /// Apply to the Kubernetes cluster that this runs in, not to the host [also: kubernetes = true in agent.toml]
    #[arg(long)]
    kubernetes: bool,

    /// The kubeconfig file for the cluster [default: the pod's service account]
    #[arg(long, value_name = "FILE", requires = "kubernetes")]
    kubeconfig: Option<PathBuf>,

    /// The namespace of the Lease and the agent's Secrets [default: the pod's own, or kedge-system]
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    namespace: Option<String>,

    /// The Lease that the agents of a cluster share
    #[arg(long, value_name = "NAME", requires = "kubernetes", default_value = LEASE)]
    lease_name: String,

    /// Only cache the content of the agents at this address on this node
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "kubernetes")]
    cache_of: Option<String>,

    /// The name of this agent as holder of the Lease [default: $POD_NAME, or the host's name]
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    holder: Option<String>,
}

pub fn run(args: &RunArgs, config: Option<&Path>, paths: Paths) -> Result<Exit, CommandError> {
    let config = Config::load(config, &paths).map_err(|error| match error {
        ConfigError::Invalid { report } => CommandError::refused(report, ""),
        error => CommandError::failed("the settings can't be used", error),
    })?;
    start_log(config.log);
    // Huge pages would make a few resident megabytes tens of them.
    _ = nix::sys::prctl::set_thp_disable(true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandError::failed("the runtime can't start", error))?;
    let settings = (args.kubernetes || config.kubernetes).then(|| ClusterSettings {
        kubeconfig: args.kubeconfig.clone(),
        namespace: args.namespace.clone(),
        lease: Some(args.lease_name.clone()),
        holder: args.holder.clone(),
    });
    let mode = match (&args.cache_of, settings) {
        (Some(agents), _) => Mode::Cache(agents.clone()),
        (None, Some(settings)) => Mode::Cluster(settings),
        (None, None) => Mode::Host,
    };
    runtime.block_on(serve(config, paths, mode))
}

async fn serve(config: Config, paths: Paths, mode: Mode) -> Result<Exit, CommandError> {
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
    let signals = Signals { shutdown, look };
    let ran = mode.run(config, paths, signals).await;
    listener.abort();
    ran.map(|()| Exit::Success).map_err(|error| match error.hint() {
        Some(_) => Box::new(error).into(),
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
