//! `kedge access`: access tokens, with which people and programs ask the hub. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use kedge_api::access_tokens::{AccessTokenRequest, AccessTokenSummary};
use kedge_api::client::List;
use serde_json::json;

use crate::error::Exit;
use crate::get::Shape;
use crate::get::columns::{one_line, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Table, print_json, print_text, print_yaml, say};
use crate::token::print_made;

/// Create, list and revoke access tokens for people and programs.
///
/// A viewer reads everything but secrets, an application team what belongs to its workspaces, the platform team does everything
/// but tokens, an administrator makes people and tokens. A token is valid for a year, unless you set another time. `kedge token`
/// creates tokens for new clusters.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  For a dashboard, valid for a year:
    kedge access create --person anna --name dashboard --role viewer > dashboard.token

  For an application team, for three months:
    kedge access create --person 'team harbour' --role application --workspace harbour --expires 90d

  List the tokens, and revoke one:
    kedge access list
    kedge access revoke 1f0e0d0c0b0a0908")]
pub struct AccessArgs {
    #[command(subcommand)]
    command: AccessCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum AccessCommand {
    /// Create an access token and print it
    Create(CreateArgs),
    /// List access tokens
    #[command(after_help = "\
Examples:
  kedge access list
  kedge access list -o json")]
    List(ListArgs),
    /// Revoke an access token at once
    Revoke(RevokeArgs),
    /// Show whose token this is
    #[command(after_help = "\
Examples:
  kedge access whoami")]
    Whoami(ListArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge access create --person anna --role platform > anna.token
  kedge access create --person anna --name ci --role application --workspace harbour --expires 90d")]
struct CreateArgs {
    /// The owner: a person's name or id, from `kedge person list`
    #[arg(long, value_name = "PERSON")]
    person: String,

    /// A name for the token [default: the person's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// What it may do
    #[arg(long, value_enum, value_name = "ROLE")]
    role: RoleName,

    /// A workspace of the application team; may be given several times
    #[arg(long, value_name = "NAME")]
    workspace: Vec<String>,

    /// How long it is valid, such as 90d, or never [default: 365d]
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum RoleName {
    /// Reads everything but secrets
    Viewer,
    /// Sees and does what belongs to its workspaces
    Application,
    /// Everything but people and their tokens
    Platform,
    /// People and their tokens; can't approve or move anything
    Administrator,
}

#[derive(Clone, Debug, clap::Args)]
struct ListArgs {
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge access revoke 1f0e0d0c0b0a0908")]
struct RevokeArgs {
    /// The token's id
    #[arg(value_name = "ID")]
    id: String,
}

pub fn run(args: &AccessArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    match &args.command {
        AccessCommand::Create(create) => {
            let role = match create.role {
                RoleName::Viewer => "viewer",
                RoleName::Application => "application",
                RoleName::Platform => "platform",
                RoleName::Administrator => "administrator",
            };
            let request = AccessTokenRequest {
                person: create.person.clone(),
                name: create.name.clone(),
                role: role.to_owned(),
                workspaces: create.workspace.clone(),
                expires: create.expires.clone(),
            };
            let made = hub.create_access_token(&request)?.read()?;
            print_made(&made.id, &made.token, made.expires_at.as_deref())?;
            if made.expires_at.is_none() {
                say("it doesn't expire: revoke it when it is no longer needed");
            }
            Ok(Exit::Success)
        }
        AccessCommand::List(list) => show(&hub.access_tokens().all()?, list.output),
        AccessCommand::Revoke(revoke) => {
            hub.revoke_access_token(&revoke.id)?;
            say(&format!("access token {} is revoked", revoke.id));
            Ok(Exit::Success)
        }
        AccessCommand::Whoami(list) => {
            let answer = hub.whoami()?;
            match list.output {
                Shape::Json => print_json(&answer.document)?,
                Shape::Yaml => print_yaml(&answer.document)?,
                Shape::Table | Shape::Wide => {
                    let who = answer.read()?;
                    let workspaces = who.workspaces.join(",");
                    let whose = if workspaces.is_empty() { workspaces } else { format!(" of {workspaces}") };
                    print_text(&format!("{} ({}{whose})\n", one_line(&who.name), one_line(&who.role)))?;
                }
            }
            Ok(Exit::Success)
        }
    }
}

fn show(tokens: &List<AccessTokenSummary>, shape: Shape) -> Result<Exit> {
    match shape {
        Shape::Json => print_json(&json!({"items": tokens.items}))?,
        Shape::Yaml => print_yaml(&json!({"items": tokens.items}))?,
        Shape::Table | Shape::Wide => {
            let mut table = Table::default();
            table.row(
                ["ID", "PERSON", "NAME", "ROLE", "WORKSPACES", "STATE", "LAST USED", "EXPIRES"].map(str::to_owned),
            );
            for token in tokens.read()? {
                let moment = |at: Option<String>| at.map(|at| to_the_second(&at)).unwrap_or_default();
                let cells = [
                    one_line(&token.id),
                    one_line(&token.person_name),
                    one_line(&token.name),
                    one_line(&token.role),
                    token.workspaces.join(","),
                    one_line(&token.state),
                    moment(token.last_used),
                    moment(token.expires_at),
                ];
                table.row(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }));
            }
            print_text(&table.to_text(""))?;
        }
    }
    Ok(Exit::Success)
}
