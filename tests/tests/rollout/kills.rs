//! The hub is killed (-9) in the middle of everything that it can be in the middle of, and it ends as if it hadn't been.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use kedge_tests::lab::chance::{Chance, rounds};
use kedge_tests::world::plant::{LINE, MOVED_WITHIN, PRESS, Plant};
use kedge_tests::world::policy::Policy;

use crate::evidence;
use crate::plants::{CANARIES, CHAIN, OTHERS, rings_of, small, small_then, tighten, with_rings};

/// Kills the hub a few times at moments by chance, each within a second and a half of being up again.
fn kill_in_between(plant: &mut Plant, seed: u64) {
    let mut chance = Chance::seeded(seed);
    for _ in 0..rounds(3) {
        thread::sleep(Duration::from_millis(chance.below(1500)));
        plant.world.hub.kill();
        plant.world.hub.start_again();
    }
}

/// All states of a stream that were ever signed, by generation: a number is used once.
fn generations(plant: &Plant, environment: &str, cluster_type: &str, ring: &str) -> BTreeMap<u64, String> {
    let path = format!("/api/v1/desired-states/{environment}/{cluster_type}/{ring}");
    let newest = plant.world.api.get(&path)["generation"].as_u64().unwrap();
    let of = |number: u64| {
        let path = format!("{path}/envelope?generation={number}");
        let answer = plant.world.api.ask(http::Method::GET, &path, None, &[]);
        (answer.status == 200).then_some((number, answer.text))
    };
    (1..=newest).filter_map(of).collect()
}

#[test]
fn killed_while_it_promotes_and_gates_the_same_commit_still_reaches_prod_once() {
    let Some(mut plant) = small(&Policy::chain(&CHAIN)) else { return };
    let before: BTreeMap<&str, usize> = CHAIN.into_iter().map(|name| (name, commits(&plant, name))).collect();
    let commit = plant.push_main("Through it all");
    kill_in_between(&mut plant, 1);
    for environment in CHAIN {
        plant.await_named(environment, &commit);
        plant.await_rollout(environment, &commit, "Complete");
        evidence::await_statement(&plant, environment, &commit);
        assert_eq!(commits(&plant, environment), before[environment] + 1, "one commit on {environment}");
        let listed = plant.world.api.list(&format!("/api/v1/evidence?environment={environment}"));
        assert_eq!(listed.iter().filter(|item| item.to_string().contains(&commit)).count(), 1, "{listed:?}");
    }
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "Through it all");
    let issued = generations(&plant, "prod", LINE, "all");
    assert_eq!(issued.keys().max().copied(), Some(issued.len() as u64), "numbers without a gap: {:?}", issued.keys());
}

/// How many commits an environment's branch has.
fn commits(plant: &Plant, environment: &str) -> usize {
    plant.world.sample.control_plane.fetch();
    plant.world.sample.control_plane.log(&format!("origin/{environment}")).len()
}

#[test]
fn killed_while_a_ring_fails_the_change_still_stops_there() {
    let Some(mut plant) = with_rings(Policy::chain(&["dev"])) else { return };
    let commit = plant.push_app("dev", "sick version");
    kill_in_between(&mut plant, 2);
    let rollout = plant.await_rollout("dev", &commit, "Stopped");
    assert_eq!(
        (plant.ring_of(&rollout, "canary"), plant.ring_of(&rollout, "rest")),
        ("stopped".into(), "waiting".into())
    );
    assert!(OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1")));
}

#[test]
fn killed_while_it_rolls_back_the_old_content_is_everywhere_again() {
    let policy = Policy::chain(&["dev"]).with("dev", &["failure: {budget: 0, then: rollback}"]);
    let Some(mut plant) = with_rings(policy) else { return };
    let before = plant.entry("dev", LINE, "canary").unwrap();
    plant.agent(CANARIES[0]).write("sick-of", "version 2\n");
    let commit = plant.push_app("dev", "version 2");
    plant.await_condition(CANARIES[0], "Failed");
    kill_in_between(&mut plant, 3);
    plant.await_rollout("dev", &commit, "RolledBack");
    plant.await_text(&CANARIES, "version 1");
    plant.await_converged("dev");
    let after = plant.entry("dev", LINE, "canary").unwrap();
    assert!(after.0 > before.0);
    assert_eq!(after.1["workload"]["digest"], before.1["workload"]["digest"]);
}

#[test]
fn killed_while_a_person_stops_it_the_word_is_kept() {
    let Some(mut plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["soak: 5s"])) else { return };
    let commit = plant.push_app("dev", "version 2");
    plant.await_text(&CANARIES, "version 2");
    let rollout = plant.rollout_of("dev", &commit).unwrap();
    let said = plant.say(&plant.world.api, &rollout, "abort", "not today");
    assert!(said.status < 300, "{}", said.text);
    kill_in_between(&mut plant, 4);
    plant.await_rollout("dev", &commit, "Aborted");
    plant.stays_so("the others keep the old", crate::plants::A_WHILE, |plant| {
        OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1"))
    });
    assert_eq!(plant.text_on("dev-press-1").as_deref(), Some("version 2"), "those reached keep what they have");
    assert!(plant.entry("dev", PRESS, "rest").is_some());
}

