//! A commit as a small chip: first seven characters, subject on hover, and it is seen moving along the way of a change.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::web::links;

#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<a class="chip" href="{{ link }}"{% if !subject.is_empty() %} title="{{ subject }}"{% endif %}{% if let Some(key) = moves %} data-move="{{ key }}"{% endif %}>{{ short }}</a>"#
)]
pub struct Chip {
    pub short: String,
    pub subject: String,
    link: String,
    moves: Option<String>,
}

impl HtmlSafe for Chip {}

/// As many as people read out to each other.
const SHORT: usize = 7;

impl Chip {
    pub fn new(commit: &str, subject: &str) -> Chip {
        Chip { short: short(commit), subject: subject.to_owned(), link: links::commit(commit), moves: None }
    }

    /// The same key on two versions of a page is the same thing at another place. A key stands once on a page.
    #[must_use]
    pub fn moving(mut self, key: impl Into<String>) -> Chip {
        self.moves = Some(key.into());
        self
    }
}

pub fn short(commit: &str) -> String {
    commit.chars().take(SHORT).collect()
}
