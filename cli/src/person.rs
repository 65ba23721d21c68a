//! `kedge person`: who access tokens belong to, and what approvals count. Called by `main`.

use anyhow::Result;
use clap::Subcommand;
use kedge_api::client::List;
use kedge_api::people::{NewPersonRequest, PersonSummary, SetPersonRequest};
use serde_json::json;

use crate::error::Exit;
use crate::get::Shape;
use crate::get::columns::{one_line, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Table, print_json, print_text, print_yaml, say};

/// Add, list, change and remove people.
///
/// An access token belongs to a person, and approvals count people: a person with several tokens counts once. Addresses are
/// compared with the authors of commits, because the author of a change can't approve it. People are added by an administrator;
/// the first one's token is in the hub's data folder.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Add Anna, with a token for a year:
    kedge person add anna --email anna@example.com
    kedge access create --person anna --role platform > anna.token

  List all people:
    kedge person list

  Anna has married, and writes commits under another address:
    kedge person set anna --name 'anna berg' --email anna@example.com --email berg@example.com

  Anna has left; this revokes all her tokens at once:
    kedge person remove anna")]
pub struct PersonArgs {
    #[command(subcommand)]
    command: PersonCommand,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum PersonCommand {
    /// Add a person
    Add(AddArgs),
    /// List people
    List(ListArgs),
    /// Change a person's name or addresses
    Set(SetArgs),
    /// Remove a person, and revoke all of that person's tokens at once
    Remove(RemoveArgs),
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge person add anna --email anna@example.com")]
struct AddArgs {
    /// The person's name, as the audit log and approvals show it
    #[arg(value_name = "NAME")]
    name: String,

    /// An address under which the person writes commits; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    email: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge person list
  kedge person list -o json")]
struct ListArgs {
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge person set anna --email anna@example.com --email berg@example.com
  kedge person set anna --name 'anna berg'")]
struct SetArgs {
    /// The person's name or id
    #[arg(value_name = "PERSON")]
    person: String,

    /// Another name
    #[arg(long, value_name = "NAME", required_unless_present = "email")]
    name: Option<String>,

    /// All addresses; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    email: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge person remove anna")]
struct RemoveArgs {
    /// The person's name or id
    #[arg(value_name = "PERSON")]
    person: String,
}

pub fn run(args: &PersonArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    match &args.command {
        PersonCommand::Add(add) => {
            let request = NewPersonRequest { name: add.name.clone(), emails: add.email.clone() };
            let made = hub.add_person(&request)?.read()?;
            say(&format!("{} is person {}", one_line(&made.name), one_line(&made.id)));
            if add.email.is_empty() {
                say(
                    "without an address, approvals that exclude the change's author don't count: kedge person set --email",
                );
            }
        }
        PersonCommand::List(list) => {
            show(&hub.people().all()?, list.output)?;
        }
        PersonCommand::Set(set) => {
            let emails = Some(set.email.clone()).filter(|emails| !emails.is_empty());
            let request = SetPersonRequest { name: set.name.clone(), emails };
            let now = hub.set_person(&set.person, &request)?.read()?;
            say(&format!("{} ({}): {}", one_line(&now.name), one_line(&now.id), now.emails.join(",")));
        }
        PersonCommand::Remove(remove) => {
            hub.remove_person(&remove.person)?;
            say(&format!("{} is removed, and all its tokens have ended", remove.person));
        }
    }
    Ok(Exit::Success)
}

fn show(people: &List<PersonSummary>, shape: Shape) -> Result<()> {
    match shape {
        Shape::Json => print_json(&json!({"items": people.items}))?,
        Shape::Yaml => print_yaml(&json!({"items": people.items}))?,
        Shape::Table | Shape::Wide => {
            let mut table = Table::default();
            table.row(["ID", "NAME", "EMAILS", "ADDED", "ADDED BY", "REMOVED"].map(str::to_owned));
            for person in people.read()? {
                let cells = [
                    one_line(&person.id),
                    one_line(&person.name),
                    person.emails.join(","),
                    to_the_second(&person.created_at),
                    one_line(&person.created_by),
                    person.removed_at.map(|at| to_the_second(&at)).unwrap_or_default(),
                ];
                table.row(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }));
            }
            print_text(&table.to_text(""))?;
        }
    }
    Ok(())
}
