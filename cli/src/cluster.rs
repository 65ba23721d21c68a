//! `kedge cluster`: what people do to clusters. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Map, Value, json};

use crate::error::{Exit, UsageError};
use crate::get::columns::{labels, text};
use crate::hub::HubArgs;
use crate::output::say;
use crate::token::{parse_label, print_made};

/// Move, relabel, set, replace, retire or revoke a cluster.
///
/// A cluster is named by its name or, when several share it, by its id. Everything here is in the audit log.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Let a drone follow another cluster type:
    kedge cluster move drone-17 --cluster-type drone-large

  Give it labels, and take one away:
    kedge cluster relabel drone-17 region=west size-

  It stands at a site, and fetches for the other cluster types there:
    kedge cluster set drone-17 --site harbour --relay on

  A new machine takes a broken one's place; the token is for the new one:
    kedge cluster replace drone-17 > drone-17.token

  Take it out of service; what it runs stays:
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
    /// Let it follow another environment, cluster type or ring
    Move(MoveArgs),
    /// Set labels (KEY=VALUE) and take labels away (KEY-)
    #[command(alias = "label")]
    Relabel(RelabelArgs),
    /// Say at which site it stands, and whether it fetches for the others there
    Set(SetArgs),
    /// Make a join token with which a new machine takes its place
    Replace(ReplaceArgs),
    /// Take it out of service: it counts nowhere, and what it runs stays
    #[command(after_help = "\
Examples:
  kedge cluster retire drone-7")]
    Retire(NamedArgs),
    /// Let it in again after it has been silent for too long
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

    /// The environment to go to [default: it stays]
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// The cluster type to become [default: it stays]
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// The ring to go to [default: it stays, or follows the environment's policy]
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

    /// KEY=VALUE sets a label, KEY- takes it away
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

    /// The site that it stands at; an empty name takes it away
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

    /// How long the token is good for
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
            let mut body = Map::new();
            let wishes = [("environment", &to.environment), ("clusterType", &to.cluster_type), ("ring", &to.ring)];
            for (key, value) in wishes {
                body.extend(value.as_ref().map(|value| (key.to_owned(), Value::from(value.as_str()))));
            }
            if body.is_empty() {
                let hint = "give --environment, --cluster-type or --ring";
                return Err(UsageError::new("say where the cluster should go", hint).into());
            }
            let now = hub.post(&["clusters", &to.name, "move"], &Value::Object(body))?.document;
            let place = ["environment", "clusterType", "ring"].map(|key| text(&now[key])).join("/");
            say(&format!("{} now follows {place}", text(&now["name"])));
        }
        ClusterCommand::Relabel(relabel) => {
            let mut set = Map::new();
            let mut remove = Vec::new();
            for label in &relabel.labels {
                match label.strip_suffix('-').filter(|key| !key.is_empty() && !key.contains('=')) {
                    Some(key) => remove.push(key.to_owned()),
                    None => {
                        let hint = "KEY=VALUE sets a label, KEY- takes it away";
                        let (key, value) = parse_label(label).map_err(|error| UsageError::new(error, hint))?;
                        set.insert(key, Value::from(value));
                    }
                }
            }
            let body = json!({"set": set, "remove": remove});
            let now = hub.post(&["clusters", &relabel.name, "relabel"], &body)?.document;
            let labels = labels(&now["labels"]);
            let labels = if labels.is_empty() { "none".to_owned() } else { labels };
            say(&format!("labels of {}: {labels}", text(&now["name"])));
        }
        ClusterCommand::Set(set) => {
            if set.site.is_none() && set.relay.is_none() {
                return Err(UsageError::new("say what to set", "give --site NAME or --relay on|off").into());
            }
            let relay = set.relay.map(|relay| relay == Switch::On);
            let body = json!({"site": set.site, "relay": relay});
            let now = hub.post(&["clusters", &set.name, "set"], &body)?.document;
            let site = match now["site"].as_str() {
                Some(site) => format!("at site {site}"),
                None => "at no site".to_owned(),
            };
            let relay = if now["relay"] == true { ", and relays to its other streams" } else { "" };
            say(&format!("{} is {site}{relay}", text(&now["name"])));
        }
        ClusterCommand::Replace(replace) => {
            let body = json!({"expires": replace.expires});
            return print_made(&hub.post(&["clusters", &replace.name, "replace"], &body)?.document);
        }
        ClusterCommand::Retire(named) => {
            let now = hub.post(&["clusters", &named.name, "retire"], &json!({}))?.document;
            say(&format!("{} is retired: it counts nowhere any more, and what it runs stays", text(&now["name"])));
        }
        ClusterCommand::Readmit(named) => {
            let now = hub.post(&["clusters", &named.name, "readmit"], &json!({}))?.document;
            say(&format!("{} may come back: it renews its certificate and is heard again", text(&now["name"])));
        }
        ClusterCommand::Revoke(named) => {
            let now = hub.post(&["clusters", &named.name, "revoke"], &json!({}))?.document;
            say(&format!("{} is revoked: its key is refused from now on", text(&now["name"])));
        }
    }
    Ok(Exit::Success)
}
