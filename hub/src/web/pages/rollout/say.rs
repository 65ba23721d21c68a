//! `/rollouts/{id}/{action}`: says exactly what an action would do, to how many clusters, and where it is recorded; then says it.

use askama::Template;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Redirect;
use kedge_api::operations::StartRolloutRequest;
use kedge_api::rollouts::{RingProgress, RolloutActionRequest, RolloutDetail};
use kedge_hub_types::status::tally::Presence;
use kedge_rollout::RolloutId;
use serde::Deserialize;

use crate::api::answer::ApiError;
use crate::api::rollouts::Found;
use crate::api::rollouts::say::{act, action_named, may, say_of};
use crate::api::rollouts::start::start_rollout;
use crate::api::{ApiState, Caller, rollouts};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::Chip;
use crate::web::{Confirmed, Show, Viewer, WebError, links};

/// Something that may be said now.
pub struct Offer {
    pub label: &'static str,
    pub link: String,
    /// It undoes or overrules something.
    pub grave: bool,
}

#[derive(Template)]
#[template(path = "say.html")]
pub struct SayPage {
    frame: Frame,
    label: &'static str,
    grave: bool,
    id: u64,
    link: String,
    action: String,
    environment: String,
    chip: Chip,
    subject: String,
    /// What it does, one sentence each.
    does: Vec<String>,
    /// What it overrules.
    although: Vec<String>,
    recorded: String,
    reason_needed: bool,
    /// It can't be said: why.
    refused: Option<String>,
}

#[derive(Deserialize)]
pub struct Form {
    #[serde(default)]
    reason: String,
}

/// Clusters that something concerns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reach {
    now: u64,
    when_they_return: u64,
}

const WORDS: [(&str, &str, bool); 7] = [
    ("approve", "Approve", false),
    ("now", "Begin now", false),
    ("pause", "Pause", false),
    ("resume", "Resume", false),
    ("override", "Override", true),
    ("abort", "Abort", true),
    ("rollback", "Roll back", true),
];

/// No word on this rollout: its content begins another.
const START: &str = "start";
const START_AGAIN: &str = "Start again";

/// What the viewer may say to a rollout now.
pub async fn offers(state: &ApiState, caller: &Caller, found: &Found) -> Result<Vec<Offer>, ApiError> {
    let whole = &found.detail;
    let mut offers = Vec::new();
    if caller.only_looks() {
        return Ok(offers);
    }
    let id = whole.rollout.id;
    for (word, label, grave) in WORDS {
        let said = caller.word(say_of(action_named(word)?, None)?, "so that it may be asked");
        match may(state, caller, RolloutId(id), &said, whole.rollout.moves).await {
            Ok(_) if word == "now" && !is_shut(whole) => {}
            Ok(_) => offers.push(Offer { label, link: links::say(id, word), grave }),
            Err(refused) if refused.status.is_server_error() => return Err(refused),
            Err(_) => {}
        }
    }
    if caller.role == Role::Platform && !found.startable.is_empty() {
        offers.push(Offer { label: START_AGAIN, link: links::say(id, START), grave: false });
    }
    Ok(offers)
}

/// Says what the word would do.
pub async fn ask(
    State(state): State<ApiState>,
    viewer: Viewer,
    path: Result<Path<(u64, String)>, PathRejection>,
) -> Result<Show<SayPage>, WebError> {
    let (id, word) = path?.0;
    let caller = &viewer.caller;
    let found = rollouts::find(&state, caller, RolloutId(id)).await?;
    if word == START {
        return Ok(Show(start_again(&viewer, found)));
    }
    let whole = found.detail;
    let meant = say_of(action_named(&word)?, None)?;
    let probe = caller.word(meant, "so that it may be asked");
    let refused = match may(&state, caller, RolloutId(id), &probe, whole.rollout.moves).await {
        Ok(_) => None,
        Err(refused) if refused.status.is_server_error() => return Err(refused.into()),
        Err(refused) => Some(refused.message),
    };
    let label = WORDS.iter().find(|(known, ..)| *known == word).map_or("Say it", |(_, label, _)| label);
    let does = does(&state, &word, &whole).await?;
    let current = current(&whole);
    let although = match word.as_str() {
        "override" => current.map(|ring| ring.waits_for.clone()).unwrap_or_default(),
        _ => Vec::new(),
    };
    let view = &whole.rollout;
    Ok(Show(SayPage {
        frame: Frame::of(&viewer, format!("{label}: rollout {id}"), Section::Rollouts),
        label,
        grave: WORDS.iter().any(|(known, _, grave)| *known == word && *grave),
        id,
        link: links::rollout(id),
        action: links::say(id, &word),
        environment: view.environment.clone(),
        chip: Chip::new(&view.cause.commit, &view.cause.subject),
        subject: view.cause.subject.clone(),
        does,
        although,
        recorded: recorded(&word, caller),
        reason_needed: matches!(word.as_str(), "override" | "rollback"),
        refused,
    }))
}

