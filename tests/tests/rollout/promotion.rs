//! The way of a commit of main through dev, stage and prod: the same commit, recorded in Git, as far as the gates hold.

use kedge_tests::world::plant::{LINE, Lane, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{A_WHILE, CHAIN, names, small, small_then};

#[test]
fn a_commit_on_main_goes_to_dev_and_then_the_same_commit_to_stage_and_prod() {
    let Some(mut plant) = Plant::start(Some(&Policy::chain(&CHAIN))) else { return };
    plant.add("dev", LINE, "", 2);
    plant.add("dev", PRESS, "", 1);
    for environment in ["stage", "prod"] {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
    }
    CHAIN.iter().for_each(|environment| plant.await_converged(environment));
    let before = plant.world.sample.control_plane.read_remote("prod", "base-repo.yaml").unwrap();
    let old = plant.named("prod").unwrap();

    let commit = plant.push_main("Good morning");
    // Nobody is ahead of the one before it.
    plant.await_so("prod names it", MOVED_WITHIN, |plant| {
        for pair in CHAIN.windows(2) {
            if plant.named(pair[1]).as_deref() == Some(&commit) {
                let greeted =
                    plant.boxes(pair[0]).all(|name| plant.greeting_on(name).as_deref() == Some("Good morning"));
                assert!(greeted, "{} has it before {} ran it", pair[1], pair[0]);
            }
        }
        plant.named("prod").as_deref() == Some(&commit)
    });
    for environment in CHAIN {
        let boxes = names(&plant, environment);
        plant.await_greeting(&boxes.iter().map(String::as_str).collect::<Vec<_>>(), "Good morning");
        plant.await_rollout(environment, &commit, "Complete");
        assert_eq!(plant.named(environment).as_deref(), Some(commit.as_str()), "Git is the record in {environment}");
    }
    let after = plant.world.sample.control_plane.read_remote("prod", "base-repo.yaml").unwrap();
    assert_eq!(after, before.replace(&old, &commit), "nothing of the file but the commit changes");
    plant.world.sample.control_plane.fetch();
    let last = plant.world.sample.control_plane.log("origin/prod").remove(0);
    assert!(last.author.contains("Kedge"), "{last:?}");
    assert!(format!("{}{}", last.subject, last.body).contains(&commit[..7]), "{last:?}");
}

#[test]
fn content_that_fails_in_dev_never_reaches_stage_and_new_content_goes_on() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let old = plant.named("stage").unwrap();

    let bad = plant.push_main("sick");
    let stopped = plant.await_rollout("dev", &bad, "Stopped");
    assert!(stopped.to_string().contains("ailed"), "{stopped}");
    plant.stays_so("stage and prod keep what they have", A_WHILE, |plant| {
        ["stage", "prod"].iter().all(|environment| plant.named(environment).as_deref() == Some(&old))
    });
    assert_eq!(plant.greeting_on("stage-factory-line-1").as_deref(), Some("Hello"));

    let good = plant.push_main("Well again");
    for environment in CHAIN {
        plant.await_named(environment, &good);
    }
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "Well again");
    assert_ne!(plant.named("prod").as_deref(), Some(bad.as_str()));
}

#[test]
fn several_commits_wait_the_newest_goes_on_and_the_list_shows_what_was_skipped() {
    let policy = Policy::chain(&CHAIN)
        .with("stage", &["freezes: [{from: 2020-01-01, to: 2120-01-01, timeZone: UTC, reason: inventory}]"]);
    let Some(plant) = small_then(&policy) else { return };
    let old = plant.named("stage").unwrap();
    let mut commits = Vec::new();
    for greeting in ["One", "Two", "Three"] {
        commits.push(plant.push_main(greeting));
        plant.await_rollout("dev", commits.last().unwrap(), "Complete");
    }
    plant.await_so("the newest waits for stage", MOVED_WITHIN, |plant| {
        let shown = plant.promotion("stage").to_string();
        commits.iter().all(|commit| shown.contains(commit.as_str())) && shown.contains("inventory")
    });
    assert_eq!(plant.named("stage").unwrap(), old, "the freeze holds");

    // Taking the freeze away loosens the policy: it needs a person.
    let newest = plant.push_policy(&Policy::chain(&CHAIN));
    plant
        .await_so("the looser policy is shown", MOVED_WITHIN, |plant| plant.world.api.has_problem(&["PolicyLoosened"]));
    plant.stays_so("the freeze still holds", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));
    plant.world.kedge.run(["policy", "--approve", "--reason", "the inventory is over"]);
    // The policy's own commit changes nothing in dev: there is nothing to observe of it, so the one before it goes on.
    plant.await_named("stage", &commits[2]);
    plant.await_greeting(&["stage-factory-line-1", "stage-press-1"], "Three");
    assert_eq!(plant.named("dev").as_deref(), Some(newest.as_str()));
    let shown = plant.promotion("stage").to_string();
    assert!(shown.contains(&commits[0]) && shown.contains(&commits[1]), "skipped ones are listed: {shown}");
    plant.world.sample.control_plane.fetch();
    let log = plant.world.sample.control_plane.log("origin/stage");
    assert!(
        log.iter().all(|entry| !entry.subject.contains(&commits[0][..7])),
        "it never named what was skipped: {log:?}"
    );
}

#[test]
fn an_environment_without_clusters_waits_for_a_person_and_never_passes_by_silence() {
    let Some(mut plant) = Plant::start(Some(&Policy::chain(&CHAIN))) else { return };
    plant.add("prod", LINE, "", 1);
    plant.add("prod", PRESS, "", 1);
    plant.await_converged("prod");
    let old = plant.named("stage").unwrap();
    let commit = plant.push_main("Nobody sees this");
    plant.await_named("dev", &commit);
    plant.await_so("it waits", MOVED_WITHIN, |plant| {
        plant.rollout_of("dev", &commit).is_some_and(|rollout| {
            let whole = plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"]));
            whole.to_string().contains("nothing to observe")
        })
    });
    plant.stays_so("stage keeps what it has", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));

    let rollout = plant.rollout_of("dev", &commit).unwrap();
    let said = plant.say(&plant.world.api, &rollout, "override", "dev has no boxes this week");
    assert!(said.status < 300, "{}", said.text);
    plant.await_named("stage", &commit);
}

#[test]
fn with_empty_pass_an_environment_without_clusters_lets_a_commit_through() {
    let policy = Policy::chain(&CHAIN).with("dev", &["gate: {empty: pass}"]).with("stage", &["gate: {empty: pass}"]);
    let Some(mut plant) = Plant::start(Some(&policy)) else { return };
    plant.add("prod", LINE, "", 1);
    plant.add("prod", PRESS, "", 1);
    plant.await_converged("prod");
    let commit = plant.push_main("Through");
    plant.await_named("prod", &commit);
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "Through");
    plant.await_state("prod", Lane::Platform, "Complete");
}
