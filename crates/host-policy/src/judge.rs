//! Everything that a host refuses of a HostWorkload, decided in this one place: the agent asks before it applies, `kedge validate` before
//! anything is published. What only a host knows (whose a unit of that name is there already, how much its disk limit leaves) is the
//! agent's to ask.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::{Deb, FileEntry, HealthProbe, HostWorkload};
use kedge_model::wire::Digest;

use crate::{Place, Refusal, Tenant, path, unit_file, unit_name};

/// The files that a HostWorkload names, of the folder that it is in.
pub trait Package {
    type Error;

    /// A unit's file. None: there is no telling, so it isn't judged.
    fn text(&self, file: &FileEntry) -> Result<Option<String>, Self::Error>;

    /// A deb. None: there is no telling, so it isn't judged.
    fn deb(&self, file: &str) -> Result<Option<DebFile>, Self::Error>;

    /// Whether units run there: not where the agent has a folder instead of a host.
    fn runs_units(&self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebFile {
    /// As its control file says it. None: nobody looked.
    pub name: Option<String>,
    pub digest: Digest,
}

/// What a workload is to a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    pub refused: Vec<Refused>,
    /// One for each of the workload's files; none: its path is refused.
    pub files: Vec<Option<Place>>,
    /// Whether each of its debs is allowed.
    pub debs: Vec<bool>,
    /// Whether each of its units is allowed.
    pub units: Vec<bool>,
    /// Paths of the units' files and drop-ins that it brings, by unit.
    pub brought: BTreeMap<String, Vec<String>>,
    /// Units that its units' files start or stop, by names that are the workload's own; and which of its files does.
    pub named: BTreeMap<String, usize>,
    /// Folders that systemd makes for its units, by paths that are the workload's own.
    pub claimed: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub refusal: Refusal,
    pub entry: Entry,
    /// The file of the folder that is wrong itself; none: what the HostWorkload says of it.
    pub file: Option<String>,
}

/// What of the HostWorkload a refusal is about, by its place in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    File(usize),
    Artifact(usize),
    Deb(usize),
    Unit(usize),
    Health(usize),
}

/// Judges all of it: one refusal doesn't hide the others.
pub fn judge<P: Package>(workload: &HostWorkload, tenant: &Tenant, package: &P) -> Result<Judgement, P::Error> {
    let mut judgement = Judgement::default();
    judgement.files(workload, tenant, package)?;
    judgement.artifacts(workload, tenant);
    judgement.debs(workload, tenant, package)?;
    judgement.units(workload, tenant);
    // What a deb brings is known when it is installed.
    if package.runs_units() && !judgement.debs.contains(&true) {
        judgement.lone_drop_ins(workload, tenant);
        judgement.strangers(workload);
    }
    judgement.checks(workload);
    Ok(judgement)
}

impl Judgement {
    fn files<P: Package>(&mut self, workload: &HostWorkload, tenant: &Tenant, package: &P) -> Result<(), P::Error> {
        for (at, entry) in workload.files.iter().enumerate() {
            let here = Entry::File(at);
            let place = match tenant.check_path(&entry.path) {
                Ok(place) => place,
                Err(refusal) => {
                    self.refuse(here, refusal);
                    self.files.push(None);
                    continue;
                }
            };
            self.check(here, tenant.check_access(&entry.path, &place, entry.owner.as_deref(), entry.mode));
            if let Place::Unit { named: false, .. } = place
                && let Some(text) = package.text(entry)?
            {
                let in_file = |refusal| Refused { refusal, entry: here, file: Some(entry.file.clone()) };
                self.refused.extend(unit_file::check(&text, &entry.path, tenant).into_iter().map(in_file));
                for unit in unit_file::named(&text, tenant) {
                    self.named.entry(unit).or_insert(at);
                }
                self.claimed.extend(unit_file::claimed(&text, tenant));
            }
            if let Some(below) = path::below_systemd(&entry.path) {
                let unit =
                    below.split_once('/').map_or(below, |(folder, _)| folder.strip_suffix(".d").unwrap_or(folder));
                self.brought.entry(unit.to_owned()).or_default().push(entry.path.clone());
            }
            self.files.push(Some(place));
        }
        Ok(())
    }

