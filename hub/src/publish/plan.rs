//! What a publish does to the environment's branch: files to write and delete, cluster types that wait for a person, hand
//! edits that stay, and what is remembered afterwards. Pure; nothing else decides. Called by `direct` and `request`.
//!
//! Three sides of each file are compared: what the schedule wants, what the branch holds, and what was last published.
//! - Wanted and held are the same: nothing to do.
//! - Wanted is what was last published, and the branch holds something else: a hand edit. It stays, is delivered and
//!   flagged, until the schedule wants something new for that file.
//! - Otherwise the wanted text is written, or the file is deleted.

mod memory;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gix::ObjectId;
use kedge_model::wire::Digest;
use kedge_scheduler::{Existing, Files, PROMOTED_COMMIT, Schedule, plan_output};

pub use memory::Memory;
use memory::Values;

use super::guard::{Names, Removal, Verdict, judge};
use super::tree::{There, TreeError};

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Write { text: Arc<str>, id: ObjectId },
    Delete,
}

/// What a publish starts from.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The branch as it is; no tree: an empty one.
    pub tree: Option<ObjectId>,
    pub existing: &'a BTreeMap<String, Existing>,
    pub files: &'a HashMap<String, There>,
    /// What we last published, by path; empty when we never did.
    pub published: &'a HashMap<String, ObjectId>,
    /// By cluster type; what the branch holds counts for those without one.
    pub confirmed: &'a BTreeMap<String, Names>,
    /// What people agreed to lose.
    pub approved: &'a BTreeMap<String, Names>,
    pub guard: Guard,
}

/// What the removal guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The cluster type waits.
    Wait,
    /// The pull request says so, and its merge confirms.
    Warn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub changes: BTreeMap<String, Change>,
    /// Cluster types that lose more than half. With `Guard::Wait` their files stay exactly as they are.
    pub removals: BTreeMap<String, Removal>,
    /// Paths of hand edits that stay.
    pub hand_edits: BTreeSet<String>,
    /// Names what the schedule wants of the branch. It changes when a declined pull request is worth asking again.
    pub content: Digest,
    /// To be remembered once this is on the branch: what was published, by path.
    pub settled: BTreeMap<String, Option<ObjectId>>,
    /// And confirmed sets that are new.
    pub confirmed: BTreeMap<String, Names>,
    /// What is wanted: of these paths when there is a scope, else of the whole branch.
    wanted: Wanted,
    scope: Option<BTreeSet<String>>,
}

/// Our files per assignment, per cluster type.
type Counts<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

type Wanted = BTreeMap<String, (Arc<str>, ObjectId)>;

