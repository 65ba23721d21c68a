//! Sources that the hub would refuse: what a Delivery names outside of what its workspace was granted. Asked for each
//! environment; the hub's own list of hosts and its credentials aren't known here.

use std::collections::BTreeSet;

use kedge_model::address::Address;
use kedge_model::decode::{self, Options};
use kedge_model::{Problem, Spec};
use kedge_platform::Grant;
use kedge_scheduler::{Outcome, Scheduler};

/// One problem for a target, however many cluster types it runs on.
pub(super) fn check(scheduler: &Scheduler) -> Vec<Problem> {
    let grants = Grant::all(scheduler.platform(), &|repo| Address::parse(repo).ok());
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for (id, assignment) in &scheduler.schedule().assignments {
        let target = &assignment.target;
        let Some(grant) = target.registration.as_ref().and_then(|name| grants.get(name)) else { continue };
        let Outcome::Rendered(files) = &assignment.outcome else { continue };
        for repo in sources(&files.reconciler, &target.origin) {
            // A relative address is the hub's to judge: it begins at the control plane's own.
            let Ok(Address::Server(server)) = Address::parse(&repo) else { continue };
            let Err(refused) = grant.allow(&server) else { continue };
            if seen.insert((target.name.clone(), repo)) {
                let message = format!("{id} would be quarantined: {}", refused.reason);
                let mut problem = Problem::error("SourceNotAllowed", message).at(target.origin.clone());
                problem.hint = Some(refused.hint);
                problems.push(problem);
            }
        }
    }
    problems
}

/// What the Delivery of a rendered reconciler reads. Others fetch for themselves.
fn sources(reconciler: &str, origin: &kedge_model::Origin) -> Vec<String> {
    if !reconciler.contains("Delivery") {
        return Vec::new();
    }
    let decoded = decode::objects(reconciler.as_bytes(), origin, &Options::default());
    let source = |object: kedge_model::Object| match object.spec {
        Spec::Delivery(delivery) => Some(delivery.source.repo),
        _ => None,
    };
    decoded.objects.into_iter().filter_map(source).collect()
}
