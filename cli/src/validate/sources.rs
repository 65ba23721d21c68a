//! Sources that the hub would refuse: what a Delivery names outside of what its workspace was granted. Asked for each
//! environment; the hub's own list of hosts and its credentials aren't known here.

use std::collections::BTreeSet;

use kedge_model::Problem;
use kedge_scheduler::Scheduler;

use super::delivered::{Grants, delivery};

/// One problem for a target, however many cluster types it runs on.
pub(super) fn check(scheduler: &Scheduler) -> Vec<Problem> {
    let grants = Grants::of(scheduler);
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (id, assignment) in &scheduler.schedule().assignments {
        let target = &assignment.target;
        let Some(repo) = delivery(assignment).map(|delivery| delivery.source.repo) else { continue };
        let Some(refused) = grants.refuse(target, &repo) else { continue };
        if seen.insert((target.name.clone(), repo)) {
            let message = format!("{id} would be quarantined: {}", refused.reason);
            let mut problem = Problem::error("SourceNotAllowed", message).at(target.origin.clone());
            problem.hint = Some(refused.hint);
            problems.push(problem);
        }
    }
    problems
}
