//! `kedge rollout status`: one question, answered in one line, with an exit code that a pipeline can rely on.

use kedge_tests::world::plant::{LINE, MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::{CANARIES, with_rings};

#[test]
fn status_counts_the_fleet_in_one_line_and_succeeds_only_when_all_is_complete() {
    let Some(mut plant) =
        with_rings(Policy::chain(&["dev"]).with("dev", &["failure: {budget: 1}", "gate: {converged: 50%, failed: 1}"]))
    else {
        return;
    };
    // The boxes are there a moment before the gate of the last ring has seen it.
    let is_done = |plant: &Plant| plant.status("dev", &["--workload", "hello"]).code == 0;
    plant.await_so("all is complete", MOVED_WITHIN, is_done);
    let done = plant.status("dev", &["--workload", "hello"]);
    assert!(done.stdout.contains("7 of 7") && done.stdout.contains("7 converged"), "{}", done.stdout);

    plant.agent(CANARIES[0]).write("sick-of", "version 2\n");
    let commit = plant.push_app("dev", "version 2");
    plant.await_so("one failure is within the budget", MOVED_WITHIN, |plant| {
        let now = plant.status("dev", &["--source-commit", &commit]);
        now.stdout.contains("6 converged") && now.stdout.contains("1 failed (HealthCheck")
    });
    let now = plant.status("dev", &["--source-commit", &commit]);
    assert!(now.stdout.contains("7 of 7"), "{}", now.stdout);

    let lines = plant.status("dev", &["--workload", "hello", "--cluster-type", LINE]);
    assert!(lines.stdout.contains("5 of 5"), "{}", lines.stdout);
    let canary = plant.status("dev", &["--ring", "canary", "-o", "json"]);
    let shown: serde_json::Value =
        serde_json::from_str(&canary.stdout).unwrap_or_else(|e| panic!("{e}: {}", canary.stdout));
    assert_eq!((&shown["targeted"], &shown["failed"]), (&3.into(), &1.into()), "{shown}");
    let unseen = plant.status("dev", &["--source-commit", "0123456789012345678901234567890123456789"]);
    assert_ne!(unseen.code, 0, "a commit that the hub hasn't met isn't complete: {}", unseen.stdout);
}

#[test]
fn a_pipeline_waits_for_its_own_commit_and_learns_how_it_ended() {
    let Some(plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let good = plant.push_app("dev", "version 2");
    let waited = plant.status("dev", &["--source-commit", &good, "--wait", "--timeout", "60s"]);
    assert_eq!(waited.code, 0, "{}{}", waited.stdout, waited.stderr);
    assert!(waited.stdout.contains("7 of 7") && !waited.stderr.is_empty(), "{}{}", waited.stdout, waited.stderr);
    assert!(
        ["dev-press-2", "dev-factory-line-5"].iter().all(|name| plant.text_on(name).as_deref() == Some("version 2"))
    );

    let bad = plant.push_app("dev", "sick version");
    let waited = plant.status("dev", &["--source-commit", &bad, "--wait", "--timeout", "60s"]);
    assert_eq!(waited.code, 3, "{}{}", waited.stdout, waited.stderr);
    assert!(
        waited.stdout.contains("failed (HealthCheck") && waited.stdout.contains("not targeted"),
        "{}",
        waited.stdout
    );
}
