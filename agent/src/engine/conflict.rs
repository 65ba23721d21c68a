//! Two assignments that want different versions of one deb: what runs stays, the newcomer is refused and told whose it is; both are
//! refused only when neither runs.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use crate::goal::Goal;
use crate::plan::Others;
use crate::record::{Failure, Record};

/// Failures whose cause is another assignment: tried again as soon as one changed.
const OF_OTHERS: [&str; 4] = ["DebConflict", "ConflictingFile", "ConflictingUnit", "ConflictingObject"];

impl Engine {
    /// What the others have, without versions that they are about to leave for the one that we want, or altogether.
    pub(super) fn others(&self, assignment: &str, goal: Option<&Goal>) -> Others {
        let mut others = Others::of(self.records.all().values().filter(|record| record.assignment != assignment));
        for deb in goal.iter().flat_map(|goal| &goal.debs) {
            let leaves = others.debs.get(&deb.name).is_some_and(|(_, other)| {
                self.wishes.get(other).is_some_and(|(_, debs)| {
                    let theirs = debs.iter().find(|one| one.name == deb.name);
                    theirs.is_none_or(|theirs| theirs.version == deb.version)
                })
            });
            if leaves {
                others.debs.remove(&deb.name);
            }
        }
        others
    }

    /// All assignments that are wanted here or have a record.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let desired = self.desired.iter().flat_map(BTreeMap::keys);
        desired.chain(self.records.all().keys()).cloned().collect()
    }

    pub(super) fn check_versions(&self, assignment: &str, goal: &Goal, others: &Others) -> Result<(), Failure> {
        let running = self.records.get(assignment).and_then(|record| record.running.as_ref());
        for deb in &goal.debs {
            if let Some((version, other)) = others.debs.get(&deb.name).filter(|(version, _)| *version != deb.version) {
                let message = format!("{} {} is wanted, and {other} runs with {version}", deb.name, deb.version);
                return Err(Failure::passing("DebConflict", message));
            }
            let is_ours = running.is_some_and(|running| running.goal.debs.iter().any(|ours| ours.name == deb.name));
            let rival = self.wishes.iter().find_map(|(other, (_, debs))| {
                let theirs = debs.iter().find(|one| one.name == deb.name && one.version != deb.version)?;
                (other != assignment).then_some((other, &theirs.version))
            });
            if let (false, Some((other, version))) = (is_ours, rival) {
                let message = format!("{} {} is wanted, and {other} wants {version}", deb.name, deb.version);
                return Err(Failure::passing("DebConflict", message));
            }
        }
        Ok(())
    }

    /// Something changed of an assignment: who was refused because of another may try again.
    pub(super) fn release(&mut self) {
        let waits = |record: &&Record| {
            record.failed.as_ref().is_some_and(|failed| {
                OF_OTHERS.contains(&failed.failure.reason.as_str()) && failed.failure.passes && failed.tries > 0
            })
        };
        let names: Vec<String> =
            self.records.all().values().filter(waits).map(|record| record.assignment.clone()).collect();
        for name in names {
            let written = self.records.change(&name, |record| {
                if let Some(failed) = &mut record.failed {
                    failed.at.0 = 0;
                    failed.tries = 0;
                }
            });
            self.note_disk(written);
        }
    }
}
