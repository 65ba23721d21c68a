//! The way of one transaction: journal, steps, health, commit; or back. Each direction's steps can be done again from the first, so an
//! interruption goes on where the journal says, in the same direction.

use super::health::{Health, Wait};
use super::status::{disk_failure, is_upkeep};
use super::{Engine, describe};
use crate::plan::back::needed;
use crate::record::{Cause, Failure, Outcome, Phase, Record, Running, Traced, Transaction};
use crate::records::RecordsError;
use crate::step::Step;
use crate::trace::Tracer;

/// What a transaction's trace may hold: a journal is written before every step.
const MAX_TRACE: usize = 128 * 1024;

/// Up to so many steps the journal is written before each.
const FINE_STEPS: usize = 40;

/// Whether a step began and how it ended.
enum Did {
    Well,
    Badly(Failure),
    /// The agent should stop: the journal stays, and the next start goes on.
    Stopped,
}

impl Engine {
    /// `wanted` none: a removal.
    pub(super) fn transact(&mut self, assignment: &str, cause: Cause, mut wanted: Option<Running>) {
        let clock = std::sync::Arc::clone(&self.clock);
        let mut trace = Tracer::new(&*clock);
        let running = self.records.get(assignment).and_then(|record| record.running.as_ref());
        let is_same = running.zip(wanted.as_ref()).is_some_and(|(now, wanted)| now.key == wanted.key);
        let restart = running.zip(wanted.as_ref()).is_some_and(|(now, wanted)| now.restart != wanted.restart);
        let planned = self.prepare(assignment, wanted.as_ref().map(|wanted| &wanted.goal), restart, &mut trace);
        let planned = match planned {
            Ok(planned) => planned,
            Err(failure) => return self.refuse(assignment, cause, wanted, failure, trace.take()),
        };
        if let Some(wanted) = &mut wanted {
            wanted.original = planned.original;
        }
        if planned.forward.is_empty() && is_same {
            return self.adopt(assignment, &cause, wanted);
        }
        // What was committed once is what is wanted: a repair never goes back to the damage.
        let back = if matches!(cause, Cause::Drift(_)) { Vec::new() } else { planned.back };
        tracing::info!(assignment, cause = describe::cause(&cause), steps = planned.forward.len(), "a change begins");
        let started = self.now();
        let written = self.records.change(assignment, |record| {
            record.counter += 1;
            record.claimed.extend(wanted.iter().flat_map(|wanted| wanted.goal.claimed.iter().cloned()));
            record.transaction = Some(Transaction {
                number: record.counter,
                cause,
                started,
                ended: None,
                wanted: wanted.map(Box::new),
                phase: Phase::Forward,
                forward: planned.forward,
                back,
                begun: 0,
                outcome: None,
                trace: trace.take(),
            });
        });
        if let Err(why) = written {
            let failure = disk_failure(&why);
            self.note_disk(Err(why));
            return self.end(assignment, Outcome::Refused(failure));
        }
        self.tell_status(assignment);
        self.drive(assignment);
    }

    /// A transaction that a cut or a stop interrupted.
    pub(super) fn resume(&mut self, assignment: &str, repaired: Vec<Traced>) {
        let Some(transaction) = self.records.get(assignment).and_then(|record| record.transaction.as_ref()) else {
            return;
        };
        let what = describe::interruption(transaction);
        tracing::warn!(assignment, what, "a change was interrupted");
        let line = Traced { at: self.now(), what, took_ms: 0, failed: None, output: String::new() };
        let written = self.journal(assignment, |transaction| {
            transaction.trace.push(line);
            transaction.trace.extend(repaired);
        });
        self.note_disk(written);
        self.tell_status(assignment);
        self.start_again(assignment);
        self.drive(assignment);
    }

    /// After a boot nobody has started what isn't enabled: before health is checked again it gets its start again.
    fn start_again(&mut self, assignment: &str) {
        let transaction = self.records.get(assignment).and_then(|record| record.transaction.as_ref());
        let wanted = transaction.filter(|one| one.phase == Phase::Health).and_then(|one| one.wanted.as_ref());
        let units = wanted.map(|wanted| wanted.goal.units.clone()).unwrap_or_default();
        for unit in units.into_iter().filter(|unit| unit.running) {
            // The health checks judge the outcome.
            let (lines, _) = self.execute(&Step::StartUnit { name: unit.name });
            self.records.note(assignment, |record| extend_trace(record, lines));
        }
    }

    /// Nothing was changed; it is told and shown all the same.
    pub(super) fn refuse(
        &mut self,
        assignment: &str,
        cause: Cause,
        wanted: Option<Running>,
        failure: Failure,
        trace: Vec<Traced>,
    ) {
        let now = self.now();
        let record = self.records.entry(assignment);
        record.counter += 1;
        record.transaction = Some(Transaction {
            number: record.counter,
            cause,
            started: now,
            ended: None,
            wanted: wanted.map(Box::new),
            phase: Phase::Forward,
            forward: Vec::new(),
            back: Vec::new(),
            begun: 0,
            outcome: None,
            trace,
        });
        self.end(assignment, Outcome::Refused(failure));
    }

