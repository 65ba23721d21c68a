//! `kedge-hub check-config`: everything that is wrong in the file, or the settings in force and whether kustomize and helm
//! can be run here.

use clap::Args;

use super::Settings;
use crate::config::show;
use crate::pack::Sandbox;

/// Say what is wrong in the configuration, all at once, or show the settings in force
#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: Settings,
}

pub(super) async fn run(args: &CheckConfigArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    match &args.settings.config {
        Some(path) => println!("# {} is fine. The settings in force:", path.display()),
        None => println!("# No file was named. The settings in force:"),
    }
    print!("{}", show::settings(&config));
    match Sandbox::find().await {
        Ok(_) => println!("\n# kustomize and helm can be run here, shut off from the hub."),
        Err(lack) => println!("\n# kustomize and helm can't be run here: {lack}\n# Hint: {}", lack.hint()),
    }
    Ok(())
}
