//! How a transaction ends: the journal is closed, and the record says what runs, what failed and how it went.

use std::time::Duration;

use kedge_model::wire::Timestamp;

use super::Engine;
use super::status::is_upkeep;
use crate::goal::ObjectGoal;
use crate::record::{Cause, FailedAttempt, Failure, Original, Outcome, Record, Transaction};
use crate::tally;

/// After a record that the disk refused.
const UNSAVED_REST: Duration = Duration::from_secs(10);

impl Engine {
    /// The journal is closed and what it came to is remembered, in one write.
    pub(super) fn end(&mut self, assignment: &str, outcome: Outcome) {
        let Some(mut transaction) = self.records.note(assignment, |record| record.transaction.take()).flatten() else {
            return;
        };
        let now = self.now();
        log(assignment, &outcome);
        tally::ended(&transaction.cause, &outcome);
        transaction.ended = Some(now);
        transaction.outcome = Some(outcome.clone());
        if outcome == Outcome::Committed && transaction.cause == Cause::Removal {
            return self.drop_record(assignment);
        }
        let changed = !matches!(outcome, Outcome::Refused(_));
        let written = self.records.change(assignment, |record| conclude(record, transaction, &outcome, now));
        if written.is_err() {
            // Who reads the records sees none of this and would ask for the same again at once.
            self.pause.wait(UNSAVED_REST);
        }
        self.note_disk(written);
        if outcome == Outcome::Committed {
            self.drift.remove(assignment);
        }
        if changed {
            self.release();
        }
        self.tell_status(assignment);
    }
}

fn conclude(record: &mut Record, mut transaction: Transaction, outcome: &Outcome, now: Timestamp) {
    let upkeep = is_upkeep(&transaction.cause);
    let wanted = transaction.wanted.as_deref();
    match outcome {
        Outcome::Committed => {
            record.running = wanted.cloned();
            record.upkeep = None;
            if !upkeep {
                record.failed = None;
            }
        }
        Outcome::RolledBack(failure) | Outcome::Refused(failure) => {
            note_failure(record, &transaction, failure.clone(), now);
        }
        Outcome::RollbackFailed { first, back } => {
            let message = format!(
                "{} ({}); the rollback failed too: {} ({})",
                first.message, first.reason, back.message, back.reason
            );
            let failure = Failure { passes: first.passes && back.passes, ..Failure::new("RollbackFailed", message) };
            note_failure(record, &transaction, failure, now);
        }
        Outcome::Left(failure) => {
            note_failure(record, &transaction, failure.clone(), now);
            if !upkeep {
                // What was there before may still be there: it stays in the inventory.
                let mut left = wanted.cloned();
                if let (Some(left), Some(before)) = (&mut left, &record.running) {
                    join(&mut left.original, &before.original);
                    let stays = |one: &&ObjectGoal| !left.goal.objects.iter().any(|new| new.id.is_same(&one.id));
                    let objects = before.goal.objects.iter().chain(&before.original.objects);
                    left.original.objects = objects.filter(stays).cloned().collect();
                }
                record.running = left;
            }
        }
    }
    if matches!(outcome, Outcome::Committed) {
        // What runs has it all: once is enough.
        if let Some(wanted) = &mut transaction.wanted {
            wanted.goal = Default::default();
            wanted.original = Default::default();
        }
        (transaction.forward, transaction.back) = (Vec::new(), Vec::new());
    }
    record.last = Some(transaction);
}

fn note_failure(record: &mut Record, transaction: &Transaction, failure: Failure, at: Timestamp) {
    let wanted = transaction.wanted.as_deref().or(record.running.as_ref());
    let Some((key, restart)) = wanted.map(|wanted| (wanted.key, wanted.restart)) else { return };
    let slot = if is_upkeep(&transaction.cause) { &mut record.upkeep } else { &mut record.failed };
    let before = slot.as_ref().filter(|before| (before.key, before.restart) == (key, restart));
    let tries = before.map_or(0, |before| before.tries).saturating_add(1);
    *slot = Some(FailedAttempt { key, restart, failure, at, tries });
}

fn join(original: &mut Original, before: &Original) {
    for (path, state) in &before.paths {
        original.paths.entry(path.clone()).or_insert_with(|| state.clone());
    }
    for (name, state) in &before.units {
        original.units.entry(name.clone()).or_insert_with(|| state.clone());
    }
    for (name, deb) in &before.debs {
        original.debs.entry(name.clone()).or_insert_with(|| deb.clone());
    }
    let new: Vec<String> = before.users.iter().filter(|name| !original.users.contains(name)).cloned().collect();
    original.users.extend(new);
}

fn log(assignment: &str, outcome: &Outcome) {
    match outcome {
        Outcome::Committed => tracing::info!(assignment, "a change is done"),
        Outcome::RolledBack(failure) => {
            tracing::warn!(assignment, reason = failure.reason, message = failure.message, "rolled back");
        }
        Outcome::RollbackFailed { first, back } => {
            tracing::error!(assignment, first = first.message, back = back.message, "the way back failed");
        }
        Outcome::Left(failure) => {
            tracing::error!(
                assignment,
                reason = failure.reason,
                message = failure.message,
                "failed, and stays as it is"
            );
        }
        Outcome::Refused(failure) => {
            tracing::warn!(
                assignment,
                reason = failure.reason,
                message = failure.message,
                "refused; nothing was changed"
            );
        }
    }
}