/// Says it, by the API's own function.
pub async fn tell(
    State(state): State<ApiState>,
    path: Result<Path<(u64, String)>, PathRejection>,
    confirmed: Confirmed<Form>,
) -> Result<Redirect, WebError> {
    let (id, word) = path?.0;
    if word == START {
        return start(&state, confirmed.viewer.caller, id, confirmed.form.reason.trim()).await;
    }
    let body = RolloutActionRequest { reason: confirmed.form.reason.trim().to_owned(), ring: None };
    let (_, Json(_)) = act(&state, &confirmed.viewer.caller, id, action_named(&word)?, body).await?;
    Ok(Redirect::to(&links::rollout(id)))
}

/// Starts what went back again, workload by workload, by the API's own function.
async fn start(state: &ApiState, caller: Caller, id: u64, reason: &str) -> Result<Redirect, WebError> {
    let Found { detail: whole, startable } = rollouts::find(state, &caller, RolloutId(id)).await?;
    for workload in &startable {
        let body = StartRolloutRequest {
            environment: whole.rollout.environment.clone(),
            workload: workload.clone(),
            cluster_type: None,
            ring: None,
            version: None,
            commit: None,
            until: None,
            reason: reason.to_owned(),
        };
        let (_, Json(_)) = start_rollout(State(state.clone()), caller.clone(), Ok(Json(body))).await?;
    }
    Ok(Redirect::to(&links::environment(&whole.rollout.environment)))
}

/// Says what starting it again would do.
fn start_again(viewer: &Viewer, found: Found) -> SayPage {
    let view = found.detail.rollout;
    let workloads: Vec<&str> = found.startable.iter().map(String::as_str).collect();
    let refused = match (viewer.caller.platform("starting rollouts"), workloads.is_empty()) {
        (Err(refused), _) => Some(refused.message),
        (_, true) => Some("nothing of it waits to be started again".to_owned()),
        _ => None,
    };
    SayPage {
        frame: Frame::of(viewer, format!("{START_AGAIN}: rollout {}", view.id), Section::Rollouts),
        label: START_AGAIN,
        grave: false,
        id: view.id,
        link: links::rollout(view.id),
        action: links::say(view.id, START),
        chip: Chip::new(&view.cause.commit, &view.cause.subject),
        does: vec![
            format!("What Git asks for now of {} begins a new rollout in {}.", workloads.join(", "), view.environment),
            "It goes from ring to ring, with the same gates and approvals.".to_owned(),
        ],
        although: Vec::new(),
        recorded: format!("Recorded in the audit log, as done by {} ({}).", viewer.caller.name, viewer.caller.role),
        reason_needed: true,
        refused,
        environment: view.environment,
        subject: view.cause.subject,
    }
}

/// A window or a freeze holds it up.
fn is_shut(whole: &RolloutDetail) -> bool {
    current(whole).is_some_and(|ring| ring.waits_for.iter().any(|why| why.contains("window") || why.contains("freeze")))
}

fn current(whole: &RolloutDetail) -> Option<&RingProgress> {
    whole.rollout.rings.iter().find(|ring| ring.state != "passed")
}

