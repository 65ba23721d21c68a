//! Why pods don't become ready, in the words of those who know: the registry, the scheduler, the container itself.

use std::cmp::Reverse;

use serde_json::Value;

use super::NOT_READY;
use super::condition::{find, plain};
use crate::goal::ObjectId;

/// The reason that explains most, and the pod it was seen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// `ImagePull`, `CrashLoop`, `Unschedulable` or `NotReady`.
    pub reason: &'static str,
    /// Names pod and container.
    pub message: String,
    pub pod: String,
    pub container: Option<String>,
    /// What explains most comes first.
    rank: u8,
    /// It ended and left no word of its own.
    is_silent: bool,
}

const IMAGE_PULL: &str = "ImagePull";
const CRASH_LOOP: &str = "CrashLoop";
const UNSCHEDULABLE: &str = "Unschedulable";

const IMAGE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];
const CONFIGURATION: [&str; 5] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PreCreateHookError",
    "PostStartHookError",
];
/// One end may be an accident.
const RESTARTS: i64 = 2;

/// Of the pods of one object, newest first where several have the same trouble. Events are warnings of their namespace.
pub fn pods_reason(pods: &[Value], events: &[Value]) -> Option<Trouble> {
    let mut alive: Vec<&Value> = pods
        .iter()
        .filter(|pod| pod["status"]["phase"] != "Succeeded" && pod["metadata"]["deletionTimestamp"].is_null())
        .collect();
    alive.sort_by_key(|pod| Reverse(pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default()));
    alive.into_iter().filter_map(|pod| of_pod(pod, events)).min_by_key(|trouble| trouble.rank)
}

/// What was said of the object itself: that its pods can't be made.
pub(super) fn own_warning(id: &ObjectId, events: &[Value]) -> Option<Trouble> {
    let event = last(events, &id.kind, &id.name, |reason| reason.starts_with("Failed"))?;
    let message = plain(event["message"].as_str().unwrap_or_default());
    Some(Trouble { reason: NOT_READY, message, pod: String::new(), container: None, rank: 9, is_silent: false })
}

fn of_pod(pod: &Value, events: &[Value]) -> Option<Trouble> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let containers = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|key| pod["status"][key].as_array().map(Vec::as_slice).unwrap_or_default());
    let found =
        containers.filter_map(|status| of_container(name, pod, status, events)).min_by_key(|trouble| trouble.rank);
    found.or_else(|| of_whole(name, pod, events))
}

fn of_container(pod: &str, whole: &Value, status: &Value, events: &[Value]) -> Option<Trouble> {
    let name = status["name"].as_str().unwrap_or_default();
    let trouble = |reason, rank, message: String| Trouble {
        reason,
        rank,
        message: format!("pod {pod}, container {name}: {message}"),
        pod: pod.to_owned(),
        container: Some(name.to_owned()),
        is_silent: false,
    };
    let (waits, words) =
        (&status["state"]["waiting"], |value: &Value| plain(value["message"].as_str().unwrap_or_default()));
    let why = waits["reason"].as_str().unwrap_or_default();
    let image = status["image"].as_str().unwrap_or_default();
    if IMAGE.contains(&why) {
        let said = registry_words(pod, image, events).unwrap_or_else(|| words(waits));
        let said = if said.is_empty() { why.to_owned() } else { said };
        return Some(trouble(IMAGE_PULL, 0, format!("the image {image} can't be pulled: {said}")));
    }
    if CONFIGURATION.contains(&why) {
        return Some(trouble(NOT_READY, 1, format!("{why}: {}", words(waits))));
    }
    let restarts = status["restartCount"].as_i64().unwrap_or(0);
    let ended = [&status["state"]["terminated"], &status["lastState"]["terminated"]];
    let ended = ended.into_iter().find(|end| end.is_object() && (end["exitCode"] != 0 || why == "CrashLoopBackOff"));
    // Pods of a Job aren't started again: they have failed.
    let is_over = whole["status"]["phase"] == "Failed";
    let again = why == "CrashLoopBackOff" || (restarts >= RESTARTS && status["ready"] != true);
    let ended = ended.or((why == "CrashLoopBackOff").then_some(&Value::Null));
    if let Some(end) = ended.filter(|_| again || is_over) {
        let how = match (end["reason"].as_str(), end["signal"].as_i64()) {
            (Some("OOMKilled"), _) => "it needed more memory than its limit (OOMKilled)".to_owned(),
            (_, Some(signal)) if signal > 0 => format!("it was ended by signal {signal}"),
            _ => match end["exitCode"].as_i64() {
                Some(code) => format!("it ended with exit code {code}"),
                None => "it ends again and again".to_owned(),
            },
        };
        let line = end["message"].as_str().and_then(last_line);
        let mut found = match again {
            true => trouble(CRASH_LOOP, 2, format!("{how}, {restarts} restarts")),
            false => trouble(NOT_READY, 4, how),
        };
        found.is_silent = line.is_none();
        if let Some(line) = line {
            found.add_last_line(&line);
        }
        return Some(found);
    }
    // It runs: what its probes said last.
    if status["ready"] != true && status["state"]["running"].is_object() {
        let unhealthy = last(events, "Pod", pod, |reason| reason == "Unhealthy" || reason == "ProbeWarning")?;
        return Some(trouble(NOT_READY, 4, words(unhealthy)));
    }
    None
}

