//! `kedge audit`: who changed what, when, and from where. Called by `main`.

use anyhow::Result;
use kedge_api::audit::AuditEntry;
use serde_json::json;

use crate::error::Exit;
use crate::get::Shape;
use crate::get::columns::{one_line, text, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Table, print_json, print_text, print_yaml};

/// Show who changed what on the hub, newest first.
///
/// Lists every write: who, when, what, from where, and whether it was done or refused. Application teams see their own.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  What happened last?
    kedge audit

  Who moved or retired clusters in prod?
    kedge audit -e prod --action cluster.")]
pub struct AuditArgs {
    /// Only writes about this environment
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// Only actions with this prefix: `cluster.`, `join-token.create`
    #[arg(long, value_name = "PREFIX")]
    action: Option<String>,

    /// Only writes with this access token
    #[arg(long, value_name = "ID")]
    token: Option<String>,

    /// At most this many entries
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &AuditArgs) -> Result<Exit> {
    let parameters = [
        ("environment", args.environment.clone()),
        ("action", args.action.clone()),
        ("token", args.token.clone()),
        ("limit", Some(args.limit.to_string())),
    ];
    let answer = args.hub.open()?.audit(&parameters)?;
    let items = &answer.document["items"];
    match args.output {
        Shape::Json => print_json(&json!({"items": items}))?,
        Shape::Yaml => print_yaml(&json!({"items": items}))?,
        Shape::Table | Shape::Wide => print_text(&table(&answer.read()?.items, args.output == Shape::Wide))?,
    }
    Ok(Exit::Success)
}

fn table(entries: &[AuditEntry], wide: bool) -> String {
    let mut table = Table::default();
    let mut head = vec!["WHEN", "WHO", "FROM", "ACTION", "OBJECT", "ENVIRONMENT", "RESULT"];
    if wide {
        head.extend(["TOKEN", "DETAIL"]);
    }
    table.row(head.into_iter().map(str::to_owned));
    for entry in entries {
        let AuditEntry { who, address, action, object, environment, result, .. } = entry;
        let mut cells = vec![to_the_second(&entry.at)];
        cells.extend([who, address, action, object, environment, result].map(|cell| one_line(cell)));
        if wide {
            cells.extend([one_line(&entry.token), text(&entry.detail)]);
        }
        table.row(cells.into_iter().map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }));
    }
    table.to_text("")
}