/// Exactly what will happen, with numbers.
async fn does(state: &ApiState, word: &str, whole: &RolloutDetail) -> Result<Vec<String>, ApiError> {
    let has_it = |ring: &RingProgress| matches!(ring.state.as_str(), "rolling" | "passed" | "stopped");
    let reached: Vec<&str> =
        whole.rollout.rings.iter().filter(|ring| has_it(ring)).map(|ring| ring.ring.as_str()).collect();
    let ahead: Vec<&str> =
        whole.rollout.rings.iter().filter(|ring| ring.state == "waiting").map(|ring| ring.ring.as_str()).collect();
    let there = reach(state, whole, &reached).await?;
    let later = reach(state, whole, &ahead).await?;
    let ring = current(whole).map(|ring| ring.ring.clone()).unwrap_or_default();
    let here = reach(state, whole, &[ring.as_str()]).await?;
    let moves = counted(whole.items.len() as u64, "assignment");
    Ok(match word {
        "approve" => vec![
            format!("You agree that ring {ring} gets {moves} of this change."),
            format!("When enough people have agreed: {}.", here.said()),
        ],
        "override" => vec![
            format!("The gate of ring {ring} counts as passed, whatever it waits for."),
            match later.now + later.when_they_return {
                0 => "No ring comes after it.".to_owned(),
                _ => format!("The rings after it may begin: {}.", later.said()),
            },
        ],
        "now" => vec![
            "Windows and freezes no longer hold this rollout up; its gates and approvals still do.".to_owned(),
            format!("Ring {ring} may begin: {}.", here.said()),
        ],
        "pause" => vec![
            format!("Nothing further begins: {} in rings ahead keep what they have.", later.counted()),
            format!(
                "{} in rings that it has reached keep what they got; those that change now finish.",
                there.counted()
            ),
        ],
        "resume" => vec![
            format!("It continues in ring {ring}: {}.", here.said()),
            "Failures until now no longer count against the failure budget.".to_owned(),
        ],
        "abort" => vec![
            format!("No further ring begins: {} never get this change from this rollout.", later.counted()),
            format!("{} that it has reached keep what they got.", there.counted()),
        ],
        _ => vec![
            format!("Every ring that has it goes back to what it had before: {}.", there.said()),
            match reached.is_empty() {
                true => "No ring has it yet: nothing changes on any cluster.".to_owned(),
                false => format!("Rings: {}. {moves} of this change go back.", reached.join(", ")),
            },
            "The same commit isn't rolled out again by itself; new content is.".to_owned(),
        ],
    })
}

fn recorded(word: &str, caller: &Caller) -> String {
    let whose = format!("as said by {} ({})", caller.name, caller.role.as_str());
    match word {
        "approve" | "override" => {
            format!("Recorded with the rollout, in the audit log, in the history and in the signed evidence, {whose}.")
        }
        _ => format!("Recorded with the rollout, in the audit log and in the history, {whose}."),
    }
}

/// Clusters of the rings whose type gets something of the change.
async fn reach(state: &ApiState, whole: &RolloutDetail, rings: &[&str]) -> Result<Reach, ApiError> {
    let mut reach = Reach::default();
    for members in state.store.population(&whole.rollout.environment).await? {
        let concerned = rings.contains(&members.stream.ring.as_str())
            && whole.items.iter().any(|item| item.cluster_type == members.stream.cluster_type);
        if concerned {
            let count = u64::try_from(members.count).unwrap_or_default();
            match members.presence {
                Presence::Unknown => reach.when_they_return += count,
                Presence::Joined | Presence::Reporting => reach.now += count,
            }
        }
    }
    Ok(reach)
}

impl Reach {
    /// `3 clusters now, 2 when they return`
    fn said(self) -> String {
        match (self.now, self.when_they_return) {
            (0, 0) => "no cluster".to_owned(),
            (now, 0) => format!("{} now", counted(now, "cluster")),
            (0, later) => format!("{} when they return", counted(later, "cluster")),
            (now, later) => format!("{} now, {later} when they return", counted(now, "cluster")),
        }
    }

    fn counted(self) -> String {
        counted(self.now + self.when_they_return, "cluster")
    }
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_says_how_many_now_and_how_many_later() {
        let said = |now, when_they_return| Reach { now, when_they_return }.said();
        assert_eq!(said(3, 2), "3 clusters now, 2 when they return");
        assert_eq!(said(1, 0), "1 cluster now");
        assert_eq!(said(0, 4), "4 clusters when they return");
        assert_eq!(said(0, 0), "no cluster");
    }
}
