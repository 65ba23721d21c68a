//! The long-lived scheduler: holds a platform and its schedule, takes changed objects, finds the pairs that depend on
//! them and renders only those.

mod findings;
mod refresh;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_model::{AssignmentId, Broken, Failing, Kind, Labels, Object, ObjectId, Platform, Problem, Tenant};

use crate::batch::{Inputs, render_all};
use crate::cluster_type::ClusterTypeState;
use crate::config::Config;
use crate::pairs::{Dirty, Pairs};
use crate::schedule::{Assignment, Schedule};
use crate::schema::{Compiled as Schema, Labelled};
use crate::target::Target;
use crate::template::Compiled;

/// One edit of a platform.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object is new or has changed.
    Upsert(Arc<Object>),
    Remove(ObjectId),
    /// What can't be read now.
    Broken(Vec<Broken>),
    /// Which inputs fail to load now.
    Failing(Vec<Failing>),
    /// Whose published names are now.
    Published(BTreeMap<String, Tenant>),
    /// What the reader has to say now.
    Problems(Vec<Problem>),
}

/// What an update changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Assignments that are new or differ, in order.
    pub changed: Vec<Arc<Assignment>>,
    /// Assignments that were rendered anew and came out as before: where their values come from may have changed.
    pub same: Vec<Arc<Assignment>>,
    pub removed: Vec<AssignmentId>,
    pub cluster_types_added: Vec<Arc<str>>,
    pub cluster_types_removed: Vec<Arc<str>>,
    /// The promoted commit is another one.
    pub promoted: bool,
    /// How many pairs were rendered to find this out.
    pub rendered: usize,
}

/// A platform and its schedule, kept together.
#[derive(Debug)]
pub struct Scheduler {
    platform: Platform,
    places: BTreeMap<Arc<str>, ClusterTypeState>,
    targets: BTreeMap<Arc<str>, Arc<Target>>,
    target_problems: Vec<Problem>,
    policies: BTreeMap<Arc<str>, Selected>,
    templates: BTreeMap<String, Arc<Compiled>>,
    configs: BTreeMap<Arc<str>, Arc<Config>>,
    schemas: BTreeMap<Arc<str>, Arc<Labelled>>,
    own_schemas: HashMap<String, Arc<Schema>>,
    pairs: Pairs,
    schedule: Schedule,
}

/// What a policy selects on each side.
#[derive(Debug, Default)]
struct Selected {
    cluster_types: BTreeSet<Arc<str>>,
    targets: BTreeSet<Arc<str>>,
}

/// From scratch.
pub fn schedule(platform: &Platform) -> Schedule {
    Scheduler::new(platform.clone()).schedule
}

impl Scheduler {
    pub fn new(platform: Platform) -> Scheduler {
        let mut scheduler = Scheduler {
            platform: Platform { environment: platform.environment.clone(), ..Platform::default() },
            places: BTreeMap::new(),
            targets: BTreeMap::new(),
            target_problems: Vec::new(),
            policies: BTreeMap::new(),
            templates: BTreeMap::new(),
            configs: BTreeMap::new(),
            schemas: BTreeMap::new(),
            own_schemas: HashMap::new(),
            pairs: Pairs::default(),
            schedule: Schedule { environment: platform.environment.clone(), ..Schedule::default() },
        };
        let changes = platform.objects.into_values().map(Change::Upsert).chain([
            Change::Broken(platform.broken),
            Change::Failing(platform.failing),
            Change::Published(platform.published),
        ]);
        scheduler.update(changes);
        scheduler.platform.problems = platform.problems;
        scheduler
    }

    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    pub fn platform(&self) -> &Platform {
        &self.platform
    }

    /// A cluster type's name and labels.
    pub(crate) fn place_labels(&self, name: &str) -> Option<(&str, &Labels)> {
        self.places.get_key_value(name).map(|(name, state)| (&**name, &state.labels))
    }

    pub(crate) fn target(&self, name: &str) -> Option<&Target> {
        self.targets.get(name).map(|target| &**target)
    }

