//! What is to be done about the assignments: asked of the pure module `tasks` whenever something changed or a wait is over, and handed on
//! to the applier, to the downloads, or to the report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::wire::{DesiredState, Entry, Generation, Mode, Sequence};
use kedge_status::{Condition, Severity};
use tokio::time::Instant;

use super::super::hub::Hub;
use super::super::runtime::{AgentRuntime, instant};
use super::SyncLoop;
use crate::causes::chain;
use crate::engine::Desired;
use crate::record::Record;
use crate::records::{self, Records};
use crate::tasks::{Task, tasks_for};
use crate::told::Told;
use crate::worker::{Job, Wish};

pub(super) struct Tasks {
    /// When it is asked next.
    at: Option<Instant>,
    /// What the applier was last told to be wanted.
    desire: Option<(Sequence, Generation)>,
    /// Assignments that the applier has in hand.
    given: BTreeSet<String>,
    /// The membership whose name and labels what runs was bound to.
    bound: Option<Sequence>,
    /// What runs was applied from another node: what this one lacks of it is fetched and made again, once.
    adopting: bool,
}

impl Tasks {
    pub(super) fn new(adopting: bool) -> Tasks {
        Tasks { at: None, desire: None, given: BTreeSet::new(), bound: None, adopting }
    }

    pub(super) fn soon(&mut self) {
        self.at = Some(Instant::now());
    }

    pub(super) fn is_due(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.at
    }

    pub(super) fn give(&mut self, assignment: &str) {
        self.given.insert(assignment.to_owned());
    }

    pub(super) fn done(&mut self, assignments: &[String]) {
        assignments.iter().for_each(|assignment| _ = self.given.remove(assignment));
        self.soon();
    }

    /// The applier has nothing in hand.
    pub(super) fn is_idle(&self) -> bool {
        self.given.is_empty()
    }

    pub(super) fn forget_desire(&mut self) {
        self.desire = None;
    }

    pub(super) fn not_after(&mut self, time: Instant) {
        self.at = Some(self.at.map_or(time, |at| at.min(time)));
    }
}

impl<H: Hub> SyncLoop<H> {
    /// Reads the records once, and acts on all that follows from them.
    pub(super) fn refresh(&mut self, agent: &mut AgentRuntime) {
        self.tasks.at = None;
        let records = match Records::read_all(&*self.context.disk, &self.context.paths) {
            Ok((records, _)) => records,
            Err(error) => {
                tracing::error!(error = chain(&error), "the records can't be read");
                return;
            }
        };
        agent.follow(&records, &self.context.paths);
        self.desire(agent, &records);
        let now = self.context.clock.now();
        let tasks =
            tasks_for(self.memory.state(), self.memory.membership(), &records, &self.held, now, self.context.place);
        let (mut wishes, mut mass_removal) = (Vec::new(), None);
        let rebind = self.is_newly_bound();
        let adopting = std::mem::take(&mut self.tasks.adopting);
        let lacks =
            |record: &Record| records::contents(record).iter().any(|content| !self.context.objects.has(content));
        let lacking: BTreeSet<&String> =
            records.iter().filter(|(_, record)| adopting && lacks(record)).map(|(name, _)| name).collect();
        for task in tasks {
            match task {
                Task::Keep { assignment }
                    if (rebind || lacking.contains(&assignment)) && !self.tasks.given.contains(&assignment) =>
                {
                    wishes.extend(self.running_entry(&assignment, &records).and_then(|entry| self.wish(entry)));
                }
                Task::Apply(entry) if !self.tasks.given.contains(&entry.assignment) => {
                    wishes.extend(self.wish(entry));
                }
                Task::Remove { assignment } if !self.tasks.given.contains(&assignment) => {
                    tracing::info!(assignment, "it goes: the desired state lists it as removed");
                    self.tasks.give(&assignment);
                    agent.touch(shorter_names(&assignment, &records));
                    agent.give(Job::Remove(assignment));
                }
                Task::Forget { assignment } if !self.tasks.given.contains(&assignment) => {
                    tracing::info!(assignment, "no longer managed; everything stays");
                    self.tasks.give(&assignment);
                    agent.touch(shorter_names(&assignment, &records));
                    agent.give(Job::Forget(assignment));
                }
                Task::Waiting { until, .. } => self.tasks.not_after(instant(until, &*self.context.clock)),
                Task::Unsupported { entry, why } => self.unsupported(&entry, why, records.get(&entry.assignment)),
                Task::MassRemoval { message, .. } => mass_removal = Some(message),
                Task::Apply(_) | Task::Remove { .. } | Task::Forget { .. } => {}
                Task::Keep { .. } | Task::Held { .. } | Task::Observe(_) => {}
            }
        }
        self.warn_while("MassRemoval", Severity::Error, mass_removal);
        self.tell_observed(&records);
        self.want(wishes, &records, agent);
    }

