//! Platform and application move independently: a commit to either moves only its own package. And Pins.

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;
use serde_json::Value;

use crate::plants::{CANARIES, CHAIN, OTHERS, moment, small, with_rings};

fn digests(plant: &Plant, environment: &str, cluster_type: &str, ring: &str) -> (Value, Value) {
    let (_, entry) = plant.entry(environment, cluster_type, ring).expect("the stream has a state");
    (entry["platform"]["digest"].clone(), entry["workload"]["digest"].clone())
}

#[test]
fn a_commit_of_the_platform_moves_platform_packages_only_and_one_of_the_application_workload_packages_only() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let first = digests(&plant, "dev", LINE, "all");
    let commit = plant.push_main("Platform only");
    plant.await_rollout("dev", &commit, "Complete");
    let second = digests(&plant, "dev", LINE, "all");
    assert!(second.0 != first.0 && second.1 == first.1, "{first:?} {second:?}");

    let commit = plant.push_app("dev", "version 2");
    plant.await_rollout("dev", &commit, "Complete");
    let third = digests(&plant, "dev", LINE, "all");
    assert!(third.0 == second.0 && third.1 != second.1, "{second:?} {third:?}");
    assert_eq!(plant.text_on("dev-press-1").as_deref(), Some("version 2"));
    assert_eq!(plant.text_on("stage-press-1").as_deref(), Some("version 1"), "each environment has its own source");
}

#[test]
fn both_lanes_move_at_once_and_neither_waits_for_the_other() {
    let Some(plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["soak: 2s"])) else { return };
    let (app, platform) = (plant.push_app("dev", "version 2"), plant.push_main("Both"));
    plant.await_rollout("dev", &app, "Complete");
    plant.await_rollout("dev", &platform, "Complete");
    for names in [&CANARIES[..], &OTHERS[..]] {
        plant.await_text(names, "version 2");
        plant.await_greeting(names, "Both");
    }
}

#[test]
fn a_bad_commit_of_the_application_does_not_stop_the_platforms_rollout_on_the_same_boxes() {
    let Some(plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["soak: 8s"])) else { return };
    let platform = plant.push_main("Platform");
    plant.await_greeting(&CANARIES, "Platform");
    plant.await_so("they are known to be well", MOVED_WITHIN, |plant| {
        let rollout = plant.rollout_of("dev", &platform).unwrap_or_default();
        rollout["rings"][0]["steadySince"].is_string()
    });
    let bad = plant.push_app("dev", "sick version");
    plant.await_rollout("dev", &bad, "Stopped");
    plant.await_rollout("dev", &platform, "Complete");
    plant.await_greeting(&OTHERS, "Platform");
    assert!(OTHERS.iter().chain(&CANARIES).all(|name| plant.text_on(name).as_deref() == Some("version 1")));
    assert_eq!(plant.condition(CANARIES[0]), "Failed", "what a box says of itself stays as it is");
    assert_eq!(plant.rollout_of("dev", &bad).unwrap()["state"], "Stopped");
}

#[test]
fn a_pin_keeps_its_rings_and_types_on_a_commit_until_its_date() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let first = plant.world.sample.hello_gitops.head("dev");
    let commit = plant.push_app("dev", "version 2");
    plant.await_rollout("dev", &commit, "Complete");
    let pin = |until: &str| {
        format!(
            "apiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata:\n  name: keep-lines\nspec:\n  workload: hello\n  commit: {first}\n  \
             rings: [rest]\n  clusterTypes: [{LINE}]\n  until: {until}\n  reason: that location stays on the old one\n"
        )
    };
    plant.push_file("dev", "pins/keep-lines.yaml", &pin("2120-01-01T00:00:00Z"));
    let pinned: Vec<&str> = OTHERS.into_iter().filter(|name| name.contains(LINE)).collect();
    plant.await_text(&pinned, "version 1");
    assert_eq!(plant.text_on("dev-press-2").as_deref(), Some("version 2"), "another type");
    assert_eq!(plant.text_on(CANARIES[0]).as_deref(), Some("version 2"), "another ring");
    let shown = plant.world.kedge.run(["describe", "cluster", pinned[0]]);
    assert!(shown.contains("keep-lines"), "a Pin is shown where it matters: {shown}");

    // New content goes around it.
    plant.push_app("dev", "version 3");
    plant.await_text(&["dev-press-2", CANARIES[0]], "version 3");
    assert_eq!(plant.text_on(pinned[0]).as_deref(), Some("version 1"));

    // Its date comes by itself: nobody writes to Git then.
    plant.push_file("dev", "pins/keep-lines.yaml", &pin(&moment(10)));
    plant.await_text(&pinned, "version 3");
    plant.await_so("all is one again", MOVED_WITHIN, |plant| {
        digests(plant, "dev", LINE, "rest").1 == digests(plant, "dev", LINE, "canary").1
    });
    assert!(plant.entry("dev", PRESS, "rest").is_some());
}
