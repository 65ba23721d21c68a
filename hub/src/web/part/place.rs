//! A place in a file of a repository: `region.yaml:12`, with a link to its Git server where a browser reaches it.

use askama::Template;
use askama::filters::HtmlSafe;
use kedge_api::source::SourceLocation;

use crate::web::links;

#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"{% if let Some(link) = link %}<a class="place" href="{{ link }}" title="{{ repo }}" rel="noreferrer">{{ text }}</a>{% else %}<span class="place" title="{{ repo }}">{{ text }}</span>{% endif %}"#
)]
pub struct Place {
    text: String,
    repo: String,
    link: Option<String>,
}

impl HtmlSafe for Place {}

impl Place {
    pub fn of(place: &SourceLocation) -> Place {
        let text = match place.line {
            Some(line) => format!("{}:{line}", place.file),
            None => place.file.clone(),
        };
        Place { text, repo: links::bare(&place.repo), link: links::source(place) }
    }

    pub fn maybe(place: Option<&SourceLocation>) -> Option<Place> {
        place.map(Place::of)
    }
}
