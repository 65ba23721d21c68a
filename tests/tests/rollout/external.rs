//! `promoter: external`: Kalypso's own workflows promote, and the hub gates by commit statuses, on a real Gitea.

use kedge_tests::lab::gitea::Gitea;
use kedge_tests::lab::{await_some, await_true};
use kedge_tests::world::SOON;
use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::plants::CHAIN;

/// The state of the hub's status on a commit of main.
fn state(gitea: &Gitea, commit: &str, environment: &str) -> Option<String> {
    let context = format!("kedge/{environment}");
    let statuses = gitea.statuses("control-plane", commit);
    statuses.into_iter().find(|(name, _)| *name == context).map(|(_, state)| state)
}

#[test]
fn an_external_promoter_is_gated_by_commit_statuses() {
    let Some(gitea) = Gitea::start() else { return };
    let Some(mut plant) = Plant::start_at_gitea(&gitea, &Policy::chain(&CHAIN).external()) else { return };
    for environment in CHAIN {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
        plant.await_converged(environment);
    }
    let old = plant.named("dev").unwrap();
    let commit = plant.push_main("By a workflow");
    plant.stays_so("the hub promotes nothing itself", crate::plants::A_WHILE, |plant| {
        plant.named("dev").as_deref() == Some(&old)
    });

    // What Kalypso's workflow does: dev first, and the next when the status says so.
    for environment in CHAIN {
        plant.name_by_hand(environment, &commit);
        let said = await_some(&format!("a status on {environment}"), MOVED_WITHIN, || {
            state(&gitea, &commit, environment).filter(|state| state == "success")
        });
        assert_eq!(said, "success");
    }
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "By a workflow");

    let bad = plant.push_main("sick");
    plant.name_by_hand("dev", &bad);
    await_true("the gate fails", MOVED_WITHIN, || state(&gitea, &bad, "dev").as_deref() == Some("failure"));
    plant.name_by_hand("stage", &bad);
    plant.await_so("stage refuses it", SOON, |plant| plant.world.api.has_problem(&["NotPromoted", &bad[..7]]));
    assert_eq!(plant.greeting_on("stage-press-1").as_deref(), Some("By a workflow"));
}
