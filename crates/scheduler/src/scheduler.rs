//! The long-lived scheduler: holds a platform and its schedule, takes changed objects, finds the pairs that depend on
//! them and renders only those.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use kedge_model::name::check_cluster_type_name;
use kedge_model::{AssignmentId, Broken, Failing, Kind, Labels, Object, ObjectId, Platform, Problem, Spec, Tenant};

use crate::applies::{self, Place};
use crate::batch::{Inputs, Scope, render_all, scope_of};
use crate::cluster_type::{ClusterTypeState, Library};
use crate::config::Config;
use crate::pairs::{Dirty, Pairs};
use crate::schedule::{Assignment, Schedule};
use crate::schema::{Compiled as Schema, Labelled};
use crate::target::{Target, Targets};
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
}

/// What an update changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// Assignments that are new or differ, in order.
    pub changed: Vec<Arc<Assignment>>,
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

    /// Full names of the environment's targets.
    pub fn target_names(&self) -> impl Iterator<Item = &str> {
        self.targets.keys().map(|name| &**name)
    }

    /// Takes the changes all at once and renders what depends on them.
    pub fn update(&mut self, changes: impl IntoIterator<Item = Change>) -> Delta {
        let promoted_before = self.platform.promoted_commit().map(str::to_owned);
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
        delta.promoted = promoted_before.as_deref() != self.platform.promoted_commit();
        self.summarise(&mut delta);
        delta
    }

    fn take(&mut self, change: Change, touched: &mut Touched) {
        match change {
            Change::Upsert(object) => {
                let id = object.id();
                let before = self.platform.objects.insert(id.clone(), object);
                touched.objects.entry(id).or_insert(before);
            }
            Change::Remove(id) => {
                let before = self.platform.objects.remove(&id);
                touched.objects.entry(id).or_insert(before);
            }
            Change::Broken(broken) => {
                let before = std::mem::replace(&mut self.platform.broken, broken);
                touched.broken_before.get_or_insert(before);
            }
            Change::Failing(failing) => self.platform.failing = failing,
            Change::Published(published) => {
                touched.published |= published != self.platform.published;
                self.platform.published = published;
            }
        }
    }

    /// A changed template, or a Template that broke or was mended, touches the cluster types that name it.
    fn refresh_templates(&mut self, touched: &mut Touched) {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for id in touched.of_kind(Kind::Template) {
            match self.platform.objects.get(id).and_then(Compiled::of) {
                Some(compiled) => self.templates.insert(id.name.clone(), Arc::new(compiled)),
                None => self.templates.remove(&id.name),
            };
            names.insert(id.name.clone());
        }
        if let Some(before) = &touched.broken_before {
            let broken =
                before.iter().chain(&self.platform.broken).filter(|broken| broken.kind == Some(Kind::Template));
            names.extend(broken.filter_map(|broken| broken.name.clone()));
        }
        if names.is_empty() {
            return;
        }
        for object in self.platform.of_kind(Kind::ClusterType) {
            let Spec::ClusterType(spec) = &object.spec else { continue };
            let named = [Some(&spec.reconciler), Some(&spec.namespace_service), spec.config_type.as_ref()];
            if named.into_iter().flatten().any(|name| names.contains(name)) {
                touched.objects.entry(object.id()).or_insert_with(|| Some(Arc::clone(object)));
            }
        }
    }

    fn refresh_cluster_types(&mut self, touched: &Touched, dirty: &mut Dirty) {
        for id in touched.of_kind(Kind::ClusterType) {
            let name: Arc<str> = Arc::from(id.name.as_str());
            let library = Library { templates: &self.templates, broken: &self.platform.broken };
            let state = self.platform.objects.get(id).and_then(|object| ClusterTypeState::of(object, library));
            for (policy, selected) in &mut self.policies {
                let chosen = state.as_ref().is_some_and(|state| {
                    policy_of(&self.platform, policy).is_some_and(|spec| spec.cluster_types.matches(&state.labels))
                });
                if chosen {
                    selected.cluster_types.insert(Arc::clone(&name));
                } else {
                    selected.cluster_types.remove(&name);
                }
            }
            match state {
                Some(state) => self.places.insert(Arc::clone(&name), state),
                None => self.places.remove(&name),
            };
            self.pairs.clear_row(&name, dirty);
            for (policy, selected) in &self.policies {
                if selected.cluster_types.contains(&name) {
                    for target in &selected.targets {
                        self.pairs.add(&name, target, policy, dirty);
                    }
                }
            }
        }
    }

    fn refresh_targets(&mut self, touched: &Touched, dirty: &mut Dirty) {
        let kinds = [Kind::Workload, Kind::WorkloadRegistration, Kind::CapabilityMap];
        if !touched.published && !kinds.iter().any(|kind| touched.of_kind(*kind).next().is_some()) {
            return;
        }
        let found = Targets::of(&self.platform);
        self.schedule.workloads =
            self.platform.of_kind(Kind::Workload).map(|object| object.meta.name.clone()).collect();
        self.target_problems = found.problems;
        let before = std::mem::replace(&mut self.targets, found.by_name);
        let names: BTreeSet<&Arc<str>> = before.keys().chain(self.targets.keys()).collect();
        let changed: Vec<Arc<str>> = names
            .into_iter()
            .filter(|name| match (before.get(*name), self.targets.get(*name)) {
                (Some(old), Some(new)) => old != new,
                _ => true,
            })
            .cloned()
            .collect();
        for name in changed {
            self.refresh_target(&name, dirty);
        }
        let used: BTreeSet<&String> = self.targets.values().flat_map(|target| &target.schemas).collect();
        self.own_schemas.retain(|text, _| used.contains(text));
        for text in used {
            if !self.own_schemas.contains_key(text) {
                self.own_schemas.insert(text.clone(), Arc::new(Schema::new(text)));
            }
        }
    }

    fn refresh_target(&mut self, name: &Arc<str>, dirty: &mut Dirty) {
        for cluster_type in self.places.keys() {
            let id = AssignmentId { cluster_type: Arc::clone(cluster_type), target: Arc::clone(name) };
            self.pairs.clear(id, dirty);
        }
        let target = self.targets.get(name);
        for (policy, selected) in &mut self.policies {
            let chosen = target.is_some_and(|target| {
                policy_of(&self.platform, policy).is_some_and(|spec| chooses(&spec.targets, target))
            });
            if !chosen {
                selected.targets.remove(name);
                continue;
            }
            selected.targets.insert(Arc::clone(name));
            for cluster_type in &selected.cluster_types {
                self.pairs.add(cluster_type, name, policy, dirty);
            }
        }
    }

    fn refresh_policies(&mut self, touched: &Touched, dirty: &mut Dirty) {
        for id in touched.of_kind(Kind::SchedulingPolicy) {
            let name: Arc<str> = Arc::from(id.name.as_str());
            if let Some(before) = self.policies.remove(&name) {
                for cluster_type in &before.cluster_types {
                    for target in &before.targets {
                        self.pairs.withdraw(cluster_type, target, &name, dirty);
                    }
                }
            }
            let Some(spec) = policy_of(&self.platform, &name) else { continue };
            let selected = Selected {
                cluster_types: self
                    .places
                    .iter()
                    .filter(|(_, state)| spec.cluster_types.matches(&state.labels))
                    .map(|(name, _)| Arc::clone(name))
                    .collect(),
                targets: self
                    .targets
                    .values()
                    .filter(|target| chooses(&spec.targets, target))
                    .map(|target| Arc::clone(&target.name))
                    .collect(),
            };
            for cluster_type in &selected.cluster_types {
                for target in &selected.targets {
                    self.pairs.add(cluster_type, target, &name, dirty);
                }
            }
            self.policies.insert(name, selected);
        }
    }

    /// ConfigMaps, ConfigSchemas, and those that can't be read: the pairs that the old or the new one applies to.
    fn refresh_configs(&mut self, touched: &Touched, dirty: &mut Dirty) {
        for id in touched.of_kind(Kind::ConfigMap) {
            let name: Arc<str> = Arc::from(id.name.as_str());
            let new = self.platform.objects.get(id).and_then(|object| Config::of(object)).map(Arc::new);
            let old = match &new {
                Some(config) => self.configs.insert(name, Arc::clone(config)),
                None => self.configs.remove(&name),
            };
            for config in old.iter().chain(&new) {
                if config.values.is_some() {
                    self.mark(&config.labels, dirty);
                }
                for scoped in config.scoped.iter().flatten() {
                    self.mark(&scoped.labels, dirty);
                }
            }
        }
        for id in touched.of_kind(Kind::ConfigSchema) {
            let name: Arc<str> = Arc::from(id.name.as_str());
            let new = self.platform.objects.get(id).and_then(|object| Labelled::of(object)).map(Arc::new);
            let old = match &new {
                Some(schema) => self.schemas.insert(name, Arc::clone(schema)),
                None => self.schemas.remove(&name),
            };
            for schema in old.iter().chain(&new) {
                self.mark(&schema.labels, dirty);
            }
        }
        if let Some(before) = &touched.broken_before {
            let (was, is) = (before, &self.platform.broken);
            let differing =
                was.iter().filter(|one| !is.contains(one)).chain(is.iter().filter(|one| !was.contains(one)));
            for broken in differing {
                match scope_of(broken) {
                    Scope::Nowhere => {}
                    Scope::Everywhere => dirty.extend(self.pairs.ids().cloned()),
                    Scope::Labels(labels) => self.mark(labels, dirty),
                }
            }
        }
    }

    /// Marks the pairs that labels apply to: asks each cluster type once, then the targets that are left.
    fn mark(&self, labels: &Labels, dirty: &mut Dirty) {
        let mut answers: HashMap<Vec<(&str, &str)>, Vec<&Arc<str>>> = HashMap::new();
        for (name, state) in &self.places {
            let Some(rest) = applies::residual(labels, Place { name, labels: &state.labels }) else { continue };
            if rest.is_empty() {
                dirty.extend(self.pairs.row(name).cloned());
                continue;
            }
            let targets = answers.entry(rest).or_insert_with_key(|rest| {
                let named = rest.iter().find(|(key, _)| *key == "deployment-target").map(|(_, name)| *name);
                let asked: Box<dyn Iterator<Item = &Arc<Target>>> = match named {
                    Some(name) => Box::new(self.targets.get(name).into_iter()),
                    None => Box::new(self.targets.values()),
                };
                asked.filter(|target| applies::satisfied(rest, target.tenancy())).map(|target| &target.name).collect()
            });
            for target in targets {
                let id = AssignmentId { cluster_type: Arc::clone(name), target: Arc::clone(target) };
                if self.pairs.contains(&id) {
                    dirty.insert(id);
                }
            }
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
        self.schedule.promoted_commit = self.platform.promoted_commit().map(str::to_owned);
        self.schedule.failing.clone_from(&self.platform.failing);
        self.schedule.problems = self.general_problems();
    }

    fn general_problems(&self) -> Vec<Problem> {
        let mut problems = self.target_problems.clone();
        for object in self.platform.of_kind(Kind::ClusterType) {
            if let Err(refused) = check_cluster_type_name(&object.meta.name) {
                let message = format!("cluster type `{}` is refused: {refused}", object.meta.name);
                problems.push(Problem::error("NameRefused", message).at(object.origin.clone()));
            }
        }
        for (name, selected) in &self.policies {
            let id = ObjectId { kind: Kind::SchedulingPolicy, owner: None, name: name.to_string() };
            let nothing = match (selected.cluster_types.is_empty(), selected.targets.is_empty()) {
                (false, false) => continue,
                (true, false) => "no cluster type",
                (false, true) => "no deployment target",
                (true, true) => "neither a cluster type nor a deployment target",
            };
            let problem = Problem::warning("PolicySelectsNothing", format!("{id} selects {nothing}"));
            problems.push(match self.platform.objects.get(&id) {
                Some(object) => problem.at(object.origin.clone()),
                None => problem,
            });
        }
        problems
    }
}

/// What an update is about: each object as it was before.
#[derive(Default)]
struct Touched {
    objects: BTreeMap<ObjectId, Option<Arc<Object>>>,
    broken_before: Option<Vec<Broken>>,
    published: bool,
}

impl Touched {
    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &ObjectId> {
        self.objects.keys().filter(move |id| id.kind == kind)
    }
}

fn policy_of<'a>(platform: &'a Platform, name: &str) -> Option<&'a kedge_model::kinds::SchedulingPolicy> {
    let id = ObjectId { kind: Kind::SchedulingPolicy, owner: None, name: name.to_owned() };
    match &platform.objects.get(&id)?.spec {
        Spec::SchedulingPolicy(policy) => Some(policy),
        _ => None,
    }
}

fn chooses(selector: &kedge_model::kinds::TargetSelector, target: &Target) -> bool {
    let workspace = selector.workspace.as_deref().unwrap_or_default();
    (workspace.is_empty() || workspace == target.workspace) && selector.labels.matches(&target.labels)
}