pub fn plan(
    base: Base<'_>,
    schedule: &Schedule,
    memory: &mut Memory,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Plan, TreeError> {
    if let Some(values) = memory.values(&base, schedule) {
        return plan_values(base, values, memory, read);
    }
    let output = plan_output(base.existing, schedule, read);
    let wanted = memory.identify(output.write, true)?;
    let mut plan = Plan::new(content(wanted.iter().map(memory::entry), &output.delete));
    plan.compare(base, &wanted, &output.delete);
    plan.guard(base);
    let quarantined: BTreeSet<String> = schedule.quarantined().map(|(id, _)| id.to_string()).collect();
    plan.settle(base, &wanted, base.published.keys(), |path| {
        // Not while it may be wanted again.
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        schedule.failing.is_empty() && !quarantined.contains(folder)
    });
    plan.wanted = wanted;
    Ok(plan)
}

/// The same for a part: no assignment comes or goes, so there is nothing to guard.
fn plan_values(
    base: Base<'_>,
    values: Values,
    memory: &mut Memory,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<Plan, TreeError> {
    let Values { schedule, scope } = values;
    let there = scope.iter().filter_map(|path| base.existing.get_key_value(path));
    let existing = there.map(|(path, file)| (path.clone(), file.clone())).collect();
    let output = plan_output(&existing, &schedule, read);
    let wanted = memory.identify(output.write, false)?;
    let mut plan = Plan::new(content(memory.with(&scope, &wanted), &output.delete));
    plan.compare(base, &wanted, &output.delete);
    let published = scope.iter().filter(|path| base.published.contains_key(*path));
    plan.settle(base, &wanted, published, |_| schedule.failing.is_empty());
    (plan.wanted, plan.scope) = (wanted, Some(scope));
    Ok(plan)
}

/// The confirmed sets when every change of the branch is a person's: what it holds. Only those that differ, and none when
/// it holds nothing: a branch that was deleted or emptied is nobody's word.
pub fn merged_sets(
    existing: &BTreeMap<String, Existing>,
    confirmed: &BTreeMap<String, Names>,
) -> BTreeMap<String, Names> {
    let held = owned(count(existing));
    if existing.is_empty() {
        return BTreeMap::new();
    }
    let nothing = Names::new();
    let gone = confirmed.keys().filter(|name| !held.contains_key(*name)).map(|name| (name.clone(), nothing.clone()));
    let mut sets: BTreeMap<String, Names> = gone.collect();
    sets.extend(held);
    sets.retain(|name, set| confirmed.get(name) != Some(set));
    sets
}

impl Plan {
    fn new(content: Digest) -> Plan {
        Plan {
            changes: BTreeMap::new(),
            removals: BTreeMap::new(),
            hand_edits: BTreeSet::new(),
            content,
            settled: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            wanted: Wanted::new(),
            scope: None,
        }
    }

    fn compare(&mut self, base: Base<'_>, wanted: &Wanted, delete: &BTreeSet<String>) {
        for (path, (text, id)) in wanted {
            if base.holds(path, *id) {
                continue;
            }
            if base.published.get(path) == Some(id) {
                self.hand_edits.insert(path.clone());
            } else {
                self.changes.insert(path.clone(), Change::Write { text: Arc::clone(text), id: *id });
            }
        }
        for path in delete {
            // Somebody made it, unless it is from before we published at all.
            if !base.published.is_empty() && !base.published.contains_key(path) {
                self.hand_edits.insert(path.clone());
            } else {
                self.changes.insert(path.clone(), Change::Delete);
            }
        }
    }

    /// Judges every cluster type by what the branch would hold.
    fn guard(&mut self, base: Base<'_>) {
        let held = count(base.existing);
        let mut next = held.clone();
        for (path, change) in &self.changes {
            let Some((cluster_type, target)) = assignment_of(path) else { continue };
            let targets = next.entry(cluster_type).or_default();
            match change {
                Change::Write { .. } => *targets.entry(target).or_default() += 1,
                Change::Delete => match targets.get_mut(target) {
                    Some(files) if *files > 1 => *files -= 1,
                    _ => drop(targets.remove(target)),
                },
            }
        }
        let types: BTreeSet<&str> = next.keys().copied().chain(base.confirmed.keys().map(String::as_str)).collect();
        for name in types {
            let after = next.get(name).map(names).unwrap_or_default();
            let published = held.get(name).map(names).unwrap_or_default();
            let confirmed = base.confirmed.get(name).unwrap_or(&published);
            match judge(confirmed, &published, &after, base.approved.get(name)) {
                Verdict::Passes(set) => {
                    if base.confirmed.get(name) != Some(&set) {
                        self.confirmed.insert(name.to_owned(), set);
                    }
                }
                Verdict::Waits(removal) => drop(self.removals.insert(name.to_owned(), removal)),
            }
        }
        if base.guard == Guard::Wait && !self.removals.is_empty() {
            let removals = &self.removals;
            // The promoted commit isn't wholly there while a part of it waits.
            self.changes.retain(|path, _| {
                path != PROMOTED_COMMIT && !path.split('/').next().is_some_and(|name| removals.contains_key(name))
            });
        }
    }

    /// What will be published once the changes are on the branch, where that isn't on record.
    fn settle<'a>(
        &mut self,
        base: Base<'_>,
        wanted: &Wanted,
        published: impl Iterator<Item = &'a String>,
        is_gone: impl Fn(&str) -> bool,
    ) {
        for (path, (_, id)) in wanted {
            if base.published.get(path) != Some(id) && (base.holds(path, *id) || self.changes.contains_key(path)) {
                self.settled.insert(path.clone(), Some(*id));
            }
        }
        for path in published.filter(|path| !wanted.contains_key(*path)) {
            // Deleted by us now, or by a person before and not wanted any more.
            if self.changes.contains_key(path) || (!base.files.contains_key(path) && is_gone(path)) {
                self.settled.insert(path.clone(), None);
            }
        }
    }

    pub fn promotes(&self) -> bool {
        self.changes.contains_key(PROMOTED_COMMIT)
    }
}

impl Base<'_> {
    fn holds(&self, path: &str, id: ObjectId) -> bool {
        self.files.get(path) == Some(&There { id, plain: true })
    }
}

/// The assignment that a file of ours belongs to.
pub fn assignment_of(path: &str) -> Option<(&str, &str)> {
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(cluster_type), Some(target), Some(file), None) if Files::NAMES.contains(&file) => {
            Some((cluster_type, target))
        }
        _ => None,
    }
}

fn count(existing: &BTreeMap<String, Existing>) -> Counts<'_> {
    let mut counts = Counts::new();
    for (cluster_type, target) in existing.keys().filter_map(|path| assignment_of(path)) {
        *counts.entry(cluster_type).or_default().entry(target).or_default() += 1;
    }
    counts
}

fn names(counts: &BTreeMap<&str, usize>) -> Names {
    counts.keys().map(|name| (*name).to_owned()).collect()
}

fn owned(counts: Counts<'_>) -> BTreeMap<String, Names> {
    counts.iter().map(|(name, targets)| ((*name).to_owned(), names(targets))).collect()
}

fn content<'a>(wanted: impl Iterator<Item = (&'a str, &'a ObjectId)>, delete: &BTreeSet<String>) -> Digest {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for (path, id) in wanted {
        context.update(path.as_bytes());
        context.update(b"\0");
        context.update(id.as_slice());
    }
    context.update(b"\0\0");
    for path in delete {
        context.update(path.as_bytes());
        context.update(b"\0");
    }
    Digest::finish(context)
}

#[cfg(test)]
mod tests;
