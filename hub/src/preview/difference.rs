//! Two platforms scheduled one after the other, and what differs, for people. Pure; runs on a thread of its own.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::findings::Finding;
use kedge_api::plans::{
    KeptInput, PlanDetail, PlanProblem, PlannedAssignment, PlannedClusters, PlannedFile, PlannedRemovals, PlannedType,
    PlannedValue,
};
use kedge_hub_types::status::tally::Presence;
use kedge_model::{AssignmentId, Platform, Problem};
use kedge_scheduler::json::value_to_json;
use kedge_scheduler::{
    Assignment, AssignmentChange, FileChange, KeyChange, Plan, PlanChange, Redaction, Schedule, Scheduler, plan,
};

use super::Audience;
use crate::platform::changes;
use crate::publish::{Names, Verdict, judge};
use crate::store::catalog::Visible;

/// A schedule before and after, and what is different.
#[derive(Debug)]
pub(super) struct Difference {
    before: Schedule,
    after: Scheduler,
    plan: Plan,
    redaction: Redaction,
    /// Problems that are there now.
    known: BTreeSet<ProblemKey>,
}

/// What the hub knows of the cluster types.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub clusters: BTreeMap<String, PlannedClusters>,
    pub confirmed: BTreeMap<String, Names>,
    pub published: BTreeMap<String, Names>,
}

