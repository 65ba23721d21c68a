//! `/search`: everything that has a name, by a part of it.

use askama::Template;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use kedge_api::search::SearchResult;
use serde::Deserialize;

use super::asked;
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::search::{self, SearchQuery};
use crate::web::frame::{Frame, Section};
use crate::web::{Show, Viewer, WebError};

#[derive(Template)]
#[template(path = "search.html")]
pub struct Search {
    frame: Frame,
    text: String,
    wrong: Option<ApiError>,
    groups: Vec<Group>,
    /// There may be more than are shown.
    more: bool,
}

/// What was found of one kind.
struct Group {
    title: String,
    found: Vec<SearchResult>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    q: String,
}

/// A screen or two; who looks for more writes more of the name.
const SHOWN: usize = 60;

pub async fn page(
    State(state): State<ApiState>,
    viewer: Viewer,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<(StatusCode, Show<Search>), WebError> {
    let text = query?.0.q.trim().to_owned();
    let asked = SearchQuery { q: text.clone(), limit: Some(SHOWN) };
    let (found, wrong, status) = asked::answered(search::find(&state, &viewer.caller, &asked).await)?;
    let found = found.unwrap_or_default();
    let more = found.len() == SHOWN;
    let mut groups: Vec<Group> = Vec::new();
    for one in found {
        let title = title(&one.kind);
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.found.push(one),
            None => groups.push(Group { title, found: vec![one] }),
        }
    }
    let title = if text.is_empty() { "Search".to_owned() } else { format!("Search: {text}") };
    let frame = Frame { query: text.clone(), ..Frame::of(&viewer, title, Section::None) };
    Ok((status, Show(Search { frame, text, wrong, groups, more })))
}

/// The kind as a heading.
fn title(kind: &str) -> String {
    let words = kind.replace('-', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}s", letters.as_str())
}
