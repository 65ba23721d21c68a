//! A gate that waits for a pipeline's word on the commit, on a real Gitea: of the platform's main, and of an application's source.

use kedge_tests::lab::gitea::Gitea;
use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;
use serde_json::Value;

use crate::plants::A_WHILE;

const CONTEXT: &str = "ci/acceptance";
const DEV: [&str; 2] = ["dev-factory-line-1", "dev-press-1"];

/// What the rollout of a commit says with everything.
fn whole(plant: &Plant, commit: &str) -> String {
    let found = plant.rollout_of("dev", commit);
    found
        .map(|rollout| plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"])).to_string())
        .unwrap_or_default()
}

#[track_caller]
fn await_word(plant: &Plant, commit: &str, word: &str) {
    plant.await_so(&format!("the gate says {word:?}"), MOVED_WITHIN, |plant| whole(plant, commit).contains(word));
}

#[test]
fn a_gate_waits_for_the_commit_status_and_lets_the_commit_through_only_on_success() {
    let Some(gitea) = Gitea::start() else { return };
    let gate = format!(
        "gate: {{reached: 100%, checks: [{{name: accepted, commitStatus: {{context: {CONTEXT}}}, every: 1s}}]}}"
    );
    let policy = Policy::chain(&["dev", "stage"]).with("dev", &[&gate]);
    let Some(mut plant) = Plant::start_at_gitea(&gitea, &policy) else { return };
    for environment in ["dev", "stage"] {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
        plant.await_converged(environment);
    }
    let old = plant.named("stage").unwrap();
    let commit = plant.push_main("Accepted");
    plant.await_greeting(&DEV, "Accepted");
    await_word(&plant, &commit, "check accepted says: ci/acceptance isn't set on the commit");

    gitea.set_status("control-plane", &commit, "ci/other", "success");
    gitea.set_status("control-plane", &commit, CONTEXT, "pending");
    await_word(&plant, &commit, "ci/acceptance is pending");
    gitea.set_status("control-plane", &commit, CONTEXT, "failure");
    await_word(&plant, &commit, "check accepted says: ci/acceptance is failure");
    let status = plant.status("dev", &["--main-commit", &commit]);
    assert_eq!(status.code, 3, "{}", status.stdout);
    assert!(status.stdout.contains("ci/acceptance is failure"), "{}", status.stdout);
    plant.stays_so("stage waits", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));

    // The pipeline runs again.
    gitea.set_status("control-plane", &commit, CONTEXT, "success");
    plant.await_named("stage", &commit);
    plant.await_greeting(&["stage-factory-line-1", "stage-press-1"], "Accepted");
    let kept = plant.world.api.list(&format!("/api/v1/evidence?environment=dev&commit={commit}"));
    let passed = kept.iter().find(|one| one["event"] == "passed").unwrap_or_else(|| panic!("{kept:?}"));
    let evidence: Value = plant.world.api.get(&format!("/api/v1/evidence/{}", passed["id"]));
    assert!(evidence["statement"].to_string().contains("ci/acceptance is success"), "{evidence}");

    // The application's commit has a status of its own, on its own repository.
    let app = plant.push_app("dev", "version 2");
    plant.await_text(&DEV, "version 2");
    await_word(&plant, &app, "ci/acceptance isn't set on the commit");
    gitea.set_status("hello-gitops", &app, CONTEXT, "success");
    plant.await_rollout("dev", &app, "Complete");
}
