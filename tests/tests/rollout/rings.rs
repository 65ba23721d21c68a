//! One environment in rings: a change goes on when a ring's gate holds, stops where it fails, and goes back when the policy says so.

use kedge_tests::world::plant::{LINE, Lane, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CANARIES, OTHERS, with_rings};

#[test]
fn an_applications_new_commit_goes_through_the_rings_in_their_order() {
    let Some(plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["soak: 3s"])) else { return };
    for name in CANARIES {
        assert_eq!(plant.seen(name)["ring"], "canary", "{name}");
    }
    let commit = plant.push_app("dev", "version 2");
    plant.await_so("the others have it", MOVED_WITHIN, |plant| {
        let got: Vec<&str> =
            OTHERS.into_iter().filter(|name| plant.text_on(name).as_deref() == Some("version 2")).collect();
        let canaries = CANARIES.iter().all(|name| plant.text_on(name).as_deref() == Some("version 2"));
        assert!(got.is_empty() || canaries, "{got:?} are ahead of the canaries");
        got.len() == OTHERS.len()
    });
    let rollout = plant.await_rollout("dev", &commit, "Complete");
    assert_eq!(
        (plant.ring_of(&rollout, "canary"), plant.ring_of(&rollout, "rest")),
        ("passed".into(), "passed".into())
    );
    let status = |plant: &Plant| plant.world.api.get(&format!("/api/v1/rollout-status?rollout={}", rollout["id"]));
    let told = status(&plant);
    assert_eq!((told["complete"].as_bool(), told["converged"].as_u64()), (Some(true), Some(7)), "{told}");

    // What comes next doesn't make it incomplete.
    let next = plant.push_app("dev", "version 3");
    plant.await_rollout("dev", &next, "Complete");
    let told = status(&plant);
    assert_eq!(told["headline"], "complete; other content has taken its place since");
    assert_eq!((told["complete"].as_bool(), told["waiting"].as_u64()), (Some(true), Some(0)), "{told}");
}

#[test]
fn failures_beyond_the_budget_stop_the_ring_and_those_after_it_keep_the_old() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let commit = plant.push_app("dev", "sick version");
    let rollout = plant.await_rollout("dev", &commit, "Stopped");
    assert_eq!(
        (plant.ring_of(&rollout, "canary"), plant.ring_of(&rollout, "rest")),
        ("stopped".into(), "waiting".into())
    );
    let old = plant.entry("dev", LINE, "rest").unwrap();
    assert_ne!(old.1["workload"]["commit"], commit.as_str());
    plant.stays_so("the others keep the old", A_WHILE, |plant| {
        OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1"))
    });
    assert_eq!(plant.entry("dev", LINE, "rest").unwrap().0, old.0, "no new generation for them");

    // New content takes its place.
    let better = plant.push_app("dev", "version 3");
    plant.await_rollout("dev", &better, "Complete");
    plant.await_text(&CANARIES, "version 3");
    plant.await_text(&OTHERS, "version 3");
}

