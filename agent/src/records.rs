//! The records of all assignments: a folder with one ledger each. The engine owns it and is the only writer; commands read it
//! without the daemon. A record of which both copies are broken is set aside, and its assignment is adopted again by applying it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::{Digest, Packages};

use crate::goal::Goal;
use crate::observed::PathState;
use crate::paths::Paths;
use crate::record::{DebOriginal, Original, Record};
use crate::step::{DebsStep, Step};

#[derive(Debug)]
pub struct Records {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    all: BTreeMap<String, Record>,
    ledgers: BTreeMap<String, Ledger<Record>>,
    /// The disk refused them; tried again by `save`.
    unsaved: BTreeSet<String>,
}

/// Something that opening found and a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One copy was broken or behind and is whole again.
    Healed { file: String, why: String },
    /// Both copies were broken and are set aside.
    SetAside { file: String, why: String },
}

#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("the records in {path} can't be listed")]
    List { path: PathBuf, source: io::Error },
    #[error("the record of {assignment} can't be kept")]
    Ledger { assignment: String, source: LedgerError },
}

/// A file's name has 255 bytes at most; endings such as `.a.new` and `.broken-12` need some.
const MAX_NAME: usize = 200;

impl Records {
    pub fn open(disk: Arc<dyn Disk>, paths: &Paths) -> Result<(Records, Vec<Found>), RecordsError> {
        let folder = paths.records();
        let listed = |source| RecordsError::List { path: folder.clone(), source };
        disk.make_folder(&folder).map_err(listed)?;
        let mut found = Vec::new();
        let mut records = Records {
            disk: Arc::clone(&disk),
            folder: folder.clone(),
            all: BTreeMap::new(),
            ledgers: BTreeMap::new(),
            unsaved: BTreeSet::new(),
        };
        for file in stems(&*disk, &folder)? {
            let path = folder.join(&file);
            match Ledger::<Record>::open(Arc::clone(&disk), &path) {
                Ok(opened) => {
                    found.extend(opened.healed.map(|why| Found::Healed { file: file.clone(), why }));
                    if let Some(record) = opened.value {
                        records.ledgers.insert(record.assignment.clone(), opened.ledger);
                        records.all.insert(record.assignment.clone(), record);
                    }
                }
                Err(LedgerError::Io { path, action, source }) => {
                    let source = LedgerError::Io { path, action, source };
                    return Err(RecordsError::Ledger { assignment: file, source });
                }
                Err(why) => {
                    set_aside(&*disk, &folder, &file).map_err(listed)?;
                    found.push(Found::SetAside { file, why: why.to_string() });
                }
            }
        }
        Ok((records, found))
    }

    /// For commands: nothing is written. What can't be read is named with why.
    pub fn read_all(disk: &dyn Disk, paths: &Paths) -> Result<(BTreeMap<String, Record>, Vec<String>), RecordsError> {
        let (folder, mut all, mut wrong) = (paths.records(), BTreeMap::new(), Vec::new());
        for file in stems(disk, &folder)? {
            match Ledger::<Record>::read(disk, &folder.join(&file)) {
                Ok(record) => all.extend(record.map(|record| (record.assignment.clone(), record))),
                Err(why) => wrong.push(why.to_string()),
            }
        }
        Ok((all, wrong))
    }

    pub fn all(&self) -> &BTreeMap<String, Record> {
        &self.all
    }

    pub fn get(&self, assignment: &str) -> Option<&Record> {
        self.all.get(assignment)
    }

    /// Durable when it returns; remembered also if the disk refuses, since it is what happened.
    pub fn change(&mut self, assignment: &str, change: impl FnOnce(&mut Record)) -> Result<(), RecordsError> {
        change(self.entry(assignment));
        self.write(assignment)
    }

    /// Made if it isn't there; on the disk with the next change.
    pub fn entry(&mut self, assignment: &str) -> &mut Record {
        let new = || Record { assignment: assignment.to_owned(), ..Record::default() };
        self.all.entry(assignment.to_owned()).or_insert_with(new)
    }

