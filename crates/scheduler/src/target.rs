//! Deployment targets of the environment: full names, composed labels, and who owns a name when two want it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::kinds::{DeploymentTarget, Workload};
use kedge_model::name::check_path_name;
use kedge_model::{Kind, Labels, Object, ObjectId, Origin, Platform, Problem, Spec, Tenant};

use crate::applies::Tenancy;
use crate::capability::Capabilities;
use crate::schedule::Disputed;

/// A target that may be scheduled.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// `<workload>-<target>`
    pub name: Arc<str>,
    pub short_name: String,
    pub workload: Arc<str>,
    pub workspace: String,
    pub registration: Option<String>,
    pub environment: String,
    /// The target's, overwritten by the Workload's, then the platform's, then `workload` and `workspace`.
    pub labels: Labels,
    /// Which of the labels aren't the application's text.
    pub platform_labels: BTreeSet<String>,
    pub manifests: BTreeMap<String, String>,
    /// The target's own JSON Schemas and its Workload's.
    pub schemas: Vec<String>,
    pub origin: Origin,
}

/// All targets of a platform's environment, and what is wrong with the others.
#[derive(Debug, Default)]
pub struct Targets {
    pub by_name: BTreeMap<Arc<str>, Arc<Target>>,
    pub workloads: BTreeSet<String>,
    pub disputed: Disputed,
    /// There are targets, and all of them are in other environments.
    pub elsewhere: bool,
    pub problems: Vec<Problem>,
}

impl Target {
    pub fn tenancy(&self) -> Tenancy<'_> {
        Tenancy { name: &self.name, workload: &self.workload, labels: &self.labels }
    }

    fn tenant(&self) -> Tenant {
        Tenant {
            registration: self.registration.clone().unwrap_or_default(),
            workload: self.workload.to_string(),
            target: self.short_name.clone(),
        }
    }
}

impl Targets {
    pub fn of(platform: &Platform) -> Targets {
        let capabilities = Capabilities::of(platform);
        let mut found = Targets { elsewhere: elsewhere(platform), ..Targets::default() };
        let mut claims: BTreeMap<Arc<str>, Vec<Target>> = BTreeMap::new();
        for object in found.workloads_in_force(platform) {
            let Spec::Workload(workload) = &object.spec else { continue };
            found.workloads.insert(object.meta.name.clone());
            let Some(workspace) = workspace(platform, &object) else { continue };
            for spec in workload.targets.iter().filter(|target| target.environment == platform.environment) {
                let target = compose(&object, workload, spec, &workspace, &capabilities);
                match check_path_name(&target.name) {
                    Ok(()) => claims.entry(Arc::clone(&target.name)).or_default().push(target),
                    Err(refused) => found.problems.push(
                        Problem::error("NameRefused", format!("target `{}` is refused: {refused}", target.name))
                            .at(target.origin),
                    ),
                }
            }
        }
        for (full_name, claimants) in claims {
            found.settle(full_name, claimants, platform);
        }
        found
    }

    /// Workloads with a name of their own. Of two tenants with one name the one that is published keeps it.
    fn workloads_in_force(&mut self, platform: &Platform) -> Vec<Arc<Object>> {
        let mut by_name: BTreeMap<&str, Vec<&Arc<Object>>> = BTreeMap::new();
        for object in platform.of_kind(Kind::Workload) {
            by_name.entry(&object.meta.name).or_default().push(object);
        }
        let holders: BTreeSet<(&str, &str)> = platform
            .published
            .values()
            .map(|tenant| (tenant.workload.as_str(), tenant.registration.as_str()))
            .collect();
        let mut in_force = Vec::new();
        for (name, objects) in by_name {
            if let [only] = objects.as_slice() {
                in_force.push(Arc::clone(only));
                continue;
            }
            let (kept, refused): (Vec<&Arc<Object>>, Vec<_>) = objects
                .into_iter()
                .partition(|object| holders.contains(&(name, object.owner.as_deref().unwrap_or_default())));
            // Two holders would mean that both were published; then neither is the newcomer.
            if let [holder] = kept.as_slice() {
                in_force.push(Arc::clone(holder));
                for object in refused {
                    self.problems.push(name_taken("workload", name, &object.origin, [&holder.origin]));
                }
            } else {
                self.disputed.workloads.insert(name.to_owned());
                let all: Vec<&Arc<Object>> = kept.into_iter().chain(refused).collect();
                for object in &all {
                    let others = all.iter().filter(|other| !Arc::ptr_eq(other, object)).map(|other| &other.origin);
                    self.problems.push(name_taken("workload", name, &object.origin, others));
                }
            }
        }
        in_force
    }

