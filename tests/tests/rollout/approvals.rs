//! What people decide: approvals, overrides, freezes; and what stays written of it.

use kedge_tests::world::api::Api;
use kedge_tests::world::plant::{Lane, MOVED_WITHIN, Plant};
use kedge_tests::world::policy::Policy;

use serde_json::json;

use crate::evidence;
use crate::plants::{A_WHILE, CANARIES, CHAIN, OTHERS, small, small_then, tighten, with_rings};

#[test]
fn prod_needs_an_approval_by_somebody_else_than_the_author() {
    let policy = Policy::chain(&CHAIN).with("prod", &["approval: {people: 1, role: platform, notAuthor: true}"]);
    let Some(plant) = small_then(&policy) else { return };
    let (author, other, viewer) = (
        plant.person("Ada Tester", "platform"),
        plant.person("bea@example.com", "platform"),
        plant.person("vera", "viewer"),
    );
    let old = plant.named("prod").unwrap();
    let commit = plant.push_main("Please");
    plant.await_rollout("stage", &commit, "Complete");
    await_waiting(&plant, "prod", &commit);
    assert_eq!(plant.approve(&viewer, "prod", "why not").status, 403);
    // Her word is refused, or it doesn't count.
    plant.approve(&author, "prod", "mine");
    plant.stays_so("the author alone isn't enough", A_WHILE, |plant| plant.named("prod").as_deref() == Some(&old));
    let said = plant.approve(&other, "prod", "looked at it");
    assert!(said.status < 300, "{}", said.text);
    plant.await_named("prod", &commit);
    plant.await_greeting(&["prod-factory-line-1", "prod-press-1"], "Please");
    plant.await_rollout("prod", &commit, "Complete");
    let statement = evidence::await_statement(&plant, "prod", &commit);
    assert!(statement.to_string().contains("bea@example.com"), "{statement}");
}

#[test]
fn two_tokens_of_one_person_are_one_and_an_override_of_two_needs_two() {
    let policy = Policy::chain(&CHAIN).with("prod", &["approval: {people: 2}", "override: {people: 2}"]);
    let Some(plant) = small_then(&policy) else { return };
    let bea = plant.person("bea", "platform");
    let administrator = plant.world.administrator();
    let second = json!({"person": "bea", "name": "somebody else", "role": "platform"});
    // Who isn't an administrator makes no second name for itself.
    assert_eq!(bea.ask(http::Method::POST, "/api/v1/access-tokens", Some(&second), &[]).status, 403);
    assert_eq!(bea.ask(http::Method::POST, "/api/v1/people", Some(&json!({"name": "x"})), &[]).status, 403);
    let second = administrator.post("/api/v1/access-tokens", second);
    let second = plant.world.api.with_token(second["token"].as_str().unwrap());
    let old = plant.named("prod").unwrap();
    let commit = plant.push_main("Please");
    plant.await_rollout("stage", &commit, "Complete");
    await_waiting(&plant, "prod", &commit);
    assert!(plant.approve(&bea, "prod", "fine").status < 300);
    assert_eq!(plant.approve(&second, "prod", "fine as well").status, 409);
    assert_eq!(plant.approve(&administrator, "prod", "fine too").status, 403);
    let over = json!({"reason": "now", "commit": commit});
    let over = |who: &Api| who.ask(http::Method::POST, "/api/v1/promotions/prod/override", Some(&over), &[]).status;
    assert!(over(&bea) < 300);
    assert_eq!(over(&second), 409, "the same person overrides once");
    plant.stays_so("one person isn't two", A_WHILE, |plant| plant.named("prod").as_deref() == Some(&old));
    assert!(over(&plant.person("cleo", "platform")) < 300);
    plant.await_named("prod", &commit);
}

#[test]
fn a_ring_waits_for_its_own_approval() {
    let policy = Policy::chain(&["dev"]);
    let Some(plant) = with_rings_approved(policy) else { return };
    let commit = plant.push_app("dev", "version 2");
    plant.await_text(&CANARIES, "version 2");
    plant.stays_so("the others wait", A_WHILE, |plant| {
        OTHERS.iter().all(|name| plant.text_on(name).as_deref() == Some("version 1"))
    });
    let rollout = plant.rollout_of("dev", &commit).unwrap();
    let said = plant.say(&plant.person("otto", "platform"), &rollout, "approve", "go on");
    assert!(said.status < 300, "{}", said.text);
    plant.await_text(&OTHERS, "version 2");
    plant.await_rollout("dev", &commit, "Complete");
}