    /// The same packages with other bounds or under another commit: nothing to do but to remember it.
    pub(super) fn confirm(&mut self, assignment: &str, packages: kedge_model::wire::Packages) {
        let running = self.records.get(assignment).and_then(|record| record.running.as_ref());
        if running.is_some_and(|running| running.packages != packages) {
            let written = self.records.change(assignment, |record| {
                if let Some(running) = &mut record.running {
                    running.packages = packages;
                }
            });
            self.note_disk(written);
        }
        self.tell_status(assignment);
    }

    /// Nothing differs: what runs is called by its new name.
    fn adopt(&mut self, assignment: &str, cause: &Cause, wanted: Option<Running>) {
        self.drift.remove(assignment);
        let same = |record: &Record| record.running == wanted && record.upkeep.is_none();
        let failed_before = self.records.get(assignment).is_some_and(|record| record.failed.is_some());
        if !self.records.get(assignment).is_some_and(same) || failed_before {
            let upkeep = is_upkeep(cause);
            let written = self.records.change(assignment, |record| {
                record.claimed.extend(wanted.iter().flat_map(|wanted| wanted.goal.claimed.iter().cloned()));
                record.running = wanted;
                record.upkeep = None;
                if !upkeep {
                    record.failed = None;
                }
            });
            self.note_disk(written);
        }
        self.tell_status(assignment);
    }

    pub(super) fn drive(&mut self, assignment: &str) {
        loop {
            let Some(transaction) = self.records.get(assignment).and_then(|record| record.transaction.as_ref()) else {
                return;
            };
            let steps = transaction.forward.len();
            let is_removal = transaction.wanted.is_none();
            match transaction.phase.clone() {
                Phase::Forward => match self.forward(assignment, steps) {
                    // What the steps did must be on the disk before the journal says that they are done.
                    Did::Well => match self.host.settle() {
                        Err(failure) => self.turn(assignment, failure),
                        Ok(()) if is_removal => return self.end(assignment, Outcome::Committed),
                        Ok(()) => {
                            let written = self.journal(assignment, |transaction| transaction.phase = Phase::Health);
                            if let Err(why) = written {
                                self.turn(assignment, disk_failure(&why));
                            }
                        }
                    },
                    Did::Badly(failure) => self.turn(assignment, failure),
                    Did::Stopped => return,
                },
                Phase::Health => {
                    let mut goal = transaction.wanted.as_ref().map(|wanted| wanted.goal.clone()).unwrap_or_default();
                    // A repair returns to what has soaked, and the next drift shouldn't wait for it.
                    if matches!(transaction.cause, Cause::Drift(_)) {
                        goal.bounds.soak_seconds = 0;
                    }
                    let mut lines = Vec::new();
                    let begins = || Wait::new(self.clock.now(), self.pause.elapsed());
                    let mut wait = self.waits.remove(assignment).unwrap_or_else(begins);
                    let health = self.judge_health(&goal, &mut wait, &mut lines);
                    self.records.note(assignment, |record| extend_trace(record, lines));
                    match health {
                        Health::Good => return self.end(assignment, Outcome::Committed),
                        Health::Bad(failure) => self.turn(assignment, failure),
                        Health::Again(gap) => {
                            wait.due = self.pause.elapsed() + gap;
                            let patient = self.host.is_patient();
                            // The next start checks again.
                            if !patient && !self.pause.wait(gap) {
                                return;
                            }
                            self.waits.insert(assignment.to_owned(), wait);
                            if patient {
                                return;
                            }
                        }
                    }
                }
                Phase::Back(first) => return self.back(assignment, first),
            }
        }
    }

    fn forward(&mut self, assignment: &str, steps: usize) -> Did {
        let mut announced = 0;
        for at in 0..steps {
            match self.step(assignment, at, true, &mut announced) {
                Did::Well => {}
                other => return other,
            }
        }
        Did::Well
    }

    /// From forward to back; or it stays as it is.
    pub(super) fn turn(&mut self, assignment: &str, failure: Failure) {
        let Some(transaction) = self.records.get(assignment).and_then(|record| record.transaction.as_ref()) else {
            return;
        };
        tracing::warn!(assignment, reason = failure.reason, message = failure.message, "a change failed");
        let stays = transaction.wanted.as_ref().is_some_and(|wanted| wanted.goal.bounds.no_rollback);
        if stays || matches!(transaction.cause, Cause::Drift(_)) {
            return self.end(assignment, Outcome::Left(failure));
        }
        let written = self.journal(assignment, |transaction| {
            let begun = transaction.begun.min(transaction.forward.len());
            transaction.back = needed(&transaction.back, &transaction.forward[..begun]);
            transaction.phase = Phase::Back(failure);
            transaction.begun = 0;
        });
        // Without a journal a cut would go forward again: also a whole state. So going back now is right all the same.
        self.note_disk(written);
    }

