//! Where something is written: file and line, with a link to the Git server where it has pages.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::catalog::view::PlaceView;
use crate::web::links;

#[derive(Clone, Debug, Template)]
#[template(path = "part/place.html")]
pub struct Place {
    /// `file:line`
    text: String,
    /// Repository and revision.
    repo: String,
    link: Option<String>,
}

impl HtmlSafe for Place {}

impl Place {
    pub fn of(place: &PlaceView) -> Place {
        let text = match place.line {
            Some(line) => format!("{}:{line}", place.file),
            None => place.file.clone(),
        };
        let repo = match &place.revision {
            Some(revision) => format!("{} at {}", place.repo, short(revision)),
            None => place.repo.clone(),
        };
        let commit = place.revision.as_deref().and_then(|revision| revision.rsplit_once(':')).map(|(_, commit)| commit);
        Place { text, repo, link: links::source(&place.repo, commit.unwrap_or_default(), &place.file, place.line) }
    }
}

/// `main@sha1:1f0e0d0c0b0a…` as people say it: `main@1f0e0d0`.
fn short(revision: &str) -> String {
    match revision.rsplit_once(':') {
        Some((before, commit)) => {
            let branch = before.split_once('@').map_or("", |(branch, _)| branch);
            format!("{branch}@{}", super::chip::short(commit))
        }
        None => revision.to_owned(),
    }
}
