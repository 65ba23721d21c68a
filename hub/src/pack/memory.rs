//! What an environment's assignments came to last time, so that only what changed is packed again. In memory; the
//! packages themselves are remembered in the database too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gix::ObjectId;
use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_model::Problem;
use kedge_model::wire::{Observation, Packages};

use super::Origin;
use super::branch::{Listed, ListedType};
use super::platform::Note;
use super::workload::program::RENDERER_AWAY;

/// One environment's memory; held while it is packed.
pub(super) type EnvironmentMemory = Arc<tokio::sync::Mutex<Remembered>>;

#[derive(Debug, Default)]
pub(super) struct Remembered {
    types: BTreeMap<String, RememberedType>,
    /// Pinned content by the key of its row.
    pub pinned: BTreeMap<String, Arc<Packages>>,
}

#[derive(Debug)]
struct RememberedType {
    listed: ListedType,
    assignments: BTreeMap<String, Arc<Known>>,
    packed: Arc<PackedType>,
    problems: Vec<Problem>,
}

/// What an assignment's inputs came to.
#[derive(Debug)]
pub(super) struct Known {
    /// Its folder's tree and the source's commit.
    pub inputs: Inputs,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inputs {
    pub folder: ObjectId,
    /// None: it needs no source, or the source failed.
    pub commit: Option<String>,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Apply {
        packages: Arc<Packages>,
        notes: Vec<Note>,
        key: String,
    },
    Observe(Arc<Observation>),
    /// `again`: when the same inputs may come to something else.
    Quarantined {
        problems: Vec<Problem>,
        again: Again,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Again {
    /// Only other inputs help.
    Never,
    /// The reason may pass by itself: a download, a program that is installed.
    Always,
    At(Instant),
}

/// A program that failed may have lacked time or memory.
const RENDER_PAUSE: Duration = Duration::from_secs(10 * 60);

impl Remembered {
    pub fn listed(&self) -> BTreeMap<String, ListedType> {
        self.types.iter().map(|(name, known)| (name.clone(), known.listed.clone())).collect()
    }

    /// What is known of an assignment, if its inputs are the same and trying again wouldn't help.
    pub fn get(&self, cluster_type: &str, assignment: &str, inputs: &Inputs) -> Option<Arc<Known>> {
        let known = self.types.get(cluster_type)?.assignments.get(assignment)?;
        let settled = match &known.outcome {
            Outcome::Quarantined { again, .. } => again.is_settled(),
            _ => true,
        };
        (known.inputs == *inputs && settled).then(|| Arc::clone(known))
    }

    /// Takes what all assignments came to in place of what was known.
    pub fn replace(&mut self, listed: &Listed, mut all: BTreeMap<String, BTreeMap<String, Arc<Known>>>) {
        let mut types = BTreeMap::new();
        for (name, listed) in &listed.types {
            let assignments = all.remove(name).unwrap_or_default();
            let before = self.types.remove(name).filter(|before| {
                before.assignments.len() == assignments.len()
                    && assignments.iter().all(|(name, known)| {
                        before.assignments.get(name).is_some_and(|before| Arc::ptr_eq(before, known))
                    })
            });
            let remembered = match before {
                Some(before) => RememberedType { listed: listed.clone(), ..before },
                None => RememberedType::new(name, listed.clone(), assignments),
            };
            types.insert(name.clone(), remembered);
        }
        self.types = types;
    }

    pub fn packed(&self) -> (BTreeMap<String, Arc<PackedType>>, Vec<Problem>) {
        let types = self.types.iter().map(|(name, known)| (name.clone(), Arc::clone(&known.packed))).collect();
        (types, self.types.values().flat_map(|known| known.problems.iter().cloned()).collect())
    }

    pub fn origins(&self) -> BTreeMap<String, Arc<BTreeMap<String, Origin>>> {
        self.types.iter().map(|(name, known)| (name.clone(), Arc::clone(&known.listed.origins))).collect()
    }

    /// Keys of the database's rows that are in use.
    pub fn keys(&self) -> Vec<String> {
        let known = self.types.values().flat_map(|known| known.assignments.values());
        let keys = known.filter_map(|known| match &known.outcome {
            Outcome::Apply { key, .. } => Some(key.clone()),
            _ => None,
        });
        keys.chain(self.pinned.keys().cloned()).collect()
    }

    pub fn has_pinned(&self) -> bool {
        !self.pinned.is_empty()
    }
}

impl RememberedType {
    fn new(name: &str, listed: ListedType, assignments: BTreeMap<String, Arc<Known>>) -> RememberedType {
        let (mut packed, mut problems) = (PackedType::new(), Vec::new());
        for (assignment, known) in &assignments {
            let mut say = |mut problem: Problem| {
                problem.assignment = Some(format!("{name}/{assignment}"));
                problems.push(problem);
            };
            let entry = match &known.outcome {
                Outcome::Apply { packages, notes, .. } => {
                    notes.iter().map(Note::problem).for_each(&mut say);
                    PackedEntry::Apply(Arc::clone(packages))
                }
                Outcome::Observe(observation) => PackedEntry::Observe(Arc::clone(observation)),
                Outcome::Quarantined { problems, .. } => {
                    problems.iter().cloned().for_each(&mut say);
                    PackedEntry::Quarantined
                }
            };
            packed.insert(assignment.clone(), entry);
        }
        RememberedType { listed, assignments, packed: Arc::new(packed), problems }
    }
}

impl Again {
    /// By the reasons' codes.
    pub fn of(problems: &[Problem]) -> Again {
        let has = |codes: &[&str]| problems.iter().any(|problem| codes.contains(&problem.code));
        if has(&[
            "ProgramMissing",
            "SandboxMissing",
            RENDERER_AWAY,
            "ArtifactPending",
            "ArtifactFailed",
            "SourceUnreadable",
            "SourceFailing",
            "SourceNotAllowed",
        ]) {
            return Again::Always;
        }
        match has(&["RenderingFailed"]) {
            true => Again::At(Instant::now() + RENDER_PAUSE),
            false => Again::Never,
        }
    }

    fn is_settled(self) -> bool {
        match self {
            Again::Never => true,
            Again::Always => false,
            Again::At(time) => Instant::now() < time,
        }
    }
}
