//! What keeps a change from arriving, and who did it: aborts, pauses, holds, pins, approvals that are missing.

use kedge_model::kinds::{Approval, ApproverRole, Offline};
use kedge_model::wire::{Envelope, HoldDocument, HoldEntry, SigningKey, Timestamp};
use kedge_rollout::{Lane, Person, Phase, RingState, Say, Word};
use serde_json::{Value, json};

use super::fixture::Hub;
use super::rollouts::{COMMIT, apply_entry, govern, govern_by, leader, members, rolls, rules, run, says};
use crate::store::agents::holds::HoldWriter;

const MAIN: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const APPLICATION: &str = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";

fn word(say: Say, reason: &str) -> Word {
    Word {
        who: "anna".to_owned(),
        person: Person::new("anna", &[]),
        role: "platform".to_owned(),
        at: Timestamp(2000),
        reason: reason.to_owned(),
        say,
        new_token: false,
    }
}

async fn blocks(hub: &Hub) {
    let sql = "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
               VALUES ('dev', 'platform', 'drone', 'hello-functional-test', 'hello', 'f', 7)";
    run(hub, sql, &[]).await;
}

async fn problem(hub: &Hub, code: &str) -> Option<Value> {
    let problems = hub.get(&hub.platform, "/problems").await.ok().body;
    problems["items"].as_array().unwrap().iter().find(|one| one["code"] == code).cloned()
}

async fn an_aborted_rollout_is_a_problem_as_long_as_git_asks_for_it(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.words.push(word(Say::Abort, "orders are lost"));
        rollout.phase = Phase::Aborted { by: "anna".to_owned(), at: Timestamp(2000) };
    })
    .await;
    blocks(&hub).await;
    let found = problem(&hub, "RolloutAborted").await.expect("it needs somebody");
    let told = found["message"].as_str().unwrap();
    assert!(told.ends_with("was aborted by anna: orders are lost"), "{told}");
    let notice = hub.get(&hub.viewer, "/fleet").await.ok().body["environments"][0]["notices"][0].clone();
    assert_eq!(notice["text"], format!("{} “faster” was aborted by anna: orders are lost", &COMMIT[..10]));
    run(&hub, "DELETE FROM rollout_blocked", &[]).await;
    assert_eq!(problem(&hub, "RolloutAborted").await, None, "Git asks for something else");
}

async fn an_aborted_rollout_that_every_ring_has_goes_on_when_it_is_started_again(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        (rollout.rings[0].state, rollout.rings[1].state) = (RingState::Passed, RingState::Rolling);
        rollout.phase = Phase::Aborted { by: "anna".to_owned(), at: Timestamp(2000) };
    })
    .await;
    blocks(&hub).await;
    let takes = leader(&hub, None);
    let body = json!({"environment": "dev", "workload": "hello", "reason": "the cause is gone"});
    let done = hub.post(&hub.platform, "/rollouts", body).await.ok().body;
    takes.abort();
    assert_eq!((&done["rollouts"], &done["done"]), (&json!([7]), &json!("1 rollout of hello goes on")), "{done:#}");
    let said: String = sqlx::query_scalar("SELECT body FROM rollout_words").fetch_one(hub.store.pool()).await.unwrap();
    assert!(said.contains("resume"), "nothing could begin anew: {said}");
}

async fn a_pause_says_why(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.words.push(word(Say::Pause, "line 4 is serviced"));
        rollout.phase = Phase::Paused { by: "anna".to_owned(), at: Timestamp(2000) };
    })
    .await;
    let found = problem(&hub, "RolloutPaused").await.expect("it needs somebody");
    assert!(found["message"].as_str().unwrap().ends_with("is paused by anna: line 4 is serviced"), "{found:#}");
    let listed = hub.get(&hub.viewer, "/rollouts").await.ok().body["items"][0].clone();
    assert_eq!(listed["why"], "paused by anna: line 4 is serviced");
}

async fn a_subject_stands_beside_the_commit_that_wrote_it(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.lane = Lane::Platform;
        rollout.cause.main = Some(MAIN.to_owned());
        rollout.cause.subject_of = Some(APPLICATION.to_owned());
        rollout.cause.subject = "Rename target".to_owned();
        rollout.phase = Phase::RolledBack { why: "no".to_owned(), at: Timestamp(2000) };
    })
    .await;
    blocks(&hub).await;
    let notice = hub.get(&hub.viewer, "/fleet").await.ok().body["environments"][0]["notices"][0].clone();
    assert_eq!(notice["text"], "eeeeeeeeee “Rename target” was rolled back: no");
    let found = problem(&hub, "RolledBack").await.expect("it needs somebody");
    assert!(found["message"].as_str().unwrap().contains("of eeeeeee “Rename target”"), "{found:#}");
    let listed = hub.get(&hub.viewer, "/rollouts").await.ok().body["items"][0].clone();
    assert_eq!(listed["subjectOf"], APPLICATION);
}

