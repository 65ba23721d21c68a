//! Why: which policies chose a pair and by which labels, where each label came from, and for every value all candidates
//! in order with the place each was written. Computed when asked, from the same code that schedules.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_goyaml::Value;
use kedge_model::kinds::{SchedulingPolicy, Workload};
use kedge_model::selector::Mismatch;
use kedge_model::{AssignmentId, Kind, Labels, Object, ObjectId, Origin, Spec};

use crate::applies::{self, Place};
use crate::capability::Capabilities;
use crate::compose::{Candidates, Item, Values, mergeable};
use crate::scheduler::Scheduler;
use crate::target::{Target, application_labels};

/// All that can be said about a pair, assigned or not.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub id: AssignmentId,
    pub assigned: bool,
    pub policies: Vec<PolicyVerdict>,
    pub cluster_type_labels: Labels,
    pub target_labels: Vec<LabelOrigin>,
    pub config: ConfigExplanation,
}

/// What a policy said about both sides. It chose the pair when nothing is missing.
#[derive(Clone, Debug)]
pub struct PolicyVerdict {
    pub name: String,
    pub origin: Origin,
    /// The selectors, as people write them.
    pub cluster_type_selector: String,
    pub target_selector: String,
    /// `(wanted, found)` when the policy asks for another workspace.
    pub workspace: Option<(String, String)>,
    pub cluster_type_mismatches: Vec<Mismatch>,
    pub target_mismatches: Vec<Mismatch>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelOrigin {
    pub key: String,
    pub value: String,
    pub source: LabelSource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelSource {
    Target(Origin),
    Workload(Origin),
    /// The registration named the workspace.
    Registration(Origin),
    /// A rule of a CapabilityMap gave it.
    Capability {
        map: String,
        origin: Origin,
    },
    /// Every target has it.
    Kedge,
}

/// Every key with its candidates.
#[derive(Clone, Debug, Default)]
pub struct ConfigExplanation {
    pub keys: BTreeMap<Arc<str>, KeyExplanation>,
}

#[derive(Clone, Debug)]
pub struct KeyExplanation {
    /// None when no candidate applies.
    pub value: Option<Arc<Value>>,
    /// Those that apply, in the order of merging; the last one that isn't overridden wins.
    pub candidates: Vec<Candidate>,
    /// ConfigMaps that have the key and don't apply.
    pub skipped: Vec<Skipped>,
}

#[derive(Clone, Debug)]
pub struct Candidate {
    pub config_map: Arc<str>,
    pub origin: Origin,
    pub text: Arc<str>,
    pub effect: CandidateEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateEffect {
    /// Its value is the result.
    Wins,
    /// The result holds parts of it.
    Merged,
    /// A later one replaced it.
    Overridden,
}

#[derive(Clone, Debug)]
pub struct Skipped {
    pub config_map: Arc<str>,
    pub origin: Origin,
    pub text: Arc<str>,
    /// Which labels don't match.
    pub reasons: Vec<String>,
}

/// None when the environment has no such cluster type or no such target.
pub fn explain(scheduler: &Scheduler, cluster_type: &str, target: &str) -> Option<Explanation> {
    let (name, labels) = scheduler.place_labels(cluster_type)?;
    let place = Place { name, labels };
    let target = scheduler.target(target)?;
    let id = AssignmentId { cluster_type: Arc::from(cluster_type), target: Arc::clone(&target.name) };
    Some(Explanation {
        assigned: scheduler.schedule().assignments.contains_key(&id),
        id,
        policies: policies(scheduler, labels, target),
        cluster_type_labels: labels.clone(),
        target_labels: target_labels(scheduler, target),
        config: config(scheduler, place, target),
    })
}

impl PolicyVerdict {
    pub fn chooses(&self) -> bool {
        self.workspace.is_none() && self.cluster_type_mismatches.is_empty() && self.target_mismatches.is_empty()
    }
}

fn policies(scheduler: &Scheduler, labels: &Labels, target: &Target) -> Vec<PolicyVerdict> {
    let verdict = |object: &Arc<Object>, policy: &SchedulingPolicy| PolicyVerdict {
        name: object.meta.name.clone(),
        origin: object.origin.clone(),
        cluster_type_selector: policy.cluster_types.to_string(),
        target_selector: policy.targets.labels.to_string(),
        workspace: policy
            .targets
            .workspace
            .clone()
            .filter(|wanted| !wanted.is_empty() && *wanted != target.workspace)
            .map(|wanted| (wanted, target.workspace.clone())),
        cluster_type_mismatches: policy.cluster_types.mismatch(labels),
        target_mismatches: policy.targets.labels.mismatch(&target.labels),
    };
    scheduler
        .platform()
        .of_kind(Kind::SchedulingPolicy)
        .filter_map(|object| match &object.spec {
            Spec::SchedulingPolicy(policy) => Some(verdict(object, policy)),
            _ => None,
        })
        .collect()
}

fn target_labels(scheduler: &Scheduler, target: &Target) -> Vec<LabelOrigin> {
    let platform = scheduler.platform();
    let workload_id =
        ObjectId { kind: Kind::Workload, owner: target.registration.clone(), name: target.workload.to_string() };
    let Some((object, workload)) = platform.objects.get(&workload_id).and_then(|object| match &object.spec {
        Spec::Workload(workload) => Some((object, workload)),
        _ => None,
    }) else {
        return Vec::new();
    };
    let registration = target.registration.as_ref().and_then(|name| {
        platform.objects.get(&ObjectId { kind: Kind::WorkloadRegistration, owner: None, name: name.clone() })
    });
    let own = own_labels(target, object, workload);
    let capabilities = Capabilities::of(platform);
    let mut given: BTreeMap<String, (String, Origin)> = BTreeMap::new();
    for label in capabilities.given(&own) {
        given.insert(label.key, (label.map, label.origin));
    }
    target
        .labels
        .iter()
        .map(|(key, value)| {
            let source = if let Some((map, origin)) = given.remove(key) {
                LabelSource::Capability { map, origin }
            } else if key == "workspace" {
                registration.map_or(LabelSource::Kedge, |object| LabelSource::Registration(object.origin.clone()))
            } else if key == "workload" {
                LabelSource::Kedge
            } else if object.meta.labels.contains_key(key) {
                LabelSource::Workload(object.origin.clone())
            } else {
                LabelSource::Target(target.origin.clone())
            };
            LabelOrigin { key: key.clone(), value: value.clone(), source }
        })
        .collect()
}

fn own_labels(target: &Target, object: &Object, workload: &Workload) -> Labels {
    workload
        .targets
        .iter()
        .find(|spec| spec.name == target.short_name && spec.environment == target.environment)
        .map(|spec| application_labels(object, spec, &target.workspace))
        .unwrap_or_default()
}

/// Where the values of many assignments come from: what is the same for all targets of a cluster type is found once.
#[derive(Debug)]
pub struct ConfigOrigins<'a> {
    scheduler: &'a Scheduler,
    places: BTreeMap<Arc<str>, Candidates<'a>>,
}

impl<'a> ConfigOrigins<'a> {
    pub fn new(scheduler: &'a Scheduler) -> ConfigOrigins<'a> {
        ConfigOrigins { scheduler, places: BTreeMap::new() }
    }

    /// The keys that apply to an assignment with their candidates; ConfigMaps that don't apply are left out.
    pub fn of(&mut self, id: &AssignmentId) -> Option<ConfigExplanation> {
        let scheduler = self.scheduler;
        let (name, labels) = scheduler.place_labels(&id.cluster_type)?;
        let target = scheduler.target(&id.target)?;
        let candidates = self
            .places
            .entry(Arc::clone(&id.cluster_type))
            .or_insert_with(|| Candidates::on(Place { name, labels }, scheduler.configs()));
        Some(applied(candidates, target))
    }
}

fn config(scheduler: &Scheduler, place: Place<'_>, target: &Target) -> ConfigExplanation {
    let mut explanation = applied(&Candidates::on(place, scheduler.configs()), target);
    for config in scheduler.configs() {
        skip(config, place, target, &mut explanation);
    }
    explanation
}

fn applied(candidates: &Candidates<'_>, target: &Target) -> ConfigExplanation {
    let chosen = candidates.chosen(target.tenancy());
    let mut values: Values = candidates.compose(&chosen).unwrap_or_default();
    let mut explanation = ConfigExplanation::default();
    let mut latest: BTreeMap<Arc<str>, &Value> = BTreeMap::new();
    for item in chosen.iter().filter_map(|index| candidates.item(*index)) {
        item.each(|key, entry| {
            let known = explanation.keys.entry(Arc::clone(key)).or_insert_with(KeyExplanation::empty);
            // Merging never changes what kind of value it is, so the one before tells whether this one merges.
            let effect = match latest.insert(Arc::clone(key), &entry.value) {
                None => CandidateEffect::Wins,
                Some(before) => known.follow(mergeable(before, &entry.value)),
            };
            known.candidates.push(Candidate {
                config_map: Arc::clone(&item.config().name),
                origin: item.config().origin.at(entry.line, 0),
                text: Arc::clone(&entry.text),
                effect,
            });
        });
    }
    for (key, known) in &mut explanation.keys {
        known.value = values.remove(key);
    }
    explanation
}

/// ConfigMaps that don't apply are shown with the labels that keep them away.
fn skip(config: &crate::config::Config, place: Place<'_>, target: &Target, explanation: &mut ConfigExplanation) {
    let mut note = |labels: &Labels, item: Item<'_>| {
        let reasons = applies::mismatches(labels, place, target.tenancy());
        if reasons.is_empty() {
            return;
        }
        item.each(|key, entry| {
            explanation.keys.entry(Arc::clone(key)).or_insert_with(KeyExplanation::empty).skipped.push(Skipped {
                config_map: Arc::clone(&config.name),
                origin: config.origin.at(entry.line, 0),
                text: Arc::clone(&entry.text),
                reasons: reasons.clone(),
            });
        });
    };
    if let Some(values) = &config.values {
        note(&config.labels, Item::Map(config, values));
    }
    for scoped in config.scoped.iter().flatten() {
        note(&scoped.labels, Item::Value(config, scoped));
    }
}

impl KeyExplanation {
    fn empty() -> KeyExplanation {
        KeyExplanation { value: None, candidates: Vec::new(), skipped: Vec::new() }
    }

    /// What a further candidate makes of those before it, and its own effect.
    fn follow(&mut self, merges: bool) -> CandidateEffect {
        let earlier = if merges { CandidateEffect::Merged } else { CandidateEffect::Overridden };
        for candidate in &mut self.candidates {
            if candidate.effect != CandidateEffect::Overridden {
                candidate.effect = earlier;
            }
        }
        if merges { CandidateEffect::Merged } else { CandidateEffect::Wins }
    }
}
