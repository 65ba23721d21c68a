//! Pins: one workload in one version or commit on some places.

use super::calendar::instant;
use super::optional;
use super::promotion::words;
use crate::decode::fields::{Fields, Value};
use crate::decode::notes::Notes;
use crate::kinds::{Pin, PinnedTo};

/// Digits of a commit by SHA-1 and by SHA-256.
const COMMIT_DIGITS: [usize; 2] = [40, 64];

pub(super) fn pin(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Pin> {
    let workload =
        fields.need("workload", notes, "name the Workload: `workload: hello`").and_then(|value| value.word(notes));
    let target = optional(fields.take("target"), notes);
    let (version, commit) = (fields.take("version"), fields.take("commit"));
    let to = match (&version, &commit) {
        (Some(version), None) => version.word(notes).map(PinnedTo::Version),
        (None, Some(commit)) => whole_commit(commit, notes).map(PinnedTo::Commit),
        (Some(_), Some(commit)) => {
            commit.refuse(notes, "InvalidValue", "can't stand beside `version`", Some("remove one of the two"));
            None
        }
        (None, None) => {
            let message = format!("{} has neither `spec.version` nor `spec.commit`", notes.subject);
            let hint = "add `version: \"1.4.2\"`, or `commit:` with a commit of the application's repository";
            notes.error(fields.spot(), "MissingField", message).hint = Some(hint.to_owned());
            None
        }
    };
    let rings = fields.take("rings").map_or(Some(Vec::new()), |value| words(&value, notes));
    let cluster_types = fields.take("clusterTypes").map_or(Some(Vec::new()), |value| words(&value, notes));
    let until = match fields.take("until") {
        Some(value) => instant(&value, notes).map(Some),
        None => Some(None),
    };
    let reason = optional(fields.take("reason"), notes);
    Some(Pin {
        workload: workload?,
        target: target?,
        to: to?,
        rings: rings?,
        cluster_types: cluster_types?,
        until: until?,
        reason: reason?.unwrap_or_default(),
    })
}

/// All digits: the beginning of one may be another's tomorrow.
fn whole_commit(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<String> {
    let commit = value.word(notes)?;
    let is_whole = COMMIT_DIGITS.contains(&commit.len());
    if is_whole && commit.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Some(commit);
    }
    let why = "isn't a whole commit of 40 hexadecimal digits";
    value.refuse(notes, "InvalidValue", why, Some("write what `git rev-parse` prints"));
    None
}
