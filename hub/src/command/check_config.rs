//! `kedge-hub check-config`: everything that is wrong in the file, or the settings in force.

use clap::Args;

use super::Settings;
use crate::config::show;

/// Say what is wrong in the configuration, all at once, or show the settings in force
#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    #[command(flatten)]
    settings: Settings,
}

pub(super) fn run(args: &CheckConfigArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    match &args.settings.config {
        Some(path) => println!("# {} is fine. The settings in force:", path.display()),
        None => println!("# No file was named. The settings in force:"),
    }
    print!("{}", show::settings(&config));
    Ok(())
}
