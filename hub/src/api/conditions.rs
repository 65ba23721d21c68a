//! What is true of assignments on clusters, one row each: the list behind every number of the fleet. A cluster that missed its
//! check-in is Unknown in all of its rows, with what was last reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue};
use kedge_api::conditions::{ConditionSummary, Reality};
use kedge_api::page::Page;
use kedge_hub_types::status::prepared::Exception;
use kedge_hub_types::status::tally::{Tallied, Word};
use kedge_model::wire::Stream;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::clusters;
use super::desired::Streams;
use super::fleet::Order;
use super::names::{self, Mentioned};
use super::page::{self, Listed, PageQuery, moment};
use crate::store::api::conditions::{Among, MemberFilter, MemberKey, MemberSeen, Way};
use crate::store::api::drift::RunningSum;
use crate::store::catalog::Visible;

/// Which conditions.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ConditionsQuery {
    pub environment: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    pub workload: Option<String>,
    /// `<workload>-<target>`, or `<cluster type>/<workload>-<target>`
    pub assignment: Option<String>,
    /// Id or name.
    pub cluster: Option<String>,
    /// `Converged`, `Converging`, `Failed` or `Unknown`
    pub condition: Option<String>,
    /// Whether the cluster reports drift.
    pub drift: Option<bool>,
    /// `HealthCheck`, … or `Silent`
    pub reason: Option<String>,
    /// `asDesired`, `differs`, `drifted` or `unknown`
    pub reality: Option<Reality>,
    /// The maximum number of items, up to 500.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub cursor: Option<String>,
}

/// Where the page before ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Cursor {
    way: Way,
    member: MemberKey,
    /// The last assignment that was shown; none: the member is done.
    assignment: Option<String>,
}

/// What a row must be to be shown.
struct Sieve {
    condition: Option<Word>,
    drift: Option<bool>,
    reason: Option<String>,
    reality: Option<Reality>,
    assignment: Option<String>,
    /// Targets of the workload, as (environment, name).
    targets: Option<BTreeSet<(String, String)>>,
    /// An application team's, as (environment, `<cluster type>/<target>`).
    own: Option<BTreeSet<(String, String)>>,
    desired: Arc<Streams>,
}

/// Members that one request looks at; the page may end early then, and its cursor leads on.
const MAX_LOOKED_AT: usize = 3000;
/// Members that are read at once when each has several rows.
const STRIDE: usize = 64;

pub(crate) const SILENT: &str = "Silent";

/// Conditions of assignments on clusters: along the promotion chain, then by stream and name of the cluster.
#[utoipa::path(get, path = "/conditions", tag = "fleet", params(ConditionsQuery),
    responses((status = OK, body = Page<ConditionSummary>)))]
pub async fn conditions(
    State(state): State<ApiState>,
    caller: Caller,
    query: Result<Query<ConditionsQuery>, QueryRejection>,
) -> Result<(HeaderMap, Listed<ConditionSummary>), ApiError> {
    let query = query?.0;
    let listed = list(&state, &caller, &query).await?;
    let mut headers = HeaderMap::new();
    if listed.page.items.is_empty() && listed.page.next.is_none() {
        let note = unknown_reason(&state, &caller, &query).await?;
        headers.extend(note.and_then(|note| Some((page::NOTE, HeaderValue::from_str(&note).ok()?))));
    }
    Ok((headers, listed))
}

/// What to say of a list that is empty because of the reason: agents say which reasons there are.
async fn unknown_reason(
    state: &ApiState,
    caller: &Caller,
    query: &ConditionsQuery,
) -> Result<Option<String>, ApiError> {
    let Some(wanted) = query.reason.as_deref().filter(|_| query.cursor.is_none()) else { return Ok(None) };
    let condition = query.condition.clone().or_else(|| Some(Word::Failed.as_str().to_owned()));
    let others = ConditionsQuery { reason: None, condition, limit: Some(page::MAX_LIMIT), ..query.clone() };
    let rows = list(state, caller, &others).await?.page.items;
    let known: BTreeSet<&str> = rows.iter().filter_map(|row| row.reason.as_deref()).collect();
    let hint = match names::nearest(wanted, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; those that there are have: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    };
    Ok(Some(format!("no condition has the reason `{}`{hint}", names::harmless(wanted))))
}

