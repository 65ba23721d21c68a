//! `kedge token`: join tokens, with which new clusters come in. Called by `main`.

mod manifest;
mod sign;

use anyhow::Result;
use clap::Subcommand;
use kedge_api::join_tokens::{JoinTokenCreated, JoinTokenRequest};
use kedge_model::name::{check_label_key, check_label_value};

use crate::error::Exit;
use crate::get::{self, GetArgs};
use crate::hub::HubArgs;
use crate::output::{print_text, say};
use manifest::{Manifest, Mode, parse_image, parse_name};
use sign::SignArgs;

/// Create, list and revoke join tokens for new clusters, and sign join requests from files.
///
/// A join token contains the hub's address and the fingerprint of its authority. Clusters can use it to join one cluster type of
/// one environment. `kedge access` creates tokens for people and programs.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  A token for one drone, valid for a day:
    kedge token create --environment dev --cluster-type drone

  A token for a factory's worth of machines:
    kedge token create -e prod --cluster-type line --labels hall=7 --site north --uses 200 --expires 7d > line.token

  Everything that a Kubernetes cluster needs to join, from the namespace to the agent:
    kedge token create -e prod --cluster-type edge --manifest | kubectl apply -f -

  The same for a cluster that Flux runs, with an image from the plant's own registry:
    kedge token create -e prod -t edge --manifest --mode observe --image registry.plant.example/kedge-agent:0.1.0

  A host that no network reaches wrote a request; the answer goes back to it on a stick:
    kedge token sign press-7.request -e prod --cluster-type press --site north -o press-7.kedge

  List the tokens, and revoke one:
    kedge token list
    kedge token revoke 1f0e0d0c0b0a")]
pub struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum TokenCommand {
    /// Create a join token and print it
    Create(CreateArgs),
    Sign(SignArgs),
    /// List join tokens, newest first
    List(ListArgs),
    /// Revoke a join token; clusters that joined with it stay
    Revoke(RevokeArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge token create -e dev --cluster-type drone
  kedge token create -e prod --cluster-type line --labels hall=7 --uses 200 --expires 7d")]
struct CreateArgs {
    /// The environment that the clusters belong to
    #[arg(short, long, value_name = "NAME")]
    environment: String,

    /// The cluster type of the clusters
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: String,

    /// Labels that they get: `a=b,c=d`, or given several times
    #[arg(long, value_name = "LABELS", value_parser = parse_label, value_delimiter = ',')]
    labels: Vec<(String, String)>,

    /// The site of the clusters
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// How many clusters may join with it
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    uses: u64,

    /// How long it is valid
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    expires: String,

    /// Print what a Kubernetes cluster needs, with the token in it, for `kubectl apply -f -`
    #[arg(long)]
    manifest: bool,

    /// What the agent may do in the cluster
    #[arg(
        long,
        value_enum,
        value_name = "MODE",
        default_value = "apply",
        requires = "manifest",
        help_heading = "Manifest"
    )]
    mode: Mode,

    /// The agent's image [default: kedge-agent:VERSION]
    #[arg(long, value_name = "NAME", requires = "manifest", value_parser = parse_image, help_heading = "Manifest")]
    image: Option<String>,

    /// The cluster's name [default: derived from its id]
    #[arg(long, value_name = "NAME", requires = "manifest", value_parser = parse_name, help_heading = "Manifest")]
    name: Option<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge token list
  kedge token list -o json")]
struct ListArgs {
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: get::Shape,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge token revoke 1f0e0d0c0b0a")]
struct RevokeArgs {
    /// The token's id
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: &TokenArgs) -> Result<Exit> {
    match &args.command {
        TokenCommand::Create(create) => {
            let request = JoinTokenRequest {
                environment: create.environment.clone(),
                cluster_type: create.cluster_type.clone(),
                labels: create.labels.iter().cloned().collect(),
                site: create.site.clone(),
                uses: Some(create.uses),
                expires: Some(create.expires.clone()),
            };
            let made = args.hub.open()?.create_join_token(&request)?.read()?;
            if create.manifest {
                print_manifest(create, &made)
            } else {
                print_made(&made.id, &made.token, Some(&made.expires_at))
            }
        }
        TokenCommand::Sign(sign) => sign::run(sign, &args.hub),
        TokenCommand::List(list) => get::run(&GetArgs::tokens(list.output, args.hub.clone())),
        TokenCommand::Revoke(revoke) => {
            args.hub.open()?.revoke_join_token(&revoke.id)?;
            say(&format!("join token {} is revoked", revoke.id));
            Ok(Exit::Success)
        }
    }
}

/// Only the manifests on stdout: they go to kubectl.
fn print_manifest(create: &CreateArgs, made: &JoinTokenCreated) -> Result<Exit> {
    let manifest = Manifest {
        token: &made.token,
        mode: create.mode,
        image: create.image.as_deref(),
        name: create.name.as_deref(),
    };
    print_text(&manifest.to_text())?;
    say_made(&made.id, Some(&made.expires_at));
    if create.uses > 1 {
        say("every cluster that it is applied to joins with this token; each takes one use");
    }
    say("then look at it: kubectl -n kedge-system get pods, and kedge get clusters");
    Ok(Exit::Success)
}

/// Only the token on stdout: it goes into a file or to an agent.
pub fn print_made(id: &str, token: &str, expires_at: Option<&str>) -> Result<Exit> {
    print_text(&format!("{token}\n"))?;
    say_made(id, expires_at);
    Ok(Exit::Success)
}

fn say_made(id: &str, expires_at: Option<&str>) {
    let until = expires_at.map(|at| format!(", good until {}", get::columns::to_the_second(at))).unwrap_or_default();
    say(&format!("token {id}{until}; it isn't shown again"));
}

pub fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            let (key, value) = (key.trim(), value.trim());
            // The rules of Kubernetes: selectors can name nothing else.
            check_label_key(key).map_err(|wrong| format!("`{key}` can't be a label's key: {wrong}"))?;
            check_label_value(value).map_err(|wrong| format!("`{value}` can't be a label's value: {wrong}"))?;
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!("`{text}` isn't KEY=VALUE")),
    }
}