    /// In memory alone: it is written with the next change.
    pub fn note<R>(&mut self, assignment: &str, change: impl FnOnce(&mut Record) -> R) -> Option<R> {
        self.all.get_mut(assignment).map(change)
    }

    /// Writes what the disk refused before.
    pub fn save(&mut self) -> Result<(), RecordsError> {
        for assignment in self.unsaved.clone() {
            self.write(&assignment)?;
        }
        Ok(())
    }

    fn write(&mut self, assignment: &str) -> Result<(), RecordsError> {
        let Some(record) = self.all.get(assignment) else { return Ok(()) };
        self.unsaved.insert(assignment.to_owned());
        let failed = |source| RecordsError::Ledger { assignment: assignment.to_owned(), source };
        let ledger = match self.ledgers.entry(assignment.to_owned()) {
            Entry::Occupied(ledger) => ledger.into_mut(),
            Entry::Vacant(place) => {
                let path = self.folder.join(file_name(assignment));
                place.insert(Ledger::open(Arc::clone(&self.disk), &path).map_err(failed)?.ledger)
            }
        };
        ledger.write(record).map_err(failed)?;
        self.unsaved.remove(assignment);
        Ok(())
    }

    pub fn remove(&mut self, assignment: &str) -> Result<(), RecordsError> {
        self.all.remove(assignment);
        self.unsaved.remove(assignment);
        let failed = |source| RecordsError::Ledger { assignment: assignment.to_owned(), source };
        self.ledgers.remove(assignment).map_or(Ok(()), |ledger| ledger.remove().map_err(failed))
    }
}

/// Names of ledgers: each has a copy `.a` or `.b`.
fn stems(disk: &dyn Disk, folder: &Path) -> Result<BTreeSet<String>, RecordsError> {
    let names = names(disk, folder).map_err(|source| RecordsError::List { path: folder.to_owned(), source })?;
    let stem = |name: &String| name.strip_suffix(".a").or_else(|| name.strip_suffix(".b")).map(str::to_owned);
    Ok(names.iter().filter_map(stem).collect())
}

fn names(disk: &dyn Disk, folder: &Path) -> io::Result<BTreeSet<String>> {
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    Ok(disk.list(folder)?.iter().filter_map(name).collect())
}

fn set_aside(disk: &dyn Disk, folder: &Path, file: &str) -> io::Result<()> {
    let taken = names(disk, folder)?;
    let free = |which: &str| (1_u32..).map(|n| format!("{file}.{which}.broken-{n}")).find(|name| !taken.contains(name));
    for which in ["a", "b"] {
        let from = format!("{file}.{which}");
        if let (true, Some(to)) = (taken.contains(&from), free(which)) {
            disk.rename(&folder.join(from), &folder.join(to))?;
        }
    }
    disk.sync_folder(folder)
}

