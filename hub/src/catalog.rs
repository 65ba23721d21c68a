//! The catalog: what an environment consists of, in tables that every hub answers people from. The leader's reconciler calls
//! `update` with what changed; a change of one assignment writes a few rows.

mod rows;
mod values;

pub use rows::problem_labels;
pub use values::StoredValue;

use std::collections::{BTreeMap, HashMap};

use kedge_api::environments::{EnvironmentSummary, EnvironmentTotals, PublishSummary, WaitingRemovals};
use kedge_api::findings::Finding;
use kedge_api::repositories::RepositorySummary;
use kedge_api::source::InputCommit;
use kedge_scheduler::{Delta, Outcome, Scheduler};

use crate::store::catalog::{Changes, Kind, Row};
use crate::store::{Store, StoreError, Term};
use rows::Builder;

/// What the reconciler knows besides the schedule. What isn't told stays as it was.
#[derive(Clone, Debug, Default)]
pub struct CatalogNotes {
    pub inputs: Option<Vec<InputCommit>>,
    pub repositories: Option<Vec<RepositorySummary>>,
    pub published: Option<PublishSummary>,
    pub waiting: Option<Vec<WaitingRemovals>>,
    /// Why assignments (`<cluster type>/<workload>-<target>`) can't be packed: all of them.
    pub pack_quarantines: Option<BTreeMap<String, Vec<Finding>>>,
    /// What else a person should know: hand edits, a declined pull request, a generation that an agent proved.
    pub notices: Option<Vec<Finding>>,
}

/// Rows in one transaction: SQLite's one writer is soon free again.
const CHUNK: usize = 300;

/// So many assignments are compared in one go: a few milliseconds.
const TURN: usize = 50;

/// Above this many changed assignments comparing all is cheaper than asking for each.
const MANY: usize = 200;

/// Names of problems that packing found begin so, those of notices with the other: each is replaced by itself.
const PACK_PROBLEM: &str = "pack-";
const NOTICE: &str = "note-";

/// Brings the rows of an environment up to date; without a delta everything is compared, and only differences are
/// written.
pub async fn update(
    store: &Store,
    term: Term,
    environment: &str,
    scheduler: &Scheduler,
    delta: Option<&Delta>,
    notes: &CatalogNotes,
) -> Result<(), StoreError> {
    let mut writer = Writer { store, term, environment, changes: Changes::default(), written: 0 };
    let mut builder = Builder::new(environment, scheduler);
    let delta = delta.filter(|delta| delta.changed.len() + delta.same.len() + delta.removed.len() <= MANY);

    let structure = builder.structure();
    let same_structure = store.catalog_structure(environment).await?.as_deref() == Some(&structure);
    if delta.is_none() || !same_structure {
        writer.replace(Kind::ClusterType, None, builder.cluster_types()).await?;
        writer.replace(Kind::Workload, None, builder.workloads()).await?;
        writer.replace(Kind::DeploymentTarget, None, builder.targets()).await?;
        writer.changes.structure = (!same_structure).then_some(structure);
    }
    match delta {
        Some(delta) => writer.take(&mut builder, delta).await?,
        None => writer.compare(&mut builder).await?,
    }
    writer.general_problems(&builder).await?;
    writer.take_notes(&builder, notes).await?;
    writer.environment_row(scheduler, notes).await?;
    writer.flush().await?;
    if delta.is_none() || writer.written > MANY {
        store.collect_catalog(term, environment).await?;
    }
    Ok(())
}

/// Takes an environment that is no longer described out of the catalog.
pub async fn forget(store: &Store, term: Term, environment: &str) -> Result<(), StoreError> {
    let mut writer = Writer { store, term, environment, changes: Changes::default(), written: 0 };
    for kind in [
        Kind::Problem,
        Kind::Assignment,
        Kind::DeploymentTarget,
        Kind::Workload,
        Kind::ClusterType,
        Kind::Repository,
        Kind::Environment,
    ] {
        writer.replace(kind, None, Vec::new()).await?;
    }
    writer.changes.structure = Some(String::new());
    writer.flush().await?;
    store.collect_catalog(term, environment).await
}

