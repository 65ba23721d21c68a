//! The chain is enforced: what an environment's branch names is taken only when it has passed the one before.

use kedge_tests::lab::git::Checkout;
use kedge_tests::world::plant::MOVED_WITHIN;
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CHAIN, small};

#[test]
fn a_branch_that_names_a_commit_which_has_not_passed_stays_on_the_last_passed_one_and_its_own_changes_flow() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let good = plant.push_main("Good");
    plant.await_named("prod", &good);
    plant.await_rollout("prod", &good, "Complete");
    let bad = plant.push_main("sick");
    plant.await_rollout("dev", &bad, "Stopped");

    plant.name_by_hand("prod", &bad);
    plant.await_so("it is refused by name", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["NotPromoted", &bad[..7], "Ada Tester"])
    });
    let own = plant.push_environment("prod", "Own change");
    plant.await_so("the environment's own change flows", MOVED_WITHIN, |plant| {
        plant.setting_on("prod-factory-line-1", "CLUSTER_NAME").as_deref() == Some("Own change")
    });
    assert_ne!(own, bad);
    assert_eq!(plant.greeting_on("prod-factory-line-1").as_deref(), Some("Good"), "on the last passed commit");
    plant.stays_so("it stays there", A_WHILE, |plant| plant.greeting_on("prod-press-1").as_deref() == Some("Good"));
    let shown = plant.promotion("prod").to_string();
    assert!(shown.contains(&bad) && shown.contains("Ada Tester"), "who and which: {shown}");
}

#[test]
fn a_commit_that_is_named_too_early_is_taken_as_soon_as_it_has_passed() {
    let Some(plant) = small(&Policy::chain(&CHAIN).with("dev", &["soak: 8s"])) else { return };
    let commit = plant.push_main("Early");
    plant.await_greeting(&["dev-factory-line-1", "dev-press-1"], "Early");
    plant.name_by_hand("stage", &commit);
    plant
        .await_so("it is too early", MOVED_WITHIN, |plant| plant.world.api.has_problem(&["NotPromoted", &commit[..7]]));
    assert_eq!(plant.greeting_on("stage-press-1").as_deref(), Some("Hello"));
    plant.await_greeting(&["stage-factory-line-1", "stage-press-1"], "Early");
    plant.await_rollout("stage", &commit, "Complete");
    plant.await_so("nothing is wrong any more", MOVED_WITHIN, |plant| !plant.world.api.has_problem(&["NotPromoted"]));
}

#[test]
fn a_policy_that_is_unreadable_or_deleted_loosens_nothing() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let control: &Checkout = &plant.world.sample.control_plane;
    control.switch("main");
    control.change(
        kedge_tests::world::policy::FILE,
        "apiVersion: kedge.dev/v1alpha1\nkind: PromotionPolicy\nmetadata: {name: x}\nspec: {chain: []}\n",
    );
    let bad = plant.push_main("sick");
    plant.await_rollout("dev", &bad, "Stopped");
    let old = plant.named("prod").unwrap();
    control.switch("main");
    control.remove(kedge_tests::world::policy::FILE);
    control.commit("No policy any more");
    control.push("main");
    plant.await_so("a deletion needs a person too", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["PolicyLoosened"])
    });
    plant.stays_so("stage and prod are gated as before", A_WHILE, |plant| {
        ["stage", "prod"].iter().all(|environment| plant.named(environment).as_deref() == Some(&old))
    });
}

#[test]
fn a_commit_whose_quarantine_it_caused_itself_fails_its_gate() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let old = plant.named("stage").unwrap();
    let control = &plant.world.sample.control_plane;
    control.switch("main");
    let file = "configs/hello.yaml";
    let text = std::fs::read_to_string(control.path(file)).unwrap();
    // The application's schema asks for a port above 1023.
    let commit = control.change(file, &text.replace("\"8080\"", "\"80\""));
    plant.await_named("dev", &commit);
    plant.await_so("the quarantine fails the gate", MOVED_WITHIN, |plant| {
        let newest = plant.promotion("dev")["promotions"][0].clone();
        newest["state"] == "Failed" && newest["why"].as_str().is_some_and(|why| why.contains("hello-line-test"))
    });
    plant.stays_so("stage keeps what it has", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));
    let mended = control.change(file, &text.replace("\"8080\"", "\"8081\""));
    plant.await_named("prod", &mended);
}

#[test]
fn a_commit_with_a_file_that_cannot_be_read_fails_its_gate_although_nothing_changed() {
    let Some(plant) = small(&Policy::chain(&CHAIN).with("dev", &["gate: {empty: pass}"])) else { return };
    let old = plant.named("stage").unwrap();
    let control = &plant.world.sample.control_plane;
    control.switch("main");
    let broken = control.change("configs/common.yaml", "data: {not: closed\n");
    plant.await_so("dev says which file", MOVED_WITHIN, |plant| {
        let shown = plant.promotion("dev").to_string();
        shown.contains(&broken) && shown.contains("Failed") && shown.contains("configs/common.yaml")
    });
    plant.stays_so("stage doesn't get it", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));
}
