//! What happened: the log, newest first, and the timeline of one commit from Git to converged clusters.

mod known;

pub(super) use known::check_digits;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use kedge_api::history::{HistoryEntry, Timeline};
use kedge_api::page::Page;
use kedge_hub_types::history::{Kind, Recorded};
use kedge_model::quantity::parse_duration;
use kedge_model::wire::{ClusterId, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::audit;
use super::caller::Caller;
use super::fleet::Order;
use super::names;
use super::page::{self, Listed, PageQuery, moment};
use crate::history::timeline;
use crate::store::api::names::NameKind;
use crate::store::catalog::Visible;
use crate::store::history::page::{HistoryFilter, Reader};
use crate::store::now;

/// Which entries.
#[derive(Clone, Debug, Default, Deserialize, Serialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct HistoryQuery {
    pub environment: Option<String>,
    pub workload: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// `<cluster type>/<workload>-<target>`
    pub assignment: Option<String>,
    /// Its name or id.
    pub cluster: Option<String>,
    /// One kind, or several with commas between.
    pub kind: Option<String>,
    /// `Failed`, `passed`, …
    pub event: Option<String>,
    pub who: Option<String>,
    /// Of main or of an application's source; its first digits are enough.
    pub commit: Option<String>,
    /// A time (`2026-11-01T00:00:00Z`), a date, or how long ago (`7d`).
    pub since: Option<String>,
    pub until: Option<String>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// The log, newest first. A page may be short and still have a `next`: it ends when the search took long.
#[utoipa::path(get, path = "/history", tag = "history", params(HistoryQuery),
    responses((status = OK, body = Page<HistoryEntry>)))]
pub async fn history(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Listed<HistoryEntry>, ApiError> {
    let query = query?.0;
    let paging = PageQuery { limit: query.limit, cursor: query.cursor.clone(), after: None, wait: None };
    let (limit, from) = (paging.limit()?, paging.from()?);
    let tick = state.ticks.current(&state.store).await?;
    let mut filter = filter(&state, &caller, &query).await?;
    (filter.limit, filter.from) = (limit, from);
    let (found, next) = state.store.history_page(&reader(&caller), &filter).await?;
    let next = next.and_then(|key| page::cursor(&key));
    // Anybody can name in a refused write what there isn't.
    let refused = |one: &Recorded| one.kind == Kind::Audit && one.detail["result"] != "done";
    if found.iter().all(refused) && (next.is_none() || !found.is_empty()) {
        known::check(&state, &caller, &query).await?;
    }
    let mut items: Vec<HistoryEntry> = found.iter().map(view).collect();
    if !caller.sees_addresses() {
        items.iter_mut().for_each(hide_addresses);
    }
    Ok(Listed { page: Page { items, removed: Vec::new(), next }, tick })
}

/// The way of a commit through every environment: from Git to converged clusters, with the time that each step took.
#[utoipa::path(get, path = "/history/commits/{commit}", tag = "history", params(("commit" = String, Path)),
    responses((status = OK, body = Timeline)))]
pub async fn commit(
    State(state): State<ApiState>,
    caller: Caller,
    commit: Result<Path<String>, PathRejection>,
) -> Result<Json<Timeline>, ApiError> {
    let commit = commit?.0;
    let found = timeline::of(&state.store, &reader(&caller), &commit).await?;
    let mut found = found.ok_or_else(|| known::no_commit(&commit))?;
    let order = Order::of(&state).await?;
    found.items.sort_by_key(|step| order.place(&step.environment));
    if !caller.sees_addresses() {
        found.items.iter_mut().for_each(|step| audit::hide_addresses(&mut step.detail));
    }
    Ok(Json(found))
}

