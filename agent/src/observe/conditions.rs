//! Standard conditions (`Ready`, `Available`, `Stalled`, …) with their `observedGeneration`, as most controllers write them. Read by all
//! judges; the judge itself is for kinds that nobody here knows.

use kedge_model::wire::Timestamp;
use serde_json::Value;

use super::judged::{Judged, MAX_ITEMS, Standing, Subject, text, time};

#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    list: &'a [Value],
    generation: Option<i64>,
    /// The status' own, for conditions that don't say theirs.
    observed: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition<'a> {
    pub status: Status,
    pub reason: &'a str,
    pub message: &'a str,
    pub since: Option<Timestamp>,
    /// It tells of the object as it is now.
    pub is_current: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    True,
    False,
    Unknown,
}

/// What says "it works", by rank.
const GOOD: [&str; 6] = ["Ready", "Available", "Healthy", "Succeeded", "Complete", "Established"];
/// What says that it won't work by itself.
const BAD: [&str; 3] = ["Stalled", "Failed", "Degraded"];
/// While one of them is true, "not ready" isn't a failure.
const BUSY: [&str; 5] = ["Reconciling", "Progressing", "Issuing", "Creating", "Installing"];

impl<'a> Conditions<'a> {
    pub fn of(subject: &Subject<'a>) -> Conditions<'a> {
        let list = subject.status.get("conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Conditions {
            list: &list[..list.len().min(MAX_ITEMS)],
            generation: subject.generation,
            observed: subject.status.get("observedGeneration").and_then(Value::as_i64),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<Condition<'a>> {
        let found = self.list.iter().find(|condition| text(condition, &["type"]) == Some(name))?;
        let status = match text(found, &["status"]) {
            Some("True") => Status::True,
            Some("False") => Status::False,
            _ => Status::Unknown,
        };
        let observed = found.get("observedGeneration").and_then(Value::as_i64).or(self.observed);
        Some(Condition {
            status,
            reason: text(found, &["reason"]).unwrap_or_default(),
            message: text(found, &["message"]).unwrap_or_default(),
            since: time(found, &["lastTransitionTime"]),
            is_current: self.generation.zip(observed).is_none_or(|(generation, observed)| observed >= generation),
        })
    }

    pub fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|condition| condition.status == Status::True && condition.is_current)
    }
}

impl Condition<'_> {
    pub fn tell(&self, judged: &mut Judged, standing: Standing) {
        judged.standing = standing;
        judged.say(self.reason, self.message);
        judged.since = self.since;
    }
}

/// The judgement by conditions alone.
pub fn judge(subject: &Subject<'_>) -> Judged {
    let conditions = Conditions::of(subject);
    let mut judged = Judged::default();
    let seen = subject.generation.zip(conditions.observed).is_none_or(|(now, observed)| observed >= now);
    let good = GOOD.iter().find_map(|name| Some((*name, conditions.get(name)?)));
    let bad = BAD.iter().find_map(|name| conditions.get(name).filter(|_| conditions.is_true(name)));
    // A controller that says so in this way can't do what was asked.
    let unsynced = conditions.get("Synced").filter(|synced| synced.status == Status::False && synced.is_current);
    match (good, bad.or(unsynced)) {
        (_, Some(bad)) => bad.tell(&mut judged, Standing::Failed),
        (Some((_, good)), None) if !good.is_current => {
            good.tell(&mut judged, Standing::Progressing);
            judged.message = "its controller hasn't seen the newest version of it yet".to_owned();
        }
        (Some((_, good)), None) if good.status == Status::True => good.tell(&mut judged, Standing::Ready),
        (Some((name, good)), None) => {
            let busy = BUSY.iter().any(|busy| conditions.is_true(busy));
            // A Deployment's `Available` is false while it starts; only `Ready` is a verdict.
            let verdict = good.status == Status::False && !busy && name == "Ready";
            good.tell(&mut judged, if verdict { Standing::Failed } else { Standing::Progressing });
        }
        (None, None) if !seen => {
            judged.message = "its controller hasn't seen the newest version of it yet".to_owned();
        }
        (None, None) if BUSY.iter().any(|busy| conditions.is_true(busy)) => {}
        // Nobody tells of it: that it is there is all there is to know.
        (None, None) => judged.standing = Standing::Ready,
    }
    judged
}
