//! The real host: each question and each step goes to the part that knows it (debs, files, units, users, health). It decides
//! nothing. The transaction engine owns the one there is.

pub mod artifacts;
pub mod debs;
pub mod files;
mod unit_files;
pub mod units;
pub mod users;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use kedge_model::wire::Digest;

use super::Host;
use crate::goal::Check;
use crate::health::{self, HealthContext};
use crate::objects::Objects;
use crate::observed::{Observed, Subjects};
use crate::paths::Paths;
use crate::plan::debs::{DebPlan, DebWish};
use crate::record::Failure;
use crate::step::Step;
use crate::trace::Tracer;
use debs::Debs;
use files::Files;
use units::Units;
use users::Users;

#[derive(Debug)]
pub struct HostApplier {
    paths: Paths,
    debs: Debs,
    files: Files,
    units: Units,
    users: Users,
    health: HealthContext,
}

/// Where steps and the programs that they start write; those on a file system of their own are synced too.
const WRITTEN: [&str; 6] = ["/", "/etc", "/usr", "/var", "/opt", "/srv"];

impl HostApplier {
    pub fn new(paths: &Paths, objects: &Objects, health: HealthContext) -> HostApplier {
        HostApplier {
            paths: paths.clone(),
            debs: Debs::new(paths, objects),
            files: Files::new(paths.clone(), objects.clone()),
            units: Units,
            users: Users::new(paths.clone()),
            health,
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut synced = BTreeSet::new();
        let places = WRITTEN.iter().map(|path| self.paths.place(path)).chain([self.paths.state()]);
        for path in places.filter(|path| path.is_dir()) {
            if synced.insert(fs::metadata(&path)?.dev()) {
                nix::unistd::syncfs(File::open(&path)?)?;
            }
        }
        Ok(())
    }
}

impl Host for HostApplier {
    fn look(&self, subjects: &Subjects) -> Result<Observed, Failure> {
        let mut observed = Observed { paths: self.files.look(&subjects.paths)?, ..Observed::default() };
        if self.paths.is_host() {
            observed.debs = self.debs.look(&subjects.debs)?;
            let units = subjects.units.union(&subjects.own_units).cloned().collect();
            observed.units = self.units.look(&units)?;
            unit_files::name_debs(&mut observed.units, &subjects.own_units);
            observed.users = self.users.look(&subjects.users)?;
        }
        Ok(observed)
    }

    fn prepare_debs(&mut self, wish: &DebWish, trace: &mut Tracer<'_>) -> Result<DebPlan, Failure> {
        if *wish == DebWish::default() || !self.paths.is_host() {
            return Ok(DebPlan::default());
        }
        self.debs.prepare(wish, trace)
    }

    fn keep(&mut self, path: &str) -> Result<Digest, Failure> {
        self.files.keep(path)
    }

    fn execute(&mut self, step: &Step, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        match step {
            Step::AddUser { .. } | Step::RemoveUser { .. } => self.users.execute(step, trace),
            Step::MakeFolder { .. }
            | Step::RemoveFolder { .. }
            | Step::PutFile { .. }
            | Step::PutLink { .. }
            | Step::RemovePath { .. } => self.files.execute(step, trace),
            Step::Debs(debs) => self.debs.execute(debs, trace),
            Step::ReloadUnits
            | Step::EnableUnit { .. }
            | Step::DisableUnit { .. }
            | Step::StartUnit { .. }
            | Step::StopUnit { .. }
            | Step::RestartUnit { .. } => self.units.execute(step, trace),
            Step::PutObjects { .. } | Step::RemoveObjects { .. } => {
                Err(Failure::new("Unsupported", "a plain host has no API server"))
            }
        }
    }

    fn check(&mut self, check: &Check) -> Result<(), Failure> {
        health::check(check, &self.health).map_err(|why| Failure::new("HealthCheck", why))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.sync().map_err(|error| Failure::passing("DiskFull", format!("the disk can't be synced: {error}")))
    }

    fn usage(&self, folders: &[&str]) -> Result<Option<u64>, Failure> {
        let folders: Vec<String> = folders.iter().map(|folder| (*folder).to_owned()).collect();
        Ok(Some(self.files.usage(&folders)))
    }

    fn repair(&mut self, trace: &mut Tracer<'_>) -> Result<(), Failure> {
        if !self.paths.is_host() {
            return Ok(());
        }
        // Neither keeps the other from being mended.
        let users = self.users.repair(trace);
        self.debs.repair(trace).and(users)
    }
}
