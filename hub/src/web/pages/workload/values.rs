//! The configuration of a workload next to each other: keys from top to bottom, environments from left to right.

use std::collections::BTreeMap;

use crate::api::answer::ApiError;
use crate::api::objects::values_of;
use crate::api::overview::WorkloadEnvironment;
use crate::api::{ApiState, Caller};
use crate::web::pages::assignment::plain;

#[derive(Default)]
pub struct Values {
    pub environments: Vec<String>,
    pub rows: Vec<Row>,
    /// Assignments that weren't looked at.
    pub more: usize,
}

pub struct Row {
    pub key: String,
    pub secret: bool,
    /// One for each environment.
    pub cells: Vec<Cell>,
}

pub struct Cell {
    pub environment: String,
    /// Each value, and the cluster types that have it where there are several.
    pub values: Vec<(String, String)>,
}

/// So many assignments of an environment are read: the page stays small and soon there.
const READ: usize = 8;
/// So many keys are shown.
const KEYS: usize = 60;

/// So much of a value; the assignment's page has all of it.
const LENGTH: usize = 160;

/// By key and environment: each value with the cluster types that have it.
type Found = BTreeMap<String, (bool, BTreeMap<String, BTreeMap<String, Vec<String>>>)>;

impl Values {
    pub async fn of(
        state: &ApiState,
        caller: &Caller,
        environments: &[WorkloadEnvironment],
    ) -> Result<Values, ApiError> {
        let (mut found, mut more) = (Found::new(), 0);
        for environment in environments {
            more += environment.assignments.len().saturating_sub(READ);
            for assignment in environment.assignments.iter().take(READ) {
                for value in values_of(state, caller, &environment.name, &assignment.name).await? {
                    let (secret, places) = found.entry(value.key).or_default();
                    *secret |= value.secret;
                    let of = places.entry(environment.name.clone()).or_default();
                    of.entry(shortened(plain(&value.value))).or_default().push(assignment.cluster_type.clone());
                }
            }
        }
        let names: Vec<String> = environments.iter().map(|environment| environment.name.clone()).collect();
        let row = |(key, (secret, mut places)): (String, (bool, BTreeMap<_, _>))| Row {
            key,
            secret,
            cells: names.iter().map(|name| Cell::of(name, places.remove(name).unwrap_or_default())).collect(),
        };
        Ok(Values { rows: found.into_iter().take(KEYS).map(row).collect(), environments: names, more })
    }
}

impl Cell {
    fn of(environment: &str, values: BTreeMap<String, Vec<String>>) -> Cell {
        let several = values.len() > 1;
        let value = |(text, types): (String, Vec<String>)| {
            let on = if several { format!("on {}", types.join(", ")) } else { String::new() };
            (text, on)
        };
        Cell { environment: environment.to_owned(), values: values.into_iter().map(value).collect() }
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
