//! `kedge-agent request`: the first half of a join without a network. The work is in `crate::airgap::enrol`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_durable::{Disk, RealDisk};

use super::error::{CommandError, Exit};
use super::output::{harmless, print};
use crate::airgap::enrol::{self, EnrolError};
use crate::causes::chain;
use crate::paths::Paths;

/// Write a join request to a file, for hosts without a network.
///
/// The host generates its key and writes a request that is signed with it. The file contains no secret. Carry it to a machine
/// that reaches the hub, sign it with `kedge token sign`, and import the answer here with `kedge-agent import`. Running the
/// command again writes the same request.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  On the host:
    kedge-agent request --name line-7 -o /media/stick/line-7-request.kedge

  On a machine that reaches the hub:
    kedge token sign line-7-request.kedge --environment prod --cluster-type line -o line-7-answer.kedge

  On the host again:
    kedge-agent import /media/stick/line-7-answer.kedge")]
pub struct RequestArgs {
    /// The name of this cluster [default: the host's name]
    #[arg(long)]
    name: Option<String>,
    /// Where the request is written
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Request to become a new cluster; the host stays the current one until the answer is imported
    #[arg(long)]
    again: bool,
}

pub fn run(args: &RequestArgs, paths: &Paths) -> Result<Exit, CommandError> {
    if paths.is_host() && !nix::unistd::geteuid().is_root() {
        return Err(CommandError::NeedsRootToChange);
    }
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let request = enrol::request(&disk, paths, args.name.as_deref(), args.again).map_err(failed)?;
    let json =
        request.envelope.to_json().map_err(|error| CommandError::failed("the request can't be written", error))?;
    write(&args.output, &json)?;
    let (file, name, cluster) = (args.output.display(), &request.name, request.cluster);
    let text =
        format!("{file} asks for {name} ({cluster}). Have it signed: kedge token sign {file} -e … -t … -o ANSWER\n");
    print(&harmless(&text))?;
    Ok(Exit::Success)
}

/// Whole under its name, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    use std::io::Write as _;
    let written = kedge_bundle::Output::create(path, None).and_then(|mut output| {
        output.write_all(bytes)?;
        output.finish().map(drop)
    });
    written.map_err(|source| CommandError::File { path: path.to_owned(), action: "written", source })
}

pub fn failed(error: EnrolError) -> CommandError {
    let hint = error.hint().unwrap_or_default();
    CommandError::refused(chain(&error), hint)
}
