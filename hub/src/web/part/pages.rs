//! The way to the next page of a list.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::web::links;

#[derive(Clone, Debug, Template)]
#[template(path = "part/pages.html")]
pub struct Pages {
    first: Option<String>,
    next: Option<String>,
}

impl HtmlSafe for Pages {}

impl Pages {
    /// `pairs` are the list's filters; the cursor is what the answer before gave.
    pub fn of(path: &str, pairs: &[(&str, &str)], cursor: Option<&str>, next: Option<&str>) -> Pages {
        let with = |cursor: &str| {
            let all: Vec<(&str, &str)> = pairs.iter().copied().chain(std::iter::once(("cursor", cursor))).collect();
            links::query(path, &all)
        };
        Pages { first: cursor.map(|_| links::query(path, pairs)), next: next.map(with) }
    }
}
