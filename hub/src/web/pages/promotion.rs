//! `/promotions/{environment}`: which commits of `main` came here, what the next one waits for, and letting one in. `/policy`: the
//! rules in force, and a looser set that waits for an approval.

use askama::Template;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::Redirect;
use kedge_api::promotions::{
    ApproveRequest, EnvironmentPromotion, PromoteRequest, PromotionPolicySummary, PromotionSummary,
};
use kedge_hub_types::status::tally::Presence;
use kedge_rollout::approval::asks_people;
use serde::Deserialize;

use super::rollout::Spoken;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::promotions::{self, approve_policy, approve_promotion};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Chip, Tone, When};
use crate::web::{Confirmed, Show, Viewer, WebError, links, rings};

#[derive(Template)]
#[template(path = "promotion.html")]
pub struct PromotionPage {
    frame: Frame,
    environment: String,
    environment_link: String,
    after: Vec<(String, String)>,
    rings: String,
    in_force: Option<Chip>,
    trouble: Option<String>,
    refused: Option<(Chip, String, String)>,
    rows: Vec<Row>,
    platform: bool,
    evidence: String,
    failed: String,
}

/// A commit of `main` in the environment.
struct Row {
    commit: String,
    chip: Chip,
    subject: String,
    author: String,
    state: String,
    tone: Option<Tone>,
    why: String,
    when: When,
    waits_for: Vec<String>,
    rollout: Option<(u64, String)>,
    words: Vec<Spoken>,
    late_failed: u64,
    current: bool,
    /// Approve, promote, override: what may be asked for.
    offers: Vec<(&'static str, String, bool)>,
}

#[derive(Template)]
#[template(path = "promote.html")]
pub struct PromotePage {
    frame: Frame,
    label: &'static str,
    environment: String,
    link: String,
    action: String,
    commit: String,
    chip: Chip,
    subject: String,
    does: Vec<String>,
    although: Vec<String>,
    recorded: String,
    reason_needed: bool,
}

#[derive(Template)]
#[template(path = "policy.html")]
pub struct PolicyPage {
    frame: Frame,
    force: Option<Policy>,
    waiting: Option<Policy>,
    broken: Option<Policy>,
    platform: bool,
}

/// A version of the policy.
struct Policy {
    promoter: String,
    environments: Vec<(String, String)>,
    chip: Chip,
    subject: String,
    author: String,
    since: When,
    reasons: Vec<String>,
    words: Vec<Spoken>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    commit: String,
}

#[derive(Deserialize)]
pub struct Form {
    #[serde(default)]
    commit: String,
    #[serde(default)]
    reason: String,
}

/// Word, label, and whether it overrules something.
const WORDS: [(&str, &str, bool); 3] =
    [("approve", "Approve", false), ("promote", "Promote now", false), ("override", "Override and promote", true)];

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    environment: Result<Path<String>, PathRejection>,
) -> Result<Show<PromotionPage>, WebError> {
    let environment = environment?.0;
    let caller = viewer.caller.clone();
    let platform = caller.role == Role::Platform;
    let view = promotions::promotion(State(state), caller, Ok(Path(environment.clone()))).await?.0;
    let row = |promotion: &PromotionSummary| Row::of(&view, promotion, platform);
    Ok(Show(PromotionPage {
        frame: Frame::of(&viewer, format!("Promotions of {environment}"), Section::Rollouts),
        environment_link: links::environment(&environment),
        after: view.after.iter().map(|name| (name.clone(), links::promotion(name))).collect(),
        rings: view.rings.join(", then "),
        in_force: view.in_force.as_deref().map(|commit| Chip::new(commit, "")),
        trouble: view.trouble.clone(),
        refused: view
            .refused
            .as_ref()
            .map(|refused| (Chip::new(&refused.commit, ""), format!("named by {}", refused.by), refused.why.clone())),
        rows: view.promotions.iter().map(row).collect(),
        platform,
        evidence: links::query("/evidence", &[("environment", &environment)]),
        failed: links::query("/conditions", &[("environment", &environment), ("condition", "Failed")]),
        environment,
    }))
}