    /// A step that fails doesn't keep the others from being done; then those that failed are tried once more.
    fn back(&mut self, assignment: &str, first: Failure) {
        let steps = |engine: &Engine| {
            let record = engine.records.get(assignment);
            record.and_then(|record| record.transaction.as_ref()).map_or(0, |transaction| transaction.back.len())
        };
        let mut open: Vec<usize> = (0..steps(self)).collect();
        let mut failures: Vec<Failure> = Vec::new();
        for _ in 0..2 {
            failures.clear();
            let (mut failed, mut announced) = (Vec::new(), 0);
            for at in open {
                match self.step(assignment, at, false, &mut announced) {
                    Did::Well => {}
                    Did::Badly(failure) => {
                        failures.push(failure);
                        failed.push(at);
                    }
                    Did::Stopped => return,
                }
            }
            open = failed;
        }
        failures.extend(self.host.settle().err());
        let outcome = match failures.split_first() {
            None => Outcome::RolledBack(first),
            Some((back, rest)) => {
                let more = rest.iter().map(|failure| format!("; {}", failure.message)).collect::<String>();
                let back = Failure { message: format!("{}{more}", back.message), ..back.clone() };
                Outcome::RollbackFailed { first, back }
            }
        };
        self.end(assignment, outcome);
    }

    /// One step, with the journal written before it, unless it is `announced` already with others.
    fn step(&mut self, assignment: &str, at: usize, forward: bool, announced: &mut usize) -> Did {
        if self.pause.stopping() {
            return Did::Stopped;
        }
        let transaction = self.records.get(assignment).and_then(|record| record.transaction.as_ref());
        let Some(transaction) = transaction else { return Did::Well };
        let steps = if forward { &transaction.forward } else { &transaction.back };
        let Some(step) = steps.get(at).cloned() else { return Did::Well };
        let begun = transaction.begun.max(at + 1);
        if at >= *announced {
            *announced = announcement(steps, at);
            let end = *announced;
            let written = self.journal(assignment, |transaction| transaction.begun = transaction.begun.max(end));
            if let (Err(why), true) = (written, forward) {
                return Did::Badly(disk_failure(&why));
            }
        }
        self.records.note(assignment, |record| {
            if let Some(transaction) = &mut record.transaction {
                transaction.begun = begun;
            }
        });
        let (lines, done) = self.execute(&step);
        self.records.note(assignment, |record| extend_trace(record, lines));
        match done {
            Ok(()) => Did::Well,
            Err(failure) => Did::Badly(failure),
        }
    }

    fn execute(&mut self, step: &Step) -> (Vec<Traced>, Result<(), Failure>) {
        let clock = std::sync::Arc::clone(&self.clock);
        let mut trace = Tracer::new(&*clock);
        let line = trace.begin(describe::step(step));
        let done = self.host.execute(step, &mut trace);
        let mut lines = trace.take();
        // The host's own lines say more; without any, or without the failure among them, ours says what was done.
        match &done {
            Ok(()) if lines.is_empty() => trace.end(line, ""),
            Err(failure) if lines.iter().all(|line| line.failed.is_none()) => trace.fail(line, failure, ""),
            _ => {}
        }
        lines.extend(trace.take());
        (lines, done)
    }

    fn journal(&mut self, assignment: &str, change: impl FnOnce(&mut Transaction)) -> Result<(), RecordsError> {
        self.records.change(assignment, |record| {
            if let Some(transaction) = &mut record.transaction {
                change(transaction);
            }
        })
    }
}

/// How far a journal write before this step speaks for: in a transaction of very many files, for some of them at once. Saying too much
/// only makes the way back longer.
fn announcement(steps: &[Step], at: usize) -> usize {
    // Few steps, each of many objects, and a journal that is written over a network: once speaks for all.
    if matches!(steps[at], Step::PutObjects { .. } | Step::RemoveObjects { .. }) {
        return steps.len();
    }
    let is_file = |step: &Step| matches!(step, Step::PutFile { .. } | Step::RemovePath { .. } | Step::PutLink { .. });
    let most = steps.len().div_ceil(FINE_STEPS).max(1);
    let files = steps[at..].iter().take(most).take_while(|step| is_file(step)).count();
    at + files.max(1)
}

/// Outputs of what went well give way first, the oldest before the others.
fn extend_trace(record: &mut Record, lines: Vec<Traced>) {
    let Some(transaction) = &mut record.transaction else { return };
    let trace = &mut transaction.trace;
    trace.extend(lines);
    let size = |line: &Traced| line.what.len() + line.output.len() + line.failed.as_ref().map_or(0, String::len);
    let mut total: usize = trace.iter().map(size).sum();
    for keep_failed in [true, false] {
        for line in trace.iter_mut() {
            if total > MAX_TRACE && !(keep_failed && line.failed.is_some()) {
                total -= line.output.len();
                line.output = String::new();
            }
        }
    }
}
