//! Whose targets are: an agent and a desired state name an assignment, and people ask by workload and workspace. Read from the
//! catalog, remembered for the process; a target that is gone keeps its owner.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kedge_hub_types::history::Entry;
use sqlx::Row as _;

use crate::{StoreError, Tx};

/// A target's workload, and its team.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub workload: String,
    pub workspace: String,
}

#[derive(Debug, Default)]
pub(super) struct Owners(Mutex<HashMap<String, Known>>);

#[derive(Debug)]
struct Known {
    read_at: Instant,
    /// By the target's full name.
    targets: HashMap<String, Owner>,
}

/// A name that isn't known is looked for again after so long: a cluster may name what nobody has.
const AGAIN: Duration = Duration::from_secs(5);
/// A target may get another owner.
const FRESH: Duration = Duration::from_secs(60);

impl Owners {
    pub fn learn(&self, environment: &str, owners: impl IntoIterator<Item = (String, Owner)>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all
            .entry(environment.to_owned())
            .or_insert_with(|| Known { read_at: Instant::now(), targets: HashMap::new() });
        known.read_at = Instant::now();
        known.targets.extend(owners);
    }

    /// Whether the catalog should be asked before these are looked up.
    fn wants(&self, environment: &str, targets: &BTreeSet<&str>) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = all.get(environment) else { return true };
        let age = known.read_at.elapsed();
        age > FRESH || (age > AGAIN && targets.iter().any(|target| !known.targets.contains_key(*target)))
    }

    fn fill(&self, entries: &mut [Entry]) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries.iter_mut().filter(|entry| is_open(entry)) {
            let known = all.get(&entry.place.environment);
            let owner = known.and_then(|known| match target(entry) {
                Some(target) => known.targets.get(target),
                None => known.targets.values().find(|owner| owner.workload == entry.place.workload),
            });
            if let Some(owner) = owner.cloned() {
                (entry.place.workload, entry.place.workspace) = (owner.workload, owner.workspace);
            }
        }
    }
}

impl Tx {
    /// Tells of each entry with an assignment whose that is.
    pub(super) async fn find_owners(&mut self, entries: &mut [Entry]) -> Result<(), StoreError> {
        let mut asked: HashMap<String, BTreeSet<&str>> = HashMap::new();
        for entry in entries.iter().filter(|entry| is_open(entry)) {
            asked.entry(entry.place.environment.clone()).or_default().extend(target(entry));
        }
        let memory = std::sync::Arc::clone(&self.memory);
        let missing: Vec<String> = asked
            .into_iter()
            .filter(|(environment, targets)| memory.owners.wants(environment, targets))
            .map(|(environment, _)| environment)
            .collect();
        for environment in missing {
            let rows = sqlx::query(
                "SELECT name, parent, workspace FROM catalog WHERE kind = 'deployment-target' AND environment = $1",
            );
            let rows = rows.bind(&environment).fetch_all(self.connection()).await?;
            let owner = |row: &sqlx::any::AnyRow| -> Result<(String, Owner), StoreError> {
                Ok((row.try_get(0)?, Owner { workload: row.try_get(1)?, workspace: row.try_get(2)? }))
            };
            memory.owners.learn(&environment, rows.iter().map(owner).collect::<Result<Vec<_>, _>>()?);
        }
        memory.owners.fill(entries);
        Ok(())
    }
}

/// It says what it is about, and not whose that is.
fn is_open(entry: &Entry) -> bool {
    let place = &entry.place;
    match place.workload.is_empty() {
        true => !place.assignment.is_empty(),
        false => place.workspace.is_empty(),
    }
}

/// Without the cluster type.
fn target(entry: &Entry) -> Option<&str> {
    entry.place.assignment.split_once('/').map(|(_, target)| target)
}
