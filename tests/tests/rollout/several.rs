//! Two hubs on one PostgreSQL: agents and people talk to one, the other leads and is killed in the middle of a rollout.

use kedge_tests::lab::await_true;
use kedge_tests::lab::hub::Hub;
use kedge_tests::world::api::Api;
use kedge_tests::world::plant::{LINE, PRESS, Plant};
use kedge_tests::world::policy::Policy;
use kedge_tests::world::{Database, SOON, admin_token};

use crate::plants::{A_WHILE, CHAIN, tighten};

fn leads(api: &Api) -> bool {
    let answer = api.try_ask(http::Method::GET, "/metrics", None, &[]);
    answer.is_ok_and(|answer| {
        answer.text.lines().any(|line| line.starts_with("kedge_hub_leader") && line.ends_with(" 1"))
    })
}

#[test]
fn a_leader_that_is_killed_in_the_middle_is_followed_by_the_other_and_no_word_is_lost() {
    let shared = tempfile::Builder::new().prefix("kedge-shared-").tempdir().unwrap();
    let Some(mut plant) = Plant::start_with(Database::Postgres, Some(&Policy::chain(&CHAIN)), |settings, _| {
        settings.poll = "1s".to_owned();
        settings.keys = Some(shared.path().join("keys"));
        settings.packages.push(format!("folder = {:?}", shared.path().join("packages").display().to_string()));
    }) else {
        return;
    };
    let Some(mut second) = Hub::prepare(|places| plant.world.settings.text(places)) else { return };
    second.start_again();
    let first = plant.world.api.clone();
    let other = Api::at(&second.url("")).with_token(&admin_token(&plant.world.hub));
    // The other leads from here on.
    plant.world.hub.stop();
    await_true("the second leads", SOON, || leads(&other));
    plant.world.hub.start_again();
    assert!(!leads(&first));
    for environment in CHAIN {
        plant.add(environment, LINE, "", 1);
        plant.add(environment, PRESS, "", 1);
    }
    CHAIN.iter().for_each(|environment| plant.await_converged(environment));
    tighten(&plant, &Policy::chain(&CHAIN).with("stage", &["approval: {people: 1, notAuthor: false}"]));

    let commit = plant.push_main("Over two hubs");
    plant.await_rollout("dev", &commit, "Complete");
    plant.await_so("it waits for a person", SOON, |plant| plant.promotion("stage").to_string().contains(&commit));
    // Said to the one that doesn't lead, while the leader dies.
    let said = plant.approve(&plant.world.api, "stage", "go on");
    assert!(said.status < 300, "{}", said.text);
    second.kill();
    plant.await_named("stage", &commit);
    plant.await_named("prod", &commit);
    plant.await_rollout("prod", &commit, "Complete");
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "Over two hubs");
    assert!(leads(&first));

    second.start_again();
    plant.stays_so("one leads", A_WHILE, |_| leads(&first) && !leads(&other));
    let again = plant.push_main("Once more");
    plant.await_rollout("dev", &again, "Complete");
}
