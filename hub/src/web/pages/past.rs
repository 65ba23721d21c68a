//! The newest entries of the history about something, on that thing's page.

use axum::extract::{Query, State};

use crate::api::ApiState;
use crate::api::history::{self, HistoryEntry, HistoryQuery};
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
    pub cluster: Option<(String, String)>,
    pub chip: Option<Chip>,
    pub who: Option<String>,
    /// Told long after it happened.
    pub late: bool,
}

pub async fn of(
    state: &ApiState,
    viewer: &Viewer,
    query: HistoryQuery,
    limit: usize,
    link: String,
) -> Result<Past, WebError> {
    let query = HistoryQuery { limit: Some(limit), ..query };
    let listed = history::history(State(state.clone()), viewer.caller.clone(), Ok(Query(query))).await?;
    Ok(Past { entries: listed.page.items.into_iter().map(entry).collect(), link })
}

fn entry(entry: HistoryEntry) -> Entry {
    Entry {
        id: entry.id,
        when: When::of(&entry.at),
        cluster: entry.cluster_name.zip(entry.cluster.map(|id| links::cluster(&id))),
        chip: entry.commit.map(|commit| Chip::new(&commit, "")),
        title: entry.title,
        who: entry.who,
        late: entry.late,
    }
}
