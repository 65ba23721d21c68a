//! What a document tells of assignments that its cluster can't have: a host that lies may tell of thousands, and each would be a
//! problem of its own and lines of history. What the hub knows of is taken, and a few more: those that were removed from Git and still
//! run, or that a move left behind. The rest is left out and counted; the document stays, as its owner signed it.

use std::collections::BTreeSet;

use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::tally::Tally;
use kedge_hub_types::status::warnings::{Warned, WarningRow, WarningSeverity, about};
use kedge_model::name::check_assignment_name;
use kedge_status::{Severity, Status, Warning};

use crate::store::status::Named;

/// What it is told by, among the cluster's warnings.
const FOREIGN: &str = "ForeignReports";
/// Beyond the assignments that the hub knows of, if the cluster had no more of these before.
const MORE: usize = 16;

/// Whether the document names anything that the cluster didn't have before: only then is the database asked what it can have.
pub fn brings_names(prepared: &Prepared, before: Option<&Tally>) -> bool {
    names(&prepared.status).any(|name| !before.is_some_and(|tally| tally.0.contains_key(name)))
}

/// Leaves out reports of what can't be an assignment, and most of those of what the hub doesn't know of. `named` is None where the hub
/// hasn't read what there is. Of what the cluster neither has nor had, history tells nothing.
pub fn leave_out(prepared: &mut Prepared, before: Option<&Tally>, named: Option<&Named>) {
    let status = &prepared.status;
    let had = |name: &str| before.is_some_and(|tally| tally.0.contains_key(name));
    let foreign = |name: &str| named.is_some_and(|named| !named.contains(name));
    let proper = |name: &str| check_assignment_name(name).is_ok();
    let room = before.map_or(0, |tally| tally.0.keys().filter(|name| foreign(name)).count()).max(MORE);
    let mut strangers: Vec<&str> = reported(status).filter(|name| proper(name) && foreign(name)).collect();
    strangers.sort_by_key(|name| !had(name));
    let improper = reported(status).filter(|name| !proper(name));
    let out: BTreeSet<String> = improper.chain(strangers.into_iter().skip(room)).map(str::to_owned).collect();
    let untold = names(status).filter(|name| !proper(name) || (foreign(name) && !had(name)));
    prepared.untold = untold.map(str::to_owned).collect();
    if out.is_empty() {
        return;
    }
    let since = status.written_at_true().0.clamp(0, prepared.received_at.0);
    prepared.tally.0.retain(|name, _| !out.contains(name));
    prepared.exceptions.retain(|name, _| !out.contains(name));
    let row =
        WarningRow { kind: about(FOREIGN).code, severity: WarningSeverity::Error, message: message(out.len()), since };
    prepared.warnings.insert(FOREIGN.to_owned(), row);
    prepared.warned = Warned::of(&prepared.warnings);
}

/// The document as far as it was taken.
pub fn shown(mut status: Status, taken: &Tally) -> Status {
    let all = reported(&status).count();
    status.reports.retain(|name, _| taken.0.contains_key(name));
    status.unreadable.retain(|name| taken.0.contains_key(name));
    let out = all - reported(&status).count();
    if out > 0 {
        let warning =
            Warning { severity: Severity::Error, message: message(out), since: status.written_at_true(), clock: 0 };
        status.warnings.insert(FOREIGN.to_owned(), warning);
    }
    status
}

fn message(out: usize) -> String {
    let what = if out == 1 { "an assignment".to_owned() } else { format!("{out} assignments") };
    format!("it reports {what} that this cluster doesn't have; that isn't shown")
}

fn reported(status: &Status) -> impl Iterator<Item = &str> {
    status.reports.keys().chain(&status.unreadable).map(String::as_str)
}

fn names(status: &Status) -> impl Iterator<Item = &str> {
    reported(status).chain(status.events.events.iter().map(|event| event.assignment.as_str()))
}
