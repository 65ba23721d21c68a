//! What would be refused on the way: for each assignment that Kedge itself delivers, its content is read where the Delivery names it and
//! judged as the agent would. What can't be read or told is noted by name, and stops nothing. Asked for each environment.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::address::{Address, Refused};
use kedge_model::decode::{self, Options};
use kedge_model::kinds::{Delivery, Destination};
use kedge_model::{AssignmentId, Origin, Problem, Spec};
use kedge_platform::{Grant, Repositories, Request, Tree};
use kedge_scheduler::{Assignment, Outcome, Scheduler, Target};

use super::folder::Folder;
use super::{host, kubernetes};

/// The content that assignments deliver; each repository is opened once, whoever names it.
#[derive(Default)]
pub(super) struct Contents {
    opened: BTreeMap<Request, Result<Box<dyn Tree>, String>>,
    /// What wasn't judged: why, and of which assignments.
    pub unchecked: BTreeMap<String, BTreeSet<String>>,
}

/// What the workspaces of an environment were granted, by registration.
pub(super) struct Grants(BTreeMap<String, std::sync::Arc<Grant>>);

impl Contents {
    pub fn check(&mut self, scheduler: &Scheduler, repositories: &dyn Repositories) -> Vec<Problem> {
        let grants = Grants::of(scheduler);
        let mut problems = Vec::new();
        for (id, assignment) in &scheduler.schedule().assignments {
            let Some(delivery) = delivery(assignment) else { continue };
            // That is an error of its own, and nobody but the platform team decides what is fetched.
            if grants.refuse(&assignment.target, &delivery.source.repo).is_some() {
                continue;
            }
            match self.judge(id, assignment, &delivery, scheduler, repositories) {
                Ok(found) => {
                    let of_assignment = |problem| Problem { assignment: Some(id.to_string()), ..problem };
                    problems.extend(found.into_iter().map(of_assignment));
                }
                Err(why) => drop(self.unchecked.entry(why).or_default().insert(id.to_string())),
            }
        }
        problems
    }

    /// An error says why it can't be told.
    fn judge(
        &mut self,
        id: &AssignmentId,
        assignment: &Assignment,
        delivery: &Delivery,
        scheduler: &Scheduler,
        repositories: &dyn Repositories,
    ) -> Result<Vec<Problem>, String> {
        let Outcome::Rendered(files) = &assignment.outcome else { return Ok(Vec::new()) };
        let request = Request::of_source(&delivery.source);
        let open = || repositories.open(&request).map_err(|error| error.to_string());
        let opened = self.opened.entry(request.clone()).or_insert_with(open);
        let tree = opened.as_deref().map_err(|why| why.clone())?;
        let folder = Folder::open(tree, &delivery.source.path).map_err(|error| format!("{request}: {error}"))?;
        let found = match delivery.to {
            Destination::Host => {
                // On a host are those of its cluster type.
                let beside = scheduler.schedule().assignments.keys().filter(|one| one.cluster_type == id.cluster_type);
                let names = beside.map(|one| &*one.target).collect();
                host::check(id, files, delivery, &folder, &names, || namespace_template(scheduler, id))
            }
            Destination::Kubernetes => kubernetes::check(id, files, delivery, &folder),
        };
        found.map_err(|why| format!("{request}: {why}"))
    }
}

impl Grants {
    pub fn of(scheduler: &Scheduler) -> Grants {
        Grants(Grant::all(scheduler.platform(), &|repo| Address::parse(repo).ok()))
    }

    /// Why the hub wouldn't fetch it for the target; none: it may, or only the hub can tell. A relative address is the hub's to judge: it
    /// begins at the control plane's own.
    pub fn refuse(&self, target: &Target, repo: &str) -> Option<Refused> {
        let grant = self.0.get(target.registration.as_ref()?)?;
        let server = match Address::parse(repo) {
            Ok(Address::Server(server)) => server,
            Ok(Address::Local(_)) => return None,
            Err(refused) => return repo.contains("://").then_some(refused),
        };
        grant.allow(&server).err()
    }
}

/// The Delivery of a rendered reconciler. Others fetch for themselves.
pub(super) fn delivery(assignment: &Assignment) -> Option<Delivery> {
    let Outcome::Rendered(files) = &assignment.outcome else { return None };
    if !files.reconciler.contains("Delivery") {
        return None;
    }
    let decoded = decode::objects(files.reconciler.as_bytes(), &assignment.target.origin, &Options::default());
    decoded.objects.into_iter().find_map(|object| match object.spec {
        Spec::Delivery(delivery) => Some(delivery),
        _ => None,
    })
}

/// Where the platform team writes the namespace of a cluster type.
fn namespace_template(scheduler: &Scheduler, id: &AssignmentId) -> Option<Origin> {
    let objects = scheduler.platform().objects.values();
    let service = objects.clone().find_map(|object| match &object.spec {
        Spec::ClusterType(cluster_type) if *object.meta.name == *id.cluster_type => {
            Some(cluster_type.namespace_service.clone())
        }
        _ => None,
    })?;
    let mut templates = objects.filter(|object| matches!(object.spec, Spec::Template(_)));
    templates.find(|object| object.meta.name == service).map(|object| object.origin.clone())
}
