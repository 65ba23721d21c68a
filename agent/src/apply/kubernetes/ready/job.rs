//! Jobs and single pods: what ends, or runs by itself.

use serde_json::Value;

use super::condition::{find, plain};
use super::{JOB_FAILED, Readiness, failed, waiting};

/// It must complete.
pub(super) fn job(live: &Value) -> Readiness {
    let is = |kind: &str| find(live, kind).filter(|condition| condition.status == "True");
    if is("Complete").is_some() {
        return Readiness::Ready;
    }
    if let Some(end) = is("Failed").or_else(|| is("FailureTarget")) {
        return Readiness::Failed { reason: JOB_FAILED.to_owned(), message: format!("has failed{}", end.said()) };
    }
    // Its author stopped it.
    if live["spec"]["suspend"] == true {
        return Readiness::Ready;
    }
    let count = |key: &str| live["status"][key].as_i64().unwrap_or(0);
    let wanted = live["spec"]["completions"].as_i64().unwrap_or(1);
    let (done, lost) = (count("succeeded"), count("failed"));
    let lost = if lost > 0 { format!(", {lost} failed so far") } else { String::new() };
    waiting(format!("hasn't completed: {done} of {wanted} pods succeeded, {} run{lost}", count("active")))
}

pub(super) fn pod(live: &Value) -> Readiness {
    let said = |key: &str| live["status"][key].as_str().map(plain).filter(|words| !words.is_empty());
    match live["status"]["phase"].as_str() {
        Some("Succeeded") => Readiness::Ready,
        Some("Failed") => {
            let why = said("message").or_else(|| said("reason")).map_or_else(String::new, |why| format!(": {why}"));
            failed(format!("has failed{why}"))
        }
        Some("Running") => match find(live, "Ready") {
            Some(ready) if ready.status == "True" => Readiness::Ready,
            Some(ready) => waiting(format!("isn't ready{}", ready.said())),
            None => waiting("isn't ready"),
        },
        phase => waiting(format!("is {}", phase.unwrap_or("without a phase"))),
    }
}
