//! What is true here, told so that it is not forgotten: conditions, facts, warnings and holds become the status document. The link
//! loop owns the one `Reporter` and sends what it seals; commands read with `read`. Owns the ledgers `status` and `epoch`.

mod clocks;
pub mod facts;
mod kept;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kedge_durable::{Disk, Ledger, LedgerError};
use kedge_model::wire::{ClusterId, Envelope, Heads, PackagesKey, SigningKey, Timestamp, VerifyingKey};
use kedge_status::{Change, Condition, EventLog, Hold, Nonce, Report, Severity, StatusDocument, Warning, WriteError};

use crate::clock::Clock;
use crate::holds::{Held, Writer};
use crate::paths::Paths;
use crate::told::Told;
use clocks::{Clocks, Reading};
use kept::{Counter, Found, Kept};

/// Writes the status document. What was told is durable after `flush`; `heads` and `seal` flush first.
#[derive(Debug)]
pub struct Reporter {
    clock: Arc<dyn Clock>,
    status: Ledger<Kept>,
    epochs: Ledger<Counter>,
    /// The highest epoch that the ledger says was begun.
    counted: u64,
    document: StatusDocument,
    cluster: ClusterId,
    clocks: Clocks,
    /// Something was told that isn't on disk.
    dirty: bool,
    /// Something was sent that isn't on disk: a cut now would leave the hub ahead of us.
    ahead: bool,
    /// When the last full look ended, or when this began.
    looked: Duration,
}

