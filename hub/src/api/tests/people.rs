//! Persons: who makes tokens, whom they belong to, and that approvals count persons.

use kedge_model::kinds::{Approval, ApproverRole, Offline};
use kedge_rollout::{RingState, Rollout, RolloutId};
use serde_json::{Value, json};

use super::fixture::Hub;
use super::rollouts::{govern, rolls};

/// Adds a person and gives it a token; the token's text.
async fn person(hub: &Hub, name: &str, emails: &[&str], role: &str) -> String {
    hub.post(&hub.administrator, "/people", json!({"name": name, "emails": emails})).await.ok();
    token(hub, name, name, role).await
}

async fn token(hub: &Hub, person: &str, name: &str, role: &str) -> String {
    let body = json!({"person": person, "name": name, "role": role});
    let made = hub.post(&hub.administrator, "/access-tokens", body).await.ok();
    made.body["token"].as_str().unwrap().to_owned()
}

/// Its second ring waits for two of the platform team who didn't write the change.
async fn waiting_for_two(hub: &Hub) {
    govern(hub, Offline::Complete).await;
    rolls(hub, Offline::Complete, |rollout| {
        let mut policy = (*rollout.policy).clone();
        policy.rings[1].approval = Some(Approval { people: 2, role: ApproverRole::Platform, not_author: true });
        rollout.policy = policy.into();
        rollout.rings[0].state = RingState::Passed;
    })
    .await;
}

/// What the leader does with words that wait: takes them, and keeps what comes of it.
async fn take(hub: &Hub) -> Rollout {
    let mut stored = hub.store.whole_rollout(RolloutId(7)).await.unwrap().unwrap().rollout;
    for word in hub.store.words_of("dev").await.unwrap() {
        stored = kedge_rollout::hear(&stored, word.word).unwrap();
        let sql = "UPDATE rollout_words SET taken_at = 1 WHERE id = $1";
        sqlx::query(sql).bind(word.id).execute(hub.store.pool()).await.unwrap();
    }
    let body = serde_json::to_string(&stored).unwrap();
    sqlx::query("UPDATE rollouts SET body = $1 WHERE id = 7").bind(body).execute(hub.store.pool()).await.unwrap();
    stored
}

