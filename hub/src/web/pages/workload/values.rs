//! The configuration of a workload next to each other: keys from top to bottom, environments from left to right. What runs, and what
//! Git says where that is something else.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::workloads::WorkloadEnvironment;

use crate::api::answer::ApiError;
use crate::api::objects::running_of;
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
    pub values: Vec<Shown>,
}

/// A value of some cluster types.
pub struct Shown {
    /// None: it isn't set there.
    pub text: Option<String>,
    /// Which cluster types and rings, where there are several values.
    pub on: String,
    /// Nobody runs it: Git says so.
    pub git: bool,
}

/// So many assignments of an environment are read: the page stays small and soon there.
const READ: usize = 8;
/// So many keys are shown.
const KEYS: usize = 60;

/// So much of a value; the assignment's page has all of it.
const LENGTH: usize = 160;

/// Each value, whether only Git says it, and the places that have it.
type Places = BTreeMap<(bool, Option<String>), BTreeSet<String>>;

/// By key and environment.
type Found = BTreeMap<String, (bool, BTreeMap<String, Places>)>;

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
                let name = &environment.name;
                let (running, git) = running_of(state, caller, name, &assignment.name).await?;
                let mut add = |key: &str, secret: bool, git: bool, text: Option<String>, place: String| {
                    let (hidden, places) = found.entry(key.to_owned()).or_default();
                    *hidden |= secret;
                    let places = places.entry(name.clone()).or_default();
                    places.entry((git, text.map(shortened))).or_default().insert(place);
                };
                let mut told = false;
                for view in &running.configurations {
                    let groups = || running.rings.iter().filter(|one| one.configuration.as_ref() == Some(&view.id));
                    let rings: Vec<&str> = groups().map(|one| one.ring.as_str()).collect();
                    if rings.is_empty() || view.unknown.is_some() {
                        continue;
                    }
                    told = true;
                    let place = match running.configurations.len() {
                        1 => assignment.cluster_type.clone(),
                        _ => format!("{} ({})", assignment.cluster_type, rings.join(", ")),
                    };
                    for value in &view.values {
                        add(&value.key, value.secret, false, value.value.as_ref().map(plain), place.clone());
                        if value.differs {
                            let git = value.git.as_ref().map(plain);
                            add(&value.key, value.secret, true, git, assignment.cluster_type.clone());
                        }
                    }
                }
                if !told {
                    for value in git {
                        let place = assignment.cluster_type.clone();
                        add(&value.key, value.secret, true, Some(plain(&value.value)), place);
                    }
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
    fn of(environment: &str, values: Places) -> Cell {
        let several = values.len() > 1;
        let value = |((git, text), places): ((bool, Option<String>), BTreeSet<String>)| {
            let places = places.into_iter().collect::<Vec<_>>().join(", ");
            Shown { text, git, on: if several { format!("on {places}") } else { String::new() } }
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
