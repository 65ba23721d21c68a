//! What depends on a change: each kind of object has its own way to the pairs that must be rendered again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use kedge_model::kinds::{SchedulingPolicy, TargetSelector};
use kedge_model::{AssignmentId, Kind, Labels, ObjectId, Platform, Spec};

use super::{Scheduler, Selected, Touched};
use crate::applies::{self, Place};
use crate::broken::{Scope, scope_of};
use crate::cluster_type::{ClusterTypeState, Library};
use crate::config::Config;
use crate::pairs::Dirty;
use crate::schema::{Compiled as Schema, Labelled};
use crate::target::{Target, Targets};
use crate::template::Compiled;

impl Scheduler {
    /// A changed template, or a Template that broke or was mended, touches the cluster types that name it.
    pub(super) fn refresh_templates(&mut self, touched: &mut Touched) {
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
                touched.objects.insert(object.id());
            }
        }
    }

    pub(super) fn refresh_cluster_types(&mut self, touched: &Touched, dirty: &mut Dirty) {
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

    pub(super) fn refresh_targets(&mut self, touched: &Touched, dirty: &mut Dirty) {
        let kinds = [Kind::Workload, Kind::WorkloadRegistration, Kind::CapabilityMap];
        if !touched.published && !kinds.iter().any(|kind| touched.of_kind(*kind).next().is_some()) {
            return;
        }
        let found = Targets::of(&self.platform);
        self.schedule.workloads = found.workloads;
        self.schedule.disputed = found.disputed;
        self.schedule.targets_elsewhere = found.elsewhere;
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

    pub(super) fn refresh_policies(&mut self, touched: &Touched, dirty: &mut Dirty) {
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
    pub(super) fn refresh_configs(&mut self, touched: &Touched, dirty: &mut Dirty) {
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
            // The reasons of an assignment are in this order, each as often as it is here.
            let (kept, still) = (was.iter().filter(|one| is.contains(one)), is.iter().filter(|one| was.contains(one)));
            let moved = !kept.eq(still.clone());
            let differing =
                was.iter().filter(|one| !is.contains(one)).chain(is.iter().filter(|one| !was.contains(one)));
            for broken in differing.chain(still.filter(|_| moved)) {
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
}

fn policy_of<'a>(platform: &'a Platform, name: &str) -> Option<&'a SchedulingPolicy> {
    let id = ObjectId { kind: Kind::SchedulingPolicy, owner: None, name: name.to_owned() };
    match &platform.objects.get(&id)?.spec {
        Spec::SchedulingPolicy(policy) => Some(policy),
        _ => None,
    }
}

fn chooses(selector: &TargetSelector, target: &Target) -> bool {
    let workspace = selector.workspace.as_deref().unwrap_or_default();
    (workspace.is_empty() || workspace == target.workspace) && selector.labels.matches(&target.labels)
}