async fn filter(state: &ApiState, caller: &Caller, query: &HistoryQuery) -> Result<HistoryFilter, ApiError> {
    let kinds = query.kind.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|kind| !kind.is_empty());
    let kinds = kinds.map(|kind| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        let wrong = || {
            ApiError::invalid("BadKind", format!("unknown kind `{kind}`; there are: {}", known.join(", ")))
                .near(kind, known.iter().copied())
        };
        Kind::from_text(kind).ok_or_else(wrong)
    });
    let cluster = match &query.cluster {
        None => None,
        Some(text) => match text.parse::<ClusterId>() {
            Ok(id) => Some(id.to_string()),
            Err(_) => match state.store.clusters_named(&caller.visible(), text).await?.into_iter().next() {
                Some(seen) => Some(seen.id),
                None => return Err(names::absent(state, &caller.visible(), NameKind::Cluster, text, None).await),
            },
        },
    };
    let mut filter = HistoryFilter {
        environment: query.environment.clone(),
        workload: query.workload.clone(),
        cluster_type: query.cluster_type.clone(),
        ring: query.ring.clone(),
        assignment: query.assignment.clone(),
        cluster,
        kinds: kinds.collect::<Result<_, _>>()?,
        event: query.event.clone(),
        who: query.who.clone(),
        commit: None,
        since: query.since.as_deref().map(|text| time("since", text)).transpose()?,
        until: query.until.as_deref().map(|text| time("until", text)).transpose()?,
        ..HistoryFilter::default()
    };
    if let Some(commit) = &query.commit {
        match state.store.history_commit(commit).await? {
            Some(whole) => filter.commit = Some(whole),
            None => return Err(known::no_commit(commit)),
        }
    }
    if let (None, Some(assignment)) = (&filter.workload, &filter.assignment) {
        // Its workload finds it sooner.
        let target = assignment.split_once('/').map_or(assignment.as_str(), |(_, target)| target);
        filter.workload = state.store.workload_of(filter.environment.as_deref(), target).await?;
    }
    Ok(filter)
}

fn reader(caller: &Caller) -> Reader {
    match caller.visible() {
        Visible::All => Reader::All,
        Visible::Workspaces(workspaces) => Reader::Team { workspaces, token: caller.token.clone() },
    }
}

/// A moment, a date, or how long ago.
fn time(name: &str, text: &str) -> Result<Timestamp, ApiError> {
    let moment = text.parse::<jiff::Timestamp>().map(|moment| Timestamp(moment.as_millisecond())).ok();
    let date = || text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok();
    let date = || date().map(|day| Timestamp(day.timestamp().as_millisecond()));
    let ago = || {
        let ago = i64::try_from(parse_duration(text).ok()?.as_millis()).ok()?;
        Some(Timestamp(now().0.saturating_sub(ago)))
    };
    moment.or_else(date).or_else(ago).ok_or_else(|| {
        ApiError::invalid("BadTime", format!("`{name}`: can't read `{text}` as a time"))
            .hint("write 2026-11-01T00:00:00Z, 2026-11-01, or how long ago: 7d")
    })
}

pub(crate) fn view(recorded: &Recorded) -> HistoryEntry {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let place = &recorded.place;
    HistoryEntry {
        id: recorded.id,
        at: moment(recorded.at.0),
        recorded_at: moment(recorded.recorded_at.0),
        late: recorded.is_late(),
        corrected: recorded.corrected,
        kind: recorded.kind.as_str().to_owned(),
        event: recorded.event.clone(),
        environment: place.environment.clone(),
        workload: text(&place.workload),
        cluster_type: text(&place.cluster_type),
        ring: text(&place.ring),
        assignment: text(&place.assignment),
        cluster: place.cluster.map(|id| id.to_string()),
        cluster_name: recorded.cluster_name.clone(),
        commit: recorded.commit.clone(),
        who: recorded.who.clone(),
        title: recorded.title(),
        detail: recorded.detail.clone(),
    }
}

/// For those who don't read people's e-mail addresses.
fn hide_addresses(entry: &mut HistoryEntry) {
    audit::hide_addresses(&mut entry.detail);
    entry.who = entry.who.take().map(|who| audit::without_address(&who).to_owned());
}
