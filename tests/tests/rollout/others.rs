//! What stops one application concerns that one only: the other, on the same boxes and in the same rings, goes on.

use kedge_tests::world::plant::{MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CANARIES, OTHERS, with_rings};

/// Every box of `with_rings`.
fn all() -> impl Iterator<Item = &'static str> {
    CANARIES.into_iter().chain(OTHERS)
}

#[track_caller]
fn await_tally(plant: &Plant, text: &str, setting: &str) {
    plant.await_so(&format!("all boxes have {text:?} and {setting:?}"), MOVED_WITHIN, |plant| {
        all().all(|name| {
            plant.tally_on(name).as_deref() == Some(text) && plant.tally_setting_on(name).as_deref() == Some(setting)
        })
    });
}

#[test]
fn an_application_that_stopped_holds_up_neither_the_other_nor_the_platform() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let tally = plant.add_tally();
    await_tally(&plant, "tally 1", "one");

    let bad = plant.push_app("dev", "sick version");
    let stopped = plant.await_rollout("dev", &bad, "Stopped");
    let good = tally.push("tally 2");
    let done = plant.await_rollout("dev", &good, "Complete");
    assert_eq!((plant.ring_of(&done, "canary"), plant.ring_of(&done, "rest")), ("passed".into(), "passed".into()));
    await_tally(&plant, "tally 2", "one");

    let setting = plant.push_tally_setting("two");
    plant.await_rollout("dev", &setting, "Complete");
    await_tally(&plant, "tally 2", "two");

    let still = plant.rollout_of("dev", &bad).unwrap();
    assert_eq!((&still["id"], &still["state"]), (&stopped["id"], &"Stopped".into()), "{still}");
    assert!(OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1")));
    let status = plant.status("dev", &["--workload", "tally"]);
    assert_eq!(status.code, 0, "{}{}", status.stdout, status.stderr);
    assert!(status.stdout.contains("7 of 7: 7 converged"), "{}", status.stdout);
    assert_eq!(plant.status("dev", &["--workload", "hello"]).code, 3);
}

#[test]
fn a_platform_commit_that_stopped_for_one_application_lets_a_later_one_through_for_the_other() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let tally = plant.add_tally();
    await_tally(&plant, "tally 1", "one");

    // Only hello's configuration has it.
    let bad = plant.push_main("sick");
    let stopped = plant.await_rollout("dev", &bad, "Stopped");
    let setting = plant.push_tally_setting("two");
    plant.await_rollout("dev", &setting, "Complete");
    await_tally(&plant, "tally 1", "two");
    let good = tally.push("tally 2");
    plant.await_rollout("dev", &good, "Complete");
    await_tally(&plant, "tally 2", "two");

    plant.stays_so("the other one keeps what it had", A_WHILE, |plant| {
        OTHERS.iter().all(|name| plant.greeting_on(name).as_deref() == Some("Hello"))
    });
    let still = plant.world.api.get(&format!("/api/v1/rollouts/{}", stopped["id"]));
    assert_eq!(still["state"], "Stopped", "{still}");
}
