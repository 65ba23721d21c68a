//! `kedge status import`: what agents without a network sent back, brought to the hub.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use kedge_api::imports::ImportedItem;
use kedge_bundle::Parts;

use crate::error::{Exit, UsageError};
use crate::get::columns::{one_line, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Format, Table, counted, print_json, print_text, print_yaml, say};

/// Import a status file that an agent exported
///
/// Each document counts from the time at which its cluster wrote it. Importing the same file again changes nothing.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  On the host, then here:
    kedge-agent export -o /media/KEDGE/press-7.kedge
    kedge status import /media/KEDGE/press-7.kedge

Exit codes: 0 everything was imported or already known, 1 the file was refused, 3 something in it was refused.")]
pub struct ImportArgs {
    /// One or more files that `kedge-agent export` wrote
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

/// As much as the hub takes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

pub fn run(args: &ImportArgs, hub: &HubArgs) -> Result<Exit> {
    let hub = hub.open()?;
    let mut left_out = false;
    for file in &args.files {
        let bytes = read(file)?;
        let answer = hub.import_status(&bytes).with_context(|| file.display().to_string())?;
        let imported = answer.read()?;
        let of = |outcome: &str| imported.items.iter().filter(|item| item.outcome == outcome).count();
        left_out |= of("refused") > 0;
        match args.output {
            Format::Text => print_text(&shown(&imported.items))?,
            Format::Json => print_json(&answer.document)?,
            Format::Yaml => print_yaml(&answer.document)?,
        }
        say(&format!(
            "{}: {} of {}: {} taken, {} known or older, {} refused",
            file.display(),
            counted(imported.items.len(), "document"),
            to_the_second(&imported.written_at),
            of("taken"),
            of("known") + of("older"),
            of("refused")
        ));
    }
    Ok(if left_out { Exit::LeftOut } else { Exit::Success })
}

/// Also one that was split.
fn read(path: &std::path::Path) -> Result<Vec<u8>> {
    let parts = Parts::open(path)?;
    let length = parts.length();
    if length > MAX_FILE {
        let hint = "name what `kedge-agent export` wrote";
        return Err(
            UsageError::new(format!("{} has {length} bytes, more than a hub takes", path.display()), hint).into()
        );
    }
    let mut bytes = Vec::new();
    parts.take(MAX_FILE).read_to_end(&mut bytes).with_context(|| format!("{} can't be read", path.display()))?;
    Ok(bytes)
}

fn shown(items: &[ImportedItem]) -> String {
    let mut table = Table::default();
    table.row(["CLUSTER", "WHAT", "OBSERVED", "OUTCOME", "WHY"].map(str::to_owned));
    for item in items {
        let told = |text: &Option<String>| text.as_deref().map(one_line).unwrap_or_default();
        let cluster = Some(told(&item.name)).filter(|name| !name.is_empty()).unwrap_or_else(|| told(&item.cluster));
        let observed = item.observed_at.as_deref().map(to_the_second).unwrap_or_default();
        let cells = [cluster, one_line(&item.what), observed, one_line(&item.outcome), told(&item.message)];
        table.row(cells.map(|cell| if cell.is_empty() { "-".to_owned() } else { cell }));
    }
    table.to_text("")
}
