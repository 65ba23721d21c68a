//! One sentence for each thing that can happen, in plain words. Made when an entry is read, so that the words can change.

use kedge_rollout::rollout::stop_words;

use super::Place;
use super::what::{Change, REPAIR, Spot, What};

/// Digits of a commit that people recognise it by.
const DIGITS: usize = 8;
/// A title is one line; the whole is in the detail.
const LONGEST: usize = 240;

pub(super) fn of(what: &What, place: &Place, cluster: Option<&str>) -> String {
    let text = sentence(what, place, cluster);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn sentence(what: &What, place: &Place, cluster: Option<&str>) -> String {
    let on = cluster.map(|name| format!(" on {name}")).unwrap_or_default();
    let assignment = place.assignment.as_str();
    match what {
        What::Condition { condition, reason, message, version, .. } => {
            let version = version.as_deref().map(|version| format!(" ({version})")).unwrap_or_default();
            match condition.as_str() {
                "Converged" => format!("{assignment} converged{on}{version}"),
                "Converging" if reason.as_deref() == Some(REPAIR) => {
                    format!("{assignment} is being repaired{on}{}", behind(&[message.as_deref()]))
                }
                "Converging" => format!("{assignment} changes{on}"),
                "Failed" => format!("{assignment} failed{on}{}", behind(&[reason.as_deref(), message.as_deref()])),
                "Unknown" => format!("{assignment} is unknown{on}"),
                "Removed" => format!("{assignment} was removed{on}"),
                other => format!("{assignment} is {other}{on}"),
            }
        }
        What::Lost { count } => {
            format!(
                "{count} events{on} aren't told: the cluster kept newer ones only, or has more than history takes of one"
            )
        }
        What::Drifted { drift } => format!("{assignment} drifted{on}: {drift}"),
        What::DriftEnded { .. } => format!("{assignment} is as it should be again{on}"),
        What::DriftRepaired { drift } => format!("{assignment} drifted and was repaired{on}: {drift}"),
        What::Issued { generation, change, version, .. } => {
            let ring = stream(place);
            let version = version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
            match change {
                Change::Added => format!("{assignment}{version} is new in {ring} (generation {generation})"),
                Change::Changed => format!("{assignment}{version} is desired in {ring} (generation {generation})"),
                Change::Removed => format!("{assignment} is to go from {ring} (generation {generation})"),
                Change::Unmanaged => format!("{assignment} is no longer managed in {ring} (generation {generation})"),
                Change::Restarted => format!("{assignment} is to restart in {ring} (generation {generation})"),
            }
        }
        What::Reissued { generation, assignments } => {
            let of = if *assignments == 1 { "1 assignment".to_owned() } else { format!("{assignments} assignments") };
            format!("generation {generation} of {} has the same content for its {of}", stream(place))
        }
        What::Walked { subject, steps, .. } => {
            let took: u64 = steps.iter().map(|step| step.took_ms).sum();
            format!("“{subject}” was read and scheduled in {} within {took} ms", place.environment)
        }
        What::Landed { head, branch, subject } => format!("“{subject}” is on {branch} as {}", short(head)),
        What::Published { published, branch, subject } => {
            format!("{} published to {branch} as {}: {subject}", place.environment, short(published))
        }
        What::PullRequest { state, number, .. } => match number {
            Some(number) => format!("pull request {number} of {} is {state}", place.environment),
            None => format!("the branch for a merge into {} is {state}", place.environment),
        },
        What::Promotion { phase, subject, why, .. } => {
            let why = behind(&[why.as_deref()]);
            let environment = &place.environment;
            match phase.as_str() {
                "waiting" => format!("“{subject}” waits before {environment}{why}"),
                "entered" => format!("“{subject}” was promoted to {environment}{why}"),
                "passed" => format!("“{subject}” passed the gate of {environment}{why}"),
                "failed" => format!("“{subject}” failed in {environment}{why}"),
                "reopened" => format!("“{subject}” had passed {environment} and is open again{why}"),
                "superseded" => format!("“{subject}” was superseded in {environment}{why}"),
                "adopted" => format!("“{subject}” is what {environment} runs already{why}"),
                other => format!("“{subject}” is {other} in {environment}{why}"),
            }
        }
        What::Refused { why } => {
            format!("the branch of {} names a commit that may not come in: {why}", place.environment)
        }
        What::Policy { slot, subject, reasons } => {
            let why = behind(&[reasons.first().map(String::as_str)]);
            match slot.as_str() {
                "force" => format!("the promotion policy of “{subject}” is in force"),
                "waiting" => format!("a looser promotion policy waits for an approval{why}"),
                _ => format!("the newest promotion policy can't be read{why}"),
            }
        }
        What::Rollout { rollout, phase, subject, items, why, .. } => {
            let why = behind(&[why.as_deref()]);
            match phase.as_str() {
                "started" => {
                    let of = if *items == 1 { "1 assignment".to_owned() } else { format!("{items} assignments") };
                    format!("rollout {rollout} of “{subject}” began in {}: {of}", place.environment)
                }
                other => format!("rollout {rollout} of “{subject}” in {} is {}{why}", place.environment, words(other)),
            }
        }
        What::Ring { rollout, state, why: told, .. } => {
            let why = behind(&[told.as_deref()]);
            match state.as_str() {
                "rolling" => format!("rollout {rollout} began in ring {}", place.ring),
                "resumed" => format!("rollout {rollout} goes on in ring {}", place.ring),
                "passed" => format!("rollout {rollout} passed ring {}{why}", place.ring),
                "stopped" => match told {
                    Some(told) => format!("rollout {rollout} stopped: {}", stop_words(&place.ring, told)),
                    None => format!("rollout {rollout} stopped in ring {}", place.ring),
                },
                "returned" => format!("ring {} goes back to what it had before rollout {rollout}", place.ring),
                other => format!("rollout {rollout} is {other} in ring {}", place.ring),
            }
        }
        What::Word { about, say, reason, ring, refused } => {
            let ring = ring.as_deref().map(|ring| format!(", ring {ring}")).unwrap_or_default();
            // The entry names the commit of a promotion beside it.
            let about = if about == "promotion" { "" } else { about };
            match refused {
                Some(refused) => format!("{}{ring} was refused: {refused}", spaced(act(say), about)),
                None => format!("{}{ring}{}", spaced(done(say), about), behind(&[Some(reason)])),
            }
        }
        What::Joined { name } => format!("{} joined {}", cluster.unwrap_or(name), stream(place)),
        What::Moved { from, to } => {
            format!("{} moved from {} to {}", cluster.unwrap_or("a cluster"), spot(from), spot(to))
        }
        What::Left { state } => format!("{} was {state}", cluster.unwrap_or("a cluster")),
        What::Unknown { stuck: true } => {
            format!("{} is Unknown: it hasn't looked at what it runs for too long", cluster.unwrap_or("a cluster"))
        }
        What::Unknown { stuck: false } => {
            format!("{} is Unknown: it missed its check-in", cluster.unwrap_or("a cluster"))
        }
        What::Back => format!("{} is back", cluster.unwrap_or("a cluster")),
        What::Cloned => {
            let cluster = cluster.unwrap_or("a cluster");
            format!("two hosts write as {cluster}: one of them is a copy, or its disk was put back to an earlier state")
        }
        What::Hold { held: true, by, reason } => format!("{assignment} is held{on} by {by}{}", behind(&[Some(reason)])),
        What::Hold { held: false, by, .. } => format!("{assignment} is no longer held{on} by {by}"),
        What::Audit { action, object, result, .. } => match result.as_str() {
            "done" => format!("{action} {object}"),
            refused => {
                let why = refused.strip_prefix("refused: ").unwrap_or(refused);
                format!("{} was refused: {why}", spaced(action, object))
            }
        },
        What::Problem { ended, message, quarantines, .. } => {
            let whose = if assignment.is_empty() { String::new() } else { format!("{assignment}: ") };
            match (ended, quarantines) {
                (false, true) => format!("{whose}quarantined: {message}"),
                (true, true) => format!("{whose}no longer quarantined: {message}"),
                (false, false) => format!("{whose}{message}"),
                (true, false) => format!("{whose}fixed: {message}"),
            }
        }
        What::Repository { failing: true, url, error } => {
            format!("{url} can't be read{}", behind(&[error.as_deref()]))
        }
        What::Repository { failing: false, url, .. } => format!("{url} can be read again"),
    }
}

/// `: one: other`, of what there is.
fn behind(parts: &[Option<&str>]) -> String {
    parts.iter().flatten().filter(|part| !part.is_empty()).map(|part| format!(": {part}")).collect()
}

fn spaced(one: &str, other: &str) -> String {
    if other.is_empty() { one.to_owned() } else { format!("{one} {other}") }
}

/// What a person did, by the word as they typed it.
fn done(say: &str) -> &str {
    match say {
        "approve" => "approved",
        "override" => "overrode",
        "now" => "started outside its windows",
        "pause" => "paused",
        "resume" => "resumed",
        "abort" => "aborted",
        "rollback" => "rolled back",
        other => other,
    }
}

/// What a person tried.
fn act(say: &str) -> &str {
    match say {
        "approve" => "approving",
        "override" => "overriding",
        "now" => "starting outside its windows",
        "pause" => "pausing",
        "resume" => "resuming",
        "abort" => "aborting",
        "rollback" => "rolling back",
        other => other,
    }
}

fn stream(place: &Place) -> String {
    format!("{}/{}/{}", place.environment, place.cluster_type, place.ring)
}

fn spot(spot: &Spot) -> String {
    format!("{}/{}/{}", spot.environment, spot.cluster_type, spot.ring)
}

pub(super) fn short(commit: &str) -> &str {
    commit.get(..DIGITS).unwrap_or(commit)
}

/// `RolledBack` as people say it.
fn words(phase: &str) -> String {
    match phase {
        "rolledBack" => "rolled back".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_of_bounded_length_that_names_what_and_where() {
        let place = Place {
            cluster_type: "drone".to_owned(),
            ring: "canary".to_owned(),
            assignment: "drone/shop-x".to_owned(),
            ..Place::environment("prod")
        };
        let failed = |message: &str| What::Condition {
            condition: "Failed".to_owned(),
            reason: Some("HealthCheck".to_owned()),
            message: Some(message.to_owned()),
            version: None,
            running: None,
            desired: None,
        };
        let title = of(&failed("no answer"), &place, Some("drone-1"));
        assert_eq!(title, "drone/shop-x failed on drone-1: HealthCheck: no answer");
        assert_eq!(of(&failed(&"ä".repeat(5000)), &place, None).chars().count(), LONGEST + 1);
        let ring = What::Ring { rollout: 7, state: "passed".to_owned(), lane: "platform".to_owned(), why: None };
        assert_eq!(of(&ring, &place, None), "rollout 7 passed ring canary");
        let moved =
            What::Moved { from: Box::default(), to: Box::new(Spot { ring: "rest".to_owned(), ..Spot::default() }) };
        assert_eq!(of(&moved, &place, Some("drone-1")), "drone-1 moved from // to //rest");
        let word = What::Word {
            about: "rollout 7".to_owned(),
            say: "approve".to_owned(),
            reason: "seen".to_owned(),
            ring: Some("canary".to_owned()),
            refused: None,
        };
        assert_eq!(of(&word, &place, None), "approved rollout 7, ring canary: seen");
        let word = What::Word {
            about: "promotion".to_owned(),
            say: "approve".to_owned(),
            reason: "fine".to_owned(),
            ring: None,
            refused: None,
        };
        assert_eq!(of(&word, &place, None), "approved: fine");
        let same = What::Reissued { generation: 13, assignments: 2 };
        assert_eq!(
            of(&same, &place, None),
            "generation 13 of prod/drone/canary has the same content for its 2 assignments"
        );
        let write = What::Audit {
            action: "rollout.rollback".to_owned(),
            object: "rollout 7".to_owned(),
            role: String::new(),
            address: String::new(),
            result: "refused: NotFound".to_owned(),
            token: String::new(),
            detail: serde_json::Value::Null,
        };
        assert_eq!(of(&write, &place, None), "rollout.rollback rollout 7 was refused: NotFound");
    }
}
