//! A plan in plain values: the blast radius first, then each assignment.

use kedge_api::plans::{PlanDetail, PlanProblem, PlannedAssignment, PlannedClusters, PlannedType, PlannedValue};

use crate::web::links;
use crate::web::pages::assignment::plain;
use crate::web::part::{Chip, Place};

pub struct Planned {
    pub summary: String,
    pub taken_for: String,
    pub from: Vec<(&'static str, Chip)>,
    pub to: Vec<(&'static str, Chip)>,
    pub subject: String,
    pub author: String,
    pub pasted: Vec<(String, String)>,
    pub clusters: PlannedClusters,
    pub types: Vec<Type>,
    pub types_added: String,
    pub types_removed: String,
    pub assignments: Vec<Assignment>,
    /// More than are shown.
    pub more: u64,
    pub kept: Vec<(String, String)>,
    pub problems: Vec<Problem>,
    pub nothing: bool,
}

/// A cluster type that the change reaches.
pub struct Type {
    pub name: String,
    pub link: String,
    pub changes: String,
    pub online: u64,
    pub online_link: String,
    pub offline: u64,
    pub offline_link: String,
    /// Removals that a person has to confirm: how many of how many.
    pub waits: Option<(usize, u64)>,
}

pub struct Assignment {
    pub name: String,
    pub link: String,
    pub workload: String,
    pub workload_link: String,
    pub change: String,
    pub class: &'static str,
    pub reasons: Vec<String>,
    pub values: Vec<Value>,
    pub more_values: usize,
    pub files: Vec<(String, String)>,
}

pub struct Value {
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub redacted: bool,
}

pub struct Problem {
    pub new: bool,
    pub error: bool,
    pub message: String,
    pub code: String,
    pub hint: Option<String>,
    pub origin: Option<Place>,
    pub assignment: Option<String>,
}

/// So many are shown: the page stays one that a person reads.
const ASSIGNMENTS: usize = 60;
const VALUES: usize = 12;
const PROBLEMS: usize = 40;

impl Planned {
    pub fn of(view: PlanDetail) -> Planned {
        let environment = view.environment;
        let chips = |environment: &Option<String>, main: &Option<String>| {
            let named = [("branch", environment), ("main", main)];
            let chips = named
                .into_iter()
                .filter_map(|(of, commit)| commit.as_deref().map(|commit| (of, Chip::new(commit, ""))));
            chips.collect::<Vec<_>>()
        };
        let taken_for = match (&view.to.revision, &view.to.of) {
            (Some(revision), Some(of)) => {
                let of = if of == "main" { "main" } else { "the environment's branch" };
                let why = view.to.why.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("{revision} was taken for a revision of {of}{why}.")
            }
            _ => String::new(),
        };
        let (shown, hidden) =
            (view.assignments.len().min(ASSIGNMENTS), view.assignments.len().saturating_sub(ASSIGNMENTS));
        Planned {
            taken_for,
            from: chips(&view.from.environment, &view.from.main),
            to: chips(&view.to.environment, &view.to.main),
            subject: view.to.subject.unwrap_or_default(),
            author: view.to.author.unwrap_or_default(),
            pasted: view
                .pasted
                .into_iter()
                .map(|file| (file.path, format!("{} in {}", file.change, file.of)))
                .collect(),
            summary: view.summary,
            clusters: view.clusters,
            types: view.per_type.into_iter().map(|one| Type::of(&environment, one)).collect(),
            types_added: view.cluster_types_added.join(", "),
            types_removed: view.cluster_types_removed.join(", "),
            nothing: view.assignments.is_empty() && view.kept.is_empty(),
            assignments: view
                .assignments
                .into_iter()
                .take(shown)
                .map(|one| Assignment::of(&environment, one))
                .collect(),
            more: view.left_off + hidden as u64,
            kept: view.kept.into_iter().map(|kept| (kept.name, kept.reason)).collect(),
            problems: view.problems.into_iter().take(PROBLEMS).map(Problem::of).collect(),
        }
    }
}

impl Type {
    fn of(environment: &str, view: PlannedType) -> Type {
        let counts = [
            (view.added, "added"),
            (view.changed, "changed"),
            (view.removed, "removed"),
            (view.quarantined, "quarantined"),
            (view.released, "released"),
        ];
        let changes: Vec<String> =
            counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        let clusters = |condition: &str| {
            let pairs = [("environment", environment), ("clusterType", &view.cluster_type), ("condition", condition)];
            links::query("/clusters", &pairs)
        };
        Type {
            link: links::cluster_type(environment, &view.cluster_type),
            changes: changes.join(", "),
            online: view.clusters.online,
            online_link: clusters("Known"),
            offline: view.clusters.offline,
            offline_link: clusters("Unknown"),
            waits: view.waits.as_ref().map(|waits| (waits.removed.len(), waits.confirmed)),
            name: view.cluster_type,
        }
    }
}

impl Assignment {
    fn of(environment: &str, view: PlannedAssignment) -> Assignment {
        let value = |value: PlannedValue| Value {
            key: value.key,
            before: value.before.as_ref().map(plain),
            after: value.after.as_ref().map(plain),
            redacted: value.redacted,
        };
        Assignment {
            link: links::assignment(environment, &view.name),
            workload_link: links::workload(&view.workload),
            class: match view.change.as_str() {
                "removed" | "quarantined" => "failed",
                "added" | "released" => "converged",
                _ => "converging",
            },
            reasons: view.reasons.into_iter().map(|reason| reason.message).collect(),
            more_values: view.values.len().saturating_sub(VALUES),
            values: view.values.into_iter().take(VALUES).map(value).collect(),
            files: view.files.into_iter().map(|file| (file.name, file.change)).collect(),
            name: view.name,
            workload: view.workload,
            change: view.change,
        }
    }
}

impl Problem {
    fn of(view: PlanProblem) -> Problem {
        Problem {
            new: view.new,
            error: view.finding.severity == "error",
            message: view.finding.message,
            code: view.finding.code,
            hint: view.finding.hint,
            origin: Place::maybe(view.finding.origin.as_ref()),
            assignment: view.assignment,
        }
    }
}