    /// Tells the applier what is wanted, when that changed. A new assignment may be the owner of another's units.
    fn desire(&mut self, agent: &mut AgentRuntime, records: &BTreeMap<String, Record>) {
        let membership = self.memory.membership();
        let Some(state) = self.memory.state().filter(|state| state.stream == membership.stream) else { return };
        let wanted = (membership.sequence, state.generation);
        if self.tasks.desire != Some(wanted) && !membership.retired {
            self.tasks.desire = Some(wanted);
            let new = state.entries.iter().filter(|entry| !records.contains_key(&entry.assignment));
            agent.touch(new.flat_map(|entry| shorter_names(&entry.assignment, records)));
            agent.give(Job::Desire(desired(state)));
        }
    }

    /// Whether the cluster was given another name or other labels since the last time: then what runs may mean something else.
    fn is_newly_bound(&mut self) -> bool {
        let now = self.memory.membership().sequence;
        self.tasks.bound.replace(now).is_some_and(|before| before != now)
    }

    /// The entry of what runs here and didn't fail.
    fn running_entry(&self, assignment: &str, records: &BTreeMap<String, Record>) -> Option<Entry> {
        let entry = self.memory.state()?.entries.iter().find(|entry| entry.assignment == assignment)?;
        let record = records.get(assignment)?;
        let runs = record.running.as_ref()?.key == entry.packages_key();
        (runs && record.failed.is_none() && record.transaction.is_none()).then(|| entry.clone())
    }

    fn wish(&self, entry: Entry) -> Option<Wish> {
        let Mode::Apply(packages) = entry.mode else { return None };
        Some(Wish {
            assignment: entry.assignment,
            packages: *packages,
            restart: entry.restart,
            generation: self.memory.state()?.generation,
            membership: Arc::new(self.memory.membership().clone()),
            failure: None,
        })
    }

    fn unsupported(&mut self, entry: &Entry, why: String, record: Option<&Record>) {
        let running = record.and_then(|record| record.running.as_ref());
        let told = Told::AssignmentStatus {
            assignment: entry.assignment.clone(),
            desired: Some(entry.packages_key()),
            generation: self.memory.state().map_or(Generation(0), |state| state.generation),
            running: running.map(|running| running.key),
            version: running.and_then(|running| running.packages.version.clone()),
            condition: Condition::Failed { reason: "Unsupported".to_owned(), message: why },
            drift: None,
            at: self.context.clock.now(),
        };
        self.tell(&told);
    }
}

fn desired(state: &DesiredState) -> BTreeMap<String, Desired> {
    let applied = state.entries.iter().filter(|entry| matches!(entry.mode, Mode::Apply(_)));
    let wanted = applied
        .map(|entry| (entry.assignment.clone(), Desired { key: entry.packages_key(), generation: state.generation }));
    wanted.collect()
}

/// Assignments with a record whose names this one's begins with.
fn shorter_names(assignment: &str, records: &BTreeMap<String, Record>) -> Vec<String> {
    let shorter = assignment.match_indices('-').map(|(at, _)| &assignment[..at]);
    shorter.filter(|name| records.contains_key(*name)).map(str::to_owned).collect()
}
