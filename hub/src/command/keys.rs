//! `kedge-hub keys`: the signing keys and the certificate authority, and how they change. Works beside a running hub,
//! which follows within a second.

use clap::{Args, Subcommand};
use kedge_model::wire::{Digest, KeyId};

use super::Settings;
use super::output::line;
use crate::keys::Keys;
use crate::keys::rotation::{Listed, What};
use crate::run::join_store;
use crate::store::Store;

/// Show and change the hub's signing keys and certificate authority
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Show all keys, their state, and whether their private half is on this host
    List(KeysArgs),
    /// Create a new key and announce it to agents; it isn't used yet
    ///
    /// Wait until the agents know the key before you activate it. Agents that are offline follow later, through the chain of
    /// signed key sets. With several hubs, copy the keys folder to all of them before you activate the key.
    Announce(AnnounceArgs),
    /// Start using an announced key
    #[command(after_help = "\
Examples:
  kedge-hub keys activate --config /etc/kedge/hub.toml 1f0e0d0c")]
    Activate(ChosenArgs),
    /// Retire an old key: it no longer signs or issues anything
    #[command(after_help = "\
Examples:
  kedge-hub keys retire --config /etc/kedge/hub.toml 1f0e0d0c")]
    Retire(ChosenArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub keys list --config /etc/kedge/hub.toml")]
pub(super) struct KeysArgs {
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kedge-hub keys announce --config /etc/kedge/hub.toml
  kedge-hub keys announce --config /etc/kedge/hub.toml --authority")]
pub(super) struct AnnounceArgs {
    #[command(flatten)]
    settings: Settings,
    /// Create a certificate authority instead of a signing key
    #[arg(long)]
    authority: bool,
}

#[derive(Debug, Args)]
pub(super) struct ChosenArgs {
    #[command(flatten)]
    settings: Settings,
    /// The key's or authority's id, or its beginning
    id: String,
}

#[derive(Debug, thiserror::Error)]
enum ChoiceError {
    #[error("no key's id begins with `{0}`")]
    Unknown(String),
    #[error("{1} ids begin with `{0}`: type more of it")]
    Several(String, usize),
}

pub(super) async fn run(command: KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::List(args) => {
            let (keys, store) = open(&args.settings).await?;
            print(&keys)?;
            store.close().await;
        }
        KeysCommand::Announce(args) => {
            let (keys, store) = open(&args.settings).await?;
            if args.authority {
                keys.announce_authority(&store).await?;
            } else {
                keys.announce_key(&store).await?;
            }
            print(&keys)?;
            store.close().await;
        }
        KeysCommand::Activate(args) => {
            let (keys, store) = open(&args.settings).await?;
            match choose(&keys, &args.id)? {
                Chosen::Key(id) => keys.activate_key(id, &store).await?,
                Chosen::Authority(id) => keys.activate_authority(id, &store).await?,
            }
            print(&keys)?;
            store.close().await;
        }
        KeysCommand::Retire(args) => {
            let (keys, store) = open(&args.settings).await?;
            match choose(&keys, &args.id)? {
                Chosen::Key(id) => keys.retire_key(id, &store).await?,
                Chosen::Authority(id) => keys.retire_authority(id, &store).await?,
            }
            print(&keys)?;
            store.close().await;
        }
    }
    Ok(())
}

async fn open(settings: &Settings) -> anyhow::Result<(Keys, Store)> {
    let config = settings.load()?;
    let store = join_store(&config).await?;
    let keys = Keys::open(&config.keys, &store).await?;
    Ok((keys, store))
}

enum Chosen {
    Key(KeyId),
    Authority(Digest),
}

fn choose(keys: &Keys, id: &str) -> anyhow::Result<Chosen> {
    let listed = keys.list()?;
    let wanted = id.trim_start_matches("sha256:");
    let fitting: Vec<&Listed> = listed.iter().filter(|listed| listed.id.starts_with(wanted)).collect();
    match fitting.as_slice() {
        [] => Err(ChoiceError::Unknown(id.to_owned()).into()),
        [one] => Ok(match one.what {
            What::SigningKey => Chosen::Key(one.id.parse()?),
            What::Authority => Chosen::Authority(format!("sha256:{}", one.id).parse()?),
        }),
        several => Err(ChoiceError::Several(id.to_owned(), several.len()).into()),
    }
}

fn print(keys: &Keys) -> anyhow::Result<()> {
    line!("key set {}", keys.key_set().version)?;
    line!("{:<10} {:<33} {:<10} PRIVATE HALF", "KIND", "ID", "STATE")?;
    for listed in keys.list()? {
        let kind = match listed.what {
            What::SigningKey => "signing",
            What::Authority => "authority",
        };
        let id: String = listed.id.chars().take(32).collect();
        line!("{kind:<10} {id:<33} {:<10} {}", listed.state, if listed.here { "here" } else { "elsewhere" })?;
    }
    Ok(())
}
