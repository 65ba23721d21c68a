//! Debian packages as a transaction with an exact way back. The host applier asks here what is installed, what a change would need, and
//! to carry a step out; apt and dpkg do the work. Owns the folder `debs/` in the agent's state.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use self::apt::Apt;
use self::apt::system::HostApt;
use self::known::Known;
use self::status::Of;
use crate::objects::Objects;
use crate::observed::DebState;
use crate::paths::Paths;
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::Failure;
use crate::step::DebsStep;
use crate::trace::Tracer;

pub mod apt;
mod archives;
mod conffile;
pub mod doctor;
mod execute;
mod known;
pub mod lock;
mod prepare;
mod repack;
mod resolve;
pub mod simulation;
mod stanza;
pub mod status;
#[cfg(test)]
mod tests;
mod version;

#[derive(Debug)]
pub struct Debs<A = HostApt> {
    apt: A,
    objects: Objects,
    known: Known,
    root: PathBuf,
    work: PathBuf,
}

impl Debs<HostApt> {
    pub fn new(paths: &Paths, objects: &Objects) -> Debs<HostApt> {
        Debs::with(HostApt::new(paths, objects), paths, objects)
    }
}

impl<A: Apt> Debs<A> {
    /// With another apt than the host's.
    pub fn with(apt: A, paths: &Paths, objects: &Objects) -> Debs<A> {
        let work = paths.state().join("debs");
        let known = Known::open(&work.join("known"));
        Debs { apt, objects: objects.clone(), known, root: paths.root().to_owned(), work }
    }

    /// How these debs are now. Starts no program.
    pub fn look(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, DebState>, Failure> {
        if names.is_empty() {
            return Ok(BTreeMap::new());
        }
        let status = self.apt.status(Of::Names(names))?;
        Ok(names.iter().map(|name| (name.clone(), status.state(name))).collect())
    }

    /// Resolves and downloads; nothing on the host is changed but apt's indexes.
    pub fn prepare(&mut self, wish: &DebWish, trace: &mut Tracer<'_>) -> Result<DebPlan, Failure> {
        self.plan(wish, trace)
    }

    /// Brings the debs to what the step says; needs no network.
    pub fn execute(&mut self, step: &DebsStep, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        if *step == DebsStep::default() { Ok(()) } else { self.carry_out(step, trace) }
    }

    /// Finishes what an interrupted dpkg left, if that neither removes nor downgrades anything.
    pub fn repair(&mut self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        self.mend(trace)
    }
}

fn on_disk(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull => Failure::passing("DiskFull", format!("{}: {error}", path.display())),
        _ => Failure::new("FileFailed", format!("{}: {error}", path.display())),
    }
}