/// What is true of the pod rather than of a container.
fn of_whole(name: &str, pod: &Value, events: &[Value]) -> Option<Trouble> {
    let trouble = |reason, rank, message: String| Trouble {
        reason,
        rank,
        message: format!("pod {name}: {message}"),
        pod: name.to_owned(),
        container: None,
        is_silent: false,
    };
    if let Some(scheduled) = find(pod, "PodScheduled").filter(|condition| condition.status == "False") {
        let words = if scheduled.message.is_empty() { scheduled.reason } else { scheduled.message };
        return match scheduled.reason {
            "Unschedulable" => Some(trouble(UNSCHEDULABLE, 3, format!("no node takes it: {}", plain(words)))),
            _ => Some(trouble(NOT_READY, 5, plain(words))),
        };
    }
    if pod["status"]["phase"] == "Failed" {
        let words =
            ["message", "reason"].into_iter().find_map(|key| pod["status"][key].as_str()).unwrap_or("it failed");
        return Some(trouble(NOT_READY, 5, plain(words)));
    }
    if find(pod, "Ready").is_some_and(|ready| ready.status == "True") {
        return None;
    }
    // Volumes that can't be mounted, networks that aren't there.
    let event = last(events, "Pod", name, |reason| reason.starts_with("Failed") || reason == "NetworkNotReady")?;
    Some(trouble(NOT_READY, 5, plain(event["message"].as_str().unwrap_or_default())))
}

/// Back-off messages repeat the image only; the first failure has the registry's answer.
fn registry_words(pod: &str, image: &str, events: &[Value]) -> Option<String> {
    let of_pull = |reason: &str| reason == "Failed" || reason == "ErrImagePull" || reason == "InspectFailed";
    let is_it = |event: &&Value| {
        let message = event["message"].as_str().unwrap_or_default();
        is_about(event, "Pod", pod)
            && event["reason"].as_str().is_some_and(of_pull)
            && message.starts_with("Failed to pull image")
            && message.contains(image)
    };
    let message = events.iter().filter(is_it).max_by_key(|event| time_of(event))?["message"].as_str()?;
    let words = message.split_once("\": ").map_or(message, |(_, words)| words);
    Some(plain(words))
}

/// The last warning of an object with a fitting reason.
fn last<'e>(events: &'e [Value], kind: &str, name: &str, fits: impl Fn(&str) -> bool) -> Option<&'e Value> {
    let is_it = |event: &&Value| is_about(event, kind, name) && event["reason"].as_str().is_some_and(&fits);
    events.iter().filter(is_it).max_by_key(|event| time_of(event))
}

/// Of the core group, and of `events.k8s.io`.
fn is_about(event: &Value, kind: &str, name: &str) -> bool {
    let object = if event["regarding"].is_object() { &event["regarding"] } else { &event["involvedObject"] };
    object["kind"] == kind && object["name"] == name
}

fn time_of(event: &Value) -> &str {
    let times = [&event["series"]["lastObservedTime"], &event["lastTimestamp"], &event["eventTime"]];
    times.into_iter().find_map(Value::as_str).unwrap_or_default()
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().map(plain).find(|line| !line.is_empty())
}

impl Trouble {
    /// Whether what the container wrote last would tell more.
    pub fn wants_last_line(&self) -> bool {
        self.is_silent
    }

    pub fn add_last_line(&mut self, text: &str) {
        if let Some(line) = last_line(text) {
            self.message = format!("{}; its last line: {line}", self.message);
            self.is_silent = false;
        }
    }
}
