//! What planning remembers from publish to publish, so that its cost follows the change: ids of texts, and the schedule
//! that the branch holds. A schedule that differs from it in values only is planned by the assignments that differ.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gix::ObjectId;
use kedge_model::AssignmentId;
use kedge_scheduler::{Assignment, Files, PROMOTED_COMMIT, Schedule};

use super::{Base, Plan, Wanted};
use crate::publish::tree::{TreeError, blob_id};

#[derive(Debug, Default)]
pub struct Memory {
    ids: HashMap<String, (Arc<str>, ObjectId)>,
    held: Option<Held>,
}

/// A schedule that is on the branch, wholly and without hand edits.
#[derive(Debug)]
struct Held {
    /// The branch's tree; none: an empty branch.
    tree: Option<ObjectId>,
    /// Without its assignments.
    outline: Schedule,
    assignments: BTreeMap<AssignmentId, Arc<Assignment>>,
    wanted: Wanted,
}

/// Assignments that differ in values, and the paths that they may have.
#[derive(Debug)]
pub(super) struct Values {
    pub schedule: Schedule,
    pub scope: BTreeSet<String>,
}

/// More than so many are planned with all others.
const FEW: usize = 500;

impl Memory {
    /// The branch holds this schedule now. Told after a publish; what waits or was edited by hand makes it forget.
    pub fn hold(&mut self, plan: Plan, schedule: &Schedule, tree: Option<ObjectId>) {
        if !plan.removals.is_empty() || !plan.hand_edits.is_empty() {
            self.held = None;
            return;
        }
        let held = match (self.held.take(), plan.scope) {
            (Some(mut held), Some(scope)) => {
                scope.iter().for_each(|path| drop(held.wanted.remove(path)));
                held.wanted.extend(plan.wanted);
                for id in scope.iter().filter_map(|path| super::assignment_of(path)) {
                    let id = AssignmentId { cluster_type: id.0.into(), target: id.1.into() };
                    if let Some(assignment) = schedule.assignments.get(&id) {
                        held.assignments.insert(id, Arc::clone(assignment));
                    }
                }
                Held { tree, outline: outline(schedule), ..held }
            }
            (None, Some(_)) => return,
            (_, None) => Held {
                tree,
                outline: outline(schedule),
                assignments: schedule.assignments.clone(),
                wanted: plan.wanted,
            },
        };
        self.held = Some(held);
    }

    pub fn forget(&mut self) {
        self.held = None;
    }

    /// What differs, when that is values of assignments that the branch holds and nothing else.
    pub(super) fn values(&self, base: &Base<'_>, schedule: &Schedule) -> Option<Values> {
        let held = self.held.as_ref().filter(|held| held.tree == base.tree && base.approved.is_empty())?;
        let promoted = held.outline.promoted_commit.clone();
        if (Schedule { promoted_commit: promoted, ..outline(schedule) }) != held.outline
            || schedule.assignments.len() != held.assignments.len()
        {
            return None;
        }
        let mut scope = BTreeSet::from([PROMOTED_COMMIT.to_owned()]);
        let mut part = outline(schedule);
        for ((id, now), (known, before)) in schedule.assignments.iter().zip(&held.assignments) {
            if id != known {
                return None;
            }
            if Arc::ptr_eq(now, before) {
                continue;
            }
            let mut paths = Files::NAMES.iter().map(|name| format!("{id}/{name}"));
            let rendered = now.files().is_some() && before.files().is_some();
            if !rendered || part.assignments.len() >= FEW || !paths.clone().any(|path| base.files.contains_key(&path)) {
                return None;
            }
            scope.extend(&mut paths);
            part.assignments.insert(id.clone(), Arc::clone(now));
        }
        Some(Values { schedule: part, scope })
    }

    /// Everything that is wanted, when `part` is what is wanted of `scope`.
    pub(super) fn with<'a>(
        &'a self,
        scope: &'a BTreeSet<String>,
        part: &'a Wanted,
    ) -> impl Iterator<Item = (&'a str, &'a ObjectId)> {
        let known = self.held.iter().flat_map(|held| &held.wanted);
        let mut known =
            known.filter(|(path, _)| !scope.contains(*path) && !part.contains_key(*path)).map(entry).peekable();
        let mut part = part.iter().map(entry).peekable();
        std::iter::from_fn(move || match (known.peek(), part.peek()) {
            (Some((one, _)), Some((other, _))) if one < other => known.next(),
            (Some(_), None) => known.next(),
            _ => part.next(),
        })
    }

    /// Texts with their ids; a text that was there before isn't hashed again.
    pub(super) fn identify(&mut self, texts: BTreeMap<String, Arc<str>>, all: bool) -> Result<Wanted, TreeError> {
        let mut wanted = Vec::with_capacity(texts.len());
        for (path, text) in texts {
            let known = self.ids.get(&path).filter(|(known, _)| Arc::ptr_eq(known, &text) || *known == text);
            let id = match known {
                Some((_, id)) => *id,
                None => {
                    let id = blob_id(&text)?;
                    self.ids.insert(path.clone(), (Arc::clone(&text), id));
                    id
                }
            };
            wanted.push((path, (text, id)));
        }
        let wanted: Wanted = wanted.into_iter().collect();
        if all && self.ids.len() > wanted.len() {
            self.ids.retain(|path, _| wanted.contains_key(path));
        }
        Ok(wanted)
    }
}

pub(super) fn entry<'a>((path, (_, id)): (&'a String, &'a (Arc<str>, ObjectId))) -> (&'a str, &'a ObjectId) {
    (path, id)
}

/// What decides about files besides the assignments. Names of workloads count only while an application fails.
fn outline(schedule: &Schedule) -> Schedule {
    let workloads = if schedule.failing.is_empty() { BTreeSet::new() } else { schedule.workloads.clone() };
    Schedule {
        environment: schedule.environment.clone(),
        cluster_types: schedule.cluster_types.clone(),
        promoted_commit: schedule.promoted_commit.clone(),
        failing: schedule.failing.clone(),
        disputed: schedule.disputed.clone(),
        targets_elsewhere: schedule.targets_elsewhere,
        workloads,
        ..Schedule::default()
    }
}