/// A page of conditions.
pub(crate) async fn list(
    state: &ApiState,
    caller: &Caller,
    query: &ConditionsQuery,
) -> Result<Listed<ConditionSummary>, ApiError> {
    let paging = PageQuery { limit: query.limit, cursor: query.cursor.clone(), ..PageQuery::default() };
    let (limit, cursor) = (paging.limit()?, paging.from::<Cursor>()?);
    let tick = state.ticks.current(&state.store).await?;
    let visible = caller.visible();
    let (filter, sieve) = query.read(state, &visible).await?;
    let nothing = filter.assignments.as_ref().is_some_and(Vec::is_empty);
    let mut page = Page { items: Vec::new(), removed: Vec::new(), next: None };
    if nothing {
        names::check(state, caller, &query.mentioned()).await?;
        return Ok(Listed { page, tick });
    }
    let one_each = filter.assignments.is_some() || filter.among != Among::All || query.reality.is_some();
    let stride = if one_each { limit + 1 } else { STRIDE };
    let (order, way) = (Order::of(state).await?, cursor.as_ref().map(|cursor| cursor.way));
    let walk = state.store.walk_conditions(&visible, filter, order.names(), way).await?;
    let mut last: Option<Cursor> = None;
    let (mut from, mut shown) = match cursor {
        Some(cursor) => (Some(cursor.member), cursor.assignment),
        None => (None, None),
    };
    let mut looked_at = 0;
    'walk: loop {
        let members = state.store.members_from(&walk, from.as_ref(), shown.is_some(), stride).await?;
        if members.is_empty() {
            break;
        }
        looked_at += members.len();
        for member in members {
            let resumed = shown.take().filter(|_| from.as_ref() == Some(&member.key));
            for row in sieve.rows(&member) {
                if resumed.as_ref().is_some_and(|shown| row.assignment <= *shown) {
                    continue;
                }
                if page.items.len() == limit {
                    page.next = last.as_ref().and_then(page::cursor);
                    break 'walk;
                }
                let (way, assignment) = (walk.way, Some(row.assignment.clone()));
                last = Some(Cursor { way, member: member.key.clone(), assignment });
                page.items.push(row);
            }
            from = Some(member.key);
        }
        if looked_at >= MAX_LOOKED_AT {
            let done = from.take().map(|member| Cursor { way: walk.way, member, assignment: None });
            page.next = done.as_ref().and_then(page::cursor);
            break;
        }
    }
    if page.items.is_empty() && page.next.is_none() {
        names::check(state, caller, &query.mentioned()).await?;
    }
    name_workloads(state, &mut page.items).await?;
    Ok(Listed { page, tick })
}

