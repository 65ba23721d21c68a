//! `kedge bundle show`: what is in a file that crosses an air gap, without a hub.

use std::path::PathBuf;

use anyhow::Result;
use kedge_bundle::{BundleError, Index, Parts, Reader, find};
use kedge_model::wire::{DesiredState, Envelope, HoldDocument, KeySet, Membership, Presence, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::progress::bytes;
use crate::error::{Exit, UsageError};
use crate::get::columns::{moment, text};
use crate::output::{Format, Table, print_json, print_text, print_yaml};

/// Show what is in a bundle, or in a file that an agent exported
///
/// Signature, length and, with --check, the content of every blob are verified first. Whose fleet it is only you can know: compare
/// the authority with what `kedge-hub keys list` says on the hub.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge bundle show press.kedge
  kedge bundle show /media/KEDGE/press.kedge --check")]
pub struct ShowArgs {
    /// The file, its first part, or a folder with one
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Read every blob too
    #[arg(long)]
    check: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,
}

pub fn run(args: &ShowArgs) -> Result<Exit> {
    let found = find(&args.file)?;
    let [path] = found.as_slice() else {
        let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
        let hint = format!("name one of them: {}", names.join(", "));
        return Err(UsageError::new(format!("{} holds several files", args.file.display()), hint).into());
    };
    let parts = Parts::open(path)?;
    let following = parts.following();
    let length = parts.length();
    let look = || {
        let mut bundle = Reader::open(parts)?.look()?;
        if args.check {
            bundle.check(|_| ())?;
        }
        Ok(bundle.into_index())
    };
    let index = look().map_err(|error: BundleError| match (error, following) {
        // Of parts the next one is missing, or the last is cut.
        (BundleError::Truncated { .. }, Some(next)) if !next.exists() => BundleError::MissingPart(next),
        (error, _) => error,
    })?;
    let document = document(&index, length);
    match args.output {
        Format::Text => print_text(&shown(&document))?,
        Format::Json => print_json(&document)?,
        Format::Yaml => print_yaml(&document)?,
    }
    Ok(Exit::Success)
}

/// What an envelope says; the index that carries it was believed, who takes it checks its own signature.
fn said<T: DeserializeOwned>(envelope: &Envelope) -> Option<T> {
    serde_json::from_slice(&envelope.payload).ok()
}

fn document(index: &Index, length: u64) -> Value {
    let states = index.states.iter().filter_map(said::<DesiredState>).map(|state| {
        json!({
            "environment": state.stream.environment,
            "clusterType": state.stream.cluster_type,
            "ring": state.stream.ring,
            "generation": state.generation.0,
            "createdAt": time(state.created_at),
            "assignments": state.entries.iter().map(|entry| entry.assignment.as_str()).collect::<Vec<_>>(),
        })
    });
    let members = index.memberships.iter().filter_map(said::<Membership>).map(|one| {
        json!({
            "cluster": one.cluster,
            "name": one.name,
            "stream": one.stream.to_string(),
            "site": one.site,
            "sequence": one.sequence.0,
            "retired": one.retired,
        })
    });
    let presences = index
        .presences
        .iter()
        .filter_map(said::<Presence>)
        .map(|one| json!({"cluster": one.cluster(), "at": time(one.at), "generation": one.poll.generation.0}));
    let holds = index.holds.iter().filter_map(said::<HoldDocument>).map(|one| {
        let held: Vec<&str> = one.holds.iter().map(|entry| entry.assignment.as_str()).collect();
        json!({"cluster": one.cluster, "holds": held, "writtenAt": time(one.written_at)})
    });
    let keys = index.key_sets.iter().filter_map(said::<KeySet>).map(|set| set.version).max();
    let blobs: Vec<Value> = index.blobs.iter().map(|blob| json!({"digest": blob.digest, "size": blob.size})).collect();
    json!({
        "direction": if index.writer.is_some() { "up" } else { "down" },
        "writer": index.writer.map(|writer| writer.cluster),
        "fleet": index.fleet,
        "createdAt": time(index.created_at),
        "environment": index.environment,
        "bytes": length,
        "keySet": keys,
        "clusters": index.clusters,
        "states": states.collect::<Vec<_>>(),
        "memberships": members.collect::<Vec<_>>(),
        "holds": holds.collect::<Vec<_>>(),
        "documents": index.documents.len(),
        "presences": presences.collect::<Vec<_>>(),
        "blobs": blobs,
    })
}

fn time(at: Timestamp) -> Value {
    jiff::Timestamp::from_millisecond(at.0).map_or(Value::Null, |at| Value::from(at.to_string()))
}

fn shown(document: &Value) -> String {
    let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let mut head = Table::default();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            head.row([name.to_owned(), value]);
        }
    };
    let direction = match document["direction"].as_str() {
        Some("up") => format!("from cluster {} to the hub", text(&document["writer"])),
        _ => {
            format!("from the hub to {} of environment {}", clusters(&list("clusters")), text(&document["environment"]))
        }
    };
    let blobs = list("blobs");
    let body: u64 = blobs.iter().filter_map(|blob| blob["size"].as_u64()).sum();
    row("bundle", direction);
    row("made", moment(&document["createdAt"]));
    row("authority", text(&document["fleet"]));
    row("size", bytes(document["bytes"].as_u64().unwrap_or_default()));
    row("key set", text(&document["keySet"]));
    row("blobs", format!("{}, {}", blobs.len(), bytes(body)));
    row("status documents", text(&document["documents"]));
    let mut out = head.to_text("");
    let tables: [(&str, &str, &[&str]); 4] = [
        ("states", "Desired states", &["environment", "clusterType", "ring", "generation", "createdAt", "assignments"]),
        ("memberships", "Memberships", &["name", "cluster", "stream", "site", "sequence"]),
        ("holds", "Holds", &["cluster", "holds", "writtenAt"]),
        ("presences", "Signs of life", &["cluster", "at", "generation"]),
    ];
    for (key, title, columns) in tables {
        let rows = list(key);
        if rows.is_empty() {
            continue;
        }
        let mut table = Table::default();
        table.row(columns.iter().map(|column| column.to_uppercase()));
        for item in rows.iter().take(MOST) {
            table.row(columns.iter().map(|column| cell(&item[*column])));
        }
        out.push_str(&format!("\n{title}\n{}", table.to_text("  ")));
        if rows.len() > MOST {
            out.push_str(&format!("  and {} more: -o json has all\n", rows.len() - MOST));
        }
    }
    out
}

/// Rows of one table.
const MOST: usize = 50;

fn clusters(ids: &[Value]) -> String {
    match ids {
        [one] => format!("cluster {}", text(one)),
        many => format!("{} clusters", many.len()),
    }
}

fn cell(value: &Value) -> String {
    let cell = match value {
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        Value::String(text) if text.ends_with('Z') && text.as_bytes().get(10) == Some(&b'T') => moment(value),
        other => text(other),
    };
    if cell.is_empty() { "-".to_owned() } else { cell }
}