/// Approves, with a leader that takes the word.
async fn approve(hub: &Hub, token: &str) -> super::fixture::Answer {
    let (answer, _) = tokio::join!(hub.post(token, "/rollouts/7/approve", json!({"reason": "fine"})), async {
        for _ in 0..200 {
            if !hub.store.words_of("dev").await.unwrap().is_empty() {
                take(hub).await;
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    answer
}

fn missing(rollout: &Rollout) -> Option<String> {
    let rule = rollout.approval("rest").unwrap();
    kedge_rollout::approval::missing(&rule, &rollout.words, "rest", &[&rollout.cause.author])
}

async fn one_person_with_two_tokens_approves_once(hub: Hub) {
    waiting_for_two(&hub).await;
    let laptop = person(&hub, "cleo", &["cleo@example.org"], "platform").await;
    let robot = token(&hub, "cleo", "an innocent robot", "platform").await;
    assert_eq!(approve(&hub, &laptop).await.status, 200);
    hub.post(&robot, "/rollouts/7/approve", json!({})).await.refused(409, "AlreadyApproved");
    let now = take(&hub).await;
    assert_eq!(
        missing(&now).as_deref(),
        Some("needs 1 more approval from the platform team, not from its author; 1 of 2 approvals given (cleo)"),
        "a second name isn't a second person"
    );
    let other = person(&hub, "dora", &["dora@example.org"], "platform").await;
    assert_eq!(approve(&hub, &other).await.status, 200);
    let now = take(&hub).await;
    assert_eq!(missing(&now), None);
    // Both tokens are younger than the rollout: the evidence says so.
    assert!(now.words.iter().all(|word| word.new_token), "{:?}", now.words);
}

async fn an_author_under_another_name_does_not_approve(hub: Hub) {
    waiting_for_two(&hub).await;
    // The commit is by Ada <ada@example.org>.
    let ada = person(&hub, "release robot", &["ADA@example.org"], "platform").await;
    hub.post(&ada, "/rollouts/7/approve", json!({})).await.refused(409, "OwnChange");
    // Nobody knows who this is.
    let answer = hub.post(&hub.platform, "/rollouts/7/approve", json!({})).await.refused(409, "NoEmail");
    assert!(answer.body["detail"].as_str().unwrap().contains("kedge person set"), "{}", answer.text);
    hub.patch(&hub.administrator, "/people/anna", json!({"emails": ["anna@example.org"]})).await.ok();
    assert_eq!(approve(&hub, &hub.platform).await.status, 200);
}

/// An administrator's help, for as long as an approval takes, makes nobody else of the author.
async fn an_address_that_was_taken_away_is_still_the_authors(hub: Hub) {
    waiting_for_two(&hub).await;
    let author = person(&hub, "release robot", &["ada@example.org"], "platform").await;
    hub.post(&author, "/rollouts/7/approve", json!({})).await.refused(409, "OwnChange");
    hub.patch(&hub.administrator, "/people/release%20robot", json!({"emails": ["z@example.org"]})).await.ok();
    let answer = hub.post(&author, "/rollouts/7/approve", json!({})).await.refused(409, "OwnChange");
    assert!(answer.body["detail"].as_str().unwrap().contains("changed since"), "{}", answer.text);
    assert_eq!(hub.get(&author, "/whoami").await.ok().body["emails"], json!(["z@example.org"]));
    // The same with a name.
    let namesake = person(&hub, "Ada", &["a.lovelace@example.org"], "platform").await;
    hub.post(&namesake, "/rollouts/7/approve", json!({})).await.refused(409, "OwnChange");
    hub.patch(&hub.administrator, "/people/Ada", json!({"name": "somebody else"})).await.ok();
    hub.post(&namesake, "/rollouts/7/approve", json!({})).await.refused(409, "OwnChange");
    // Ninety days later nobody remembers.
    let sql = "UPDATE people SET former = REPLACE(former, '\"until\":', '\"until\":-') WHERE name = 'release robot'";
    super::rollouts::run(&hub, sql, &[]).await;
    assert_eq!(approve(&hub, &author).await.status, 200);
}

async fn who_makes_tokens_approves_nothing(hub: Hub) {
    waiting_for_two(&hub).await;
    hub.post(&hub.administrator, "/rollouts/7/approve", json!({})).await.refused(403, "Forbidden");
    for (path, body) in [
        ("/rollouts/7/override", json!({"reason": "x"})),
        ("/rollouts/7/now", json!({})),
        ("/rollouts/7/rollback", json!({"reason": "x"})),
        ("/promotions/dev/override", json!({"reason": "x"})),
        ("/promotions/dev/approve", json!({})),
        ("/policy/approve", json!({})),
        ("/join-tokens", json!({"environment": "dev", "clusterType": "drone"})),
        ("/environments/dev/cluster-types/drone/confirm", Value::Null),
        ("/repositories/fetch", json!({"url": "https://git.example/harbour/hello"})),
    ] {
        hub.post(&hub.administrator, path, body).await.refused(403, "Forbidden");
    }
    // Neither itself under another role, nor somebody of the platform team as a second administrator.
    let own = json!({"person": "root", "name": "by day", "role": "platform"});
    let answer = hub.post(&hub.administrator, "/access-tokens", own).await.refused(409, "RolesExclude");
    assert!(answer.body["hint"].as_str().unwrap().contains("another person"));
    let both = json!({"person": "anna", "role": "administrator"});
    hub.post(&hub.administrator, "/access-tokens", both).await.refused(409, "RolesExclude");
    // It reads as a viewer does, without secrets.
    let shown = hub.get(&hub.administrator, "/assignments/dev/drone/hello-functional-test").await.ok();
    assert!(!shown.text.contains("hunter2"));
}

async fn only_administrators_make_people_and_tokens(hub: Hub) {
    for token in [&hub.platform, &hub.viewer, &hub.team] {
        let second = json!({"person": "anna", "name": "second me", "role": "platform"});
        let answer = hub.post(token, "/access-tokens", second).await.refused(403, "Forbidden");
        assert!(answer.body["hint"].as_str().unwrap().contains("kedge-hub administrator"), "{}", answer.text);
        hub.post(token, "/people", json!({"name": "somebody else"})).await.refused(403, "Forbidden");
        hub.patch(token, "/people/anna", json!({"emails": ["x@example.org"]})).await.refused(403, "Forbidden");
        hub.delete(token, "/people/root").await.refused(403, "Forbidden");
    }
    hub.get(&hub.platform, "/people").await.ok();
    hub.get(&hub.viewer, "/people").await.refused(403, "Forbidden");
    // The audit names who made what for whom.
    person(&hub, "cleo", &["cleo@example.org"], "platform").await;
    let audit = hub.get(&hub.viewer, "/audit?action=access-token.").await.ok();
    let entry = &audit.body["items"][0];
    assert_eq!((&entry["who"], &entry["detail"]["personName"]), (&json!("root"), &json!("cleo")));
    let whoami = hub.get(&hub.administrator, "/whoami").await.ok().body;
    assert_eq!(entry["person"], whoami["person"]);
    let tokens = hub.get(&hub.platform, "/access-tokens").await.ok().body;
    let of = |name: &str| {
        let items = tokens["items"].as_array().unwrap().iter();
        items.filter(|item| item["personName"] == name).collect::<Vec<_>>()[0].clone()
    };
    assert_eq!(of("cleo")["createdBy"], whoami["person"]);
}

async fn a_name_or_address_is_one_persons(hub: Hub) {
    hub.post(&hub.administrator, "/people", json!({"name": "Anna"})).await.refused(409, "NameTaken");
    hub.patch(&hub.administrator, "/people/anna", json!({"emails": ["a@example.org"]})).await.ok();
    let same = json!({"name": "other", "emails": ["A@Example.org"]});
    hub.post(&hub.administrator, "/people", same).await.refused(409, "EmailTaken");
    for bad in [
        json!({"name": " "}),
        json!({"name": "x\ny"}),
        json!({"name": "x", "emails": ["not an address"]}),
        json!({"name": "x", "emails": ["Ada <ada@example.org>"]}),
    ] {
        assert_eq!(hub.post(&hub.administrator, "/people", bad.clone()).await.status, 400, "{bad}");
    }
    hub.post(&hub.administrator, "/access-tokens", json!({"person": "nobody", "role": "viewer"}))
        .await
        .refused(404, "NotFound");
}

async fn with_a_person_all_its_tokens_end(hub: Hub) {
    let laptop = person(&hub, "cleo", &[], "platform").await;
    let robot = token(&hub, "cleo", "robot", "viewer").await;
    hub.get(&laptop, "/whoami").await.ok();
    hub.delete(&hub.administrator, "/people/cleo").await.ok();
    for token in [laptop, robot] {
        hub.get(&token, "/whoami").await.refused(401, "TokenRevoked");
    }
    hub.delete(&hub.administrator, "/people/cleo").await.refused(404, "NotFound");
    hub.post(&hub.administrator, "/access-tokens", json!({"person": "cleo", "role": "viewer"}))
        .await
        .refused(404, "NotFound");
    // The name is free again, and it is somebody else.
    let before = hub.get(&hub.administrator, "/people").await.ok().body;
    person(&hub, "cleo", &[], "platform").await;
    let after = hub.get(&hub.administrator, "/people").await.ok().body;
    assert_eq!(after["items"].as_array().unwrap().len(), before["items"].as_array().unwrap().len() + 1);
}

/// No word without its entry: where the audit can't be written, nothing is said.
async fn a_word_on_a_promotion_and_its_audit_entry_are_one(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    let sql = "INSERT INTO policies (slot, body, digest, commit_id, subject, author, reasons, words, since) \
               SELECT 'waiting', body, 'x', 'c1', subject, author, reasons, words, since FROM policies";
    super::rollouts::run(&hub, sql, &[]).await;
    super::rollouts::run(&hub, "ALTER TABLE audit RENAME TO audit_gone", &[]).await;
    for (path, body) in [
        ("/promotions/dev/override", json!({"reason": "x", "commit": "1f0e0d0c0b0a09080706050403020100f0e0d0c0"})),
        ("/promotions/dev/approve", json!({"commit": "1f0e0d0c0b0a09080706050403020100f0e0d0c0"})),
        ("/policy/approve", json!({})),
    ] {
        let answer = hub.post(&hub.platform, path, body).await;
        assert!(answer.status.is_server_error(), "{path}: {} {}", answer.status, answer.text);
    }
    assert!(hub.store.waiting_promotion_words().await.unwrap().is_empty(), "a word was said that nobody can audit");
    super::rollouts::run(&hub, "ALTER TABLE audit_gone RENAME TO audit", &[]).await;
}

async fn a_cluster_that_was_silent_for_years_is_let_in_by_a_person(hub: Hub) {
    hub.cluster(1, "drone-1", "drone", "{}").await;
    // It was last heard in 1970.
    let shown = hub.get(&hub.viewer, "/clusters/drone-1").await.ok().body;
    assert_eq!(shown["needsReadmission"], true);
    hub.post(&hub.viewer, "/clusters/drone-1/readmit", json!({})).await.refused(403, "Forbidden");
    let now = hub.post(&hub.platform, "/clusters/drone-1/readmit", json!({})).await.ok().body;
    assert!(now.get("needsReadmission").is_none(), "{now}");
    hub.post(&hub.platform, "/clusters/drone-1/readmit", json!({})).await.refused(409, "NotSilent");
    let audit = hub.get(&hub.viewer, "/audit?action=cluster.readmit").await.ok().body;
    let results: Vec<&Value> = audit["items"].as_array().unwrap().iter().map(|item| &item["result"]).collect();
    assert_eq!(results, ["refused: NotSilent", "done", "refused: Forbidden"]);
    assert_eq!(audit["items"][1]["who"], "anna");
}

async fn a_hold_of_the_site_is_lifted_by_the_platform_team(hub: Hub) {
    hub.cluster(1, "drone-1", "drone", "{}").await;
    let lift = |assignment: &str| json!({"assignment": assignment, "peers": true, "reason": "gate-1 was stolen"});
    hub.post(&hub.team, "/clusters/drone-1/release", lift("hello-functional-test")).await.refused(403, "Forbidden");
    hub.post(&hub.platform, "/clusters/drone-1/release", lift("hello-functional-test")).await.ok();
    hub.post(&hub.platform, "/clusters/drone-1/release", lift("spy-functional-test")).await.refused(409, "NotHeld");
    let audit = hub.get(&hub.viewer, "/audit?action=cluster.lift-hold").await.ok().body;
    assert_eq!(audit["items"][0]["detail"]["ended"], json!(["eve@gate-1"]));
    assert!(hub.services.asked().iter().any(|line| line.starts_with("anna lifts hello-functional-test")));
}

on_each_database! {
    a_word_on_a_promotion_and_its_audit_entry_are_one,
    a_cluster_that_was_silent_for_years_is_let_in_by_a_person,
    a_hold_of_the_site_is_lifted_by_the_platform_team,
    one_person_with_two_tokens_approves_once,
    an_author_under_another_name_does_not_approve,
    an_address_that_was_taken_away_is_still_the_authors,
    who_makes_tokens_approves_nothing,
    only_administrators_make_people_and_tokens,
    a_name_or_address_is_one_persons,
    with_a_person_all_its_tokens_end,
}