    fn settle(&mut self, full_name: Arc<str>, mut claimants: Vec<Target>, platform: &Platform) {
        if claimants.len() > 1 {
            let holder = platform
                .published
                .get(&*full_name)
                .and_then(|tenant| claimants.iter().position(|target| target.tenant() == *tenant));
            let keeper = holder.map(|index| claimants.swap_remove(index));
            let origins: Vec<Origin> = claimants.iter().map(|target| target.origin.clone()).collect();
            for (index, origin) in origins.iter().enumerate() {
                let others = match &keeper {
                    Some(keeper) => vec![&keeper.origin],
                    None => origins.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, other)| other).collect(),
                };
                self.problems.push(name_taken("target", &full_name, origin, others));
            }
            if keeper.is_none() {
                self.disputed.targets.insert(full_name.to_string());
            }
            claimants = keeper.into_iter().collect();
        }
        if let Some(target) = claimants.pop() {
            self.by_name.insert(full_name, Arc::new(target));
        }
    }
}

fn elsewhere(platform: &Platform) -> bool {
    let mut environments = platform
        .of_kind(Kind::Workload)
        .filter_map(|object| match &object.spec {
            Spec::Workload(workload) => Some(&workload.targets),
            _ => None,
        })
        .flatten()
        .map(|target| &target.environment)
        .peekable();
    environments.peek().is_some() && environments.all(|environment| *environment != platform.environment)
}

/// None when the registration that brought the Workload is gone: then the Workload is not in force either.
fn workspace(platform: &Platform, workload: &Object) -> Option<String> {
    let Some(owner) = &workload.owner else { return Some(String::new()) };
    let id = ObjectId { kind: Kind::WorkloadRegistration, owner: None, name: owner.clone() };
    match &platform.objects.get(&id)?.spec {
        Spec::WorkloadRegistration(registration) => Some(registration.workspace.clone().unwrap_or_default()),
        _ => None,
    }
}

/// The labels that the application chose: the target's, overwritten by the Workload's, and whose it is.
pub fn application_labels(workload: &Object, target: &DeploymentTarget, workspace: &str) -> Labels {
    let mut labels = target.labels.clone();
    labels.extend(workload.meta.labels.iter().map(|(key, value)| (key.clone(), value.clone())));
    labels.insert("workload".to_owned(), workload.meta.name.clone());
    labels.insert("workspace".to_owned(), workspace.to_owned());
    labels
}

fn compose(
    object: &Object,
    workload: &Workload,
    spec: &DeploymentTarget,
    workspace: &str,
    capabilities: &Capabilities<'_>,
) -> Target {
    let mut labels = application_labels(object, spec, workspace);
    let given = capabilities.given(&labels);
    let mut platform_labels = BTreeSet::from(["workspace".to_owned()]);
    platform_labels.extend(given.iter().map(|label| label.key.clone()));
    labels.extend(given.into_iter().map(|label| (label.key, label.value)));
    Target {
        name: Arc::from(format!("{}-{}", object.meta.name, spec.name)),
        short_name: spec.name.clone(),
        workload: Arc::from(object.meta.name.as_str()),
        workspace: workspace.to_owned(),
        registration: object.owner.clone(),
        environment: spec.environment.clone(),
        labels,
        platform_labels,
        manifests: spec.manifests.clone(),
        schemas: spec.config_schemas.iter().chain(&workload.config_schemas).cloned().collect(),
        origin: object.origin.at(spec.line, 0),
    }
}

fn name_taken<'a>(what: &str, name: &str, at: &Origin, others: impl IntoIterator<Item = &'a Origin>) -> Problem {
    let mut problem = Problem::error("NameTaken", format!("{what} name `{name}` is claimed more than once"))
        .at(at.clone())
        .hint(format!("rename one of them: a {what} name is used once in an environment"));
    for other in others {
        problem = problem.also_at(other.clone());
    }
    problem
}
