//! `kedge cluster`: what people do to clusters. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use kedge_api::clusters::ChangeClusterRequest;
use kedge_api::join_tokens::ReplaceRequest;

use crate::error::{Exit, UsageError};
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::say;
use crate::token::{parse_label, print_made};

/// Move, relabel, set, replace, retire or revoke a cluster.
///
/// A cluster is named by its name or, when several share it, by its id. Everything here is in the audit log.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Move a drone to another cluster type:
    kedge cluster move drone-17 --cluster-type drone-large

  Set a label, and remove another one:
    kedge cluster relabel drone-17 region=west size-

  Assign it to a site, and let it fetch for the other cluster types there:
    kedge cluster set drone-17 --site harbour --relay on

  Replace a broken machine; the token is for the new one:
    kedge cluster replace drone-17 > drone-17.token

  Retire it; what it runs stays:
    kedge cluster retire drone-17

  It was stolen: refuse its key at once:
    kedge cluster revoke drone-17")]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum ClusterCommand {
    /// Move it to another environment, cluster type or ring
    Move(MoveArgs),
    /// Set labels (KEY=VALUE) and remove labels (KEY-)
    #[command(alias = "label")]
    Relabel(RelabelArgs),
    /// Set its site, and whether it fetches for the others there
    Set(SetArgs),
    /// Create a join token for a new machine that replaces it
    Replace(ReplaceArgs),
    /// Retire it: it is no longer counted, and what it runs stays
    #[command(after_help = "\
Examples:
  kedge cluster retire drone-7")]
    Retire(NamedArgs),
    /// Readmit it after it was offline for too long
    #[command(after_help = "\
Examples:
  kedge cluster readmit drone-7")]
    Readmit(NamedArgs),
    /// Refuse its key, at once and for good
    #[command(after_help = "\
Examples:
  kedge cluster revoke drone-7")]
    Revoke(NamedArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge cluster move drone-7 --ring canary
  kedge cluster move drone-7 --environment prod")]
struct MoveArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    name: String,

    /// The new environment [default: unchanged]
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// The new cluster type [default: unchanged]
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// The new ring [default: unchanged, or from the environment's policy]
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge cluster relabel drone-7 region=west hall-")]
struct RelabelArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    name: String,

    /// KEY=VALUE sets a label, KEY- removes it
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge cluster set drone-7 --site north --relay on")]
struct SetArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    name: String,

    /// The cluster's site; an empty name removes it
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// Whether it may fetch what the other streams of its site need
    #[arg(long, value_enum, value_name = "WHETHER")]
    relay: Option<Switch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge cluster replace drone-7 > drone-7.token")]
struct ReplaceArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    name: String,

    /// How long the token is valid
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    expires: String,
}

#[derive(Clone, Debug, clap::Args)]
struct NamedArgs {
    /// Its name or id
    #[arg(value_name = "CLUSTER")]
    name: String,
}

pub fn run(args: &ClusterArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    match &args.command {
        ClusterCommand::Move(to) => {
            if to.environment.is_none() && to.cluster_type.is_none() && to.ring.is_none() {
                let hint = "give --environment, --cluster-type or --ring";
                return Err(UsageError::new("say where the cluster should go", hint).into());
            }
            let request = ChangeClusterRequest {
                environment: to.environment.clone(),
                cluster_type: to.cluster_type.clone(),
                ring: to.ring.clone(),
                ..ChangeClusterRequest::default()
            };
            let now = hub.change_cluster(&to.name, &request)?.read()?.cluster;
            let place = [&now.environment, &now.cluster_type, &now.ring].map(|name| one_line(name)).join("/");
            say(&format!("{} now follows {place}", one_line(&now.name)));
        }
        ClusterCommand::Relabel(relabel) => {
            let mut request = ChangeClusterRequest::default();
            for label in &relabel.labels {
                match label.strip_suffix('-').filter(|key| !key.is_empty() && !key.contains('=')) {
                    Some(key) => request.labels.insert(key.to_owned(), None),
                    None => {
                        let hint = "KEY=VALUE sets a label, KEY- removes it";
                        let (key, value) = parse_label(label).map_err(|error| UsageError::new(error, hint))?;
                        request.labels.insert(key, Some(value))
                    }
                };
            }
            let now = hub.change_cluster(&relabel.name, &request)?.read()?.cluster;
            let labels: Vec<String> =
                now.labels.iter().map(|(key, value)| format!("{key}={}", one_line(value))).collect();
            let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(",") };
            say(&format!("labels of {}: {labels}", one_line(&now.name)));
        }
        ClusterCommand::Set(set) => {
            if set.site.is_none() && set.relay.is_none() {
                return Err(UsageError::new("say what to set", "give --site NAME or --relay on|off").into());
            }
            let relay = set.relay.map(|relay| relay == Switch::On);
            let request = ChangeClusterRequest { site: set.site.clone(), relay, ..ChangeClusterRequest::default() };
            let now = hub.change_cluster(&set.name, &request)?.read()?.cluster;
            let site = match &now.site {
                Some(site) => format!("at site {site}"),
                None => "at no site".to_owned(),
            };
            let relay = if now.relay { ", and relays to its other streams" } else { "" };
            say(&format!("{} is {site}{relay}", one_line(&now.name)));
        }
        ClusterCommand::Replace(replace) => {
            let request = ReplaceRequest { expires: Some(replace.expires.clone()) };
            let made = hub.replace_cluster(&replace.name, &request)?.read()?;
            return print_made(&made.id, &made.token, Some(&made.expires_at));
        }
        ClusterCommand::Retire(named) => {
            let name = one_line(&hub.retire_cluster(&named.name)?.read()?.cluster.name);
            say(&format!("{name} is retired: it counts nowhere any more, and what it runs stays"));
        }
        ClusterCommand::Readmit(named) => {
            let name = one_line(&hub.readmit_cluster(&named.name)?.read()?.cluster.name);
            say(&format!("{name} is readmitted: it can renew its certificate and check in again"));
        }
        ClusterCommand::Revoke(named) => {
            let name = one_line(&hub.revoke_cluster(&named.name)?.read()?.cluster.name);
            say(&format!("{name} is revoked: its key is refused from now on"));
        }
    }
    Ok(Exit::Success)
}