/// The same problem in another commit is the same problem.
type ProblemKey = (&'static str, String, Option<String>, Option<String>);

/// More than a person reads; the counts are of all.
const MAX_ASSIGNMENTS: usize = 1000;
const MAX_PROBLEMS: usize = 200;
const MAX_KEPT: usize = 200;

impl Difference {
    pub fn of(before: Platform, after: Platform) -> Difference {
        let redaction = Redaction::of_platforms([&before, &after]);
        let edits = changes(&before, &after);
        let mut scheduler = Scheduler::new(before);
        let before = scheduler.schedule().clone();
        let known = problems(&scheduler).map(|(problem, assignment, _)| key(problem, assignment)).collect();
        scheduler.update(edits);
        let plan = plan(&before, scheduler.schedule());
        Difference { before, after: scheduler, plan, redaction, known }
    }

    pub fn removes(&self) -> bool {
        self.plan.changes.iter().any(|change| change.change == PlanChange::Removed)
    }

    pub fn view(&self, environment: &str, audience: &Audience, facts: &Facts) -> PlanDetail {
        let own: Vec<&AssignmentChange> = self.plan.changes.iter().filter(|one| self.sees(audience, &one.id)).collect();
        let is_whole = audience.visible == Visible::All;
        let per_type = self.per_type(&own, is_whole, facts);
        let mut clusters = PlannedClusters::default();
        per_type.iter().filter(|one| one.reaches()).for_each(|one| clusters.add(&one.clusters));
        let names =
            |names: &[std::sync::Arc<str>]| names.iter().filter(|_| is_whole).map(ToString::to_string).collect();
        let kept = self.plan.kept.iter().filter(|kept| self.sees_folder(audience, &kept.folder));
        PlanDetail {
            environment: environment.to_owned(),
            summary: match is_whole {
                true => self.plan.summary(),
                false => format!("{} of your assignments", own.len()),
            },
            clusters,
            per_type,
            left_off: own.len().saturating_sub(MAX_ASSIGNMENTS) as u64,
            assignments: own.iter().take(MAX_ASSIGNMENTS).map(|change| self.planned(change, audience)).collect(),
            kept: kept
                .take(MAX_KEPT)
                .map(|kept| KeptInput { name: kept.folder.clone(), reason: self.sentence(&kept.reason, audience, []) })
                .collect(),
            cluster_types_added: names(&self.plan.cluster_types_added),
            cluster_types_removed: names(&self.plan.cluster_types_removed),
            problems: self.problems(audience),
            ..PlanDetail::default()
        }
    }

    fn assignment(&self, id: &AssignmentId) -> Option<&Assignment> {
        let after = self.after.schedule().assignments.get(id);
        after.or_else(|| self.before.assignments.get(id)).map(AsRef::as_ref)
    }

    /// The assignment as it was and as it would be: sentences may quote values of either.
    fn both(&self, id: &AssignmentId) -> impl Iterator<Item = &Assignment> {
        let sides = [self.before.assignments.get(id), self.after.schedule().assignments.get(id)];
        sides.into_iter().flatten().map(AsRef::as_ref)
    }

    fn sees(&self, audience: &Audience, id: &AssignmentId) -> bool {
        match &audience.visible {
            Visible::All => true,
            // Whose it is on both sides: nobody learns of what another team would take over.
            Visible::Workspaces(own) => self.both(id).all(|one| own.contains(&one.target.workspace)),
        }
    }

    fn sees_folder(&self, audience: &Audience, folder: &str) -> bool {
        match (&audience.visible, id_of(folder)) {
            (Visible::All, _) => true,
            (Visible::Workspaces(_), Some(id)) => self.assignment(&id).is_some() && self.sees(audience, &id),
            (Visible::Workspaces(_), None) => false,
        }
    }

    fn per_type(&self, own: &[&AssignmentChange], is_whole: bool, facts: &Facts) -> Vec<PlannedType> {
        let mut found: BTreeMap<&str, PlannedType> = BTreeMap::new();
        for change in own {
            let name: &str = &change.id.cluster_type;
            let view = found.entry(name).or_insert_with(|| PlannedType {
                cluster_type: name.to_owned(),
                clusters: facts.clusters.get(name).copied().unwrap_or_default(),
                ..PlannedType::default()
            });
            match &change.change {
                PlanChange::Added => view.added += 1,
                PlanChange::Changed => view.changed += 1,
                PlanChange::Removed => view.removed += 1,
                PlanChange::Quarantined(_) => view.quarantined += 1,
                PlanChange::Released => view.released += 1,
            }
        }
        for (name, view) in &mut found {
            view.waits = self.waits(name, facts).map(|mut waits| {
                if !is_whole {
                    let own = |target: &String| {
                        own.iter().any(|change| *change.id.cluster_type == **name && *change.id.target == **target)
                    };
                    waits.removed.retain(own);
                }
                waits
            });
            view.clusters.waiting = if view.waits.is_some() { view.clusters.total } else { 0 };
        }
        found.into_values().collect()
    }

    /// As the publisher would judge it.
    fn waits(&self, cluster_type: &str, facts: &Facts) -> Option<PlannedRemovals> {
        let changes = || self.plan.changes.iter().filter(|change| *change.id.cluster_type == *cluster_type);
        if !changes().any(|change| change.change == PlanChange::Removed) {
            return None;
        }
        let published = facts.published.get(cluster_type).cloned().unwrap_or_default();
        let mut next = published.clone();
        for change in changes() {
            match change.change {
                PlanChange::Removed => drop(next.remove(&*change.id.target)),
                PlanChange::Added | PlanChange::Released => drop(next.insert(change.id.target.to_string())),
                PlanChange::Changed | PlanChange::Quarantined(_) => {}
            }
        }
        match judge(facts.confirmed.get(cluster_type).unwrap_or(&published), &published, &next, None) {
            Verdict::Waits(removal) => {
                Some(PlannedRemovals { removed: removal.gone.into_iter().collect(), confirmed: removal.of as u64 })
            }
            Verdict::Passes(_) => None,
        }
    }

    fn planned(&self, change: &AssignmentChange, audience: &Audience) -> PlannedAssignment {
        let target = self.assignment(&change.id).map(|assignment| &assignment.target);
        let reasons: &[Problem] = match &change.change {
            PlanChange::Quarantined(reasons) => reasons,
            _ => &[],
        };
        PlannedAssignment {
            name: change.id.to_string(),
            cluster_type: change.id.cluster_type.to_string(),
            target: change.id.target.to_string(),
            workload: target.map(|target| target.workload.to_string()).unwrap_or_default(),
            workspace: target.map(|target| target.workspace.clone()).unwrap_or_default(),
            change: word(&change.change).to_owned(),
            reasons: reasons.iter().map(|reason| self.finding(reason, "render", audience, Some(&change.id))).collect(),
            values: change.keys.iter().map(|key| self.value(key, audience)).collect(),
            files: change.files.iter().map(file).collect(),
        }
    }

    fn value(&self, change: &KeyChange, audience: &Audience) -> PlannedValue {
        let hides = |value: &Option<std::sync::Arc<kedge_goyaml::Value>>| {
            value.as_deref().is_some_and(|value| self.redaction.hides(&change.key, value))
        };
        let redacted = !audience.with_secrets && (hides(&change.old) || hides(&change.new));
        let shown = |value: &Option<std::sync::Arc<kedge_goyaml::Value>>| {
            let value = value.as_deref()?;
            Some(match audience.with_secrets {
                true => value_to_json(value),
                false => value_to_json(&self.redaction.value(&change.key, value)),
            })
        };
        PlannedValue { key: change.key.to_string(), before: shown(&change.old), after: shown(&change.new), redacted }
    }

    fn problems(&self, audience: &Audience) -> Vec<PlanProblem> {
        let mut found: BTreeMap<(bool, bool, ProblemKey), PlanProblem> = BTreeMap::new();
        for (problem, assignment, stage) in problems(&self.after) {
            let visible = match assignment {
                Some(id) => self.sees(audience, id),
                None => audience.visible == Visible::All,
            };
            if !visible {
                continue;
            }
            let key = key(problem, assignment);
            let new = !self.known.contains(&key);
            found.entry((!new, !problem.is_error(), key)).or_insert_with(|| PlanProblem {
                assignment: assignment.map(ToString::to_string).or_else(|| problem.assignment.clone()),
                new,
                finding: self.finding(problem, stage, audience, assignment),
            });
        }
        found.into_values().take(MAX_PROBLEMS).collect()
    }

    fn finding(&self, problem: &Problem, stage: &str, audience: &Audience, id: Option<&AssignmentId>) -> Finding {
        let mut finding = Finding::of(problem, stage);
        let quoted = || id.into_iter().flat_map(|id| self.both(id));
        finding.message = self.sentence(&finding.message, audience, quoted());
        finding.hint = finding.hint.map(|hint| self.sentence(&hint, audience, quoted()));
        finding
    }

    fn sentence<'a>(
        &self,
        text: &str,
        audience: &Audience,
        quoted: impl IntoIterator<Item = &'a Assignment>,
    ) -> String {
        match audience.with_secrets {
            true => text.to_owned(),
            false => self.redaction.sentence(text, quoted),
        }
    }
}

