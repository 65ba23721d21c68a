//! The environment's branch of the GitOps repository is the contract: exactly what `kedge render` writes, on whatever others
//! do there, through refusals and kills.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use kedge_tests::lab::git::Checkout;
use kedge_tests::lab::git_server::Refusal;
use kedge_tests::lab::{await_some, await_true};
use kedge_tests::world::{Database, SOON, World};

use crate::each_database::on_each_database;
use kedge_tests::lab::chance::Chance;

on_each_database![
    a_kill_at_any_moment_loses_no_generation_and_doubles_no_commit,
    a_publish_that_removes_most_waits_before_git_until_a_person_confirms,
];

/// The published files without those that aren't the hub's.
fn ours(world: &World, environment: &str) -> BTreeMap<String, Vec<u8>> {
    let rendered = world.rendered(environment);
    let published = world.sample.published(environment);
    published.into_iter().filter(|(path, _)| rendered.contains_key(path) || path.contains("/hello-")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn files_that_are_not_ours_stay_and_no_difference_makes_no_commit() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let person = Checkout::clone(&world.git.url("gitops"));
    person.switch("dev");
    person.write("docs/notes.md", "by hand\n");
    person.write("drone/NOTES.md", "by hand, in a folder of the hub's\n");
    let note = person.change("drone/extra/README.md", "nobody's assignment\n");
    let commits = || world.sample.gitops.log("origin/dev").len();
    // A commit that changes no file of ours.
    world.sample.control_plane.change("README.md", "more words\n");
    world.sample.change_drones("One");
    world.await_generation("dev", "drone", 2);
    let published = world.sample.published("dev");
    for file in ["docs/notes.md", "drone/NOTES.md", "drone/extra/README.md", "README.md"] {
        assert!(published.contains_key(file), "{file} stays");
    }
    assert_eq!(ours(&world, "dev"), world.rendered("dev"));
    let log = world.sample.gitops.log("origin/dev");
    assert_eq!(log[1].id, note, "one commit for two pushes, one of which changes nothing");
    let count = commits();
    world.sample.change_drones("Two");
    world.await_generation("dev", "drone", 3);
    world.sample.gitops.fetch();
    assert_eq!(commits(), count + 1);
}

#[test]
fn a_commit_says_what_changed_and_why() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let cause = world.sample.change_drones("Reason");
    world.await_generation("dev", "drone", 2);
    world.sample.gitops.fetch();
    let log = world.sample.gitops.log("origin/dev");
    let said = format!("{}\n{}", log[0].subject, log[0].body);
    assert!(said.contains("drone/hello-functional-test"), "{said}");
    assert!(said.contains(&cause) || said.contains(&cause[..10]), "{cause} isn't in {said}");
    let changed = world.sample.gitops.git(["diff", "--name-only", "origin/dev~1", "origin/dev"]);
    assert_eq!(changed.trim(), "drone/hello-functional-test/platform-config.yaml");
}

#[test]
fn a_branch_that_moves_meanwhile_is_built_upon() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let person = Checkout::clone(&world.git.url("gitops"));
    person.switch("dev");
    let mut notes = Vec::new();
    for round in 0..8 {
        world.sample.change_drones(&format!("Round {round}"));
        // Straight after the push: sometimes before the hub's own push, sometimes between its fetch and its push.
        let note = format!("notes/{round}.md");
        await_some("the person's push wins in the end", SOON, || {
            person.follow();
            person.write(&note, "racing\n");
            person.commit(&format!("Note {round}"));
            person.try_push("dev").ok()
        });
        notes.push(note);
    }
    await_true("the last value is published", SOON, || {
        let config = world.sample.published("dev").remove("drone/hello-functional-test/platform-config.yaml");
        config.is_some_and(|bytes| text(&bytes).contains("Round 7"))
    });
    let published = world.sample.published("dev");
    assert!(notes.iter().all(|note| published.contains_key(note)), "no commit of the person's is lost");
    assert_eq!(ours(&world, "dev"), world.rendered("dev"));
    let merges = world.sample.gitops.git(["rev-list", "--count", "--merges", "origin/dev"]);
    assert_eq!(merges.trim(), "0", "one line of history");
}

