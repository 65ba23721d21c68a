//! Records of earlier agents, which applied a workload's objects as themselves where the Delivery named no account. The agent hasn't the
//! rights for that any more: such objects are compared, put back and pruned as the account of their namespace.

use kedge_model::kinds::Scope;
use kedge_model::wire::ApplyParameters;

use super::accounts;
use crate::goal::{ObjectGoal, ObjectTerms, Part};
use crate::record::{Record, Running, Transaction};
use crate::step::Step;

/// Every object of the record is somebody's.
pub fn adopt(record: &mut Record) {
    let confined = |running: &Running| is_confined(&running.packages.parameters);
    let was = record.running.as_ref().is_some_and(confined);
    if let Some(running) = &mut record.running {
        adopt_running(running);
    }
    for transaction in record.transaction.iter_mut().chain(&mut record.last) {
        let Transaction { wanted, forward, back, .. } = transaction;
        // A removal is of what ran.
        if wanted.as_deref().map_or(was, confined) {
            forward.iter_mut().chain(back).for_each(adopt_step);
        }
        if let Some(wanted) = wanted {
            adopt_running(wanted);
        }
    }
}

fn is_confined(parameters: &ApplyParameters) -> bool {
    parameters.scope == Scope::Namespace && parameters.service_account.is_none()
}

fn adopt_running(running: &mut Running) {
    if is_confined(&running.packages.parameters) {
        running.goal.objects.iter_mut().chain(&mut running.original.objects).for_each(adopt_object);
    }
}

fn adopt_step(step: &mut Step) {
    if let Step::PutObjects { objects } | Step::RemoveObjects { objects } = step {
        objects.iter_mut().for_each(adopt_object);
    }
}

fn adopt_object(object: &mut ObjectGoal) {
    if let (None, Part::Workload, Some(namespace)) = (&object.account, object.part, &object.id.namespace) {
        let account = Some(accounts::user(namespace));
        *object = ObjectTerms { account, ..ObjectTerms::clone(object) }.into();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use kedge_model::wire::{Digest, Generation, PackagesKey, Timestamp};

    use super::*;
    use crate::goal::{Goal, ObjectId, OnDrift, Stage};
    use crate::record::Original;

    fn object(part: Part, account: Option<&str>) -> ObjectGoal {
        let id = ObjectId {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "colours".to_owned(),
        };
        let (content, stage, account) = (Digest::of(b""), Stage::Rest, account.map(str::to_owned));
        let drift = OnDrift::Repair;
        ObjectTerms { id, content, part, stage, account, take: false, keep: false, recreate: false, drift }.into()
    }

    fn record(scope: Scope) -> Record {
        let all = vec![object(Part::Platform, None), object(Part::Workload, None), object(Part::Workload, Some("u"))];
        let goal = Goal { objects: all.clone(), ..Goal::default() };
        let mut packages = crate::engine::tests::packages("one");
        (packages.parameters.scope, packages.parameters.service_account) = (scope, None);
        let running = Running {
            key: PackagesKey::of_observed(&Digest::of(b"")),
            packages,
            generation: Generation(1),
            restart: 0,
            since: Timestamp(0),
            goal,
            original: Original { objects: all, ..Original::default() },
        };
        Record { running: Some(running), ..Record::default() }
    }

    fn accounts(objects: &[ObjectGoal]) -> Vec<Option<&str>> {
        objects.iter().map(|one| one.account.as_deref()).collect()
    }

    #[test]
    fn what_ran_without_an_account_is_the_namespaces_from_now_on() {
        let mut record = record(Scope::Namespace);
        adopt(&mut record);
        let running = record.running.unwrap();
        let expected = [None, Some("system:serviceaccount:shop:kedge-workload"), Some("u")];
        assert_eq!(accounts(&running.goal.objects), expected);
        assert_eq!(accounts(&running.original.objects), expected);
    }

    #[test]
    fn what_may_be_anywhere_stays_the_agents() {
        let mut record = record(Scope::Cluster);
        adopt(&mut record);
        assert_eq!(accounts(&record.running.unwrap().goal.objects), [None, None, Some("u")]);
    }
}