/// The second ring of dev asks one person.
fn with_rings_approved(policy: Policy) -> Option<Plant> {
    let plant = with_rings(policy)?;
    let stricter = Policy::chain(&["dev"]).ring("dev", "canary", &["selector: {matchLabels: {ring: canary}}"]).ring(
        "dev",
        "rest",
        &["approval: {people: 1, notAuthor: false}"],
    );
    tighten(&plant, &stricter);
    Some(plant)
}

#[test]
fn an_override_needs_a_reason_and_the_platforms_role_and_is_in_the_evidence_for_ever() {
    let Some(plant) = small(&Policy::chain(&CHAIN)) else { return };
    let bad = plant.push_main("sick");
    let stopped = plant.await_rollout("dev", &bad, "Stopped");
    let app = plant.person("anna", "application");
    let refused = plant.say(&app, &stopped, "override", "trust me");
    assert!((400..500).contains(&refused.status), "{} {}", refused.status, refused.text);
    let empty = plant.say(&plant.world.api, &stopped, "override", "");
    assert!((400..500).contains(&empty.status), "{} {}", empty.status, empty.text);
    let old = plant.named("stage").unwrap();
    // Without an override it may only begin sooner, not before dev has passed it.
    plant.world.kedge.try_run(["promote", "start", "stage", "--commit", &bad, "--reason", "now"]);
    plant.stays_so("stage keeps what it has", A_WHILE, |plant| plant.named("stage").as_deref() == Some(&old));

    plant.world.kedge.run([
        "promote",
        "override",
        "stage",
        "--commit",
        &bad,
        "--reason",
        "stage is to be ill for the drill",
    ]);
    plant.await_named("stage", &bad);
    // There it fails as well: the override was about dev's gate only.
    plant.await_rollout("stage", &bad, "Stopped");
    assert_eq!(plant.named("prod").as_deref(), Some(old.as_str()));
    let stopped = plant.rollout_of("stage", &bad).unwrap();
    let said = plant.say(&plant.world.api, &stopped, "override", "the drill is over");
    assert!(said.status < 300, "{}", said.text);
    for reason in ["stage is to be ill for the drill", "the drill is over"] {
        evidence::await_said(&plant, "stage", &bad, reason);
    }
}

#[test]
fn a_freeze_holds_a_commit_up_until_a_person_says_now() {
    let freeze = "freezes: [{from: 2020-01-01, to: 2120-01-01, timeZone: Europe/Berlin, reason: the fair}]";
    let Some(plant) = small_then(&Policy::chain(&CHAIN).with("dev", &[freeze])) else { return };
    let commit = plant.push_app("dev", "version 2");
    plant.await_so("it waits for the end of the freeze", MOVED_WITHIN, |plant| {
        plant.rollout_of("dev", &commit).is_some_and(|rollout| {
            plant.world.api.get(&format!("/api/v1/rollouts/{}", rollout["id"])).to_string().contains("the fair")
        })
    });
    plant.stays_so("nothing moves", A_WHILE, |plant| {
        plant.text_on("dev-factory-line-1").as_deref() == Some("version 1")
    });
    // Stage isn't frozen: its own application commit goes on.
    plant.push_app("stage", "version 2 of stage");
    plant.await_text(&["stage-factory-line-1", "stage-press-1"], "version 2 of stage");

    let rollout = plant.rollout("dev", Lane::Source).unwrap();
    let said = plant.say(&plant.world.api, &rollout, "now", "the fair needs it");
    assert!(said.status < 300, "{}", said.text);
    plant.await_text(&["dev-factory-line-1", "dev-press-1"], "version 2");
}

fn await_waiting(plant: &Plant, environment: &str, commit: &str) {
    plant.await_so("it waits for people", MOVED_WITHIN, |plant| {
        let shown = plant.promotion(environment).to_string();
        shown.contains(commit) && shown.contains("pprov")
    });
}
