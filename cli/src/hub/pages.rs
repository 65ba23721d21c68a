//! Lists of the hub, page after page. Used by every command that prints a whole list.

use anyhow::Result;
use serde_json::Value;

use super::Hub;

/// As many as the hub gives at once.
const PAGE: usize = 500;

/// A list as it was read.
#[derive(Debug)]
pub struct Pages {
    pub items: Vec<Value>,
    /// The number of the newest change that the first page shows.
    pub tick: Option<i64>,
    /// What the hub says of it, such as why it is empty.
    pub note: Option<String>,
}

impl Hub {
    /// The items that fit, at most so many.
    pub fn list(
        &self,
        path: &[&str],
        parameters: &[(&str, Option<String>)],
        most: usize,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Pages> {
        let mut read = Pages { items: Vec::new(), tick: None, note: None };
        let mut cursor = None;
        loop {
            let size = PAGE.min(most.saturating_sub(read.items.len())).max(1);
            let mut asked = parameters.to_vec();
            asked.extend([("limit", Some(size.to_string())), ("cursor", cursor)]);
            let mut answer = self.get(path, &asked)?;
            read.tick = read.tick.or(answer.tick);
            read.note = read.note.or(answer.note.take());
            if let Value::Array(items) = answer.document["items"].take() {
                read.items.extend(items.into_iter().filter(&fits));
            }
            cursor = answer.document["next"].as_str().map(str::to_owned);
            if cursor.is_none() || read.items.len() >= most {
                read.items.truncate(most);
                return Ok(read);
            }
        }
    }
}