#[test]
fn killed_right_after_an_approval_or_an_override_it_counts_once_and_is_in_the_evidence() {
    let policy = Policy::chain(&CHAIN).with("stage", &["approval: {people: 2, notAuthor: true}"]);
    let Some(mut plant) = small_then(&policy) else { return };
    let (bea, cleo) = (plant.person("bea", "platform"), plant.person("cleo", "platform"));
    let old = plant.named("stage").unwrap();
    let commit = plant.push_main("Two of them");
    plant.await_rollout("dev", &commit, "Complete");
    plant.await_so("it waits for people", MOVED_WITHIN, |plant| plant.promotion("stage").to_string().contains(&commit));
    assert!(plant.approve(&bea, "stage", "first").status < 300);
    kill_in_between(&mut plant, 5);
    plant.approve(&bea, "stage", "first again");
    plant.stays_so("one person is one person", crate::plants::A_WHILE, |plant| {
        plant.named("stage").as_deref() == Some(&old)
    });
    assert!(plant.approve(&cleo, "stage", "second").status < 300);
    kill_in_between(&mut plant, 6);
    plant.await_named("stage", &commit);
    plant.await_rollout("stage", &commit, "Complete");
    let statement = evidence::await_statement(&plant, "stage", &commit).to_string();
    assert!(statement.contains("bea") && statement.contains("cleo"), "{statement}");

    let bad = plant.push_main("sick");
    let stopped = plant.await_rollout("dev", &bad, "Stopped");
    assert!(plant.say(&plant.world.api, &stopped, "override", "for the drill").status < 300);
    kill_in_between(&mut plant, 7);
    plant.await_rollout("dev", &bad, "Complete");
    let statement = evidence::await_statement(&plant, "dev", &bad).to_string();
    assert!(statement.contains("for the drill"), "{statement}");
}

#[test]
fn killed_during_a_freeze_nothing_begins_and_a_person_still_ends_it() {
    let freeze = "freezes: [{from: 2020-01-01, to: 2120-01-01, timeZone: Europe/Berlin, reason: the fair}]";
    let Some(mut plant) = with_rings(Policy::chain(&["dev"])) else { return };
    tighten(&plant, &rings_of(Policy::chain(&["dev"]).with("dev", &[freeze])));
    let commit = plant.push_app("dev", "version 2");
    kill_in_between(&mut plant, 8);
    plant.await_so("it waits for the end of the freeze", MOVED_WITHIN, |plant| {
        plant.rollout_of("dev", &commit).is_some_and(|rollout| {
            plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"])).to_string().contains("the fair")
        })
    });
    assert!(CANARIES.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1")));
    let rollout = plant.rollout_of("dev", &commit).unwrap();
    assert!(plant.say(&plant.world.api, &rollout, "now", "the fair needs it").status < 300);
    kill_in_between(&mut plant, 9);
    plant.await_rollout("dev", &commit, "Complete");
    plant.await_text(&OTHERS, "version 2");
}

#[test]
fn killed_while_a_cluster_is_away_and_while_it_returns_it_still_gets_what_is_current() {
    const AWAY: &str = "dev-factory-line-6";
    let Some(mut plant) = with_rings(Policy::chain(&["dev"]).with("dev", &["gate: {reached: 50%}"])) else { return };
    plant.add_with_cable("dev", LINE, "", AWAY);
    plant.await_condition(AWAY, "Converged");
    plant.agent(AWAY).cable.as_ref().unwrap().cut();
    plant.await_condition(AWAY, "Unknown");
    let commit = plant.push_app("dev", "version 2");
    kill_in_between(&mut plant, 10);
    plant.await_rollout("dev", &commit, "Complete");
    assert_eq!(plant.text_on(AWAY).as_deref(), Some("version 1"));
    plant.comes_back(AWAY);
    kill_in_between(&mut plant, 11);
    plant.await_text(&[AWAY], "version 2");
    plant.await_condition(AWAY, "Converged");
    assert_eq!(plant.rollout_of("dev", &commit).unwrap()["state"], "Complete");
}
