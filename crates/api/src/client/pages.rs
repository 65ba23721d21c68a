//! Lists of the hub, page after page.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Answer, Client, ClientError, Parameters};
use crate::page::Page;

/// As many as the hub gives at once.
const PAGE: usize = 500;

/// The pages of a list: an iterator that asks for the next one when it is wanted.
#[derive(Debug)]
pub struct Pages<'a, T> {
    client: &'a Client,
    path: Vec<String>,
    parameters: Vec<(String, String)>,
    next: Next,
    size: usize,
    of: PhantomData<fn() -> T>,
}

#[derive(Debug)]
enum Next {
    First,
    Behind(String),
    End,
}

/// A list as it was read.
#[derive(Debug)]
pub struct List<T> {
    /// As they came.
    pub items: Vec<Value>,
    /// The number of the newest change that the first page shows.
    pub tick: Option<i64>,
    /// What the hub says of it, such as why it is empty.
    pub note: Option<String>,
    of: PhantomData<fn() -> T>,
}

impl Client {
    pub(super) fn pages<T>(&self, path: &[&str], parameters: &Parameters<'_>) -> Pages<'_, T> {
        let given = parameters.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.clone()?)));
        Pages {
            client: self,
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            parameters: given.collect(),
            next: Next::First,
            size: PAGE,
            of: PhantomData,
        }
    }
}

impl<T> Pages<'_, T> {
    /// The items that fit, at most so many.
    pub fn gather(mut self, most: usize, fits: impl Fn(&Value) -> bool) -> Result<List<T>, ClientError> {
        let mut list = List { items: Vec::new(), tick: None, note: None, of: PhantomData };
        loop {
            self.size = PAGE.min(most.saturating_sub(list.items.len())).max(1);
            let Some(page) = self.next() else { return Ok(list) };
            let mut page = page?;
            list.tick = list.tick.or(page.tick);
            list.note = list.note.or(page.note.take());
            if let Some(Value::Array(items)) = page.document.get_mut("items").map(Value::take) {
                list.items.extend(items.into_iter().filter(&fits));
            }
            if list.items.len() >= most {
                list.items.truncate(most);
                return Ok(list);
            }
        }
    }

    /// The items of all pages.
    pub fn all(self) -> Result<List<T>, ClientError> {
        self.gather(usize::MAX, |_| true)
    }
}

impl<T> Iterator for Pages<'_, T> {
    type Item = Result<Answer<Page<T>>, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::Behind(cursor) => Some(cursor),
            Next::End => return None,
        };
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let mut parameters: Vec<(&str, Option<String>)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), Some(value.clone()))).collect();
        parameters.extend([("limit", Some(self.size.to_string())), ("cursor", cursor)]);
        let answer = self.client.get::<Page<T>>(&path, &parameters);
        if let Ok(answer) = &answer
            && let Some(cursor) = answer.document.get("next").and_then(Value::as_str)
        {
            self.next = Next::Behind(cursor.to_owned());
        }
        Some(answer)
    }
}

impl<T: DeserializeOwned> List<T> {
    pub fn read(&self) -> Result<Vec<T>, ClientError> {
        self.items.iter().map(|item| T::deserialize(item).map_err(|error| ClientError::unreadable(&error))).collect()
    }
}