#[test]
fn a_rollback_brings_the_old_content_back_as_a_new_generation() {
    let policy = Policy::chain(&["dev"]).with("dev", &["failure: {budget: 0, then: rollback}"]);
    let Some(mut plant) = with_rings(policy) else { return };
    let before = plant.entry("dev", LINE, "canary").unwrap();
    plant.agent(CANARIES[0]).write("sick-of", "version 2\n");
    let commit = plant.push_app("dev", "version 2");
    let rollout = plant.await_rollout("dev", &commit, "RolledBack");
    assert_eq!(plant.ring_of(&rollout, "rest"), "waiting");
    plant.await_text(&CANARIES, "version 1");
    plant.await_converged("dev");
    // Only when its clusters have the old content.
    plant.await_so("canary has returned", MOVED_WITHIN, |plant| plant.ring_of(&rollout, "canary") == "returned");
    let after = plant.entry("dev", LINE, "canary").unwrap();
    assert!(after.0 >= before.0 + 2, "there and back: {} and {}", before.0, after.0);
    assert_eq!(after.1["workload"]["digest"], before.1["workload"]["digest"], "exactly what was there");
    assert!(OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1")));
    // It isn't tried again by itself.
    plant.stays_so("the same content isn't started again", A_WHILE, |plant| {
        plant.rollout("dev", Lane::Source).is_some_and(|newest| newest["id"] == rollout["id"])
    });
}

#[test]
fn a_person_rolls_back_what_is_complete_and_starts_it_again() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let commit = plant.push_app("dev", "version 2");
    let rollout = plant.await_rollout("dev", &commit, "Complete");
    let id = rollout["id"].to_string();
    let before = plant.entry("dev", PRESS, "rest").unwrap().0;
    plant.world.kedge.run(["rollout", "rollback", &id, "--reason", "customers complain"]);
    plant.await_text(&CANARIES, "version 1");
    plant.await_text(&OTHERS, "version 1");
    plant.await_rollout("dev", &commit, "RolledBack");
    assert!(plant.entry("dev", PRESS, "rest").unwrap().0 > before);

    plant.world.kedge.run([
        "rollout",
        "start",
        "--environment",
        "dev",
        "--workload",
        "hello",
        "--reason",
        "it was the network",
    ]);
    plant.await_text(&CANARIES, "version 2");
    plant.await_text(&OTHERS, "version 2");
    plant.await_converged("dev");
}

#[test]
fn a_pause_keeps_the_next_ring_waiting_and_a_resume_forgives_what_failed() {
    let Some(mut plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["soak: 4s"])) else { return };
    let commit = plant.push_app("dev", "version 2");
    plant.await_text(&CANARIES, "version 2");
    let rollout = plant.rollout_of("dev", &commit).unwrap();
    plant.world.kedge.run(["rollout", "pause", &rollout["id"].to_string(), "--reason", "a visitor"]);
    plant.await_rollout("dev", &commit, "Paused");
    plant.stays_so("the others wait", A_WHILE, |plant| {
        OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1"))
    });
    plant.world.kedge.run(["rollout", "resume", &rollout["id"].to_string(), "--reason", "he is gone"]);
    plant.await_rollout("dev", &commit, "Complete");

    plant.agent(CANARIES[0]).write("sick-of", "version 3\n");
    let commit = plant.push_app("dev", "version 3");
    let stopped = plant.await_rollout("dev", &commit, "Stopped");
    plant.world.kedge.run(["rollout", "override", &stopped["id"].to_string(), "--reason", "that box is broken itself"]);
    plant.await_text(&OTHERS, "version 3");
    assert_eq!(plant.text_on(CANARIES[0]).as_deref(), Some("version 2"), "it went back to what it had");
}

#[test]
fn a_new_cluster_joins_its_rings_present_state_and_a_relabelled_one_moves() {
    let Some(mut plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let commit = plant.push_app("dev", "sick version");
    plant.await_rollout("dev", &commit, "Stopped");
    plant.add("dev", LINE, "", 1);
    plant.await_text(&["dev-factory-line-6"], "version 1");
    plant.await_condition("dev-factory-line-6", "Converged");
    assert_eq!(plant.seen("dev-factory-line-6")["ring"], "rest");
    let rollout = plant.rollout_of("dev", &commit).unwrap();
    assert_eq!(rollout["state"], "Stopped", "members never restart a rollout: {rollout}");

    plant.world.kedge.run(["cluster", "relabel", "dev-factory-line-6", "ring=canary"]);
    plant.await_so("it is a canary", MOVED_WITHIN, |plant| plant.seen("dev-factory-line-6")["ring"] == "canary");
    plant.await_condition("dev-factory-line-6", "Failed");
    assert_eq!(plant.rollout("dev", Lane::Source).unwrap()["id"], rollout["id"], "nor begin another");
}