/// Collects changes and writes them in short transactions.
struct Writer<'a> {
    store: &'a Store,
    term: Term,
    environment: &'a str,
    changes: Changes,
    written: usize,
}

impl Writer<'_> {
    /// The rows of a kind (and parent) become these.
    async fn replace(&mut self, kind: Kind, parent: Option<&str>, rows: Vec<Row>) -> Result<(), StoreError> {
        let known = self.store.catalog_digests(kind, self.environment, parent).await?;
        self.replace_known(kind, known, rows).await
    }

    async fn replace_known(
        &mut self,
        kind: Kind,
        mut known: HashMap<String, String>,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        for row in rows {
            if known.remove(&row.name).is_none_or(|digest| digest != row.digest()) {
                self.changes.rows.push(row);
                self.flush_if_full().await?;
            }
        }
        for (name, _) in known {
            self.changes.removed.push((kind, name));
            self.flush_if_full().await?;
        }
        Ok(())
    }

    /// What an update of the scheduler changed.
    async fn take(&mut self, builder: &mut Builder<'_>, delta: &Delta) -> Result<(), StoreError> {
        for assignment in &delta.changed {
            let (row, values) = builder.assignment(assignment);
            self.changes.rows.push(row);
            self.changes.values.extend(values);
            let name = assignment.id.to_string();
            let mut known = self.store.catalog_digests(Kind::Problem, self.environment, Some(&name)).await?;
            known.retain(|name, _| !name.starts_with(PACK_PROBLEM));
            self.replace_known(Kind::Problem, known, builder.assignment_problems(assignment)).await?;
        }
        if !delta.same.is_empty() {
            // What is rendered is the same, and its values may stand in other lines or win over others.
            let known = self.store.catalog_digests(Kind::Assignment, self.environment, None).await?;
            for assignment in &delta.same {
                let (row, values) = builder.assignment(assignment);
                if known.get(&row.name).is_none_or(|digest| *digest != row.digest()) {
                    self.changes.rows.push(row);
                    self.changes.values.extend(values);
                }
            }
        }
        for id in &delta.removed {
            let name = id.to_string();
            let known = self.store.catalog_digests(Kind::Problem, self.environment, Some(&name)).await?;
            self.replace_known(Kind::Problem, known, Vec::new()).await?;
            self.changes.removed.push((Kind::Assignment, name));
            self.flush_if_full().await?;
        }
        Ok(())
    }

    /// Every assignment against what is stored.
    async fn compare(&mut self, builder: &mut Builder<'_>) -> Result<(), StoreError> {
        let mut rows = self.store.catalog_digests(Kind::Assignment, self.environment, None).await?;
        let mut problems = self.store.catalog_digests(Kind::Problem, self.environment, None).await?;
        let general = self.store.catalog_digests(Kind::Problem, self.environment, Some("")).await?;
        problems.retain(|name, _| !name.starts_with(PACK_PROBLEM) && !general.contains_key(name));
        let assignments = builder.scheduler().schedule().assignments.values();
        for (index, assignment) in assignments.enumerate() {
            if index % TURN == 0 {
                // Comparing thousands takes a while: others have a turn.
                tokio::task::yield_now().await;
            }
            let (row, values) = builder.assignment(assignment);
            if rows.remove(&row.name).is_none_or(|digest| digest != row.digest()) {
                self.changes.rows.push(row);
                self.changes.values.extend(values);
            }
            for row in builder.assignment_problems(assignment) {
                if problems.remove(&row.name).is_none_or(|digest| digest != row.digest()) {
                    self.changes.rows.push(row);
                }
            }
            self.flush_if_full().await?;
        }
        self.replace_known(Kind::Assignment, rows, Vec::new()).await?;
        self.replace_known(Kind::Problem, problems, Vec::new()).await
    }

    async fn general_problems(&mut self, builder: &Builder<'_>) -> Result<(), StoreError> {
        let mut known = self.store.catalog_digests(Kind::Problem, self.environment, Some("")).await?;
        known.retain(|name, _| !name.starts_with(NOTICE));
        self.replace_known(Kind::Problem, known, builder.general_problems()).await
    }

    async fn take_notes(&mut self, builder: &Builder<'_>, notes: &CatalogNotes) -> Result<(), StoreError> {
        if let Some(repositories) = &notes.repositories {
            self.replace(Kind::Repository, None, builder.repositories(repositories)).await?;
        }
        if let Some(notices) = &notes.notices {
            let mut known = self.store.catalog_digests(Kind::Problem, self.environment, Some("")).await?;
            known.retain(|name, _| name.starts_with(NOTICE));
            let rows = notices.iter().map(|notice| builder.noted(NOTICE, None, notice)).collect();
            self.replace_known(Kind::Problem, known, rows).await?;
        }
        let Some(quarantines) = &notes.pack_quarantines else { return Ok(()) };
        // The notes are updates of rows that may be new.
        self.flush().await?;
        let mut noted = self.store.catalog_notes(self.environment).await?;
        for (assignment, reasons) in quarantines {
            let text = rows::json(reasons);
            if noted.remove(assignment).as_ref() != Some(&text) {
                self.changes.notes.push((assignment.clone(), text));
            }
        }
        self.changes.notes.extend(noted.into_keys().map(|assignment| (assignment, String::new())));
        let mut known = self.store.catalog_digests(Kind::Problem, self.environment, None).await?;
        known.retain(|name, _| name.starts_with(PACK_PROBLEM));
        let reasons = quarantines.iter().flat_map(|(name, reasons)| reasons.iter().map(move |reason| (name, reason)));
        let rows = reasons.map(|(name, reason)| builder.noted(PACK_PROBLEM, Some(name), reason)).collect();
        self.replace_known(Kind::Problem, known, rows).await
    }

    async fn environment_row(&mut self, scheduler: &Scheduler, notes: &CatalogNotes) -> Result<(), StoreError> {
        let visible = crate::store::catalog::Visible::All;
        let stored = self.store.catalog_row(Kind::Environment, &visible, self.environment, self.environment).await?;
        let before: EnvironmentSummary =
            stored.and_then(|known| serde_json::from_str(&known.shown.body).ok()).unwrap_or_else(|| {
                EnvironmentSummary { name: self.environment.to_owned(), ..EnvironmentSummary::default() }
            });
        let schedule = scheduler.schedule();
        let quarantined = schedule.assignments.values().filter(|a| matches!(a.outcome, Outcome::Quarantined(_)));
        let (control_plane, gitops) = rows::folders(scheduler);
        let view = EnvironmentSummary {
            name: self.environment.to_owned(),
            control_plane,
            gitops,
            promoted_commit: schedule.promoted_commit.clone(),
            totals: Some(EnvironmentTotals {
                cluster_types: schedule.cluster_types.len() as u64,
                targets: scheduler.targets().count() as u64,
                assignments: schedule.assignments.len() as u64,
                quarantined: quarantined.count() as u64,
                failing_inputs: schedule.failing.len() as u64,
            }),
            inputs: notes.inputs.clone().unwrap_or(before.inputs),
            publish: notes.published.clone().or(before.publish),
            waiting: notes.waiting.clone().unwrap_or(before.waiting),
        };
        let state = if schedule.failing.is_empty() { "good" } else { "failing" };
        let row = rows::plain(Kind::Environment, self.environment, state, rows::json(&view));
        self.replace(Kind::Environment, None, vec![row]).await
    }

    async fn flush_if_full(&mut self) -> Result<(), StoreError> {
        if self.changes.len() >= CHUNK {
            self.flush().await?;
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(());
        }
        self.written += changes.len();
        self.store.write_catalog(self.term, self.environment, &changes).await
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
