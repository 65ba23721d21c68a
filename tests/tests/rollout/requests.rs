//! Promotion to an environment whose branch takes no push: the hub asks by pull request, and people at a real Gitea decide.

use kedge_tests::lab::await_some;
use kedge_tests::lab::gitea::{Gitea, PullRequest};
use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::A_WHILE;

const OURS: &str = "kedge-promote/stage";
const STAGE: [&str; 2] = ["stage-factory-line-1", "stage-press-1"];

/// The open pull request that asks for this commit.
fn asked(gitea: &Gitea, plant: &Plant, commit: &str) -> PullRequest {
    await_some(&format!("a pull request asks for {commit}"), MOVED_WITHIN, || {
        let names_it = || {
            let text = plant.world.sample.control_plane.read_remote(OURS, "base-repo.yaml");
            text.is_some_and(|text| text.contains(commit))
        };
        gitea.pull_requests("control-plane", "open").pop().filter(|_| names_it())
    })
}

fn trouble(plant: &Plant) -> String {
    plant.promotion("stage")["trouble"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_protected_branch_is_promoted_by_pull_request_which_people_merge_or_decline() {
    let Some(gitea) = Gitea::start() else { return };
    let Some(mut plant) = Plant::start_at_gitea(&gitea, &Policy::chain(&["dev", "stage"])) else { return };
    for environment in ["dev", "stage"] {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
        plant.await_converged(environment);
    }
    gitea.protect_branch("control-plane", "stage");
    let old = plant.named("stage").unwrap();

    let commit = plant.push_main("By request");
    let request = asked(&gitea, &plant, &commit);
    assert_eq!((request.head.as_str(), request.base.as_str()), (OURS, "stage"));
    assert!(request.title.contains("stage") || request.title.contains(&commit[..7]), "{request:?}");
    let changed =
        plant.world.sample.control_plane.git(["diff", "--name-only", "origin/stage", &format!("origin/{OURS}")]);
    assert_eq!(changed.trim(), "base-repo.yaml");
    plant.await_so("people are told to merge it", MOVED_WITHIN, |plant| trouble(plant).contains("/pulls/"));
    assert!(trouble(&plant).contains("merge the pull request"), "{}", trouble(&plant));
    assert!(plant.world.kedge.run(["promote", "stage"]).contains("merge the pull request"));
    plant.await_so("it is a problem to see", MOVED_WITHIN, |plant| {
        plant.world.api.has_problem(&["PromotionNotRecorded", "merge the pull request"])
    });
    plant.stays_so("stage waits for the merge", A_WHILE, |plant| {
        plant.named("stage").as_deref() == Some(&old)
            && STAGE.iter().all(|name| plant.greeting_on(name).as_deref() == Some("Hello"))
    });

    gitea.merge("control-plane", request.number, "squash");
    plant.await_named("stage", &commit);
    plant.await_greeting(&STAGE, "By request");
    plant.await_rollout("stage", &commit, "Complete");
    plant.await_so("nothing is left of it", MOVED_WITHIN, |plant| {
        trouble(plant).is_empty() && !gitea.branches("control-plane").iter().any(|branch| branch == OURS)
    });

    // Declined: stage keeps what it has, and nobody asks again for the same.
    let unwanted = plant.push_main("Not this one");
    let request = asked(&gitea, &plant, &unwanted);
    gitea.close("control-plane", request.number);
    plant.await_so("it is shown as declined", MOVED_WITHIN, |plant| trouble(plant).contains("was closed"));
    plant.stays_so("it isn't asked again", A_WHILE, |plant| {
        gitea.pull_requests("control-plane", "open").is_empty() && plant.named("stage").as_deref() == Some(&commit)
    });

    // A newer commit is another question.
    let wanted = plant.push_main("This one");
    let request = asked(&gitea, &plant, &wanted);
    gitea.merge("control-plane", request.number, "merge");
    plant.await_named("stage", &wanted);
    plant.await_greeting(&STAGE, "This one");
}