/// Says what letting a commit in would do.
pub async fn ask(
    State(state): State<ApiState>,
    viewer: Viewer,
    path: Result<Path<(String, String)>, PathRejection>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Show<PromotePage>, WebError> {
    let (environment, word) = path?.0;
    let commit = asked?.0.commit;
    let caller = viewer.caller.clone();
    caller.platform("promoting")?;
    let label = label_of(&word)?;
    let view = promotions::promotion(State(state.clone()), caller.clone(), Ok(Path(environment.clone()))).await?.0;
    let found = view.promotions.iter().find(|promotion| promotion.commit == commit);
    let found =
        found.ok_or_else(|| ApiError::not_found(format!("commit {commit} in the promotions of {environment}")))?;
    let (mut now, mut later) = (0u64, 0u64);
    for members in state.store.population(&environment).await? {
        let count = u64::try_from(members.count).unwrap_or_default();
        match members.presence {
            Presence::Unknown => later += count,
            Presence::Joined | Presence::Reporting => now += count,
        }
    }
    let clusters = format!(
        "It is then scheduled for {environment} and goes from ring to ring ({}): at most {now} clusters now, {later} when they \
         return.",
        view.rings.join(", ")
    );
    let short = crate::web::part::chip::short(&commit);
    let first = match word.as_str() {
        "approve" => {
            format!("You approve that {short} enters {environment}. It enters when enough people have approved.")
        }
        "promote" => format!("{short} is let into {environment} now, although a window or a freeze is closed."),
        _ => format!("{short} is let into {environment} although what it waits for isn't so."),
    };
    Ok(Show(PromotePage {
        frame: Frame::of(&viewer, format!("{label}: {environment}"), Section::Rollouts),
        label,
        link: links::promotion(&environment),
        action: format!("{}/{}", links::promotion(&environment), links::part(&word)),
        chip: Chip::new(&commit, &found.subject),
        subject: found.subject.clone(),
        does: vec![
            first,
            format!("The branch of {environment} then names it; what is there now stays until then."),
            clusters,
        ],
        although: if word == "override" { found.waits_for.clone() } else { Vec::new() },
        recorded: format!(
            "Recorded with the promotion, in the audit log, in the history and in the signed evidence of {short}, as said by {} \
             ({}).",
            caller.name,
            caller.role.as_str()
        ),
        reason_needed: word == "override",
        environment,
        commit,
    }))
}

/// Says it, by the API's own functions.
pub async fn tell(
    State(state): State<ApiState>,
    path: Result<Path<(String, String)>, PathRejection>,
    confirmed: Confirmed<Form>,
) -> Result<Redirect, WebError> {
    let (environment, word) = path?.0;
    label_of(&word)?;
    let (caller, Form { commit, reason }) = (confirmed.viewer.caller, confirmed.form);
    let (commit, reason) = (Some(commit).filter(|commit| !commit.is_empty()), reason.trim().to_owned());
    let name = Ok(Path(environment.clone()));
    match word.as_str() {
        "approve" => {
            let (_, Json(_)) =
                approve_promotion(State(state), caller, name, Ok(Json(ApproveRequest { commit, reason }))).await?;
        }
        "override" => {
            let body = Ok(Json(PromoteRequest { commit, reason }));
            let (_, Json(_)) = promotions::override_promotion(State(state), caller, name, body).await?;
        }
        _ => {
            let body = Ok(Json(PromoteRequest { commit, reason }));
            let (_, Json(_)) = promotions::start_promotion(State(state), caller, name, body).await?;
        }
    }
    Ok(Redirect::to(&links::promotion(&environment)))
}

pub async fn policy(State(state): State<ApiState>, viewer: Viewer) -> Result<Show<PolicyPage>, WebError> {
    let all = promotions::promotions(State(state), viewer.caller.clone()).await?.0;
    Ok(Show(PolicyPage {
        frame: Frame::of(&viewer, "PromotionPolicy", Section::Rollouts),
        force: all.policy.as_ref().map(Policy::of),
        waiting: all.waiting.as_ref().map(Policy::of),
        broken: all.broken.as_ref().map(Policy::of),
        platform: viewer.caller.role == Role::Platform,
    }))
}

pub async fn agree(State(state): State<ApiState>, confirmed: Confirmed<Form>) -> Result<Redirect, WebError> {
    let body = ApproveRequest { commit: None, reason: confirmed.form.reason.trim().to_owned() };
    let (_, Json(_)) = approve_policy(State(state), confirmed.viewer.caller, Ok(Json(body))).await?;
    Ok(Redirect::to("/policy"))
}

fn label_of(word: &str) -> Result<&'static str, ApiError> {
    let known = WORDS.iter().find(|(known, ..)| *known == word);
    known.map(|(_, label, _)| *label).ok_or_else(|| ApiError::not_found(format!("word `{word}` for promotions")))
}

impl Row {
    fn of(view: &EnvironmentPromotion, promotion: &PromotionSummary, platform: bool) -> Row {
        let at = promotion.passed_at.as_deref().or(promotion.entered_at.as_deref()).unwrap_or(&promotion.created_at);
        let link = |word: &str| {
            links::query(&format!("{}/{word}", links::promotion(&view.environment)), &[("commit", &promotion.commit)])
        };
        let waits = |text: &str| promotion.waits_for.iter().any(|why| why.contains(text));
        let fits = |word: &str| match word {
            "approve" => promotion.waits_for.iter().any(|why| asks_people(why)),
            "promote" => waits("window") || waits("freeze"),
            _ => !promotion.waits_for.is_empty(),
        };
        let offered = platform && promotion.state == "Waiting";
        let offers = WORDS.iter().filter(|(word, ..)| offered && fits(word));
        Row {
            chip: Chip::new(&promotion.commit, &promotion.subject),
            subject: promotion.subject.clone(),
            author: rings::person(&promotion.author),
            state: rings::said(&promotion.state).to_owned(),
            tone: rings::tone_of_promotion(&view.promotions, &promotion.commit),
            why: promotion.why.clone(),
            when: When::of(at),
            waits_for: promotion.waits_for.clone(),
            rollout: promotion.rollout.map(|id| (id, links::rollout(id))),
            words: promotion.actions.iter().map(Spoken::of).collect(),
            late_failed: promotion.late_failed,
            current: view.current.as_ref() == Some(&promotion.commit),
            offers: offers.map(|(word, label, grave)| (*label, link(word), *grave)).collect(),
            commit: promotion.commit.clone(),
        }
    }
}

impl Policy {
    fn of(policy: &PromotionPolicySummary) -> Policy {
        Policy {
            promoter: policy.promoter.clone(),
            environments: policy.environments.iter().map(|name| (name.clone(), links::promotion(name))).collect(),
            chip: Chip::new(&policy.commit, &policy.subject),
            subject: policy.subject.clone(),
            author: policy.author.clone(),
            since: When::of(&policy.since),
            reasons: policy.reasons.clone(),
            words: policy.actions.iter().map(Spoken::of).collect(),
        }
    }
}