/// The document as commands show it, without a hub and without the daemon.
#[derive(Debug)]
pub struct Shown {
    pub reports: BTreeMap<String, Report>,
    pub warnings: BTreeMap<String, Warning>,
    pub holds: BTreeMap<String, Hold>,
    pub facts: BTreeMap<String, String>,
    pub events: EventLog,
    clocks: Clocks,
}

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The disk is full or broken: what was told stays in memory and is tried again.
    #[error("the status can't be kept")]
    Disk(#[from] LedgerError),
    #[error("the status document can't be written")]
    Document(#[from] WriteError),
    #[error("the status document can't be read")]
    Unreadable,
}

/// The document was lost, and what it was replaced by.
const STATUS_LOST: &str = "StatusLost";
/// Guards against a reader's bound of 1,000 changes while a full disk allows no new epoch.
const MOST_CHANGES: usize = 900;

impl Reporter {
    /// Reads what was told before. Never fails: what is lost is told as a warning, what can't be written yet is tried again.
    /// Also answers which copies of ledgers were healed or lost.
    pub fn open(
        disk: &Arc<dyn Disk>,
        paths: &Paths,
        key: VerifyingKey,
        clock: Arc<dyn Clock>,
    ) -> (Reporter, Vec<String>) {
        let cluster = ClusterId::of_public_key(key.as_bytes());
        let counter: Found<Counter> = kept::open(disk, kept::epoch_path(paths));
        let found: Found<Kept> = kept::open(disk, kept::status_path(paths));
        let counted = counter.value.map_or(0, |counter| counter.epoch);
        let reading = Reading::of(&*clock);

        let known = counted.max(found.value.as_ref().map_or(0, |kept| kept.epoch));
        let mut next = known + 1;
        if counter.lost.is_some() {
            // Epochs are far fewer than seconds: this is above any that was, if the clock is right.
            next = next.max(u64::try_from(reading.now.0 / 1000).unwrap_or(0));
        }
        let existed = found.value.is_some();
        let ours = found.value.filter(|kept| kept.cluster == cluster);
        let opened = ours.as_ref().and_then(Kept::open);
        let lost = match (&opened, &found.lost) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(why.clone()),
            (None, None) if ours.is_some() => Some("its bytes aren't a document".to_owned()),
            (None, None) if counted > 0 && !existed => Some("its files are gone".to_owned()),
            (None, None) => None,
        };
        let fresh = opened.is_none();
        let document = opened.unwrap_or_else(|| StatusDocument::new(key, next, nonce()));
        let clocks = ours.filter(|_| !fresh).map(|kept| kept.clocks).unwrap_or_default();
        let looked = since_start(&reading);
        let (status, epochs) = (found.ledger, counter.ledger);
        let mut reporter = Reporter {
            dirty: fresh || counted < document.epoch(),
            ahead: false,
            clock,
            status,
            epochs,
            counted,
            document,
            cluster,
            clocks,
            looked,
        };
        reporter.clocks.begin(&reading);
        match &lost {
            Some(why) => {
                let message = format!("the status document was lost and began anew as epoch {next}: {why}");
                reporter.warn(STATUS_LOST, Severity::Warning, &message);
            }
            None => reporter.clear_warning(STATUS_LOST),
        }
        let told = [found.healed, counter.healed, lost, counter.lost].into_iter().flatten().collect();
        (reporter, told)
    }

    /// Another process wrote until now, on another node: from here on it is a new epoch, as after compaction.
    pub fn take_over(&mut self) {
        (self.dirty, self.ahead) = (true, true);
    }

    /// Takes what the engine says. Durable after `flush`.
    pub fn tell(&mut self, told: &Told) {
        match told {
            Told::AssignmentStatus { assignment, desired, generation, running, version, condition, drift, at } => {
                let at = self.here(*at);
                let report = Report {
                    desired: *desired,
                    generation: *generation,
                    running: *running,
                    version: version.clone(),
                    condition: condition.clone(),
                    since: at,
                    observed_at: at,
                    drift: drift.clone(),
                    clock: self.clocks.current(),
                };
                self.report(assignment, report);
            }
            Told::Gone { assignment, at } => {
                let (at, clock) = (self.here(*at), self.clocks.current());
                let changed = self.document.remove_report(assignment, at, clock);
                self.changed(changed);
            }
            Told::Warning { code, severity, message } => self.warn(code, *severity, message),
            Told::WarningOver { code } => self.clear_warning(code),
            Told::Looked { .. } => self.looked = since_start(&self.reading()),
        }
    }

    /// Something that a person should know of the host as a whole. It keeps its age while it lasts.
    pub fn warn(&mut self, code: &str, severity: Severity, message: &str) {
        let now = self.now();
        let before = self.document.warnings().remove(code).filter(|before| before.severity == severity);
        if before.as_ref().is_some_and(|before| before.message == message) {
            return;
        }
        let since = before.map_or(now, |before| self.clocks.here(before.clock, before.since).min(now));
        let warning = Warning { severity, message: message.to_owned(), since, clock: self.clocks.current() };
        let changed = self.document.set_warning(code, &warning);
        self.changed(changed);
    }

    pub fn clear_warning(&mut self, code: &str) {
        let now = self.now();
        let changed = self.document.clear_warning(code, now);
        self.changed(changed);
    }

    pub fn fact(&mut self, name: &str, value: &str) {
        let now = self.now();
        let changed = self.document.set_fact(name, value, now);
        self.changed(changed);
    }

    /// All holds that are obeyed here: shown on the hub as they are, and no others.
    pub fn holds(&mut self, held: &[Held]) {
        let now = self.now();
        let before = self.document.holds();
        let mut gone: Vec<&String> = before.keys().collect();
        let names: Vec<String> = held.iter().map(Held::name).collect();
        gone.retain(|name| !names.contains(name));
        for name in gone {
            let changed = self.document.hide_hold(name, now);
            self.changed(changed);
        }
        for (name, held) in names.iter().zip(held) {
            // The hub's times are the hub's, and so are a peer's, which knows how its clock is off; a technician's keep the clock
            // under which they were first shown.
            let clock = match (held.writer, before.get(name)) {
                (Writer::Hub | Writer::Peer(_), _) => 0,
                (Writer::Technician, Some(before)) if before.since == held.since => before.clock,
                (Writer::Technician, _) => self.clocks.current(),
            };
            let Held { assignment, by, reason, since, .. } = held.clone();
            let changed = self.document.show_hold(name, &Hold { assignment, by, reason, since, clock });
            self.changed(changed);
        }
    }

    /// The hub told its time: wrong clocks are corrected from now on, also for what they told before.
    pub fn contact(&mut self, hub_time: Timestamp) {
        let now = self.now();
        self.clocks.contact(hub_time, now);
        let used = self.document.clocks_in_use();
        for (clock, offset) in self.clocks.news(&used, |clock| self.document.clock(clock)) {
            let changed = self.document.set_clock(clock, offset, now);
            self.changed(changed);
        }
    }

    /// Of which something was told.
    pub fn assignments(&self) -> Vec<String> {
        self.document.reports().into_keys().collect()
    }

    /// What was last told to run, and its version.
    pub fn running(&self, assignment: &str) -> Option<(PackagesKey, Option<String>)> {
        let report = self.document.report(assignment)?;
        Some((report.running?, report.version))
    }

    /// Since when what was last told of it is true.
    pub fn since(&self, assignment: &str) -> Option<Timestamp> {
        let report = self.document.report(assignment)?;
        Some(self.clocks.here(report.clock, report.since))
    }

    /// Seconds since the last full look at what runs.
    pub fn look_age(&self) -> u64 {
        since_start(&self.reading()).saturating_sub(self.looked).as_secs()
    }

    /// How far the document has come, as a poll says it.
    pub fn heads(&mut self) -> Heads {
        self.settle();
        if self.counted < self.document.epoch() { Heads::default() } else { self.document.heads() }
    }

    /// The signed document, for the hub. Also when the disk is full: that is when somebody should hear of it.
    pub fn seal(&mut self, key: &SigningKey) -> Result<Envelope, ReportError> {
        if let Err(error) = self.flush() {
            // An epoch that nobody counted could be begun a second time, by what would look like a clone.
            if self.counted < self.document.epoch() {
                return Err(error);
            }
            self.ahead = true;
        }
        let now = self.now();
        Ok(self.document.seal(key, now, self.clocks.offset())?)
    }

    /// The hub finds the document too large: a new epoch has no history. False: there is nothing left to drop.
    pub fn shrink(&mut self) -> Result<bool, ReportError> {
        if self.document.changes() <= 1 {
            return Ok(false);
        }
        self.begin_epoch()?;
        self.flush().map(|()| true)
    }

    /// Everything that was told is on disk when it returns.
    pub fn flush(&mut self) -> Result<(), ReportError> {
        if !self.dirty {
            return Ok(());
        }
        if self.ahead || self.document.needs_new_epoch() {
            self.begin_epoch()?;
        }
        self.count(self.document.epoch())?;
        let now = self.now();
        let bytes = self.document.to_bytes(now)?;
        self.status.write(&Kept::new(self.cluster, &self.document, &bytes, self.clocks.clone()))?;
        (self.dirty, self.ahead) = (false, false);
        Ok(())
    }

    fn report(&mut self, assignment: &str, mut report: Report) {
        if let Some(before) = self.document.report(assignment) {
            if same_condition(&before.condition, &report.condition) {
                report.since = self.clocks.here(before.clock, before.since).min(report.observed_at);
            }
            if before.desired == report.desired {
                report.generation = before.generation;
            }
            // Only the clock differs: that is no news.
            let (since, observed_at, clock) = (before.since, before.observed_at, before.clock);
            let old = Report { since, observed_at, clock, ..report.clone() };
            if same_condition(&before.condition, &report.condition) && old == before {
                return;
            }
        }
        let changed = self.document.set_report(assignment, &report);
        self.changed(changed);
    }

    fn changed(&mut self, changed: Result<Change, WriteError>) {
        match changed {
            Ok(Change::Same) => return,
            Ok(Change::Written) => self.dirty = true,
            Err(error) => tracing::error!(%error, "something can't be told"),
        }
        if self.document.changes() >= MOST_CHANGES {
            self.settle();
        }
    }

    /// A failure is told once a round, by who calls `flush`; here it only waits.
    fn settle(&mut self) {
        if let Err(error) = self.flush() {
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(%error, cause, "the status isn't on disk yet; trying again");
        }
    }

    /// The number is on disk before anything is called by it.
    fn begin_epoch(&mut self) -> Result<(), ReportError> {
        let epoch = self.counted.max(self.document.epoch()) + 1;
        self.count(epoch)?;
        let now = self.now();
        self.clocks.tidy(&self.document.clocks_in_use());
        self.document = self.document.next_epoch(epoch, nonce(), now)?;
        self.dirty = true;
        tracing::info!(epoch, "the status document began a new epoch");
        Ok(())
    }

    fn count(&mut self, epoch: u64) -> Result<(), ReportError> {
        if epoch > self.counted {
            self.epochs.write(&Counter { epoch })?;
            self.counted = epoch;
        }
        Ok(())
    }

    /// Within a process the host doesn't start again.
    fn reading(&self) -> Reading {
        Reading { boot: None, now: self.clock.now(), uptime: self.clock.uptime() }
    }

    fn now(&mut self) -> Timestamp {
        let reading = self.reading();
        self.notice(&reading);
        reading.now
    }

    /// A time that somebody read a moment ago, maybe before the clock was set.
    fn here(&mut self, at: Timestamp) -> Timestamp {
        let reading = self.reading();
        let Some(shift) = self.notice(&reading) else { return at };
        let moved = Timestamp(at.0.saturating_add(shift));
        let distance = |time: Timestamp| time.0.abs_diff(reading.now.0);
        if distance(moved) < distance(at) { moved } else { at }
    }

    fn notice(&mut self, reading: &Reading) -> Option<i64> {
        let shift = self.clocks.notice(reading)?;
        tracing::info!(seconds = shift / 1000, "somebody set the clock");
        // The new clock has to be remembered, or a start later would take it for the old one.
        self.dirty = true;
        Some(shift)
    }
}