    /// ConfigMaps that take part in composition, by name.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &Config> + Clone {
        self.configs.values().map(|config| &**config)
    }

    /// The environment's targets, by full name.
    pub fn targets(&self) -> impl Iterator<Item = &Arc<Target>> {
        self.targets.values()
    }

    /// Full names of the environment's targets.
    pub fn target_names(&self) -> impl Iterator<Item = &str> {
        self.targets.keys().map(|name| &**name)
    }

    /// Takes the changes all at once and renders what depends on them.
    pub fn update(&mut self, changes: impl IntoIterator<Item = Change>) -> Delta {
        let promoted_before = self.promoted_commit().map(str::to_owned);
        let mut touched = Touched::default();
        for change in changes {
            self.take(change, &mut touched);
        }
        let mut dirty = Dirty::new();
        self.refresh_templates(&mut touched);
        self.refresh_cluster_types(&touched, &mut dirty);
        self.refresh_targets(&touched, &mut dirty);
        self.refresh_policies(&touched, &mut dirty);
        self.refresh_configs(&touched, &mut dirty);
        let mut delta = self.render(dirty);
        delta.promoted = promoted_before.as_deref() != self.promoted_commit();
        if touched.more_than_values() {
            self.summarise(&mut delta);
        }
        delta
    }

    fn take(&mut self, change: Change, touched: &mut Touched) {
        match change {
            Change::Upsert(object) => {
                let id = object.id();
                self.platform.objects.insert(id.clone(), object);
                touched.objects.insert(id);
            }
            Change::Remove(id) => {
                self.platform.objects.remove(&id);
                touched.objects.insert(id);
            }
            Change::Broken(broken) => {
                let before = std::mem::replace(&mut self.platform.broken, broken);
                touched.broken_before.get_or_insert(before);
            }
            Change::Failing(failing) => {
                touched.failing |= failing != self.platform.failing;
                self.platform.failing = failing;
            }
            Change::Published(published) => {
                touched.published |= published != self.platform.published;
                self.platform.published = published;
            }
            Change::Problems(problems) => self.platform.problems = problems,
        }
    }

    fn render(&mut self, dirty: Dirty) -> Delta {
        let mut delta = Delta::default();
        let mut work = Vec::with_capacity(dirty.len());
        for id in dirty {
            match self.pairs.policies(&id) {
                Some(policies) => work.push((id, policies.clone())),
                None => {
                    if self.schedule.assignments.remove(&id).is_some() {
                        delta.removed.push(id);
                    }
                }
            }
        }
        delta.rendered = work.len();
        let inputs = Inputs {
            places: &self.places,
            targets: &self.targets,
            configs: &self.configs,
            schemas: &self.schemas,
            own_schemas: &self.own_schemas,
            broken: &self.platform.broken,
        };
        let rendered = render_all(inputs, &work);
        drop(work);
        if self.schedule.assignments.is_empty() {
            delta.changed.clone_from(&rendered);
            self.schedule.assignments =
                rendered.into_iter().map(|assignment| (assignment.id.clone(), assignment)).collect();
            return delta;
        }
        for assignment in rendered {
            let before = self.schedule.assignments.get(&assignment.id);
            if before.is_none_or(|before| **before != *assignment) {
                self.schedule.assignments.insert(assignment.id.clone(), Arc::clone(&assignment));
                delta.changed.push(assignment);
            } else {
                delta.same.push(assignment);
            }
        }
        delta
    }

    /// What the schedule says besides its assignments.
    fn summarise(&mut self, delta: &mut Delta) {
        let cluster_types: BTreeSet<Arc<str>> = self.places.keys().cloned().collect();
        delta.cluster_types_added = cluster_types.difference(&self.schedule.cluster_types).cloned().collect();
        delta.cluster_types_removed = self.schedule.cluster_types.difference(&cluster_types).cloned().collect();
        self.schedule.cluster_types = cluster_types;
        self.schedule.promoted_commit = self.promoted_commit().map(str::to_owned);
        self.schedule.failing.clone_from(&self.platform.failing);
        self.schedule.problems = self.general_problems();
        self.schedule.dormant = self.dormant_problems();
    }

    /// A commit that couldn't be read wasn't promoted.
    fn promoted_commit(&self) -> Option<&str> {
        let lost = self.platform.broken.iter().any(|broken| broken.kind == Some(Kind::BaseRepo));
        self.platform.promoted_commit().filter(|_| !lost)
    }
}

/// What an update is about.
#[derive(Default)]
struct Touched {
    objects: BTreeSet<ObjectId>,
    broken_before: Option<Vec<Broken>>,
    published: bool,
    failing: bool,
}

impl Touched {
    /// ConfigMaps change assignments and nothing else.
    fn more_than_values(&self) -> bool {
        self.published
            || self.failing
            || self.broken_before.is_some()
            || self.objects.iter().any(|id| id.kind != Kind::ConfigMap)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &ObjectId> {
        self.objects.iter().filter(move |id| id.kind == kind)
    }
}