impl ConditionsQuery {
    fn mentioned(&self) -> Mentioned<'_> {
        Mentioned {
            environment: self.environment.as_deref(),
            cluster_type: self.cluster_type.as_deref(),
            ring: self.ring.as_deref(),
            workload: self.workload.as_deref(),
            assignment: self.assignment.as_deref(),
            ..Mentioned::default()
        }
    }

    async fn read(&self, state: &ApiState, visible: &Visible) -> Result<(MemberFilter, Sieve), ApiError> {
        let condition = self.condition.as_deref().map(word).transpose()?;
        let (mut cluster_type, mut assignment) = (self.cluster_type.clone(), self.assignment.clone());
        if let Some((of, target)) = self.assignment.as_deref().and_then(|name| name.split_once('/')) {
            if cluster_type.as_deref().is_some_and(|wanted| wanted != of) {
                let message = format!("{} isn't of cluster type {}", target, cluster_type.unwrap_or_default());
                return Err(ApiError::invalid("BadAssignment", message));
            }
            (cluster_type, assignment) = (Some(of.to_owned()), Some(target.to_owned()));
        }
        let cluster = match &self.cluster {
            Some(name) => Some(clusters::find(state, visible, name).await?.1.id),
            None => None,
        };
        let targets = match &self.workload {
            Some(workload) => Some(state.store.targets_of(workload, self.environment.as_deref()).await?),
            None => None,
        };
        let names = match (&targets, &assignment) {
            (None, None) => None,
            (None, Some(name)) => Some(BTreeSet::from([name.clone()])),
            (Some(targets), wanted) => {
                let names = targets.iter().map(|(_, name)| name.clone());
                Some(names.filter(|name| wanted.as_ref().is_none_or(|wanted| wanted == name)).collect())
            }
        };
        let mut filter = MemberFilter {
            environment: self.environment.clone(),
            cluster_type,
            ring: self.ring.clone(),
            cluster,
            assignments: names.map(|names: BTreeSet<String>| names.into_iter().collect()),
            streams: None,
            among: self.among(condition),
        };
        let desired = state.desired.streams(&state.store).await?;
        if self.reality == Some(Reality::Differs) && filter.among == Among::All {
            filter.streams = Some(where_it_differs(state, visible, &filter, &desired).await?);
        }
        let sieve = Sieve {
            condition,
            drift: self.drift,
            reason: self.reason.clone(),
            reality: self.reality,
            assignment,
            targets: targets.map(|targets| targets.into_iter().collect()),
            own: match visible {
                Visible::All => None,
                Visible::Workspaces(workspaces) => {
                    Some(state.store.own_assignments(workspaces).await?.into_iter().collect())
                }
            },
            desired,
        };
        Ok((filter, sieve))
    }

    /// Which members can have what is asked for.
    fn among(&self, condition: Option<Word>) -> Among {
        let drifted = self.drift == Some(true) || self.reality == Some(Reality::Drifted);
        match (condition, self.reality, self.reason.as_deref()) {
            (Some(Word::Unknown), ..) | (_, Some(Reality::Unknown), _) => Among::Unknown,
            _ if drifted => Among::Drifted,
            (Some(condition), ..) => Among::With(condition),
            (None, _, Some(SILENT | "Unreadable")) => Among::Unknown,
            (None, _, Some(_)) => Among::With(Word::Failed),
            (None, _, None) => Among::All,
        }
    }
}

impl Sieve {
    fn rows(&self, member: &MemberSeen) -> Vec<ConditionSummary> {
        let rows = member.tally.0.iter().filter(|(name, _)| self.names(&member.key, name));
        rows.map(|(name, tallied)| self.row(member, name, tallied)).filter(|row| self.fits(row)).collect()
    }

    fn names(&self, key: &MemberKey, name: &str) -> bool {
        let environment = &key.stream.environment;
        self.assignment.as_ref().is_none_or(|wanted| wanted == name)
            && self.targets.as_ref().is_none_or(|targets| targets.contains(&(environment.clone(), name.to_owned())))
            && self
                .own
                .as_ref()
                .is_none_or(|own| own.contains(&(environment.clone(), format!("{}/{name}", key.stream.cluster_type))))
    }

    fn fits(&self, row: &ConditionSummary) -> bool {
        self.condition.is_none_or(|wanted| wanted.as_str() == row.condition)
            && self.drift.is_none_or(|wanted| wanted == (row.reality == Reality::Drifted))
            && self.reason.as_ref().is_none_or(|wanted| row.reason.as_ref() == Some(wanted))
            && self.reality.is_none_or(|wanted| wanted == row.reality)
    }

