//! `kedge bundle`: files for clusters that no network reaches. `export` asks a hub, `show` needs none. Called by `main`.

mod progress;
mod show;

use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Subcommand;
use kedge_api::client::Response;
use kedge_bundle::{BundleError, Index, Output, Parts, Reader};
use kedge_model::wire::DesiredState;

use crate::error::{Exit, UsageError};
use crate::hub::HubArgs;
use crate::output::{counted, say};
use progress::{Progress, bytes};
use show::ShowArgs;

/// Create and inspect bundles for clusters without a network.
///
/// A bundle is one signed file with everything that a cluster would get from the hub: keys, memberships, desired states, packages
/// and artifacts. `kedge-agent import` imports it on the host, with the same checks as online.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Everything for the presses of a hall, onto a stick:
    kedge bundle export -e prod --cluster-type press -o /media/KEDGE/press.kedge

  Only what one of them doesn't run already:
    kedge bundle export -e prod --cluster press-7 --since reported -o press-7.kedge

  Only what is new since the last bundle, in parts that fit on FAT32:
    kedge bundle export -e prod -t press --since last.kedge --split 4GB -o press.kedge

  What is in it?
    kedge bundle show press.kedge")]
pub struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum BundleCommand {
    Export(ExportArgs),
    Show(ShowArgs),
}

/// Write a bundle for a cluster or a cluster type
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge bundle export -e prod --cluster-type press -o press.kedge
  kedge bundle export -e prod --cluster press-7 --since reported -o press-7.kedge")]
struct ExportArgs {
    /// The environment
    #[arg(short, long, value_name = "NAME")]
    environment: String,

    /// For all clusters of this type
    #[arg(short = 't', long, value_name = "NAME", required_unless_present = "cluster", conflicts_with = "cluster")]
    cluster_type: Option<String>,

    /// For this cluster, by name or id
    #[arg(long, value_name = "CLUSTER")]
    cluster: Option<String>,

    /// Leave out content that is already there: `reported` as running, named by a GENERATION, or in an earlier bundle's FILE
    #[arg(long, value_name = "WHAT")]
    since: Option<String>,

    /// Write parts of at most this size, FILE.001 and so on: `4GB` for FAT32, `700MiB`
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    split: Option<u64>,

    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    hub: HubArgs,
}

/// One read of the hub's answer.
const PIECE: usize = 256 * 1024;
/// Smaller parts are a mistake: there are at most 999.
const MIN_PART: u64 = 1024;

pub fn run(args: &BundleArgs) -> Result<Exit> {
    match &args.command {
        BundleCommand::Export(export) => self::export(export),
        BundleCommand::Show(args) => show::run(args),
    }
}

fn export(args: &ExportArgs) -> Result<Exit> {
    let since = args.since.as_deref().map(since).transpose()?;
    let asked = [
        ("environment", Some(args.environment.clone())),
        ("clusterType", args.cluster_type.clone()),
        ("cluster", args.cluster.clone()),
        ("since", since),
    ];
    let mut answer = args.hub.open()?.bundle(&asked)?;
    let length = answer.content_length();
    let name = args.output.display().to_string();
    let unwritten = || format!("{name} can't be written");
    let mut output = Output::create(&args.output, args.split).with_context(unwritten)?;
    copy(&mut answer, &mut output, length).with_context(unwritten)?;
    let files = output.finish().with_context(unwritten)?;
    // What a worn stick made of it is seen here, and not in the field.
    let index = match check(&args.output) {
        Ok(index) => index,
        Err(error) => {
            // A stick that was pulled out keeps it.
            let removed = files.iter().all(|file| std::fs::remove_file(file).is_ok());
            let left = if removed { "it is removed" } else { "it can't be removed: don't use it" };
            return Err(anyhow::Error::new(error).context(format!("{name} isn't what the hub sent; {left}")));
        }
    };
    let parts = if files.len() > 1 { format!(" in {}", counted(files.len(), "part")) } else { String::new() };
    say(&format!(
        "{name}{parts}: {} for {}, {}, {}",
        bytes(length.unwrap_or_default()),
        counted(index.clusters.len(), "cluster"),
        counted(index.states.len(), "state"),
        counted(index.blobs.len(), "blob"),
    ));
    Ok(Exit::Success)
}

fn copy(from: &mut Response, to: &mut Output, length: Option<u64>) -> io::Result<()> {
    let mut progress = Progress::new("written", length);
    let mut piece = vec![0; PIECE];
    let mut done = 0_u64;
    loop {
        let read = match from.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            break;
        }
        to.write_all(&piece[..read])?;
        done += read as u64;
        progress.add(read as u64);
    }
    progress.end();
    match length {
        Some(length) if length != done => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the hub's answer was cut")),
        _ => Ok(()),
    }
}

/// Reads it back as a host will.
fn check(path: &Path) -> Result<Index, BundleError> {
    let parts = Parts::open(path)?;
    let mut progress = Progress::new("checked", Some(parts.length()));
    let mut bundle = Reader::open(parts)?.look()?;
    bundle.check(|read| progress.add(read))?;
    progress.end();
    Ok(bundle.into_index())
}

/// A word or a number goes to the hub as it is; of a file the generations of its states do.
fn since(text: &str) -> Result<String> {
    if text == "reported" || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(text.to_owned());
    }
    let path = Path::new(text);
    let unreadable = |error: BundleError| {
        let hint = "--since takes `reported`, a generation, or the file of an earlier bundle";
        anyhow::Error::new(UsageError::new(format!("{text} is no bundle: {error}"), hint))
    };
    let bundle = Parts::open(path).and_then(Reader::open).and_then(Reader::look).map_err(unreadable)?;
    let mut rings = Vec::new();
    for envelope in &bundle.index().states {
        let state: DesiredState = serde_json::from_slice(&envelope.payload)
            .with_context(|| format!("a desired state in {text} can't be read"))?;
        rings.push(format!("{}:{}", state.stream.ring, state.generation));
    }
    if rings.is_empty() {
        return Err(
            UsageError::new(format!("{text} has no desired state"), "name a bundle of `kedge bundle export`").into()
        );
    }
    Ok(rings.join(","))
}

fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: 4GB, 700MiB or a number of bytes");
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let size = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
    if size < MIN_PART {
        return Err(format!("parts have at least {MIN_PART} bytes"));
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(parse_size("4GB"), Ok(4_000_000_000));
        assert_eq!(parse_size("700MiB"), Ok(700 << 20));
        assert_eq!(parse_size("2048"), Ok(2048));
        for wrong in ["", "GB", "4 apples", "12", "99999999999999999999GB", "-1"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_word_and_a_number_need_no_file() {
        assert_eq!(since("reported").unwrap(), "reported");
        assert_eq!(since("12").unwrap(), "12");
        assert!(since("no-such-file.kedge").is_err());
    }
}