/// A name that any file system takes, another one for every assignment.
pub fn file_name(assignment: &str) -> String {
    let mut name = String::with_capacity(assignment.len());
    for (at, byte) in assignment.bytes().enumerate() {
        match byte {
            b'.' if at == 0 => name.push_str("%2e"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    if name.len() > MAX_NAME {
        let digest = Digest::of(assignment.as_bytes()).hex();
        name.truncate(MAX_NAME - digest.len() - 1);
        // `~` is escaped otherwise: no short name looks like this.
        name = format!("{name}~{digest}");
    }
    name
}

/// Every object that a record still needs: what runs, the journal's both directions, and what removal returns to.
pub fn objects(record: &Record) -> BTreeSet<Digest> {
    let mut named = BTreeSet::new();
    let transactions = || record.transaction.iter().chain(&record.last);
    for running in record.running.iter().chain(transactions().filter_map(|one| one.wanted.as_deref())) {
        name_packages(&running.packages, &mut named);
        name_goal(&running.goal, &mut named);
        name_original(&running.original, &mut named);
    }
    for step in record.transaction.iter().flat_map(|one| one.forward.iter().chain(&one.back)) {
        match step {
            Step::PutFile { content, .. } => _ = named.insert(*content),
            Step::Debs(debs) => name_debs(debs, &mut named),
            Step::PutObjects { objects } => named.extend(objects.iter().map(|object| object.content)),
            _ => {}
        }
    }
    named
}

/// What the objects of a cluster are made of, as far as a record needs it to go on: in a change also of what it changes from and to.
pub fn contents(record: &Record) -> BTreeSet<Digest> {
    let under_way = || record.transaction.iter();
    let goals = record.running.iter().chain(under_way().filter_map(|one| one.wanted.as_deref()));
    let mut named: BTreeSet<Digest> =
        goals.flat_map(|running| &running.goal.objects).map(|object| object.content).collect();
    for step in under_way().flat_map(|one| one.forward.iter().chain(&one.back)) {
        if let Step::PutObjects { objects } = step {
            named.extend(objects.iter().map(|object| object.content));
        }
    }
    named
}

fn name_packages(packages: &Packages, named: &mut BTreeSet<Digest>) {
    for package in [&packages.platform, &packages.workload] {
        named.insert(package.digest);
        named.extend(package.artifacts.iter().map(|artifact| artifact.digest));
    }
}

fn name_goal(goal: &Goal, named: &mut BTreeSet<Digest>) {
    named.extend(goal.files.iter().map(|file| file.content));
    named.extend(goal.artifacts.iter().map(|artifact| artifact.content));
    named.extend(goal.debs.iter().filter_map(|deb| deb.file));
    named.extend(goal.objects.iter().map(|object| object.content));
}

fn name_original(original: &Original, named: &mut BTreeSet<Digest>) {
    named.extend(original.paths.values().filter_map(|state| match state {
        PathState::File { content, .. } => Some(*content),
        _ => None,
    }));
    for DebOriginal { archive, conffiles, .. } in original.debs.values() {
        named.extend(archive);
        named.extend(conffiles.values().map(|file| file.content));
    }
}

fn name_debs(debs: &DebsStep, named: &mut BTreeSet<Digest>) {
    named.extend(debs.install.iter().map(|deb| deb.archive));
    named.extend(debs.conffiles.iter().filter_map(|file| file.was.as_ref()).map(|was| was.content));
}

#[cfg(test)]
mod tests {
    use kedge_durable::RealDisk;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn records_are_there_again_after_a_restart_and_gone_after_removal() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let names = ["web-prod", "x.a", "x", ".hidden", "../../etc", "ä/ö", &"l".repeat(300)];
        let (mut records, _) = Records::open(Arc::new(RealDisk), &paths).unwrap();
        for name in names {
            records.change(name, |record| record.counter = 7).unwrap();
        }
        let (mut again, found) = Records::open(Arc::new(RealDisk), &paths).unwrap();
        assert_eq!(found, []);
        assert_eq!(again.all().keys().map(String::as_str).collect::<BTreeSet<_>>(), BTreeSet::from(names));
        again.remove("x").unwrap();
        let (all, wrong) = Records::read_all(&RealDisk, &paths).unwrap();
        assert_eq!((all.len(), all.contains_key("x"), wrong), (names.len() - 1, false, Vec::new()));
    }

    #[test]
    fn a_broken_record_is_set_aside_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let (mut records, _) = Records::open(Arc::new(RealDisk), &paths).unwrap();
        records.change("good", |_| {}).unwrap();
        records.change("bad", |_| {}).unwrap();
        for round in 1..=2 {
            for which in ["bad.a", "bad.b"] {
                std::fs::write(paths.records().join(which), b"garbage").unwrap();
            }
            let (records, found) = Records::open(Arc::new(RealDisk), &paths).unwrap();
            assert!(matches!(&found[..], [Found::SetAside { file, .. }] if file == "bad"), "{found:?}");
            assert_eq!(records.all().keys().collect::<Vec<_>>(), ["good"]);
            assert!(paths.records().join(format!("bad.b.broken-{round}")).exists());
        }
    }

    proptest! {
        #[test]
        fn any_name_is_one_safe_file(first in "\\PC{0,300}", second in "\\PC{0,300}") {
            let name = file_name(&first);
            prop_assert!(name.len() <= MAX_NAME && !name.contains('/') && !name.starts_with('.'));
            prop_assert_eq!(name == file_name(&second), first == second);
        }
    }
}