impl Facts {
    pub fn count(&mut self, cluster_type: &str, presence: Presence, count: i64) {
        let count = u64::try_from(count).unwrap_or(0);
        let found = self.clusters.entry(cluster_type.to_owned()).or_default();
        match presence {
            Presence::Unknown => found.offline += count,
            Presence::Joined | Presence::Reporting => found.online += count,
        }
        found.total += count;
    }
}

/// Everything that is wrong or worth a warning, with its assignment and where it was found.
fn problems(side: &Scheduler) -> impl Iterator<Item = (&Problem, Option<&AssignmentId>, &'static str)> {
    let (platform, schedule) = (side.platform(), side.schedule());
    let failing = platform.failing.iter().map(|failing| &failing.problem);
    let broken = platform.broken.iter().map(|broken| &broken.problem);
    let loading = platform.problems.iter().chain(failing).chain(broken).map(|problem| (problem, None, "load"));
    let general = schedule.problems.iter().chain(&schedule.dormant).map(|problem| (problem, None, "render"));
    let quarantined = schedule
        .quarantined()
        .flat_map(|(id, reasons)| reasons.iter().map(move |problem| (problem, Some(id), "render")));
    let warnings = schedule.assignments.values().flat_map(|assignment| {
        assignment.warnings.iter().map(move |problem| (problem, Some(&assignment.id), "render"))
    });
    loading.chain(general).chain(quarantined).chain(warnings)
}

fn key(problem: &Problem, assignment: Option<&AssignmentId>) -> ProblemKey {
    let file = problem.origin.as_ref().map(|origin| origin.file.to_string());
    (problem.code, problem.message.clone(), file, assignment.map(ToString::to_string))
}

fn id_of(folder: &str) -> Option<AssignmentId> {
    let (cluster_type, target) = folder.split_once('/')?;
    Some(AssignmentId { cluster_type: cluster_type.into(), target: target.into() })
}

fn word(change: &PlanChange) -> &'static str {
    match change {
        PlanChange::Added => "added",
        PlanChange::Changed => "changed",
        PlanChange::Removed => "removed",
        PlanChange::Quarantined(_) => "quarantined",
        PlanChange::Released => "released",
    }
}

fn file(change: &FileChange) -> PlannedFile {
    let word = match (&change.old, &change.new) {
        (None, _) => "added",
        (_, None) => "removed",
        (Some(_), Some(_)) => "changed",
    };
    PlannedFile { name: change.name.to_owned(), change: word.to_owned() }
}
