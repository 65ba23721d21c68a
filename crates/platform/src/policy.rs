//! The PromotionPolicy of a control plane's main branch, and what can be said of it and of Pins before anything moves. Read
//! with the environments; checked by `kedge validate` and by the hub.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use kedge_model::kinds::PromotionPolicy;
use kedge_model::{Broken, Kind, Object, Origin, Problem, Spec};

use crate::cache::Cache;
use crate::ignore::Ignore;
use crate::read::Batch;
use crate::tree::{Tree, TreeError};
use crate::walk::problem;
pub use check::{check_chain, check_environment, check_pin_rings, check_pins};

/// What main's head says about promotion.
#[derive(Clone, Debug, Default)]
pub struct DeclaredPolicy {
    pub state: PolicyState,
    /// Of the policy's own files.
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, Default)]
pub enum PolicyState {
    /// All of main was read, and there is none.
    #[default]
    Absent,
    Declared(Arc<Object>),
    /// There is one, or there may be one, that can't be used: the last good one stays.
    Unreadable,
}

impl DeclaredPolicy {
    /// The one policy of a tree of main; `environments` is what its folder of environments holds.
    pub(crate) fn read(tree: &dyn Tree, environments: &Batch, cache: Option<&Cache>) -> DeclaredPolicy {
        match Batch::read(tree, "", Ignore::environment(), None, cache) {
            Ok(main) => DeclaredPolicy::among([&main, environments]),
            Err(TreeError::Missing { .. }) => DeclaredPolicy::among([environments, &Batch::default()]),
            Err(error) => DeclaredPolicy { state: PolicyState::Unreadable, problems: vec![problem(tree, "", &error)] },
        }
    }

    fn among(batches: [&Batch; 2]) -> DeclaredPolicy {
        let objects: Vec<&Arc<Object>> = batches
            .iter()
            .flat_map(|batch| &batch.objects)
            .filter(|object| matches!(object.spec, Spec::PromotionPolicy(_)))
            .collect();
        let broken = || batches.iter().flat_map(|batch| &batch.broken);
        let refused: Vec<&Broken> = broken().filter(|broken| broken.kind == Some(Kind::PromotionPolicy)).collect();
        let places: Vec<&Origin> = objects
            .iter()
            .map(|object| &object.origin)
            .chain(refused.iter().filter_map(|broken| broken.problem.origin.as_ref()))
            .collect();
        let files: BTreeSet<&str> = places.iter().map(|origin| &*origin.file).collect();
        let said = batches.iter().flat_map(|batch| &batch.problems);
        let mut problems: Vec<Problem> = said
            .filter(|problem| problem.origin.as_ref().is_some_and(|origin| files.contains(&*origin.file)))
            .cloned()
            .collect();
        if places.len() > 1 {
            problems.push(several(&places));
        }
        // What nobody can read may be a policy.
        let unknown = broken().any(|broken| broken.kind.is_none()) || batches.iter().any(|batch| batch.is_partial());
        let state = match (objects.as_slice(), places.len()) {
            ([only], 1) => PolicyState::Declared(Arc::clone(only)),
            ([], 0) if !unknown => PolicyState::Absent,
            _ => PolicyState::Unreadable,
        };
        DeclaredPolicy { state, problems }
    }

    /// The policy and where it is written, when there is one that can be used.
    pub fn get(&self) -> Option<(&Arc<Object>, &PromotionPolicy)> {
        let PolicyState::Declared(object) = &self.state else { return None };
        match &object.spec {
            Spec::PromotionPolicy(policy) => Some((object, policy)),
            _ => None,
        }
    }
}

fn several(places: &[&Origin]) -> Problem {
    let shown: Vec<String> = places.iter().map(|origin| origin.at(origin.line, 0).to_string()).collect();
    let message =
        format!("there are {} PromotionPolicies: in {}; none of them is used", places.len(), shown.join(" and in "));
    let mut problem = Problem::error("SeveralPolicies", message);
    problem.origin = places.first().map(|origin| (*origin).clone());
    problem.related = places.iter().skip(1).map(|origin| (*origin).clone()).collect();
    problem.hint("write one chain for all environments, and delete the others")
}