    fn row(&self, member: &MemberSeen, name: &str, tallied: &Tallied) -> ConditionSummary {
        let MemberKey { stream, name: cluster_name, id } = &member.key;
        let exception = member.exceptions.get(name);
        let said = tallied.2;
        let silent = member.unknown_since;
        let condition = if silent.is_some() { Word::Unknown } else { said };
        let running = tallied.1.map(|key| key.to_string());
        let wanted = self.desired.get(stream).map_or("", |wanted| wanted.packages(name));
        let drift = exception.and_then(|exception| exception.drift.clone());
        let aside = tallied.4.as_ref();
        let since = exception.map(|exception| exception.since).or(aside.map(|aside| aside.0));
        let reason = exception.and_then(|exception| exception.reason.clone());
        ConditionSummary {
            cluster: id.clone(),
            cluster_name: cluster_name.clone(),
            environment: stream.environment.clone(),
            cluster_type: stream.cluster_type.clone(),
            ring: stream.ring.clone(),
            assignment: name.to_owned(),
            workload: None,
            condition: condition.as_str().to_owned(),
            last_known: silent.map(|_| said.as_str().to_owned()),
            message: match silent {
                Some(_) => Some(last_heard(said, reason.as_deref())),
                None => exception.and_then(|one| one.message.clone()).filter(|text| !text.is_empty()),
            },
            reason: if silent.is_some() { Some(SILENT.to_owned()) } else { reason },
            desired: tallied.0.map(|key| key.to_string()),
            reality: reality(condition, drift.is_some(), running.as_deref().unwrap_or_default(), wanted),
            running,
            version: exception.and_then(|one| one.version.clone()).or(aside.and_then(|aside| aside.1.clone())),
            drift,
            since: silent.or(since).map(moment),
            observed_at: observed(member, exception, since).map(moment),
        }
    }
}

/// What runs against what the newest state says.
pub(super) fn reality(condition: Word, drifted: bool, running: &str, wanted: &str) -> Reality {
    match condition {
        Word::Unknown => Reality::Unknown,
        _ if drifted => Reality::Drifted,
        _ if running == wanted => Reality::AsDesired,
        _ => Reality::Differs,
    }
}

/// Counts know where anything runs that shouldn't: nobody else's clusters are looked at.
async fn where_it_differs(
    state: &ApiState,
    visible: &Visible,
    filter: &MemberFilter,
    desired: &Streams,
) -> Result<BTreeSet<Stream>, ApiError> {
    let differs = |sum: &RunningSum| {
        let wanted = desired.get(&sum.stream).map_or("", |wanted| wanted.packages(&sum.assignment));
        reality(sum.condition, false, &sum.running, wanted) == Reality::Differs
    };
    let sums = state.store.running_sums(visible, filter).await?;
    Ok(sums.into_iter().filter(differs).map(|sum| sum.stream).collect())
}

/// Documents tell of changes only: what hasn't changed was still so at the last look.
fn observed(member: &MemberSeen, exception: Option<&Exception>, since: Option<i64>) -> Option<i64> {
    match exception {
        Some(exception) => Some(exception.observed_at),
        None => since.max(member.look_at),
    }
}

fn last_heard(said: Word, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("last heard: {}, {reason}", said.as_str()),
        None => format!("last heard: {}", said.as_str()),
    }
}

fn word(text: &str) -> Result<Word, ApiError> {
    Word::from_text(text).ok_or_else(|| names::no_such("condition", text, Word::ALL.map(Word::as_str)))
}

async fn name_workloads(state: &ApiState, rows: &mut [ConditionSummary]) -> Result<(), ApiError> {
    let targets: BTreeSet<(String, String)> =
        rows.iter().map(|row| (row.environment.clone(), row.assignment.clone())).collect();
    let workloads: BTreeMap<(String, String), String> =
        state.store.workloads_of(&targets.into_iter().collect::<Vec<_>>()).await?;
    for row in rows {
        row.workload = workloads.get(&(row.environment.clone(), row.assignment.clone())).cloned();
    }
    Ok(())
}