    fn artifacts(&mut self, workload: &HostWorkload, tenant: &Tenant) {
        for (at, artifact) in workload.artifacts.iter().enumerate() {
            let here = Entry::Artifact(at);
            match tenant.check_path(&artifact.path) {
                Ok(Place::Plain) => {}
                Ok(Place::Unit { .. }) => {
                    let reason = format!("`{}` is a unit's place and can't be an artifact", artifact.path);
                    self.refuse(here, Refusal::new(reason, "use `files`"));
                }
                Err(refusal) => self.refuse(here, refusal),
            }
        }
    }

    fn debs<P: Package>(&mut self, workload: &HostWorkload, tenant: &Tenant, package: &P) -> Result<(), P::Error> {
        for (at, deb) in workload.debs.iter().enumerate() {
            let checked = match deb {
                Deb::Apt { name, .. } => tenant.check_deb(name),
                Deb::File(file) => match package.deb(file)? {
                    Some(deb) => tenant.check_deb_file(deb.name.as_deref(), file, &deb.digest),
                    None => Ok(()),
                },
            };
            let is_allowed = self.check(Entry::Deb(at), checked);
            self.debs.push(is_allowed);
        }
        Ok(())
    }

    fn units(&mut self, workload: &HostWorkload, tenant: &Tenant) {
        for (at, unit) in workload.units.iter().enumerate() {
            let is_allowed = self.check(Entry::Unit(at), tenant.check_unit(&unit.name));
            self.units.push(is_allowed);
        }
    }

    /// A drop-in changes whatever unit is there: the workload must bring that unit too.
    fn lone_drop_ins(&mut self, workload: &HostWorkload, tenant: &Tenant) {
        let strangers =
            self.brought.iter().filter(|(unit, _)| !tenant.names_unit(unit)).filter(|(unit, _)| !self.brings(unit));
        let refusals: Vec<(Entry, Refusal)> = strangers
            .map(|(unit, paths)| {
                let entry = workload.files.iter().position(|entry| paths.contains(&entry.path)).unwrap_or_default();
                let reason = format!(
                    "there is a drop-in for the unit `{unit}`, which neither a file nor a deb of this workload brings"
                );
                (Entry::File(entry), Refusal::new(reason, tenant.way_out("units", unit)))
            })
            .collect();
        refusals.into_iter().for_each(|(entry, refusal)| self.refuse(entry, refusal));
    }

    /// A unit that it would start or stop and doesn't bring may become somebody's: of an assignment that is called `<assignment>-x`, or of
    /// the administrator.
    fn strangers(&mut self, workload: &HostWorkload) {
        let strangers = self.named.iter().filter(|(unit, _)| !self.brings(unit));
        let refused: Vec<Refused> = strangers
            .map(|(unit, at)| {
                let reason = format!(
                    "the unit `{unit}`, which it would start or stop, is brought by neither a file nor a deb of this workload: it \
                     belongs to somebody else, now or later"
                );
                let way_out = "bring a file for it, or leave its name out";
                let file = workload.files.get(*at).map(|entry| entry.file.clone());
                Refused { refusal: Refusal::new(reason, way_out), entry: Entry::File(*at), file }
            })
            .collect();
        self.refused.extend(refused);
    }

    /// Whether a file of the workload is the unit's, or its template's.
    fn brings(&self, unit: &str) -> bool {
        let has_file =
            |unit: &str| self.brought.get(unit).is_some_and(|files| files.iter().any(|path| !path.contains(".d/")));
        has_file(unit) || unit_name::template_of(unit).is_some_and(|unit| has_file(&unit))
    }

    fn checks(&mut self, workload: &HostWorkload) {
        for (at, check) in workload.health.iter().enumerate() {
            if let HealthProbe::Unit(name) = &check.probe {
                self.check(Entry::Health(at), unit_name::check(name).map_err(Refusal::from));
            }
        }
    }

    /// Whether it is allowed.
    fn check(&mut self, entry: Entry, checked: Result<(), Refusal>) -> bool {
        match checked {
            Ok(()) => true,
            Err(refusal) => {
                self.refuse(entry, refusal);
                false
            }
        }
    }

    fn refuse(&mut self, entry: Entry, refusal: Refusal) {
        self.refused.push(Refused { refusal, entry, file: None });
    }
}

#[cfg(test)]
mod tests;
