//! `kedge-hub backup` and `kedge-hub restore`: a hub in one file, and back.

use std::path::PathBuf;

use clap::Args;

use super::Settings;
use super::output::line;
use crate::backup;
use crate::private;
use crate::run::data::DataFolder;
use crate::run::{database_url, join_store};

/// Write the hub's database, keys and configuration to one file
///
/// It works while the hub runs, and captures a single point in time. The file contains the private keys: keep it where only you
/// can read it. Make a new backup after each change of keys. Mirrors and packages aren't included, because the hub can create
/// them again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub backup --config /etc/kedge/hub.toml -o hub.backup")]
pub(super) struct BackupArgs {
    #[command(flatten)]
    settings: Settings,
    /// The file to write; it must not exist yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Restore a hub from a backup, into an empty data folder and database
///
/// Everything that is issued afterwards has higher numbers than the lost hub can have issued, so agents accept it. Changes after
/// the backup are lost: clusters that joined since then must join again, and tokens that were revoked since then must be revoked
/// again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub restore --data /var/lib/kedge-hub hub.backup")]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    settings: Settings,
    /// The backup
    #[arg(value_name = "FILE")]
    from: PathBuf,
}

pub(super) async fn run(args: BackupArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    let store = join_store(&config).await?;
    let made = backup::backup(&store, &config.keys, args.settings.config.as_deref(), &args.output).await;
    store.close().await;
    let made = made?;
    line!("{}: {} rows of {} tables, {} key files", args.output.display(), made.rows, made.tables, made.keys)?;
    Ok(())
}

pub(super) async fn restore(args: RestoreArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?;
    // A running hub has the folder, and is no place to restore into.
    let _folder = DataFolder::open(&config.data)?;
    private::folder(&config.keys)?;
    let url = database_url(&config)?;
    let reference = config.data.join("restored-hub.toml");
    let made = backup::restore(&args.from, &url, &config.keys, &reference).await?;
    line!("restored {} rows of {} tables and {} key files", made.rows, made.tables, made.keys)?;
    if reference.exists() {
        line!("the configuration that was in force then is in {}", reference.display())?;
    }
    line!("start the hub again: kedge-hub serve")?;
    Ok(())
}
