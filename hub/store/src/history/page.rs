//! Pages of the log, newest first, day by day; and everything that was recorded after an entry, for those who pass it on.

use std::time::{Duration, Instant};

use kedge_hub_types::history::{Day, Kind, Place, Recorded};
use kedge_model::wire::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::COLUMNS;
use super::days::DayRow;
use crate::statement::Statement;
use crate::{Store, StoreError};

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reader {
    All,
    /// An application team: what is of its workspaces, and what was written with its own token.
    Team {
        workspaces: Vec<String>,
        token: String,
    },
}

/// Which entries; what is None is not asked.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    pub environment: Option<String>,
    pub workload: Option<String>,
    pub cluster_type: Option<String>,
    pub ring: Option<String>,
    /// `<cluster type>/<workload>-<target>`
    pub assignment: Option<String>,
    /// Its id.
    pub cluster: Option<String>,
    /// Any of these; empty: all.
    pub kinds: Vec<Kind>,
    pub event: Option<String>,
    pub who: Option<String>,
    pub commit: Option<String>,
    pub content: Option<String>,
    /// From then on.
    pub since: Option<Timestamp>,
    /// Before then.
    pub until: Option<Timestamp>,
    /// The last one of the page before: only what is older.
    pub from: Option<HistoryKey>,
    pub limit: usize,
}

/// A place in the log as people read it: time, then number.
pub type HistoryKey = (i64, i64);

/// So long one request goes through days that have little of what is asked; the page may end early then, and its cursor leads
/// on.
const LOOK: Duration = Duration::from_millis(120);

/// A commit's digits: all of them, and so few that people still mean one.
const WHOLE: usize = 40;
const SHORTEST: usize = 6;

/// A team of more workspaces than this is looked for row by row.
const MANY: usize = 16;

/// Which column finds the rows; the others only narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guide {
    Commit,
    Cluster,
    Workload,
    Who,
    Kind,
    Workspace,
    Environment,
    Time,
}

