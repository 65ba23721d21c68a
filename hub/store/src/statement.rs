//! Statements whose parts depend on what is asked for. Only literal text becomes SQL; every value is bound.

use kedge_hub_types::history::Day;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use super::{Store, StoreError};

/// A statement that is put together from literal parts, with its values.
#[derive(Debug)]
pub struct Statement {
    text: String,
    values: Vec<Bound>,
}

#[derive(Debug)]
enum Bound {
    Text(String),
    Number(i64),
}

impl Statement {
    pub fn new(text: &'static str) -> Statement {
        Statement { text: text.to_owned(), values: Vec::new() }
    }

    pub fn push(&mut self, part: &'static str) {
        self.text.push_str(part);
    }

    pub fn text(&mut self, part: &'static str, value: &str) {
        self.bind(part, Bound::Text(value.to_owned()));
    }

    pub fn number(&mut self, part: &'static str, value: i64) {
        self.bind(part, Bound::Number(value));
    }

    /// `?` stands for the value, wherever it is.
    fn bind(&mut self, part: &'static str, value: Bound) {
        self.values.push(value);
        self.text.push_str(&part.replace('?', &format!("${}", self.values.len())));
    }

    pub fn list(&mut self, before: &'static str, values: &[String], behind: &'static str) {
        self.text.push_str(before);
        for (index, value) in values.iter().enumerate() {
            self.text(if index == 0 { "?" } else { ", ?" }, value);
        }
        // `IN ()` isn't SQL: who has no workspace sees nothing.
        if values.is_empty() {
            self.text.push_str("NULL");
        }
        self.text.push_str(behind);
    }

    /// The table of a day of history.
    pub fn day(&mut self, day: Day) {
        self.text.push_str(&day.to_string());
    }

    pub async fn fetch(self, store: &Store) -> Result<Vec<AnyRow>, StoreError> {
        self.run(store, true).await
    }

    /// The same for a text that is seldom asked again: nobody remembers how.
    pub async fn fetch_once(self, store: &Store) -> Result<Vec<AnyRow>, StoreError> {
        self.run(store, false).await
    }

    async fn run(self, store: &Store, again: bool) -> Result<Vec<AnyRow>, StoreError> {
        let mut query = sqlx::query(AssertSqlSafe(self.text)).persistent(again);
        for value in self.values {
            query = match value {
                Bound::Text(text) => query.bind(text),
                Bound::Number(number) => query.bind(number),
            };
        }
        Ok(query.fetch_all(store.pool()).await?)
    }
}
