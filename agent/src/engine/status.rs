//! What is true of an assignment, from its record and from what is desired; told after everything that may have changed it.

use kedge_durable::LedgerError;
use kedge_model::wire::{Generation, PackagesKey};
use kedge_status::{Condition, Severity};

use super::{Desired, Engine};
use crate::causes::chain;
use crate::record::{Cause, Failure, Record};
use crate::records::RecordsError;
use crate::told::Told;

impl Engine {
    pub fn tell_status(&self, assignment: &str) {
        let drift = self.drift.get(assignment).cloned();
        let record = self.records.get(assignment);
        let desired = self.desired(assignment);
        let running = record.and_then(|record| record.running.as_ref());
        self.send(Told::AssignmentStatus {
            assignment: assignment.to_owned(),
            desired: desired.map(|desired| desired.key),
            generation: desired.map_or(Generation(0), |desired| desired.generation),
            running: running.map(|running| running.key),
            version: running.and_then(|running| running.packages.version.clone()),
            condition: record.map_or(Condition::Converging, |record| condition(record, desired.map(|one| one.key))),
            drift,
            at: self.now(),
        });
    }

    pub(super) fn tell_all(&self) {
        let desired = self.desired.iter().flatten().map(|(name, _)| name);
        let names: std::collections::BTreeSet<&String> = self.records.all().keys().chain(desired).collect();
        names.into_iter().for_each(|name| self.tell_status(name));
    }

    pub(super) fn send(&self, told: Told) {
        // Nobody listens any more only when the agent ends.
        _ = self.tell.send(told);
    }

    /// Some: raised; none: over.
    pub(super) fn warn(&self, code: &str, severity: Severity, message: Option<String>) {
        let code = code.to_owned();
        self.send(match message {
            Some(message) => Told::Warning { code, severity, message },
            None => Told::WarningOver { code },
        });
    }

    /// A record that can't be written is remembered and written later.
    pub(super) fn note_disk(&self, written: Result<(), RecordsError>) {
        if let Err(why) = written {
            let message = chain(&why);
            tracing::warn!(message, "a record can't be written; it will be tried again");
            self.warn("RecordUnsaved", Severity::Error, Some(message));
        }
    }

    /// Before the first desired state of this start, what was wanted last.
    fn desired(&self, assignment: &str) -> Option<Desired> {
        if let Some(desired) = &self.desired {
            return desired.get(assignment).copied();
        }
        let record = self.records.get(assignment)?;
        let transactions = || record.transaction.iter().chain(&record.last).filter_map(|one| one.wanted.as_deref());
        let known = |key: PackagesKey| transactions().chain(&record.running).find(|wanted| wanted.key == key);
        let pending = record.transaction.as_ref().and_then(|one| one.wanted.as_deref()).map(|wanted| wanted.key);
        let failed = record.failed.as_ref().map(|failed| failed.key);
        let key = pending.or(failed).or(record.running.as_ref().map(|running| running.key))?;
        Some(Desired { key, generation: known(key).map_or(Generation(0), |wanted| wanted.generation) })
    }
}

/// The journal's failure as a record of what failed.
pub(super) fn disk_failure(why: &RecordsError) -> Failure {
    if let RecordsError::Ledger { source: LedgerError::TooLarge { .. }, .. } = why {
        return Failure::new("BadPackage", format!("this is too much for one journal: {}", chain(why)));
    }
    Failure::passing("DiskFull", format!("the journal can't be written: {}", chain(why)))
}

fn condition(record: &Record, desired: Option<PackagesKey>) -> Condition {
    let failed =
        |failure: &Failure| Condition::Failed { reason: failure.reason.clone(), message: failure.message.clone() };
    let running = record.running.as_ref().map(|running| running.key);
    let attempt = record.failed.as_ref().filter(|attempt| Some(attempt.key) == desired);
    match (&record.upkeep, attempt) {
        _ if record.transaction.is_some() => Condition::Converging,
        (_, Some(attempt)) => failed(&attempt.failure),
        (Some(upkeep), _) => failed(&upkeep.failure),
        (None, None) if running.is_some() && (desired.is_none() || running == desired) => Condition::Converged,
        (None, None) => Condition::Converging,
    }
}

/// Whether a transaction keeps what runs as it is wanted, rather than changing what is wanted.
pub(super) fn is_upkeep(cause: &Cause) -> bool {
    matches!(cause, Cause::Drift(_) | Cause::Removal)
}