#[test]
fn a_refused_push_is_shown_and_tried_again() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    for (round, refusal) in [Refusal::Forbidden, Refusal::Hook].into_iter().enumerate() {
        let head = world.git.head("gitops", "dev");
        world.git.refuse_pushes("gitops", Some(refusal));
        world.sample.change_drones(&format!("Refused {round}"));
        let shown = await_some("the refusal is shown", SOON, || {
            Some(world.api.publish("dev")).filter(|publish| publish["outcome"] == "failing")
        });
        if refusal == Refusal::Hook {
            assert!(shown.to_string().contains("protected"), "{shown}");
        }
        assert_eq!(world.git.head("gitops", "dev"), head);
        assert_eq!(world.api.generation("dev", "drone"), Some(round as u64 + 1), "what isn't in Git isn't desired");
        world.git.refuse_pushes("gitops", None);
        world.await_generation("dev", "drone", round as u64 + 2);
        await_true("nothing is wrong any more", SOON, || world.api.publish("dev")["outcome"] != "failing");
    }
}

/// Every answer of the API about generations is kept; after each kill they must all be there, byte for byte.
fn a_kill_at_any_moment_loses_no_generation_and_doubles_no_commit(database: Database) {
    let Some(mut world) = World::start(database) else { return };
    world.await_first_states();
    let mut chance = Chance::seeded(0x006b_6564_6765);
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    let state = |world: &World, generation: u64| world.api.envelope("dev", "drone", generation);
    for round in 0..kedge_tests::lab::chance::rounds(6) {
        world.sample.change_drones(&format!("Round {round}"));
        thread::sleep(Duration::from_millis(chance.below(500)));
        let newest = world.api.generation("dev", "drone").unwrap_or_default();
        for generation in 1..=newest {
            let envelope = state(&world, generation);
            assert_eq!(seen.entry(generation).or_insert_with(|| envelope.clone()), &envelope, "{generation} changed");
        }
        world.hub.kill();
        world.hub.start_again();
        for (generation, envelope) in &seen {
            assert_eq!(&state(&world, *generation), envelope, "generation {generation} after round {round}");
        }
    }
    world.sample.change_drones("The end");
    await_true("the last value is published", SOON, || {
        let config = world.sample.published("dev").remove("drone/hello-functional-test/platform-config.yaml");
        config.is_some_and(|bytes| text(&bytes).contains("The end"))
    });
    assert_eq!(ours(&world, "dev"), world.rendered("dev"));
    let trees = world.sample.gitops.git(["log", "--format=%T", "origin/dev"]);
    let trees: Vec<&str> = trees.lines().collect();
    assert!(trees.windows(2).all(|pair| pair[0] != pair[1]), "a commit without a difference: {trees:?}");
    let newest = world.await_generation("dev", "drone", seen.len() as u64);
    assert!((1..=newest).all(|generation| !state(&world, generation).is_empty()), "a gap below {newest}");
}

fn a_publish_that_removes_most_waits_before_git_until_a_person_confirms(database: Database) {
    let Some(mut world) = World::start(database) else { return };
    world.await_first_states();
    let (before, head) = (world.sample.published("dev"), world.git.head("gitops", "dev"));
    world.sample.control_plane.remove("scheduling/functional-test.yaml");
    world.sample.control_plane.commit("Drop the policy by mistake");
    world.sample.control_plane.push("dev");
    await_true("the waiting publish is shown", SOON, || world.api.waiting("dev").contains(&"drone".to_owned()));
    assert_eq!((world.sample.published("dev"), world.git.head("gitops", "dev")), (before, head.clone()));
    assert_eq!(world.api.generation("dev", "drone"), Some(1));

    // Others don't wait, and a restart forgets nothing.
    world.hub.stop();
    world.hub.start_again();
    world.sample.edit(
        "dev",
        "cluster-types/south/factory-line/config.yaml",
        "CLUSTER_NAME: Factory line",
        "CLUSTER_NAME: Line",
    );
    world.await_generation("dev", "factory-line", 2);
    assert!(world.sample.published("dev").contains_key("drone/hello-functional-test/reconciler.yaml"));

    world.kedge.run(["publish", "confirm", "dev", "drone"]);
    world.await_generation("dev", "drone", 2);
    let published = world.sample.published("dev");
    assert!(!published.keys().any(|path| path.starts_with("drone/hello")), "{:?}", published.keys());
    assert!(published.contains_key("large/hello-functional-test/reconciler.yaml"), "large still waits");
    let state = world.api.state("dev", "drone", Some(2));
    assert_eq!(state["removed"], serde_json::json!(["hello-functional-test"]), "{state}");
    assert!(world.api.list("/api/v1/audit").iter().any(|entry| entry.to_string().contains("publish")), "audited");
    world.kedge.run(["publish", "confirm", "dev", "large"]);
    world.await_generation("dev", "large", 2);
    await_true("nothing waits any more", SOON, || world.api.waiting("dev").is_empty());
}
