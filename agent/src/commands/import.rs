//! `kedge-agent import`: takes what a stick brings, a join's answer or bundles. The work is in `crate::airgap`.

mod text;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_bundle::{JoinAnswerFile, JoinRequestFile, MAX_JOIN_FILE, Parts, find};
use kedge_durable::{Disk, RealDisk};
use kedge_model::shown::cell;
use kedge_model::wire::{Digest, Envelope, Payload as _};

use super::error::{CommandError, Exit};
use super::output::{harmless, print};
use super::progress::Bar;
use super::{person, request};
use crate::airgap::enrol::{self, Enrolled};
use crate::airgap::import::{Brought, ImportError, Importer};
use crate::airgap::inbox::Inbox;
use crate::causes::chain;
use crate::config::Config;
use crate::daemon;
use crate::paths::Paths;

/// Import a bundle or a hub's answer from a file or a stick.
///
/// Imports a hub's answer to this host's join request, and bundles with what should run. Everything is checked as if it came over
/// the network from a stranger. Content that is already here isn't copied, and nothing is left half done if the stick is pulled
/// out. From a folder, all files that end in .kedge are imported, and those for other hosts are skipped.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Import everything on a stick that is for this host:
    kedge-agent import /media/stick

  Join with a hub's answer, if it comes from this authority:
    kedge-agent import line-7-answer.kedge --authority sha256:4f…

  Import a bundle in parts; name any part, or the file without the number:
    kedge-agent import /media/stick/plant.kedge.001

Exit codes: 0 success, 1 refused or failed, 2 wrong usage, 3 done, but something was refused or is missing.")]
pub struct ImportArgs {
    /// A bundle, one of its parts, a hub's answer, or a folder with them
    path: PathBuf,
    /// The authority that a hub's answer must come from, as kedge token sign prints it
    #[arg(long, value_name = "DIGEST")]
    authority: Option<Digest>,
}

/// What a file came to.
#[derive(Debug)]
enum Taken {
    Joined(Enrolled),
    Bundle(Brought),
    /// It is for somebody else.
    Passed(String),
}

/// What a file is.
enum Kind {
    Letter(Box<Envelope>),
    Bundle,
}

/// The daemon notices at once; a busy one takes a moment.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

pub fn run(args: &ImportArgs, config: Option<&Path>, paths: &Paths) -> Result<Exit, CommandError> {
    if paths.is_host() && !nix::unistd::geteuid().is_root() {
        return Err(CommandError::NeedsRootToChange);
    }
    let config =
        Config::load(config, paths).map_err(|error| CommandError::failed("the settings can't be read", error))?;
    let many = args.path.is_dir();
    let mut files = Vec::new();
    for path in find(&args.path).map_err(|error| refused(&error.into()))? {
        match sniff(&path) {
            Ok(kind) => files.push((path, kind)),
            Err(error) if many => print_refused(&path, &error)?,
            Err(error) => return Err(error),
        }
    }
    // An answer makes the host one that a bundle can be for.
    files.sort_by_key(|(_, kind)| matches!(kind, Kind::Bundle));
    let (mut findings, mut news) = (false, false);
    for (path, kind) in files {
        match take(&path, kind, args.authority, (config.disk_reserve, many), paths) {
            Ok(taken) => {
                news |= matches!(&taken, Taken::Bundle(brought) if brought.is_news());
                findings |= text::has_findings(&taken);
                print(&harmless(&text::of(&taken, &path)))?;
            }
            Err(error) if many => {
                findings = true;
                print_refused(&path, &error)?;
            }
            Err(error) => return Err(error),
        }
    }
    if news {
        print(await_daemon(paths))?;
    }
    Ok(if findings { Exit::Findings } else { Exit::Success })
}

fn take(
    path: &Path,
    kind: Kind,
    authority: Option<Digest>,
    (reserve, many): (u64, bool),
    paths: &Paths,
) -> Result<Taken, CommandError> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    match kind {
        Kind::Letter(envelope) if envelope.payload_type == JoinAnswerFile::TYPE => {
            let to = enrol::addressee(&envelope);
            if let Some(other) = to.filter(|to| many && !enrol::is_ours(&*disk, paths, *to)) {
                return Ok(Taken::Passed(format!("an answer for cluster {other}")));
            }
            enrol::complete(&disk, paths, &envelope, authority).map(Taken::Joined).map_err(request::failed)
        }
        Kind::Letter(envelope) => letter(&envelope, many),
        Kind::Bundle => {
            let identity = person::identity(paths)?;
            let importer = Importer { disk, paths, identity: &identity, reserve };
            let mut bar = Bar::new();
            let brought = importer.import(path, |progress| bar.take(progress));
            bar.end();
            match brought {
                Err(ImportError::GoesUp(cluster)) if many => {
                    Ok(Taken::Passed(format!("what cluster {cluster} tells the hub")))
                }
                Err(error) => Err(refused(&error)),
                Ok(brought) => Ok(Taken::Bundle(brought)),
            }
        }
    }
}

/// What isn't for any host.
fn letter(envelope: &Envelope, many: bool) -> Result<Taken, CommandError> {
    let (what, hint) = match envelope.payload_type.as_str() {
        JoinRequestFile::TYPE => {
            ("a host's request to join", "on a machine that reaches the hub: kedge token sign FILE")
        }
        _ => ("something else than a bundle or a hub's answer", ""),
    };
    if many {
        return Ok(Taken::Passed(what.to_owned()));
    }
    Err(CommandError::refused(format!("this file is {what}"), hint))
}

/// A letter is JSON; whatever else it is, the bundle's reader says.
fn sniff(path: &Path) -> Result<Kind, CommandError> {
    let failed = |source| CommandError::File { path: text::name(path).into(), action: "read", source };
    let mut parts = Parts::open(path).map_err(|error| refused(&error.into()))?;
    let mut first = [0];
    if parts.length() == 0 || parts.read(&mut first).map_err(failed)? == 0 || first != *b"{" {
        return Ok(Kind::Bundle);
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_JOIN_FILE + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > MAX_JOIN_FILE {
        return Err(failed(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {MAX_JOIN_FILE} bytes"),
        )));
    }
    let read = Envelope::from_json(&bytes);
    read.map(|envelope| Kind::Letter(Box::new(envelope))).map_err(|error| {
        CommandError::refused(format!("{} can't be read: {}", text::name(path), chain(&error)), "copy it again")
    })
}

fn refused(error: &ImportError) -> CommandError {
    CommandError::refused(cell(&chain(error), text::LONGEST), error.hint().unwrap_or_default())
}

/// One of several: the others go on.
fn print_refused(path: &Path, error: &CommandError) -> io::Result<()> {
    print(&format!("{}: refused\n{}", text::name(path), error.to_text()))
}

/// Until the daemon has taken the news.
fn await_daemon(paths: &Paths) -> &'static str {
    let (inbox, began) = (Inbox::of(paths), Instant::now());
    while daemon::holder(paths).is_some() {
        if inbox.is_empty() {
            return "The agent has taken it; kedge-agent status shows what becomes of it.\n";
        }
        if began.elapsed() >= TAKEN_WITHIN {
            return "The agent hasn't taken it yet; kedge-agent status shows what becomes of it.\n";
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    "The agent doesn't run; it takes it when it starts.\n"
}
