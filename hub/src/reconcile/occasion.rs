//! What rollouts and names need of a schedule: the head's occasion, why something can't be tried, and whose each name is. Pure; asked
//! by the task of an environment before it packs.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::{Origin, Platform, Tenant};
use kedge_scheduler::{Redaction, Schedule, Scheduler};

use crate::rollout::Occasion;

/// The newest commit that was read, with its first line and author.
#[derive(Clone, Debug, Default)]
pub(super) struct Newest {
    pub commit: String,
    pub subject: String,
    pub author: String,
}

/// `main` is the main commit whose files are all on the branch, `read` the one that was read.
pub(super) fn occasion(scheduler: &Scheduler, newest: Newest, main: Option<String>, read: Option<String>) -> Occasion {
    let Newest { commit, subject, author } = newest;
    let named = scheduler.schedule().assignments.values().map(|assignment| &assignment.target);
    let mut quarantined = quarantined(scheduler);
    // What was good before stays in force for a file of main that can't be used now; the commit hasn't been tried.
    quarantined.extend(main.iter().flat_map(|main| broken_files(scheduler.platform(), main)));
    Occasion {
        subject_of: Some(commit).filter(|commit| !commit.is_empty() && main.as_ref() != Some(commit)),
        main,
        read,
        subject,
        author,
        workloads: named.clone().map(|target| (target.name.to_string(), target.workload.to_string())).collect(),
        workspaces: named.map(|target| (target.name.to_string(), target.workspace.clone())).collect(),
        quarantined,
    }
}

/// Files of a commit of main that can't be used, and why.
fn broken_files<'a>(platform: &'a Platform, main: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    let of_main = move |origin: &&Origin| {
        origin
            .source
            .revision
            .as_deref()
            .and_then(|revision| revision.rsplit_once("sha1:"))
            .is_some_and(|at| at.1 == main)
    };
    platform.problems.iter().filter(|problem| problem.is_error()).filter_map(move |problem| {
        let origin = problem.origin.as_ref().filter(of_main)?;
        Some((origin.file.to_string(), Redaction::default().sentence(&problem.message, [])))
    })
}

/// What can't be rendered, and why. The sentence goes far: into promotions, history, evidence, commit statuses and the log. So
/// it holds no secret from here on.
fn quarantined(scheduler: &Scheduler) -> BTreeMap<String, String> {
    let schedule = scheduler.schedule();
    let mut found = schedule.quarantined().peekable();
    // Reading all schemas for it isn't free.
    if found.peek().is_none() {
        return BTreeMap::new();
    }
    let redaction = Redaction::of([scheduler]);
    found
        .map(|(id, problems)| {
            let assignment = schedule.assignments.get(id).map(AsRef::as_ref);
            let why = problems.first().map(|problem| redaction.sentence(&problem.message, assignment));
            (id.to_string(), why.unwrap_or_default())
        })
        .collect()
}

/// Whose each target's name is.
pub(super) fn tenants(schedule: &Schedule) -> BTreeMap<String, Tenant> {
    let tenant = |assignment: &Arc<kedge_scheduler::Assignment>| {
        let target = &assignment.target;
        let tenant = Tenant {
            registration: target.registration.clone().unwrap_or_default(),
            workload: target.workload.to_string(),
            target: target.short_name.clone(),
        };
        (target.name.to_string(), tenant)
    };
    schedule.assignments.values().map(tenant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::testing::{objects, platform};

    #[test]
    fn why_something_is_quarantined_never_holds_a_secret() {
        let schema = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata: {name: long}\n\
                      spec: {schema: '{\"properties\": {\"DB_PASSWORD\": {\"type\": \"string\", \"minLength\": 30}}}'}\n";
        let mut platform = platform();
        for object in objects(schema, "https://git.example/platform/control-plane", None) {
            platform.objects.insert(object.id(), Arc::new(object));
        }
        let scheduler = Scheduler::new(platform);
        let mut raw = scheduler.schedule().quarantined().flat_map(|(_, problems)| problems);
        assert!(raw.any(|problem| problem.message.contains("hunter2")), "the sentence quotes the value");
        let told = quarantined(&scheduler);
        let why = &told["drone/hello-functional-test"];
        assert!(why.contains("`DB_PASSWORD`: \"[redacted]\" is shorter than 30 characters"), "{why}");
        assert!(told.values().all(|why| !why.contains("hunter2")), "{told:?}");
    }
}
