//! `kedge-hub check-config`: everything that is wrong in the file, or the settings in force and whether kustomize and helm
//! can be run: here, or by the renderer.

use std::io;

use clap::Args;

use super::Settings;
use super::output::{line, print};
use crate::config::show;
use crate::pack::Sandbox;
use crate::pack::renderer::{Answering, Renderer};

/// Check the configuration, and show all errors or the settings in force
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub check-config --config /etc/kedge/hub.toml")]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: &CheckConfigArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    match &args.settings.config {
        Some(path) => line!("# {} is fine. The settings in force:", path.display())?,
        None => line!("# No file was named. The settings in force:")?,
    }
    print(show::settings(&config).as_bytes())?;
    match &config.packages.renderer {
        Some(socket) => say_renderer(&Renderer::at(socket.clone())).await?,
        None => match Sandbox::find().await {
            Ok(_) => line!("\n# kustomize and helm can be run here, shut off from the hub.")?,
            Err(lack) => line!("\n# kustomize and helm can't be run here: {lack}\n# Hint: {}", lack.hint())?,
        },
    }
    Ok(())
}

async fn say_renderer(renderer: &Renderer) -> io::Result<()> {
    match renderer.programs().await {
        Ok(Answering { kustomize, helm }) => {
            line!("\n# The renderer at {} answers.", renderer.socket().display())?;
            line!("# kustomize: {kustomize}\n# helm: {helm}")?;
        }
        Err(why) => line!("\n# kustomize and helm can't be run: {why}\n# Hint: {}", Renderer::HINT)?,
    }
    Ok(())
}
