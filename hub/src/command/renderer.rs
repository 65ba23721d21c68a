//! `kedge-hub renderer`: runs kustomize and helm for a hub that can't shut them off itself, until SIGTERM or SIGINT; and the
//! hidden command that each rendering is, until it becomes the program.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::output::line;
use crate::pack::installed::Installed;
use crate::pack::renderer::enclosed::Enclosure;
use crate::pack::renderer::{proof, server};

/// Render charts and kustomizations for a hub, in isolation
///
/// For a hub in a pod, where bubblewrap can't have its namespaces: run this beside it, in a container without secrets, volumes,
/// network or service account, and name its socket as `packages.renderer` in hub.toml. Landlock and seccomp isolate each
/// rendering; if they aren't available, the renderer doesn't start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  Beside a hub, with the programs of the same image:
    kedge-hub renderer --socket /run/kedge-renderer/renderer.sock

  Try it, and see what it has:
    kedge-hub renderer --socket ./renderer.sock --kustomize ./kustomize --helm ./helm")]
pub(super) struct RendererArgs {
    /// The Unix socket to serve on; its user and group may connect (mode 0660)
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// The program kustomize: a path, or a name that is looked for in PATH
    #[arg(long, value_name = "PATH", default_value = "kustomize")]
    kustomize: PathBuf,
    /// The program helm: a path, or a name that is looked for in PATH
    #[arg(long, value_name = "PATH", default_value = "helm")]
    helm: PathBuf,
    /// The folder for files of renderings [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Shut this process off and become a program; without one, prove it
#[derive(Debug, Args)]
pub(super) struct ExecArgs {
    #[arg(long)]
    source: PathBuf,
    #[arg(long)]
    scratch: PathBuf,
    #[arg(last = true)]
    program: Vec<OsString>,
}

pub(super) async fn run(args: RendererArgs) -> anyhow::Result<()> {
    let (stop, stopped) = watch::channel(false);
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
    });
    let folder = args.folder.unwrap_or_else(std::env::temp_dir);
    // Programs are started in folders of their own.
    let installed = Installed { kustomize: absolute(args.kustomize)?, helm: absolute(args.helm)? };
    let options = server::Options { socket: args.socket, installed, folder: std::path::absolute(folder)? };
    Ok(server::serve(options, stopped).await?)
}

/// A bare name is looked for.
fn absolute(program: PathBuf) -> std::io::Result<PathBuf> {
    if program.components().count() > 1 { std::path::absolute(program) } else { Ok(program) }
}

pub(super) fn exec(args: ExecArgs) -> anyhow::Result<()> {
    let enclosure = Enclosure { source: args.source, scratch: args.scratch };
    match args.program.split_first() {
        Some((program, arguments)) => match enclosure.run(program.as_ref(), arguments)? {},
        None => {
            line!("{}", proof::try_everything(&enclosure))?;
            Ok(())
        }
    }
}
