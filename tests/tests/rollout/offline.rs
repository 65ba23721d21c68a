//! A fleet that is partly away: whoever is offline doesn't hold a change up, isn't forgotten, and tells late what went wrong.

use kedge_tests::world::plant::{MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use crate::evidence;
use crate::plants::{CHAIN, small, tighten};

const AWAY: &str = "dev-factory-line-2";

/// One box more in dev, which is away; half of the reached ones are enough.
fn with_one_away(policy: Policy) -> Option<Plant> {
    let mut plant = small(&policy.with("dev", &["gate: {reached: 50%}"]))?;
    plant.add_with_cable("dev", kedge_tests::world::plant::LINE, "", AWAY);
    plant.await_converged("dev");
    plant.agent(AWAY).cable.as_ref().unwrap().cut();
    plant.await_condition(AWAY, "Unknown");
    Some(plant)
}

#[test]
fn an_offline_cluster_does_not_block_and_gets_the_present_state_when_it_returns_after_the_promotion() {
    let Some(mut plant) = with_one_away(Policy::chain(&CHAIN)) else { return };
    let first = plant.push_main("First");
    plant.await_named("prod", &first);
    plant.await_rollout("dev", &first, "Complete");
    let statement = evidence::await_statement(&plant, "dev", &first).to_string();
    assert!(statement.contains(AWAY), "it is named as offline: {statement}");
    let second = plant.push_main("Second");
    plant.await_named("prod", &second);
    plant.await_rollout("prod", &second, "Complete");
    assert_eq!(plant.greeting_on(AWAY).as_deref(), Some("Hello"));
    let said = plant.status("dev", &[]);
    assert!(said.stdout.contains("1 offline"), "{}", said.stdout);

    plant.comes_back(AWAY);
    plant.await_greeting(&[AWAY], "Second");
    plant.await_condition(AWAY, "Converged");
    plant.await_so("nobody is offline any more", MOVED_WITHIN, |plant| {
        let said = plant.status("dev", &[]);
        said.code == 0 && !said.stdout.contains("offline since")
    });
}

#[test]
fn a_late_failure_is_shown_on_the_promotion_it_belongs_to() {
    let Some(mut plant) = with_one_away(Policy::chain(&CHAIN)) else { return };
    let commit = plant.push_main("Late");
    plant.await_named("prod", &commit);
    plant.await_rollout("dev", &commit, "Complete");
    plant.agent(AWAY).write("sick-of", "Late\n");
    plant.comes_back(AWAY);
    plant.await_condition(AWAY, "Failed");
    plant.await_so("it is shown on the promotion", MOVED_WITHIN, |plant| {
        let promotion = plant.promotion("dev");
        let promotions = promotion["promotions"].as_array().cloned().unwrap_or_default();
        promotions.iter().any(|one| one["commit"] == commit.as_str() && one["lateFailed"] == 1)
    });
    assert_eq!(plant.rollout_of("dev", &commit).unwrap()["state"], "Complete", "shown, and nothing undone");
}

#[test]
fn a_late_failure_reopens_the_promotion_where_the_policy_says_so() {
    let Some(mut plant) = with_one_away(Policy::chain(&CHAIN).with("dev", &["late: reopen"])) else { return };
    let stricter = Policy::chain(&CHAIN).with("dev", &["late: reopen", "gate: {reached: 50%}"]);
    tighten(&plant, &stricter.with("stage", &["approval: {people: 1, notAuthor: false}"]));
    let commit = plant.push_main("Late");
    plant.await_rollout("dev", &commit, "Complete");
    let old = plant.named("stage").unwrap();
    plant.agent(AWAY).write("sick-of", "Late\n");
    plant.comes_back(AWAY);
    plant.await_condition(AWAY, "Failed");
    plant.await_so("it is open again", MOVED_WITHIN, |plant| {
        plant.promotion("dev").to_string().to_lowercase().contains("reopened")
    });
    // Nothing further follows from it: an approval now brings it nowhere.
    plant.approve(&plant.world.api, "stage", "go");
    plant.stays_so("stage keeps what it has", crate::plants::A_WHILE, |plant| {
        plant.named("stage").as_deref() == Some(&old)
    });
}
