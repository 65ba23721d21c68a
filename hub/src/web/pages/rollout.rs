//! `/rollouts/{id}`: one change on its way through the rings: who changed what, where it is, what each gate waits for, what
//! people said; and what one may say to it.

pub mod say;

use askama::Template;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Query, State};
use kedge_api::rollout_status::RolloutStatus;
use kedge_api::rollouts::{RolloutAction, RolloutActionEntry, RolloutCause, RolloutItem, SuggestedAction};
use kedge_rollout::RolloutId;

use crate::api::ApiState;
use crate::api::rollouts::status::{StatusQuery, rollout_status};
use crate::api::rollouts::{self};
use crate::store::tokens::Role;
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Step, Tone, When};
use crate::web::{Show, Viewer, WebError, links, rings};

#[derive(Template)]
#[template(path = "rollout.html")]
pub struct RolloutPage {
    frame: Frame,
    id: u64,
    environment: String,
    environment_link: String,
    subject: String,
    state: String,
    tone: Option<Tone>,
    why: String,
    headline: String,
    chip: Chip,
    main: Option<Chip>,
    author: String,
    /// `platform`, or an application's source.
    lane: String,
    lane_link: Option<String>,
    begun: When,
    changed: When,
    ended: Option<When>,
    late_failed: u64,
    late_link: String,
    /// Word, sentence and address of what may be said now.
    may: Vec<say::Offer>,
    /// After it went back or was aborted.
    suggestions: Vec<SuggestedAction>,
    steps: Vec<Step>,
    items: Vec<Item>,
    words: Vec<Spoken>,
    skipped: Vec<(Chip, String)>,
    next: Option<(Chip, String)>,
    /// An application team sees no history of a commit of main.
    history: Option<String>,
    evidence: Option<String>,
}

/// An assignment of a cluster type that moves.
struct Item {
    name: String,
    link: String,
    cluster_type: String,
    cluster_type_link: String,
    parts: String,
    version: String,
    before: String,
    order: &'static str,
    chip: Option<Chip>,
    bar: Option<Bar>,
    /// In rings that wait for their turn.
    not_yet: u64,
    not_yet_link: String,
    pinned: String,
    replaced: String,
}

/// What a person said.
pub struct Spoken {
    pub who: String,
    pub role: String,
    pub said: String,
    pub reason: String,
    pub when: When,
}

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    id: Result<Path<u64>, PathRejection>,
) -> Result<Show<RolloutPage>, WebError> {
    let id = id?.0;
    let caller = &viewer.caller;
    let found = rollouts::find(&state, caller, RolloutId(id)).await?;
    let stored = state.store.rollout(RolloutId(id)).await?;
    let steps = match &stored {
        Some(stored) => rings::steps(&state, caller, &stored.rollout, &found.detail, rings::Look::Whole).await?,
        None => Vec::new(),
    };
    let query = StatusQuery { rollout: Some(id), ..StatusQuery::default() };
    let status = rollout_status(State(state.clone()), caller.clone(), Ok(Query(query))).await?.0;
    let may = say::offers(&state, caller, &found).await?;
    let whole = found.detail;
    let view = whole.rollout;
    let environment = view.environment;
    let causes = |cause: &RolloutCause| (Chip::new(&cause.commit, &cause.subject), cause.subject.clone());
    let repo = view.lane.rsplit_once('@').filter(|_| view.lane != "platform").map(|(repo, _)| repo);
    Ok(Show(RolloutPage {
        frame: Frame::of(&viewer, format!("Rollout {id}"), Section::Rollouts),
        id,
        environment_link: links::environment(&environment),
        state: rings::said(&view.state).to_owned(),
        tone: rings::tone_of_rollout(&view.state, view.settled),
        why: view.why,
        headline: status.headline.clone(),
        chip: Chip::new(&view.cause.commit, &view.cause.subject),
        main: view.cause.main.as_deref().map(|main| Chip::new(main, "on main")),
        history: (viewer.caller.role != Role::Application)
            .then(|| links::query("/history", &[("commit", view.cause.named())])),
        evidence: (viewer.caller.role != Role::Application)
            .then(|| links::query("/evidence", &[("environment", &environment), ("commit", &view.cause.commit)])),
        subject: view.cause.subject,
        author: view.cause.author,
        lane_link: repo.and_then(links::repository),
        lane: links::bare(&view.lane),
        begun: When::of(&view.created_at),
        changed: When::of(&view.updated_at),
        ended: When::maybe(view.ended_at.as_deref()),
        late_failed: view.late_failed,
        late_link: links::query("/conditions", &[("environment", &environment), ("condition", "Failed")]),
        may,
        suggestions: whole.suggestions,
        steps,
        items: whole.items.into_iter().map(|item| Item::of(&environment, item, &status)).collect(),
        words: whole.actions.iter().map(Spoken::of).collect(),
        skipped: whole.skipped.iter().map(causes).collect(),
        next: whole.next.as_ref().map(causes),
        environment,
    }))
}

impl Item {
    fn of(environment: &str, item: RolloutItem, status: &RolloutStatus) -> Item {
        let line = status
            .lines
            .iter()
            .find(|line| line.cluster_type == item.cluster_type && line.assignment == item.assignment);
        let name = format!("{}/{}", item.cluster_type, item.assignment);
        let not_yet = [
            ("environment", environment),
            ("clusterType", item.cluster_type.as_str()),
            ("assignment", item.assignment.as_str()),
            ("reality", "asDesired"),
        ];
        Item {
            link: links::assignment(environment, &name),
            cluster_type_link: links::cluster_type(environment, &item.cluster_type),
            parts: item.parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(", "),
            version: item.version.unwrap_or_default(),
            before: item.before.unwrap_or_default(),
            order: item.order.map_or("", |order| order.as_str()),
            chip: item.source_commit.as_deref().map(|commit| Chip::new(commit, "")),
            bar: line.filter(|line| line.targeted > 0 || line.replaced.is_empty()).map(rings::line_bar),
            not_yet: line.map_or(0, |line| line.not_yet),
            not_yet_link: links::query("/conditions", &not_yet),
            pinned: line.map(|line| line.pinned.join(", ")).unwrap_or_default(),
            replaced: line.map(|line| line.replaced.join(", ")).unwrap_or_default(),
            cluster_type: item.cluster_type,
            name: item.assignment,
        }
    }
}

impl Spoken {
    pub fn of(word: &RolloutActionEntry) -> Spoken {
        let said = match word.action {
            RolloutAction::Approve => "approved",
            RolloutAction::Override => "overrode the gate of",
            RolloutAction::Now => "let it begin outside its window",
            RolloutAction::Pause => "paused it",
            RolloutAction::Resume => "resume it",
            RolloutAction::Abort => "aborted it",
            RolloutAction::Rollback => "rolled it back",
        };
        let said = match &word.ring {
            Some(ring) => format!("{said} ring {ring}"),
            None => said.strip_suffix(" the gate of").unwrap_or(said).to_owned(),
        };
        Spoken {
            who: word.who.clone(),
            role: word.role.clone(),
            said,
            reason: word.reason.clone(),
            when: When::of(&word.at),
        }
    }
}
