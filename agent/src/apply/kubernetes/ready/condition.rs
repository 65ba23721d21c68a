//! Conditions of a status, as controllers write them for everybody: `Ready`, `Available`, `Stalled`, `Reconciling`, and the generation
//! that they were true of.

use serde_json::Value;

use super::{Readiness, failed, waiting};

/// A condition that says something of the object as it is now.
pub(super) struct Condition<'a> {
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Controllers' own words can be pages.
const SHOWN: usize = 600;

/// The condition of a type, unless it was true of an older generation.
pub(super) fn find<'a>(live: &'a Value, kind: &str) -> Option<Condition<'a>> {
    let conditions = live["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    let is_old = match (found["observedGeneration"].as_i64(), live["metadata"]["generation"].as_i64()) {
        (Some(observed), Some(generation)) => observed < generation,
        _ => false,
    };
    let text = |key: &str| found[key].as_str().unwrap_or_default();
    let status = if is_old { "Unknown" } else { text("status") };
    Some(Condition { status, reason: text("reason"), message: text("message") })
}

/// Whether the status is of an older generation; none: it is of this one, or nobody says.
pub(super) fn is_unseen(live: &Value) -> Option<Readiness> {
    let (observed, generation) =
        (live["status"]["observedGeneration"].as_i64()?, live["metadata"]["generation"].as_i64()?);
    (observed < generation)
        .then(|| waiting(format!("has generation {generation}, and its controller has seen {observed} so far")))
}

/// As [`is_unseen`], for kinds whose controllers always say.
pub(super) fn is_unseen_or_new(live: &Value) -> Option<Readiness> {
    match live["status"]["observedGeneration"].as_i64() {
        Some(_) => is_unseen(live),
        None => Some(waiting("hasn't been seen by its controller yet")),
    }
}

/// Any kind: what its conditions say; without conditions it is ready when it is there.
pub(super) fn any(live: &Value) -> Readiness {
    if let Some(unseen) = is_unseen(live) {
        return unseen;
    }
    if let Some(stalled) = find(live, "Stalled").filter(|condition| condition.status == "True") {
        return failed(format!("is stalled{}", stalled.said()));
    }
    if let Some(reconciling) = find(live, "Reconciling").filter(|condition| condition.status == "True") {
        return waiting(format!("is being reconciled{}", reconciling.said()));
    }
    for kind in ["Ready", "Available"] {
        if find(live, kind).is_some() {
            return must_be_true(live, kind);
        }
    }
    Readiness::Ready
}

pub(super) fn must_be_true(live: &Value, kind: &str) -> Readiness {
    match find(live, kind) {
        Some(condition) if condition.status == "True" => Readiness::Ready,
        Some(condition) => waiting(format!("isn't {kind}{}", condition.said())),
        None => waiting(format!("isn't {kind} yet: its status has no such condition")),
    }
}

pub(super) fn definition(live: &Value) -> Readiness {
    match find(live, "NamesAccepted").filter(|condition| condition.status == "False") {
        Some(refused) => failed(format!("has names that are taken{}", refused.said())),
        None => must_be_true(live, "Established"),
    }
}

impl Condition<'_> {
    /// `: the message`, or `: TheReason`, or nothing.
    pub fn said(&self) -> String {
        let words = if self.message.is_empty() { self.reason } else { self.message };
        if words.is_empty() { String::new() } else { format!(": {}", plain(words)) }
    }
}

/// Somebody else's words in one line of bounded length.
pub(super) fn plain(words: &str) -> String {
    let flat: Vec<&str> =
        words.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let flat = flat.join(" ");
    let end = flat.floor_char_boundary(SHOWN);
    if end == flat.len() { flat } else { format!("{}…", &flat[..end]) }
}
