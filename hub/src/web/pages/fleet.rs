//! `/`: is everything all right?

use askama::Template;
use axum::extract::{Query, State};

use crate::api::objects::{self, ObjectQuery};
use crate::api::{ApiState, CountQuery};
use crate::web::frame::{Frame, Section};
use crate::web::part::{Bar, Chip, Four, Mood};
use crate::web::{Show, Viewer, WebError, links};

#[derive(Template)]
#[template(path = "fleet.html")]
pub struct Fleet {
    frame: Frame,
    environments: Vec<Column>,
}

/// An environment, as the way of a change passes it.
struct Column {
    name: String,
    link: String,
    promoted: Option<Chip>,
    bar: Bar,
}

pub async fn page(State(state): State<ApiState>, viewer: Viewer) -> Result<Show<Fleet>, WebError> {
    let query = Ok(Query(ObjectQuery::default()));
    let listed = objects::environments(State(state.clone()), viewer.caller.clone(), query).await?;
    let mut environments = Vec::new();
    for item in listed.page.items {
        let mut four = Four::default();
        let counts = CountQuery { environment: item.object.name.clone(), ..CountQuery::default() };
        for count in state.rooms.counts(&counts).await? {
            four.add(Mood::of(&count.condition), count.count);
        }
        environments.push(Column {
            link: links::environment(&item.object.name),
            promoted: item.object.promoted_commit.as_deref().map(|commit| Chip::new(commit, "").moving(commit)),
            bar: four.bar("/conditions", &[("environment", &item.object.name)]),
            name: item.object.name,
        });
    }
    Ok(Show(Fleet { frame: Frame::of(&viewer, "Fleet", Section::Fleet), environments }))
}
