//! Many at once: never more than `maxUnavailable`, and one command for all that a selector names.

use std::collections::BTreeSet;

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant, assignment};
use kedge_tests::world::policy::Policy;

use crate::plants::names;

/// Boxes that are changing for certain: they have the new text, and the hub doesn't know yet how it went.
fn changing(plant: &Plant, boxes: &[String], text: &str) -> BTreeSet<String> {
    let begun: Vec<&String> = boxes.iter().filter(|name| plant.text_on(name).as_deref() == Some(text)).collect();
    begun.into_iter().filter(|name| plant.condition(name) == "Converging").cloned().collect()
}

#[test]
fn at_most_max_unavailable_of_a_ring_change_at_once() {
    let policy = Policy::chain(&["dev"]).with("dev", &["maxUnavailable: 2"]);
    let Some(mut plant) = Plant::start(Some(&policy)) else { return };
    plant.add("dev", LINE, "", 6);
    plant.add("dev", PRESS, "", 2);
    plant.await_converged("dev");
    let boxes = names(&plant, "dev");
    let commit = plant.push_app("dev", "version 2");
    let (mut most, mut slots) = (0, 0);
    plant.await_so("all have it", MOVED_WITHIN * 2, |plant| {
        let now = changing(plant, &boxes, "version 2");
        assert!(now.len() <= 2, "{now:?} change at once");
        most = most.max(now.len());
        slots = slots.max(taken(plant));
        assert!(slots <= 2, "{slots} slots are taken");
        plant.rollout_of("dev", &commit).is_some_and(|rollout| rollout["state"] == "Complete")
    });
    assert!(slots > 0, "slots were taken (and {most} boxes were seen changing)");
    assert!(boxes.iter().all(|name| plant.text_on(name).as_deref() == Some("version 2")));
}

/// Rows of the hub's own table.
fn taken(plant: &Plant) -> usize {
    let database = plant.world.hub.places().data.join("hub.db");
    let url = format!("sqlite:{}?mode=ro", database.display());
    kedge_tests::world::cluster::block_on(async {
        sqlx::any::install_default_drivers();
        let pool = sqlx::AnyPool::connect(&url).await.unwrap();
        let (count,): (i64,) = sqlx::query_as("SELECT count(*) FROM slots").fetch_one(&pool).await.unwrap();
        pool.close().await;
        usize::try_from(count).unwrap()
    })
}

#[test]
fn a_slot_ends_when_its_cluster_goes_offline_so_that_the_others_go_on() {
    let policy = Policy::chain(&["dev"]).with("dev", &["maxUnavailable: 1", "gate: {reached: 50%}"]);
    let Some(mut plant) = Plant::start(Some(&policy)) else { return };
    plant.add("dev", LINE, "", 3);
    plant.add("dev", PRESS, "", 1);
    plant.await_converged("dev");
    // Whoever gets it hangs as soon as it has begun.
    let boxes = names(&plant, "dev");
    plant.push_app("dev", "version 2");
    let mut first = None;
    plant.await_so("one has begun", MOVED_WITHIN, |plant| {
        first = boxes.iter().find(|name| plant.text_on(name).as_deref() == Some("version 2")).cloned();
        first.is_some()
    });
    let first = first.unwrap();
    plant.agent(&first).freeze();
    let others: Vec<&str> = boxes.iter().filter(|name| **name != first).map(String::as_str).collect();
    plant.await_so("the others go on without it", MOVED_WITHIN * 2, |plant| {
        others.iter().all(|name| plant.text_on(name).as_deref() == Some("version 2"))
    });
    plant.agent(&first).thaw();
    plant.await_converged("dev");
}

#[test]
fn a_restart_in_bulk_tries_a_failed_content_again_where_the_selector_says() {
    let policy = Policy::chain(&["dev"]).with("dev", &["failure: {budget: 100%}"]);
    let Some(mut plant) = Plant::start(Some(&policy)) else { return };
    plant.add("dev", LINE, "", 2);
    plant.add("dev", PRESS, "", 1);
    plant.await_converged("dev");
    for name in names(&plant, "dev") {
        plant.agent(&name).write("sick-of", "version 2\n");
    }
    plant.push_app("dev", "version 2");
    for name in names(&plant, "dev") {
        plant.await_condition(&name, "Failed");
        plant.agent(&name).remove("sick-of");
    }
    plant.world.kedge.run([
        "restart",
        "--environment",
        "dev",
        "--cluster-type",
        LINE,
        "--workload",
        "hello",
        "--reason",
        "mended",
    ]);
    plant.await_text(&["dev-factory-line-1", "dev-factory-line-2"], "version 2");
    plant.await_condition("dev-factory-line-1", "Converged");
    assert_eq!(plant.condition("dev-press-1"), "Failed", "another type wasn't asked");
    let (_, entry) = plant.entry("dev", LINE, "all").unwrap();
    assert_eq!(entry["restart"], 1, "{entry}");
    plant.world.kedge.run(["reapply", "--environment", "dev", "--workload", "hello", "--reason", "all of them"]);
    plant.await_text(&["dev-press-1"], "version 2");
    assert_eq!(assignment("dev"), "hello-line-test");

    let nobody =
        plant.world.kedge.try_run(["restart", "--environment", "dev", "--workload", "nothing", "--reason", "x"]);
    assert_ne!(nobody.code, 0, "{}", nobody.stdout);
}
