//! What is wrong or worth saying and stops no assignment by itself.

use std::collections::BTreeSet;

use kedge_model::name::check_cluster_type_name;
use kedge_model::{Kind, ObjectId, Problem, Severity, Spec};

use super::{Scheduler, Selected};
use crate::batch::unusable;

impl Scheduler {
    pub(super) fn general_problems(&self) -> Vec<Problem> {
        let mut problems = self.target_problems.clone();
        for object in self.platform.of_kind(Kind::ClusterType) {
            if let Err(refused) = check_cluster_type_name(&object.meta.name) {
                let message = format!("cluster type `{}` is refused: {refused}", object.meta.name);
                problems.push(Problem::error("NameRefused", message).at(object.origin.clone()));
            }
        }
        // What a failing input would have brought may be just what is missed.
        if !self.platform.failing.is_empty() {
            return problems;
        }
        problems.extend(self.nothing_to_do());
        // With targets on it, each of them says so.
        for (_, state) in self.places.iter().filter(|(name, _)| self.pairs.row(name).next().is_none()) {
            problems.extend(
                state.writers.problems().map(|problem| Problem { severity: Severity::Warning, ..problem.clone() }),
            );
        }
        problems.extend(self.policies.iter().filter_map(|(name, selected)| self.idle_policy(name, selected)));
        problems
    }

    /// An environment in which nothing can run: probably another branch or another name was meant.
    fn nothing_to_do(&self) -> Option<Problem> {
        let environment = &self.platform.environment;
        if self.places.is_empty() {
            let message = format!("environment {environment} has no ClusterType, so nothing can run there");
            return Some(Problem::warning("NoClusterType", message).hint("is this the environment's branch?"));
        }
        if !self.schedule.targets_elsewhere {
            return None;
        }
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for object in self.platform.of_kind(Kind::Workload) {
            if let Spec::Workload(workload) = &object.spec {
                named.extend(workload.targets.iter().map(|target| target.environment.as_str()));
            }
        }
        let named: Vec<&str> = named.into_iter().collect();
        let message = format!("no workload has a target in environment {environment}");
        Some(Problem::warning("NoTarget", message).hint(format!("the targets are in {}", named.join(", "))))
    }

    /// Templates and schemas that can't be used by anybody.
    pub(super) fn dormant_problems(&self) -> Vec<Problem> {
        let templates = self.templates.values().filter_map(|template| template.fault().cloned());
        let schemas = self.schemas.values().filter_map(|schema| {
            schema.schema.fault().map(|fault| unusable(&format!("ConfigSchema {}", schema.name), fault, &schema.origin))
        });
        templates.chain(schemas).collect()
    }

    fn idle_policy(&self, name: &str, selected: &Selected) -> Option<Problem> {
        let nothing = match (selected.cluster_types.is_empty(), selected.targets.is_empty()) {
            (false, false) => return None,
            (true, false) => "no cluster type",
            (false, true) => "no deployment target",
            (true, true) => "neither a cluster type nor a deployment target",
        };
        let id = ObjectId { kind: Kind::SchedulingPolicy, owner: None, name: name.to_owned() };
        let object = self.platform.objects.get(&id)?;
        Some(
            Problem::warning("PolicySelectsNothing", format!("{id} selects {nothing}"))
                .at(object.origin.clone())
                .hint("compare its selectors with the labels; `kedge explain` shows which one a pair lacks"),
        )
    }
}