async fn who_is_pinned_to_other_content_does_not_have_what_is_asked_for(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.rings.iter_mut().for_each(|ring| ring.state = RingState::Passed);
        rollout.phase = Phase::Complete { at: Timestamp(2000) };
    })
    .await;
    members(&hub, "canary", "Reporting", 1).await;
    members(&hub, "rest", "Reporting", 1).await;
    says(&hub, "Converged", 1).await;
    hub.state(4, &apply_entry()).await;
    run(&hub, "UPDATE states SET ring = 'rest'", &[]).await;
    let sql = "INSERT INTO pinned (environment, cluster_type, ring, assignment, body) \
               VALUES ('dev', 'drone', 'rest', 'hello-functional-test', '\"absent\"')";
    run(&hub, sql, &[]).await;
    let path = format!("/rollout-status?environment=dev&sourceCommit={COMMIT}");
    let answer = hub.get(&hub.viewer, &path).await.ok().body;
    assert_eq!(answer["headline"], "1 of 2: 1 converged; 1 pinned to other content; complete", "{answer:#}");
    assert_eq!((&answer["pinned"], &answer["lines"][0]["pinned"]), (&json!(1), &json!(["rest"])));
}

async fn a_hold_is_named_where_it_keeps_a_change_from_arriving(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    members(&hub, "canary", "Reporting", 1).await;
    says(&hub, "Converging", 1).await;
    let cluster = hub.cluster(1, "held", "drone", "{}").await;
    run(&hub, "UPDATE clusters SET ring = 'canary'", &[]).await;
    let hold = HoldEntry {
        assignment: "hello-functional-test".to_owned(),
        by: "anna".to_owned(),
        reason: "x".to_owned(),
        since: Timestamp(5),
    };
    let document = HoldDocument { cluster, sequence: 1, written_at: Timestamp(6), holds: vec![hold] };
    let envelope = Envelope::sign(&document, &SigningKey::from_seed(&[1; 32]).unwrap()).unwrap();
    let mut tx = hub.store.write().await.unwrap();
    tx.put_hold_document(&document, HoldWriter::Cluster, &envelope.to_json().unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    let note = json!("1 held (kedge get clusters -e dev)");
    let answer = hub.get(&hub.viewer, "/rollout-status?environment=dev&rollout=7").await.ok().body;
    assert!(answer["notes"].as_array().unwrap().contains(&note), "{answer:#}");
    let shown = hub.get(&hub.viewer, "/rollouts/7").await.ok().body;
    assert!(shown["rings"][0]["waitsFor"].as_array().unwrap().contains(&note), "{shown:#}");
}

/// Two people of the platform must agree.
async fn governed_by_two(hub: &Hub) {
    let mut careful = rules(Offline::Complete);
    careful.rings[0].approval = Some(Approval { people: 2, role: ApproverRole::Platform, not_author: false });
    govern_by(hub, careful).await;
}

async fn a_looser_policy_says_how_many_have_agreed_and_is_refused_once(hub: Hub) {
    governed_by_two(&hub).await;
    let words = serde_json::to_string(&[word(Say::Approve { ring: None }, "fine")]).unwrap();
    let sql = "INSERT INTO policies (slot, body, digest, commit_id, subject, author, reasons, words, since) \
               SELECT 'waiting', body, 'd', 'c1', 'looser', 'ben', '[\"environment dev is gone\"]', $1, 1 FROM policies";
    run(&hub, sql, &[&words]).await;
    let given = "1 of 2 approvals given (anna)";
    assert_eq!(hub.get(&hub.viewer, "/promotions").await.ok().body["waiting"]["approvals"], given);
    let found = problem(&hub, "PolicyLoosened").await.expect("it waits for a person");
    assert!(found["message"].as_str().unwrap().ends_with(&format!("environment dev is gone; {given}")), "{found:#}");

    let store = hub.store.clone();
    let leads = tokio::spawn(async move {
        loop {
            let sql = "UPDATE promotion_words SET taken_at = 1, refused = 'no' WHERE taken_at IS NULL";
            sqlx::query(sql).execute(store.pool()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    hub.post(&hub.platform, "/policy/approve", json!({"reason": "me too"})).await.refused(409, "Refused");
    leads.abort();
    let audit = hub.get(&hub.platform, "/audit").await.ok().body["items"].clone();
    let said: Vec<&Value> =
        audit.as_array().unwrap().iter().filter(|entry| entry["action"] == "policy.approve").collect();
    assert_eq!(said.len(), 1, "{audit:#}");
    assert_eq!(said[0]["result"], "refused: no");
}

async fn an_approval_is_asked_for_during_a_freeze_too(hub: Hub) {
    governed_by_two(&hub).await;
    let waits = ["needs 2 approvals from the platform team", "frozen from 2026-11-19 to 2026-11-20"];
    let promotion = json!({"commit": COMMIT, "subject": "s", "author": "a", "phase": {"phase": "waiting"}, "createdAt": 1,
        "waitsFor": waits});
    let sql = "INSERT INTO promotions (environment, body, updated_at, tick) VALUES ('dev', $1, 1, 1)";
    run(&hub, sql, &[&json!({"promotions": [promotion]}).to_string()]).await;
    let found = problem(&hub, "PromotionWaiting").await.expect("approvals can be given");
    assert!(found["message"].as_str().unwrap().ends_with(&waits.join("; ")), "{found:#}");
}

on_each_database!(
    an_aborted_rollout_is_a_problem_as_long_as_git_asks_for_it,
    an_aborted_rollout_that_every_ring_has_goes_on_when_it_is_started_again,
    a_pause_says_why,
    a_subject_stands_beside_the_commit_that_wrote_it,
    who_is_pinned_to_other_content_does_not_have_what_is_asked_for,
    a_hold_is_named_where_it_keeps_a_change_from_arriving,
    a_looser_policy_says_how_many_have_agreed_and_is_refused_once,
    an_approval_is_asked_for_during_a_freeze_too,
);
