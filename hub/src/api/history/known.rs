//! Names that a search of the history mentions: one that is there today, or was once, is right; any other is a mistake.

use kedge_hub_types::history::Kind;

use super::{HistoryQuery, reader};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::audit::ACTIONS;
use crate::api::caller::Caller;
use crate::api::names::{self, Mentioned};
use crate::store::history::page::HistoryFilter;
use crate::store::tokens::Role;

/// What entries say happened, kind by kind; those of writes are their actions.
const EVENTS: [&str; 61] = [
    "Converged",
    "Converging",
    "Failed",
    "Unknown",
    "Removed",
    "Lost",
    "Drifted",
    "DriftEnded",
    "DriftRepaired",
    "added",
    "changed",
    "removed",
    "unmanaged",
    "restarted",
    "reissued",
    "walked",
    "landed",
    "published",
    "open",
    "merged",
    "closed",
    "waiting",
    "entered",
    "passed",
    "failed",
    "reopened",
    "superseded",
    "adopted",
    "refused",
    "force",
    "broken",
    "started",
    "resumed",
    "paused",
    "stopped",
    "complete",
    "rolledBack",
    "aborted",
    "rolling",
    "returned",
    "approve",
    "override",
    "now",
    "pause",
    "resume",
    "abort",
    "rollback",
    "joined",
    "moved",
    "retired",
    "revoked",
    "replaced",
    "unknown",
    "back",
    "cloned",
    "held",
    "unheld",
    "appeared",
    "ended",
    "failing",
    "recovered",
];

/// Digits of a commit, all of them.
const WHOLE: usize = 40;

/// Persons that are looked at for the nearest.
const MOST_PEOPLE: i64 = 2000;

/// Refuses the first name that is neither known today nor mentioned by any entry. Asked only where nothing was found.
pub(super) async fn check(state: &ApiState, caller: &Caller, query: &HistoryQuery) -> Result<(), ApiError> {
    let none = (Mentioned::default(), HistoryFilter { limit: 1, ..HistoryFilter::default() });
    let asked = [
        query.environment.as_ref().map(|name| {
            let mentioned = Mentioned { environment: Some(name), ..none.0.clone() };
            (mentioned, HistoryFilter { environment: Some(name.clone()), ..none.1.clone() })
        }),
        query.workload.as_ref().map(|name| {
            let mentioned = Mentioned { workload: Some(name), ..none.0.clone() };
            (mentioned, HistoryFilter { workload: Some(name.clone()), ..none.1.clone() })
        }),
        query.cluster_type.as_ref().map(|name| {
            let mentioned = Mentioned { cluster_type: Some(name), ..none.0.clone() };
            (mentioned, HistoryFilter { cluster_type: Some(name.clone()), ..none.1.clone() })
        }),
        query.ring.as_ref().map(|name| {
            let mentioned = Mentioned { ring: Some(name), ..none.0.clone() };
            (mentioned, HistoryFilter { ring: Some(name.clone()), ..none.1.clone() })
        }),
        query.assignment.as_ref().map(|name| {
            let mentioned = Mentioned { exact_assignment: Some(name), ..none.0.clone() };
            (mentioned, HistoryFilter { assignment: Some(name.clone()), ..none.1.clone() })
        }),
    ];
    for (mentioned, filter) in asked.into_iter().flatten() {
        if let Err(error) = names::check(state, caller, &mentioned).await
            && (error.reason != "UnknownName" || !happened_for_good(state, caller, &filter).await?)
        {
            return Err(error);
        }
    }
    if let Some(who) = &query.who {
        check_person(state, caller, who).await?;
    }
    if let Some(event) = &query.event {
        let filter = HistoryFilter { event: Some(event.clone()), ..none.1 };
        let known = || EVENTS.into_iter().chain(ACTIONS.into_iter().filter(|action| !action.ends_with(' ')));
        if !known().any(|known| known == event) && !happened(state, caller, &filter).await? {
            let message = format!("there is no event `{}`; there are: {}", names::harmless(event), EVENTS.join(", "));
            let more = "an audit entry's event is its action, such as `cluster.move`";
            return Err(ApiError::invalid("BadQuery", message).hint(more).near(event, known()));
        }
    }
    match &query.commit {
        Some(commit) => check_commit(state, caller, commit).await,
        None => Ok(()),
    }
}

/// Refuses a commit that no entry mentions which the caller may see.
async fn check_commit(state: &ApiState, caller: &Caller, commit: &str) -> Result<(), ApiError> {
    let Some(whole) = state.store.history_commit(commit).await? else { return Err(no_commit(commit)) };
    let filter = HistoryFilter { commit: Some(whole), limit: 1, ..HistoryFilter::default() };
    if happened(state, caller, &filter).await? { Ok(()) } else { Err(no_commit(commit)) }
}

/// The same of lists that programs ask again and again: a whole commit may be one that the hub is about to read.
pub(in crate::api) async fn check_digits(state: &ApiState, caller: &Caller, commit: &str) -> Result<(), ApiError> {
    if commit.len() < WHOLE { check_commit(state, caller, commit).await } else { Ok(()) }
}

/// Refuses a name that neither is a person's nor stands beside any entry. An application team isn't told who there is.
async fn check_person(state: &ApiState, caller: &Caller, who: &str) -> Result<(), ApiError> {
    let filter = HistoryFilter { who: Some(who.to_owned()), limit: 1, ..HistoryFilter::default() };
    if caller.role == Role::Application
        || !state.store.people_called(who).await?.is_empty()
        || happened(state, caller, &filter).await?
    {
        return Ok(());
    }
    let people = state.store.people("", MOST_PEOPLE).await?;
    let names = people.iter().filter(|person| person.removed_at.is_none()).map(|person| person.name.as_str());
    Err(names::none_called("person", who, names))
}

pub(super) fn no_commit(commit: &str) -> ApiError {
    let commit: String = commit.chars().filter(|letter| !letter.is_control()).take(80).collect();
    ApiError::not_found(format!("commit `{commit}` in the history"))
        .hint("give at least its first 6 digits, as `git log` prints them; the hub knows commits that it has read")
}

/// Whether anything but a refused write is about it: anybody can name what there isn't.
async fn happened_for_good(state: &ApiState, caller: &Caller, filter: &HistoryFilter) -> Result<bool, ApiError> {
    let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Audit).collect();
    happened(state, caller, &HistoryFilter { kinds, ..filter.clone() }).await
}

/// Whether any entry is about it; also when the search took too long to know.
async fn happened(state: &ApiState, caller: &Caller, filter: &HistoryFilter) -> Result<bool, ApiError> {
    let (found, next) = state.store.history_page(&reader(caller), filter).await?;
    Ok(!found.is_empty() || next.is_some())
}
