//! Ledgers as a host would have left them, for the tests of the commands.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::sync::Arc;

use kedge_durable::{Ledger, RealDisk};
use kedge_model::kinds::{Conflicts, Destination, Drift, Rollback, Scope};
use kedge_model::wire::{ApplyParameters, Digest, Generation, PackageRef, Packages, Stream, Timestamp};

use crate::clock::{Clock as _, SystemClock};
use crate::goal::{Goal, UnitGoal};
use crate::identity::{self, Joined, Stored};
use crate::link::fake::Authority;
use crate::paths::Paths;
use crate::record::{Cause, FailedAttempt, Failure, Original, Outcome, Phase, Record, Running, Traced, Transaction};
use crate::step::Step;

/// 2026-11-16 09:00:00Z.
pub const NINE: Timestamp = Timestamp(1_794_819_600_000);

pub fn at(seconds: i64) -> Timestamp {
    Timestamp(NINE.0 + seconds * 1000)
}

pub fn now() -> Timestamp {
    SystemClock.now()
}

/// As after a join to this hub, which nobody serves unless the test does.
pub fn join(paths: &Paths, authority: &Authority, hub: &str) {
    join_on(paths, authority, hub, None);
}

/// The same, on a machine with this digest.
pub fn join_on(paths: &Paths, authority: &Authority, hub: &str, machine: Option<Digest>) {
    fs::create_dir_all(paths.state()).unwrap();
    let identity = authority.identity(hub, &Stream::new("dev", "drone", "all"));
    let joined = Joined { machine, ..identity.joined().clone() };
    let mut ledger = Ledger::<Stored>::open(Arc::new(RealDisk), &identity::path(paths)).unwrap().ledger;
    ledger.write(&Stored { joined: Some(joined), pending: None, ..Stored::default() }).unwrap();
}

pub fn write(paths: &Paths, record: &Record) {
    fs::create_dir_all(paths.records()).unwrap();
    let path = paths.records().join(&record.assignment);
    Ledger::open(Arc::new(RealDisk), &path).unwrap().ledger.write(record).unwrap();
}

pub fn packages(version: &str) -> Packages {
    let package = |name: &str| PackageRef {
        digest: Digest::of(name.as_bytes()),
        size: 1000,
        repo: "https://git.example.com/hello".to_owned(),
        commit: "a993c3a71e".to_owned(),
        artifacts: Vec::new(),
    };
    Packages {
        parameters: ApplyParameters {
            to: Destination::Host,
            namespace: None,
            scope: Scope::Namespace,
            conflicts: Conflicts::Fail,
            service_account: None,
            timeout_seconds: 300,
            soak_seconds: 10,
            rollback: Rollback::Auto,
            drift: Drift::Repair,
        },
        platform: package("platform"),
        workload: package(version),
        version: Some(version.to_owned()),
    }
}

pub fn running(version: &str, since: Timestamp) -> Running {
    let packages = packages(version);
    let unit = UnitGoal { name: "camera.service".to_owned(), enabled: true, running: true, restart_on: Vec::new() };
    Running {
        key: packages.key(),
        packages,
        generation: Generation(12),
        restart: 0,
        since,
        goal: Goal { units: vec![unit], ..Goal::default() },
        original: Original::default(),
    }
}

/// 1.0 ran; 1.1 failed its health check and was rolled back.
pub fn rolled_back(assignment: &str) -> Record {
    let failure = Failure::new("HealthCheck", "camera.service isn't active: failed");
    let wanted = running("1.1", at(0));
    let line = |seconds, what: &str, took_ms, failed: Option<&str>, output: &str| Traced {
        at: at(seconds),
        what: what.to_owned(),
        took_ms,
        failed: failed.map(str::to_owned),
        output: output.to_owned(),
    };
    let last = Transaction {
        number: 2,
        cause: Cause::Change,
        started: at(0),
        ended: Some(at(14)),
        wanted: Some(Box::new(wanted.clone())),
        phase: Phase::Back(failure.clone()),
        forward: vec![Step::ReloadUnits, Step::RestartUnit { name: "camera.service".to_owned() }],
        back: vec![Step::ReloadUnits],
        begun: 1,
        outcome: Some(Outcome::RolledBack(failure.clone())),
        trace: vec![
            line(
                0,
                "install camera 1.1",
                4250,
                None,
                "Unpacking camera (1.1) over (1.0) ...\nSetting up camera (1.1) ...",
            ),
            line(5, "restart camera.service", 90, None, ""),
            line(5, "check unit camera.service", 5000, Some("HealthCheck: camera.service isn't active: failed"), ""),
            line(10, "install camera 1.0", 3900, None, "Unpacking camera (1.0) over (1.1) ..."),
        ],
    };
    Record {
        assignment: assignment.to_owned(),
        running: Some(running("1.0", at(-86_400))),
        failed: Some(FailedAttempt { key: wanted.key, restart: 0, failure, at: at(14), tries: 1 }),
        last: Some(last),
        claimed: std::collections::BTreeSet::new(),
        counter: 2,
        transaction: None,
        upkeep: None,
    }
}

/// The power went while 1.1 was being installed.
pub fn interrupted(assignment: &str) -> Record {
    let mut record = rolled_back(assignment);
    let mut transaction = record.last.take().unwrap();
    transaction.trace.truncate(1);
    let (phase, ended, outcome) = (Phase::Forward, None, None);
    record.transaction = Some(Transaction { phase, ended, outcome, begun: 1, ..transaction });
    Record { failed: None, ..record }
}

pub fn fine(assignment: &str) -> Record {
    Record {
        assignment: assignment.to_owned(),
        running: Some(running("2.0", at(-3600))),
        counter: 1,
        ..Record::default()
    }
}
