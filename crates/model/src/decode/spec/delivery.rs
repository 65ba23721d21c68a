//! Deliveries, and the bounds that HostWorkloads share with them.

use std::time::Duration;

use super::{optional, or_default};
use crate::decode::fields::{Fields, Value};
use crate::decode::notes::Notes;
use crate::kinds::{Conflicts, Delivery, DeliverySource, Destination, Drift, Rollback, Scope, SourceRef};
use crate::quantity::parse_duration;

/// How a change is judged, as far as it is written.
#[derive(Debug)]
pub(super) struct Bounds {
    pub timeout: Option<Duration>,
    pub soak: Option<Duration>,
    pub rollback: Option<Rollback>,
    pub drift: Option<Drift>,
}

pub(super) fn delivery(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Delivery> {
    let source = fields
        .need("source", notes, "add `source:` with `repo`, `ref` and `path`")
        .and_then(|value| source(&value, notes));
    let to = fields
        .need("to", notes, "write `to: kubernetes` or `to: host`")
        .and_then(|value| value.choice(notes, &[("kubernetes", Destination::Kubernetes), ("host", Destination::Host)]));
    let namespace = optional(fields.take("namespace"), notes);
    let scope = word(fields.take("scope"), &[("namespace", Scope::Namespace), ("cluster", Scope::Cluster)], notes);
    let conflicts = word(fields.take("conflicts"), &[("fail", Conflicts::Fail), ("take", Conflicts::Take)], notes);
    let service_account = optional(fields.take("serviceAccount"), notes);
    let bounds = bounds(fields, notes)?;
    Some(Delivery {
        source: source?,
        to: to?,
        namespace: namespace?,
        scope: scope?.unwrap_or_default(),
        conflicts: conflicts?.unwrap_or_default(),
        service_account: service_account?,
        timeout: bounds.timeout.unwrap_or(Delivery::DEFAULT_TIMEOUT),
        soak: bounds.soak.unwrap_or(Delivery::DEFAULT_SOAK),
        rollback: bounds.rollback.unwrap_or_default(),
        drift: bounds.drift.unwrap_or_default(),
    })
}

fn source(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<DeliverySource> {
    let mut fields = value.fields(notes)?;
    let repo = fields.need("repo", notes, "add `repo:`, the URL of the repository").and_then(|value| value.word(notes));
    let reference = match fields.take("ref") {
        Some(value) => reference(&value, notes),
        None => Some(SourceRef::Branch("main".to_owned())),
    };
    let path = or_default(fields.take("path"), ".", notes);
    fields.finish(notes);
    Some(DeliverySource { repo: repo?, reference: reference?, path: path? })
}

fn reference(value: &Value<'_>, notes: &mut Notes<'_>) -> Option<SourceRef> {
    let mut fields = value.fields(notes)?;
    let mut found = Vec::new();
    let mut failed = false;
    for name in ["branch", "tag", "commit"] {
        let Some(value) = fields.take(name) else { continue };
        match (value.word(notes), name) {
            (Some(word), "branch") => found.push(SourceRef::Branch(word)),
            (Some(word), "tag") => found.push(SourceRef::Tag(word)),
            (Some(word), _) => found.push(SourceRef::Commit(word)),
            (None, _) => failed = true,
        }
    }
    fields.finish(notes);
    if failed {
        return None;
    }
    if found.len() != 1 {
        value.refuse(notes, "InvalidValue", "must have one of `branch`, `tag` and `commit`", None);
        return None;
    }
    found.pop()
}

/// `timeout`, `soak`, `rollback` and `drift`.
pub(super) fn bounds(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Bounds> {
    let timeout = duration(fields.take("timeout"), notes);
    let soak = duration(fields.take("soak"), notes);
    let rollback = word(fields.take("rollback"), &[("auto", Rollback::Auto), ("never", Rollback::Never)], notes);
    let drift = [("repair", Drift::Repair), ("report", Drift::Report), ("ignore", Drift::Ignore)];
    let drift = word(fields.take("drift"), &drift, notes);
    Some(Bounds { timeout: timeout?, soak: soak?, rollback: rollback?, drift: drift? })
}

/// The outer None is an error.
pub(super) fn duration(value: Option<Value<'_>>, notes: &mut Notes<'_>) -> Option<Option<Duration>> {
    match value {
        Some(value) => value.amount(notes, parse_duration).map(Some),
        None => Some(None),
    }
}

/// One of a few words. The outer None is an error.
pub(super) fn word<T: Copy>(
    value: Option<Value<'_>>,
    words: &[(&'static str, T)],
    notes: &mut Notes<'_>,
) -> Option<Option<T>> {
    match value {
        Some(value) => value.choice(notes, words).map(Some),
        None => Some(None),
    }
}
