//! The newest entries of the history about something, on that thing's page.

use axum::extract::{Query, State};
use kedge_api::history::HistoryEntry;

use crate::api::ApiState;
use crate::api::history::{self, HistoryQuery};
use crate::web::part::{Chip, When};
use crate::web::{Viewer, WebError, links};

pub struct Past {
    pub entries: Vec<Entry>,
    /// The whole of it.
    pub link: String,
}

pub struct Entry {
    pub id: i64,
    pub when: When,
    pub title: String,
    /// What it is about: a cluster, or on a cluster's own page the assignment.
    pub link: Option<String>,
    pub chip: Option<Chip>,
    pub who: Option<String>,
    /// Told long after it happened.
    pub late: bool,
}

/// So many times more are asked for than are shown.
const ASKED: usize = 3;

pub async fn of(
    state: &ApiState,
    viewer: &Viewer,
    query: HistoryQuery,
    limit: usize,
    link: String,
) -> Result<Past, WebError> {
    let own = query.cluster.is_some();
    // Who logged in stands in the history itself; here it would push away what happened.
    let query = HistoryQuery { limit: Some(limit * ASKED), ..query };
    let listed = history::history(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    let told = listed.page.items.into_iter().filter(|found| found.kind != "audit");
    Ok(Past { entries: told.take(limit).map(|found| entry(found, own)).collect(), link })
}

fn entry(entry: HistoryEntry, own: bool) -> Entry {
    let cluster = entry.cluster.as_deref().filter(|_| !own).map(links::cluster);
    let assignment = entry.assignment.as_deref().map(|name| links::assignment(&entry.environment, name));
    Entry {
        id: entry.id,
        when: When::of(&entry.at),
        link: cluster.or(assignment),
        chip: entry.commit.map(|commit| Chip::new(&commit, "")),
        title: entry.title,
        who: entry.who.map(|who| who.split(" <").next().unwrap_or_default().to_owned()),
        late: entry.late,
    }
}
