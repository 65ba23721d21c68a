//! The result: every assignment with its policies, configuration and files, or the reasons why it has none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::{AssignmentId, Failing, Problem};

use crate::compose::{TooMuch, Values};
use crate::files::{Files, PROMOTED_COMMIT, README, README_TEXT};
use crate::target::Target;

/// What an environment should look like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    pub environment: String,
    pub cluster_types: BTreeSet<Arc<str>>,
    pub assignments: BTreeMap<AssignmentId, Arc<Assignment>>,
    /// The commit of BaseRepo main; none while it can't be loaded.
    pub promoted_commit: Option<String>,
    /// What stops no assignment by itself: refused names, policies that select nothing.
    pub problems: Vec<Problem>,
    /// Inputs that failed to load: what they may have said is not deleted.
    pub failing: Vec<Failing>,
    /// Templates and schemas that can't be used by anybody. Those that somebody uses are reasons of assignments too.
    pub dormant: Vec<Problem>,
    /// Names of the workloads in force, with targets in this environment or not.
    pub workloads: BTreeSet<String>,
    /// Names that are claimed more than once: nobody gets them, and what is published under them stays.
    pub disputed: Disputed,
    /// Workloads have targets, and none of them is in this environment: probably another name was meant.
    pub targets_elsewhere: bool,
}

/// Names that nobody gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disputed {
    pub workloads: BTreeSet<String>,
    /// Full names.
    pub targets: BTreeSet<String>,
}

/// A deployment target on a cluster type.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub id: AssignmentId,
    pub target: Arc<Target>,
    /// Every policy that chose the pair, by name.
    pub policies: Vec<Arc<str>>,
    pub configuration: Arc<Configuration>,
    pub outcome: Outcome,
    /// What is worth saying and stops nothing.
    pub warnings: Vec<Problem>,
}

/// The composed values of an assignment; assignments to which the same ConfigMaps apply share one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    pub values: Values,
    /// The key whose values were too much to merge; then there are no values.
    pub too_much: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Rendered(Files),
    /// Keeps its published files and what runs, until it is mended.
    Quarantined(Vec<Problem>),
}

impl Configuration {
    pub(crate) fn of(composed: Result<Values, TooMuch>) -> Configuration {
        match composed {
            Ok(values) => Configuration { values, too_much: None },
            Err(too_much) => Configuration { values: Values::new(), too_much: Some(too_much.key) },
        }
    }
}

impl Schedule {
    /// Every file of the environment's branch that is ours, by path.
    pub fn files(&self) -> impl Iterator<Item = (String, Arc<str>)> {
        let tracking = self.promoted_commit.as_deref().map(|commit| (PROMOTED_COMMIT.to_owned(), Arc::from(commit)));
        let readme: Arc<str> = Arc::from(README_TEXT);
        let readmes = self.cluster_types.iter().map(move |name| (format!("{name}/{README}"), Arc::clone(&readme)));
        let rendered = self.assignments.values().flat_map(|assignment| assignment.paths());
        tracking.into_iter().chain(readmes).chain(rendered)
    }

    pub fn quarantined(&self) -> impl Iterator<Item = (&AssignmentId, &[Problem])> {
        self.assignments.values().filter_map(|assignment| match &assignment.outcome {
            Outcome::Quarantined(reasons) => Some((&assignment.id, reasons.as_slice())),
            Outcome::Rendered(_) => None,
        })
    }

    /// Everything that is wrong or worth a warning: the schedule's own, then each assignment's.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        let reasons = self.assignments.values().flat_map(|assignment| {
            let quarantine = match &assignment.outcome {
                Outcome::Quarantined(reasons) => reasons.as_slice(),
                Outcome::Rendered(_) => &[],
            };
            quarantine.iter().chain(&assignment.warnings)
        });
        self.problems.iter().chain(reasons)
    }
}

impl Assignment {
    pub fn files(&self) -> Option<&Files> {
        match &self.outcome {
            Outcome::Rendered(files) => Some(files),
            Outcome::Quarantined(_) => None,
        }
    }

    fn paths(&self) -> impl Iterator<Item = (String, Arc<str>)> {
        let files = self.files().into_iter().flat_map(|files| files.iter());
        files.map(|(name, text)| (format!("{}/{name}", self.id), Arc::clone(text)))
    }
}
