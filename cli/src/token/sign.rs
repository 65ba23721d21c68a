//! `kedge token sign`: lets a host in that no network reaches, by the file that it wrote.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kedge_api::imports::{SignRequest, SignedCluster};
use kedge_bundle::{JoinAnswerFile, MAX_JOIN_FILE, fingerprints};
use kedge_model::wire::Envelope;

use super::parse_label;
use crate::error::{Exit, UsageError};
use crate::get::columns::one_line;
use crate::hub::HubArgs;
use crate::output::say;

/// Sign the join request that a host wrote to a file
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge token sign press-7.request -e prod --cluster-type press --site north -o press-7.kedge")]
pub struct SignArgs {
    /// What `kedge-agent request` wrote on the host
    #[arg(value_name = "REQUEST")]
    request: PathBuf,

    /// The environment that it belongs to
    #[arg(short, long, value_name = "NAME")]
    environment: String,

    /// The cluster's type
    #[arg(short = 't', long, value_name = "NAME")]
    cluster_type: String,

    /// Labels that it gets: `a=b,c=d`, or given several times
    #[arg(long = "label", visible_alias = "labels", value_name = "LABELS", value_parser = parse_label, value_delimiter = ',')]
    labels: Vec<(String, String)>,

    /// The site that it stands at
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// The cluster's name [default: the name in the request]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// The file to write, for `kedge-agent import` on the host
    #[arg(short, long, value_name = "ANSWER")]
    output: PathBuf,
}

pub fn run(args: &SignArgs, hub: &HubArgs) -> Result<Exit> {
    let request = read(&args.request)?;
    let request = SignRequest {
        request,
        environment: args.environment.clone(),
        cluster_type: args.cluster_type.clone(),
        labels: args.labels.iter().cloned().collect(),
        site: args.site.clone(),
        name: args.name.clone(),
    };
    let SignedCluster { cluster, name, again, answer } = hub.open()?.sign(&request)?.read()?;
    let (_, keys, _) = JoinAnswerFile::open(&answer).context("the hub's answer isn't what a host would believe")?;
    write(&args.output, &answer)?;
    let again = if again { " was a member already" } else { " is a member" };
    say(&format!("{} ({}){again}; carry {} back to it", one_line(&name), one_line(&cluster), args.output.display()));
    if let Some(authority) = fingerprints(&keys).last() {
        say(&format!("on the host: kedge-agent import {} --authority {authority}", file_name(&args.output)));
    }
    Ok(Exit::Success)
}

fn read(path: &Path) -> Result<Envelope> {
    let wrong =
        |why: String| UsageError::new(format!("{}: {why}", path.display()), "name what `kedge-agent request` wrote");
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| wrong(error.to_string()))?;
    file.take(MAX_JOIN_FILE).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    Ok(Envelope::from_json(&bytes).map_err(|_| wrong("this is no request of a host".to_owned()))?)
}

/// Whole under its name, or not at all: it is carried away.
fn write(path: &Path, answer: &Envelope) -> Result<()> {
    use std::io::Write as _;
    let mut output = kedge_bundle::Output::create(path, None).with_context(|| unwritten(path))?;
    output.write_all(&answer.to_json()?).with_context(|| unwritten(path))?;
    output.finish().with_context(|| unwritten(path))?;
    Ok(())
}

fn unwritten(path: &Path) -> String {
    format!("{} can't be written", path.display())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