/// A part of what a reader sees.
#[derive(Clone, Copy, Debug)]
enum Share<'a> {
    All,
    /// Of these workspaces, or written with this token.
    Team(&'a [String], &'a str),
    Workspace(&'a str),
    Token(&'a str),
}

impl Store {
    /// A page, and where the next one begins if there may be more.
    pub async fn history_page(
        &self,
        reader: &Reader,
        filter: &HistoryFilter,
    ) -> Result<(Vec<Recorded>, Option<HistoryKey>), StoreError> {
        let begun = Instant::now();
        let mut found: Vec<Recorded> = Vec::new();
        let mut days = self.history_days().await?.into_iter().filter(|row| filter.covers(row.day)).peekable();
        while let Some(DayRow { day, .. }) = days.next() {
            let wanted = filter.limit + 1 - found.len();
            found.extend(self.history_of(day, reader, filter, wanted, true).await?);
            if found.len() > filter.limit {
                found.truncate(filter.limit);
                let last = found.last().map(|last| (last.at.0, last.id));
                return self.named(found, last).await;
            }
            if begun.elapsed() > LOOK && days.peek().is_some() {
                // Nothing of this day is left; the next page begins before it.
                return self.named(found, Some((day.begin().0, 0))).await;
            }
        }
        self.named(found, None).await
    }

    /// The first entry by time that fits.
    pub async fn first_of_history(
        &self,
        reader: &Reader,
        filter: &HistoryFilter,
    ) -> Result<Option<Recorded>, StoreError> {
        let mut days: Vec<DayRow> = self.history_days().await?;
        days.retain(|row| filter.covers(row.day));
        for DayRow { day, .. } in days.into_iter().rev() {
            if let Some(first) = self.history_of(day, reader, filter, 1, false).await?.into_iter().next() {
                return Ok(Some(first));
            }
        }
        Ok(None)
    }

    /// What was recorded after an entry, in the order of recording, whenever it happened.
    pub async fn history_after(&self, id: i64, limit: usize) -> Result<Vec<Recorded>, StoreError> {
        let mut found = Vec::new();
        for DayRow { day, .. } in self.history_days().await?.into_iter().filter(|row| row.last_id > id) {
            let mut query = select(day);
            query.number(" id > ?", id);
            query.push(" ORDER BY id");
            query.number(" LIMIT ?", i64::try_from(limit).unwrap_or(i64::MAX));
            found.extend(self.rows(day, query).await?);
        }
        found.sort_by_key(|recorded: &Recorded| recorded.id);
        found.truncate(limit);
        Ok(self.named(found, None).await?.0)
    }

    /// The newest number that was given; 0 before the first.
    pub async fn newest_history(&self) -> Result<i64, StoreError> {
        let newest = sqlx::query_scalar::<_, i64>("SELECT COALESCE(MAX(last_id), 0) FROM history_days");
        Ok(newest.fetch_one(self.pool()).await?)
    }

    /// The whole name of a commit of which the beginning is given; a whole one is itself.
    pub async fn history_commit(&self, beginning: &str) -> Result<Option<String>, StoreError> {
        let hexadecimal = beginning.len() >= SHORTEST && beginning.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !hexadecimal || beginning.len() >= WHOLE {
            return Ok(Some(beginning.to_owned()));
        }
        for DayRow { day, .. } in self.history_days().await? {
            let mut query = Statement::new("SELECT commit_id FROM ");
            query.day(day);
            query.text(" WHERE commit_id <> '' AND commit_id >= ?", beginning);
            // Behind every hexadecimal digit.
            query.text(" AND commit_id < ? LIMIT 1", &format!("{beginning}g"));
            if let Some(row) = query.fetch_once(self).await?.first() {
                return Ok(Some(row.try_get(0)?));
            }
        }
        Ok(None)
    }

    /// The workload of a target, as the catalog has it today; none when environments differ.
    pub async fn workload_of(&self, environment: Option<&str>, target: &str) -> Result<Option<String>, StoreError> {
        let mut query = Statement::new("SELECT DISTINCT parent FROM catalog WHERE kind = 'deployment-target'");
        query.text(" AND name = ?", target);
        if let Some(environment) = environment {
            query.text(" AND environment = ?", environment);
        }
        let found = query.fetch(self).await?;
        match found.as_slice() {
            [one] => Ok(Some(one.try_get(0)?)),
            _ => Ok(None),
        }
    }

    async fn history_of(
        &self,
        day: Day,
        reader: &Reader,
        filter: &HistoryFilter,
        limit: usize,
        newest_first: bool,
    ) -> Result<Vec<Recorded>, StoreError> {
        let guide = filter.guide(reader);
        let mut found = Vec::new();
        for share in reader.shares(guide) {
            let mut query = select(day);
            narrow(&mut query, share, guide, filter);
            query.push(if newest_first { " ORDER BY at DESC, id DESC" } else { " ORDER BY at, id" });
            query.number(" LIMIT ?", i64::try_from(limit).unwrap_or(i64::MAX));
            found.extend(self.rows(day, query).await?);
        }
        found.sort_by_key(|one: &Recorded| (one.at, one.id));
        if newest_first {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    /// A day that was let go meanwhile has nothing.
    async fn rows(&self, day: Day, query: Statement) -> Result<Vec<Recorded>, StoreError> {
        match query.fetch_once(self).await {
            Ok(rows) => rows.iter().map(recorded).collect(),
            Err(error @ StoreError::Refused(_)) => match self.history_days().await?.iter().any(|row| row.day == day) {
                true => Err(error),
                false => Ok(Vec::new()),
            },
            Err(error) => Err(error),
        }
    }

    /// Clusters are known by their names of today.
    async fn named(
        &self,
        mut found: Vec<Recorded>,
        next: Option<HistoryKey>,
    ) -> Result<(Vec<Recorded>, Option<HistoryKey>), StoreError> {
        let mut ids: Vec<String> = found.iter().filter_map(|one| Some(one.place.cluster?.to_string())).collect();
        ids.sort_unstable();
        ids.dedup();
        for some in ids.chunks(500) {
            let mut query = Statement::new("SELECT id, name FROM clusters WHERE ");
            query.list("id IN (", some, ")");
            for row in query.fetch(self).await? {
                let (id, name): (String, String) = (row.try_get(0)?, row.try_get(1)?);
                for one in found.iter_mut().filter(|one| one.place.cluster.is_some_and(|own| own.to_string() == id)) {
                    one.cluster_name = Some(name.clone());
                }
            }
        }
        Ok((found, next))
    }
}

impl Reader {
    /// Each share is found by an index of its own.
    fn shares(&self, guide: Guide) -> Vec<Share<'_>> {
        match self {
            Reader::All => vec![Share::All],
            Reader::Team { workspaces, token } if guide == Guide::Workspace => {
                workspaces.iter().map(|one| Share::Workspace(one)).chain([Share::Token(token)]).collect()
            }
            Reader::Team { workspaces, token } => vec![Share::Team(workspaces, token)],
        }
    }
}

impl HistoryFilter {
    fn covers(&self, day: Day) -> bool {
        let ends_before = |at: Timestamp| Day::of(at) > day;
        let begins_after = |at: Timestamp| Day::of(at) < day;
        let from = self.from.map(|(at, _)| Timestamp(at));
        !self.since.is_some_and(ends_before) && !self.until.is_some_and(begins_after) && !from.is_some_and(begins_after)
    }

    /// The column that leaves the fewest rows to look at.
    fn guide(&self, reader: &Reader) -> Guide {
        let rare = !self.kinds.is_empty() && !self.kinds.contains(&Kind::Condition);
        match self {
            HistoryFilter { commit: Some(_), .. } => Guide::Commit,
            HistoryFilter { cluster: Some(_), .. } => Guide::Cluster,
            HistoryFilter { workload: Some(_), .. } => Guide::Workload,
            HistoryFilter { who: Some(_), .. } => Guide::Who,
            _ if rare => Guide::Kind,
            _ if matches!(reader, Reader::Team { workspaces, .. } if workspaces.len() <= MANY) => Guide::Workspace,
            HistoryFilter { environment: Some(_), .. } => Guide::Environment,
            _ => Guide::Time,
        }
    }
}

fn select(day: Day) -> Statement {
    let mut query = Statement::new("SELECT ");
    query.push(COLUMNS);
    query.push(" FROM ");
    query.day(day);
    query.push(" WHERE");
    query
}

/// A column that doesn't guide is written so that no index of it is chosen: `column || ''`.
fn narrow(query: &mut Statement, share: Share<'_>, guide: Guide, filter: &HistoryFilter) {
    // One bound on each side: with two the database may choose the wider one.
    let until = filter.until.map_or(i64::MAX, |until| until.0);
    let until = filter.from.map_or(until, |(at, _)| until.min(at.saturating_add(1)));
    query.number(" at >= ?", filter.since.map_or(i64::MIN, |since| since.0));
    query.number(" AND at < ?", until);
    if let Some((at, id)) = filter.from {
        query.number(" AND (at < ?", at);
        query.number(" OR id < ?)", id);
    }
    let columns: [(Guide, &Option<String>, &'static str, &'static str); 5] = [
        (Guide::Commit, &filter.commit, " AND commit_id <> '' AND commit_id = ?", " AND commit_id || '' = ?"),
        (Guide::Cluster, &filter.cluster, " AND cluster <> '' AND cluster = ?", " AND cluster || '' = ?"),
        (Guide::Workload, &filter.workload, " AND workload <> '' AND workload = ?", " AND workload || '' = ?"),
        (Guide::Who, &filter.who, " AND who <> '' AND who = ?", " AND who || '' = ?"),
        (Guide::Environment, &filter.environment, " AND environment = ?", " AND environment || '' = ?"),
    ];
    for (column, value, guiding, narrowing) in columns {
        if let Some(value) = value {
            query.text(if column == guide { guiding } else { narrowing }, value);
        }
    }
    let plain: [(&Option<String>, &'static str); 5] = [
        (&filter.cluster_type, " AND cluster_type = ?"),
        (&filter.ring, " AND ring = ?"),
        (&filter.assignment, " AND assignment = ?"),
        (&filter.event, " AND event = ?"),
        (&filter.content, " AND content = ?"),
    ];
    for (value, part) in plain {
        if let Some(value) = value {
            query.text(part, value);
        }
    }
    if !filter.kinds.is_empty() {
        let kinds: Vec<String> = filter.kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
        let before =
            if guide == Guide::Kind { " AND kind <> 'condition' AND kind IN (" } else { " AND kind || '' IN (" };
        query.list(before, &kinds, ")");
    }
    match share {
        Share::All => {}
        Share::Workspace(workspace) => query.text(" AND workspace <> '' AND workspace = ?", workspace),
        Share::Token(token) => query.text(" AND kind <> 'condition' AND kind = 'audit' AND content = ?", token),
        Share::Team(workspaces, token) => {
            query.list(" AND ((workspace <> '' AND workspace || '' IN (", workspaces, "))");
            query.text(" OR (kind || '' = 'audit' AND content = ?))", token);
        }
    }
}

fn recorded(row: &AnyRow) -> Result<Recorded, StoreError> {
    let kind: String = row.try_get(4)?;
    let text = |index: usize| -> Result<Option<String>, StoreError> {
        Ok(Some(row.try_get::<String, _>(index)?).filter(|text| !text.is_empty()))
    };
    let cluster = text(12)?.map(|id| id.parse()).transpose();
    let detail: String = row.try_get(16)?;
    Ok(Recorded {
        id: row.try_get(0)?,
        at: Timestamp(row.try_get(1)?),
        recorded_at: Timestamp(row.try_get(2)?),
        corrected: row.try_get::<i64, _>(3)? != 0,
        kind: Kind::from_text(&kind).ok_or_else(|| StoreError::Corrupt(format!("a kind of history: {kind}")))?,
        event: row.try_get(5)?,
        place: Place {
            environment: row.try_get(6)?,
            workspace: row.try_get(7)?,
            workload: row.try_get(8)?,
            cluster_type: row.try_get(9)?,
            ring: row.try_get(10)?,
            assignment: row.try_get(11)?,
            cluster: cluster.map_err(|why| StoreError::Corrupt(format!("{why}")))?,
        },
        cluster_name: None,
        commit: text(13)?,
        who: text(14)?,
        detail: serde_json::from_str(&detail).unwrap_or_default(),
    })
}
