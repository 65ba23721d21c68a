//! What the other assignments of this host have and want, as far as a plan must respect it: things may be shared, but not pulled to
//! and fro.

use std::collections::{BTreeMap, BTreeSet};

use crate::goal::{Goal, ObjectId, Owner, UnitGoal};
use crate::record::{Failure, Original, Record, Running};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How things that they share with us were before Kedge; each from who had it first.
    pub originals: Original,
    /// Users that they run as.
    pub users: BTreeSet<String>,
    /// Their debs: version and whose it is.
    pub debs: BTreeMap<String, (String, String)>,
    paths: BTreeMap<String, (Claim, String)>,
    units: BTreeMap<String, (UnitGoal, String)>,
    objects: Vec<(ObjectId, String)>,
    /// The namespaces that they run in.
    pub(super) neighbours: Vec<Neighbour>,
}

/// What another assignment has of its namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Neighbour {
    pub assignment: String,
    /// None in what older agents wrote.
    pub namespace: Option<String>,
    pub slice: Option<String>,
    pub user: Option<String>,
    /// Kedge made that user.
    pub made: bool,
    pub folders: Vec<String>,
}

/// What somebody wants a path to be.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Claim {
    File(kedge_model::wire::Digest, Owner, u32),
    Link(kedge_model::wire::Digest),
    Folder(Owner, u32),
}

impl Others {
    /// `records` are those of the other assignments that run something.
    pub fn of<'r>(records: impl Iterator<Item = &'r Record>) -> Others {
        let mut others = Others::default();
        for record in records {
            let Some(running) = &record.running else { continue };
            let name = &record.assignment;
            others.add_original(&running.original);
            others.users.extend(running.goal.user.clone());
            others.neighbours.push(Neighbour::of(name, running));
            for deb in &running.goal.debs {
                others.debs.insert(deb.name.clone(), (deb.version.clone(), name.clone()));
            }
            for (path, claim) in claims(&running.goal) {
                others.paths.insert(path.to_owned(), (claim, name.clone()));
            }
            for unit in &running.goal.units {
                others.units.insert(unit.name.clone(), (unit.clone(), name.clone()));
            }
            others.objects.extend(running.goal.objects.iter().map(|object| (object.id.clone(), name.clone())));
        }
        others
    }

    fn add_original(&mut self, original: &Original) {
        let mine = &mut self.originals;
        for (path, state) in &original.paths {
            mine.paths.entry(path.clone()).or_insert_with(|| state.clone());
        }
        for (name, state) in &original.units {
            mine.units.entry(name.clone()).or_insert_with(|| state.clone());
        }
        for (name, deb) in &original.debs {
            mine.debs.entry(name.clone()).or_insert_with(|| deb.clone());
        }
        let new: Vec<String> = original.users.iter().filter(|name| !mine.users.contains(name)).cloned().collect();
        mine.users.extend(new);
        self.users.extend(original.users.iter().cloned());
    }

    /// Refuses a goal that would take from another assignment what it runs with.
    pub fn check(&self, goal: &Goal) -> Result<(), Failure> {
        for (path, claim) in claims(goal) {
            match self.paths.get(path) {
                Some((theirs, name)) if *theirs != claim => {
                    let message = format!("{path} belongs to {name}, which wants it differently");
                    return Err(Failure::passing("ConflictingFile", message));
                }
                _ => {}
            }
        }
        for unit in &goal.units {
            match self.units.get(&unit.name) {
                Some((theirs, name)) if (theirs.enabled, theirs.running) != (unit.enabled, unit.running) => {
                    let message = format!("unit {} belongs to {name}, which wants it differently", unit.name);
                    return Err(Failure::passing("ConflictingUnit", message));
                }
                _ => {}
            }
        }
        for object in &goal.objects {
            if let Some((id, name)) = self.objects.iter().find(|(id, _)| id.is_same(&object.id)) {
                return Err(Failure::passing("ConflictingObject", format!("{id} belongs to {name}")));
            }
        }
        Ok(())
    }
}

impl Neighbour {
    fn of(assignment: &str, running: &Running) -> Neighbour {
        let Running { goal, original, .. } = running;
        Neighbour {
            assignment: assignment.to_owned(),
            namespace: goal.namespace.clone(),
            slice: goal.slice().map(str::to_owned),
            user: goal.user.clone(),
            made: goal.user.as_ref().is_some_and(|user| original.users.contains(user)),
            folders: goal.folders.iter().map(|folder| folder.path.clone()).collect(),
        }
    }
}

fn claims(goal: &Goal) -> impl Iterator<Item = (&str, Claim)> {
    let files =
        goal.files.iter().map(|file| (file.path.as_str(), Claim::File(file.content, file.owner.clone(), file.mode)));
    let links = goal.artifacts.iter().map(|link| (link.path.as_str(), Claim::Link(link.content)));
    let folders = goal.folders.iter().map(|one| (one.path.as_str(), Claim::Folder(one.owner.clone(), one.mode)));
    files.chain(links).chain(folders)
}
