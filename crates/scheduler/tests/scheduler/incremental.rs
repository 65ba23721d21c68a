//! After any sequence of edits the long-lived scheduler has the schedule that one from scratch would make.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::{Platform, Tenant};
use kedge_scheduler::{Change, Scheduler, schedule};

use proptest::prelude::*;

use crate::platforms::{self, Dice};

/// One random edit of any kind of object, or of what is broken or published.
fn edit(dice: &mut Dice, platform: &Platform) -> Change {
    match dice.roll(12) {
        0 | 1 if !platform.objects.is_empty() => {
            let at = dice.roll(platform.objects.len());
            Change::Remove(platform.objects.keys().nth(at).unwrap().clone())
        }
        2 => Change::Broken((0..dice.roll(3)).map(|_| platforms::broken(dice)).collect()),
        3 => {
            let tenant = |dice: &mut Dice| Tenant {
                registration: platforms::pick(dice, &platforms::REGISTRATIONS),
                workload: platforms::pick(dice, &platforms::WORKLOADS),
                target: platforms::pick(dice, &platforms::TARGETS),
            };
            let published: BTreeMap<String, Tenant> = (0..dice.roll(3))
                .map(|_| tenant(dice))
                .map(|tenant| (format!("{}-{}", tenant.workload, tenant.target), tenant))
                .collect();
            Change::Published(published)
        }
        _ => Change::Upsert(Arc::new(platforms::object(dice))),
    }
}

fn apply(platform: &mut Platform, change: &Change) {
    match change {
        Change::Upsert(object) => {
            platform.objects.insert(object.id(), Arc::clone(object));
        }
        Change::Remove(id) => {
            platform.objects.remove(id);
        }
        Change::Broken(broken) => platform.broken.clone_from(broken),
        Change::Failing(failing) => platform.failing.clone_from(failing),
        Change::Published(published) => platform.published.clone_from(published),
        Change::Problems(problems) => platform.problems.clone_from(problems),
    }
}

fn run(seed: u64, edits: usize) {
    let mut dice = Dice::new(seed);
    let mut platform = platforms::platform(&mut dice);
    let mut scheduler = Scheduler::new(platform.clone());
    assert_eq!(*scheduler.schedule(), schedule(&platform), "seed {seed}, before any edit");
    for round in 0..edits {
        let changes: Vec<Change> = (0..=dice.roll(3)).map(|_| edit(&mut dice, &platform)).collect();
        let before = scheduler.schedule().clone();
        changes.iter().for_each(|change| apply(&mut platform, change));
        let delta = scheduler.update(changes.clone());
        let scratch = schedule(&platform);
        assert_eq!(*scheduler.schedule(), scratch, "seed {seed}, round {round}, changes {changes:#?}");
        for (id, assignment) in &scratch.assignments {
            let told = delta.changed.iter().any(|changed| changed.id == *id);
            assert_eq!(told, before.assignments.get(id) != Some(assignment), "seed {seed}, round {round}, {id}");
        }
        for id in before.assignments.keys().filter(|id| !scratch.assignments.contains_key(id)) {
            assert!(delta.removed.contains(id), "seed {seed}, round {round}: {id} is gone and nobody said so");
        }
    }
}

proptest! {
    #[test]
    fn incremental_equals_from_scratch(seed: u64) {
        run(seed, 12);
    }
}

/// The same broken file twice, then once.
#[test]
fn incremental_equals_from_scratch_where_a_broken_object_is_listed_twice() {
    run(17818025054993075843, 12);
}

#[test]
fn an_edit_of_one_value_renders_only_what_it_touches() {
    let platform = platforms::grid(20, 20);
    let mut scheduler = Scheduler::new(platform);
    assert_eq!(scheduler.schedule().assignments.len(), 400);
    let one = platforms::config_for("one", &[("cluster-type", "ct-3"), ("deployment-target", "w-t5")], "K", "v");
    let delta = scheduler.update([Change::Upsert(Arc::new(one))]);
    assert_eq!((delta.rendered, delta.changed.len()), (1, 1));
    let row = platforms::config_for("row", &[("cluster-type", "ct-4")], "K", "v");
    let delta = scheduler.update([Change::Upsert(Arc::new(row))]);
    assert_eq!((delta.rendered, delta.changed.len()), (20, 20));
    let elsewhere = platforms::config_for("elsewhere", &[("region", "moon")], "K", "v");
    let delta = scheduler.update([Change::Upsert(Arc::new(elsewhere))]);
    assert_eq!((delta.rendered, delta.changed.len()), (0, 0));
}