/// What the reporter wrote last, for commands: nothing is changed. None: nothing was ever told.
pub fn read(disk: &dyn Disk, paths: &Paths) -> Result<Option<Shown>, ReportError> {
    let Some(kept) = Ledger::<Kept>::read(disk, &kept::status_path(paths))? else { return Ok(None) };
    let document = kept.open().ok_or(ReportError::Unreadable)?;
    Ok(Some(Shown {
        reports: document.reports(),
        warnings: document.warnings(),
        holds: document.holds(),
        facts: document.facts(),
        events: document.events().clone(),
        clocks: kept.clocks,
    }))
}

/// What the reporter wrote last, signed as it would send it, and how far it is; for who carries it. Nothing is changed. None: nothing
/// was told under this key.
pub fn sealed(
    disk: &dyn Disk,
    paths: &Paths,
    key: &SigningKey,
    now: Timestamp,
) -> Result<Option<(Envelope, Heads)>, ReportError> {
    let Some(kept) = Ledger::<Kept>::read(disk, &kept::status_path(paths))? else { return Ok(None) };
    if kept.cluster != ClusterId::of_public_key(key.public().as_bytes()) {
        return Ok(None);
    }
    let mut document = kept.open().ok_or(ReportError::Unreadable)?;
    let heads = document.heads();
    Ok(Some((document.seal(key, now, kept.clocks.offset())?, heads)))
}

impl Shown {
    /// A time of one of the document's clocks, as the host's clock said it when the document was written.
    pub fn here(&self, clock: u64, at: Timestamp) -> Timestamp {
        self.clocks.here(clock, at)
    }

    /// Milliseconds to add to the host's clock for the hub's time, where a contact told them.
    pub fn clock_offset(&self) -> Option<i64> {
        self.clocks.offset()
    }
}

/// The same word and reason: its age goes on. A message may say more.
fn same_condition(one: &Condition, other: &Condition) -> bool {
    match (one, other) {
        (Condition::Failed { reason, .. }, Condition::Failed { reason: other, .. }) => reason == other,
        _ => one.word() == other.word(),
    }
}

fn since_start(reading: &Reading) -> Duration {
    let wall = || Duration::from_millis(u64::try_from(reading.now.0).unwrap_or(0));
    reading.uptime.unwrap_or_else(wall)
}

fn nonce() -> Nonce {
    Nonce(rand::random())
}
