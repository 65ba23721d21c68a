//! What is wrong or worth saying and stops no assignment by itself.

use kedge_model::name::check_cluster_type_name;
use kedge_model::{Kind, ObjectId, Problem, Severity};

use super::{Scheduler, Selected};

impl Scheduler {
    pub(super) fn general_problems(&self) -> Vec<Problem> {
        let mut problems = self.target_problems.clone();
        for object in self.platform.of_kind(Kind::ClusterType) {
            if let Err(refused) = check_cluster_type_name(&object.meta.name) {
                let message = format!("cluster type `{}` is refused: {refused}", object.meta.name);
                problems.push(Problem::error("NameRefused", message).at(object.origin.clone()));
            }
        }
        // With targets on it, each of them says so.
        for (_, state) in self.places.iter().filter(|(name, _)| self.pairs.row(name).next().is_none()) {
            problems.extend(
                state.writers.problems().map(|problem| Problem { severity: Severity::Warning, ..problem.clone() }),
            );
        }
        // What a failing input would have brought may be just what is selected.
        if self.platform.failing.is_empty() {
            problems.extend(self.policies.iter().filter_map(|(name, selected)| self.idle_policy(name, selected)));
        }
        problems
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
