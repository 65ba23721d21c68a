//! The one question and its answer, what people say to rollouts, and bulk.

use std::sync::Arc;

use kedge_model::kinds::{EnvironmentPolicy, Members, Offline, Promoter, PromotionPolicy, Ring};
use kedge_model::wire::{ClusterId, PackagesKey, Timestamp};
use kedge_rollout::{Cause, Lane, Phase, RingState, Rollout, RolloutId};
use serde_json::{Value, json};

use super::fixture::Hub;
use crate::store::now;

pub const COMMIT: &str = "1f0e0d0c0b0a09080706050403020100f0e0d0c0";

pub fn rules(offline: Offline) -> EnvironmentPolicy {
    let rings =
        vec![Ring::new("canary", Members::Selected("size=small".parse().unwrap())), Ring::new("rest", Members::Rest)];
    EnvironmentPolicy { rings, offline, ..EnvironmentPolicy::new("dev", Vec::new()) }
}

fn key() -> String {
    let digest = |text: &str| kedge_model::wire::Digest::of(text.as_bytes());
    PackagesKey::of_packages(&digest("p"), &digest("w")).to_string()
}

pub async fn run(hub: &Hub, sql: &str, values: &[&str]) {
    let mut query = sqlx::query(sqlx::AssertSqlSafe(sql.to_owned()));
    for value in values {
        query = query.bind((*value).to_owned());
    }
    query.execute(hub.store.pool()).await.unwrap();
}

/// A policy for `dev` with two rings.
pub async fn govern(hub: &Hub, offline: Offline) {
    govern_by(hub, rules(offline)).await;
}

pub async fn govern_by(hub: &Hub, rules: EnvironmentPolicy) {
    let policy = PromotionPolicy { promoter: Promoter::Kedge, environments: vec![rules] };
    let body = serde_json::to_string(&policy).unwrap();
    let sql = "INSERT INTO policies (slot, body, digest, commit_id, subject, author, reasons, words, since) \
               VALUES ('force', $1, '', 'c0', 'policy', 'anna', '[]', '[]', 0)";
    run(hub, sql, &[&body]).await;
}

/// Moves hello's functional test on drones: in `canary` since a while, `rest` waits.
pub async fn rolls(hub: &Hub, offline: Offline, change: impl FnOnce(&mut Rollout)) {
    let cause =
        Cause { subject: "faster".to_owned(), author: "Ada <ada@example.org>".to_owned(), ..Cause::of_commit(COMMIT) };
    let lane = Lane::Source { repo: "https://git.example/app".to_owned(), reference: "main".to_owned() };
    let mut rollout =
        Rollout::new(RolloutId(7), "dev", lane, cause, Arc::new(rules(offline)), Arc::from([]), Timestamp(1000));
    rollout.rings[0].state = RingState::Rolling;
    rollout.rings[0].waits_for = vec!["2 of 4 minutes soaked".to_owned()];
    change(&mut rollout);
    let state = kedge_hub_types::rollout::running::state_word(&rollout.phase);
    let body = serde_json::to_string(&rollout).unwrap();
    let sql = "INSERT INTO rollouts (id, environment, lane, state, commit_id, main, body, skipped, issued, watched, \
               created_at, updated_at, ended_at, tick) \
               VALUES (7, 'dev', $1, $2, $3, NULL, $4, $5, 1, 1, 1000, 2000, NULL, 3)";
    let skipped = json!([{"commit": "0123456789abcdef0123456789abcdef01234567", "subject": "before", "author": "Bob"}]);
    run(hub, sql, &[&rollout.lane.to_string(), state, COMMIT, &body, &skipped.to_string()]).await;
    let package = json!({"digest": format!("sha256:{}", "0".repeat(64)), "size": 1, "repo": "r", "commit": COMMIT});
    let change = json!({"workload": {"package": package, "version": "1.4.2"}}).to_string();
    let sql = "INSERT INTO rollout_items (rollout, cluster_type, assignment, workload, commit_id, body) \
               VALUES (7, 'drone', 'hello-functional-test', 'hello', $1, $2)";
    run(hub, sql, &[COMMIT, &change]).await;
    let sql = "INSERT INTO rollout_keys (rollout, ring, cluster_type, assignment, packages) \
               VALUES (7, 'canary', 'drone', 'hello-functional-test', $1)";
    run(hub, sql, &[&key()]).await;
}

pub async fn members(hub: &Hub, ring: &str, presence: &str, count: i64) {
    let sql = format!(
        "INSERT INTO population (environment, cluster_type, ring, presence, count) VALUES ('dev', 'drone', $1, $2, {count})"
    );
    run(hub, &sql, &[ring, presence]).await;
}

pub async fn says(hub: &Hub, condition: &str, count: i64) {
    let sql = format!(
        "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
         VALUES ('dev', 'drone', 'canary', 'hello-functional-test', $1, $1, $2, {count})"
    );
    run(hub, &sql, &[&key(), condition]).await;
}

/// The fleet of the sentence that the answer should be.
pub async fn fleet(hub: &Hub) {
    members(hub, "canary", "Reporting", 69).await;
    members(hub, "canary", "Unknown", 4).await;
    members(hub, "rest", "Reporting", 27).await;
    says(hub, "Converged", 66).await;
    says(hub, "Converging", 2).await;
    says(hub, "Failed", 1).await;
    let away = hub.cluster(1, "away", "drone", "{}").await;
    let failed = hub.cluster(2, "failed", "drone", "{}").await;
    run(hub, "UPDATE clusters SET ring = 'canary'", &[]).await;
    let sql = "UPDATE clusters SET unknown_since = 1794830400000 WHERE id = $1";
    run(hub, sql, &[&away.to_string()]).await;
    let sql = "INSERT INTO conditions (cluster, assignment, condition, packages, running, generation, reason, since, \
               observed_at, corrected) VALUES ($1, 'hello-functional-test', 'Failed', $2, '', 3, 'ImagePull', 1, 1, 0)";
    run(hub, sql, &[&failed.to_string(), &key()]).await;
}

/// What the leader does with a word, at once.
pub fn leader(hub: &Hub, refused: Option<&'static str>) -> tokio::task::JoinHandle<()> {
    let store = hub.store.clone();
    tokio::spawn(async move {
        loop {
            let sql = "UPDATE rollout_words SET taken_at = 1, refused = $1 WHERE taken_at IS NULL";
            sqlx::query(sql).bind(refused).execute(store.pool()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
}

async fn one_question_is_answered_with_one_sentence(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    fleet(&hub).await;
    let answer = hub.get(&hub.viewer, "/rollout-status?environment=dev&workload=hello").await.ok().body;
    assert_eq!(
        answer["headline"],
        "73 of 100: 66 converged, 2 converging, 1 failed (ImagePull), 4 offline since 2026-11-16T12:00:00Z; \
         27 not targeted; not complete: 2 converging, 1 failed"
    );
    assert_eq!(
        (&answer["complete"], &answer["state"], &answer["unit"]),
        (&json!(false), &json!("Active"), &json!("clusters"))
    );
    assert_eq!(answer["lines"][0]["version"], "1.4.2");
    assert_eq!(answer["lines"][0]["notYet"], 27);
    assert_eq!(answer["notes"][0], "rollout 7: ring canary: 2 of 4 minutes soaked");
    let by_commit = hub.get(&hub.viewer, &format!("/rollout-status?sourceCommit={}", &COMMIT[..12])).await.ok().body;
    assert_eq!(by_commit["headline"], answer["headline"], "the first digits of the commit are enough");
    let own = hub.get(&hub.team, "/rollout-status?environment=dev").await.ok().body;
    assert_eq!(own["targeted"], 73);
    hub.get(&hub.viewer, "/rollout-status?environment=elsewhere").await.refused(404, "UnknownName");
}

async fn it_is_complete_only_when_every_ring_has_passed_and_the_policy_says_so(hub: Hub) {
    govern(&hub, Offline::Incomplete).await;
    rolls(&hub, Offline::Incomplete, |rollout| {
        rollout.rings.iter_mut().for_each(|ring| ring.state = RingState::Passed);
        rollout.phase = Phase::Complete { at: Timestamp(5000) };
    })
    .await;
    members(&hub, "canary", "Reporting", 3).await;
    says(&hub, "Converged", 3).await;
    let whole = hub.get(&hub.viewer, "/rollout-status?rollout=7").await.ok().body;
    assert_eq!((&whole["complete"], &whole["headline"]), (&json!(true), &json!("3 of 3: 3 converged; complete")));
    members(&hub, "canary", "Unknown", 1).await;
    let away = hub.get(&hub.viewer, "/rollout-status?rollout=7").await.ok().body;
    assert_eq!(away["complete"], false);
    assert_eq!(away["offlineLeavesComplete"], false);
    let headline = away["headline"].as_str().unwrap();
    assert!(headline.ends_with("not complete: 1 offline, which the policy counts"), "{headline}");
}

async fn what_is_settled_in_one_ring_is_not_complete_while_another_waits(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    members(&hub, "canary", "Reporting", 3).await;
    members(&hub, "rest", "Reporting", 2).await;
    says(&hub, "Converged", 3).await;
    let answer = hub.get(&hub.viewer, "/rollout-status?environment=dev").await.ok().body;
    assert_eq!(
        answer["headline"],
        "3 of 5: 3 converged; 2 not targeted; not complete: rollout 7: ring canary: 2 of 4 minutes soaked"
    );
    assert_eq!((&answer["complete"], &answer["ended"]), (&json!(false), &json!(false)));
}

async fn a_commit_that_nobody_knows_or_that_was_taken_over_is_said_so(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    let unseen = hub.get(&hub.viewer, &format!("/rollout-status?sourceCommit={}", "ab".repeat(20))).await.ok().body;
    assert_eq!((&unseen["state"], &unseen["ended"]), (&json!("Unseen"), &json!(false)));
    assert_eq!(unseen["headline"], "commit ababababab hasn't reached the hub yet");
    let taken =
        hub.get(&hub.viewer, "/rollout-status?sourceCommit=0123456789abcdef0123456789abcdef01234567").await.ok().body;
    assert_eq!(
        (&taken["state"], &taken["ended"], &taken["complete"]),
        (&json!("Superseded"), &json!(true), &json!(false))
    );
    assert_eq!(taken["notes"][0], "0123456789 was superseded by 1f0e0d0c0b in dev before it was reached");
    hub.get(&hub.viewer, "/rollout-status?sourceCommit=nonsense").await.refused(400, "BadCommit");
}

async fn a_stopped_rollout_is_over_and_says_why(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |rollout| {
        rollout.phase = Phase::Stopped { ring: "canary".to_owned(), why: "3 failed of 1".to_owned(), at: Timestamp(9) };
        rollout.rings[0].state = RingState::Stopped;
    })
    .await;
    members(&hub, "canary", "Reporting", 3).await;
    says(&hub, "Failed", 3).await;
    let answer = hub.get(&hub.viewer, "/rollout-status?environment=dev").await.ok().body;
    assert_eq!((&answer["state"], &answer["ended"]), (&json!("Stopped"), &json!(true)));
    assert_eq!(answer["notes"][0], "rollout 7: ring canary: 3 failed of 1");
}

async fn rollouts_are_listed_and_application_teams_see_their_own(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    let listed = hub.get(&hub.team, "/rollouts?environment=dev&unfinished=true").await.ok().body;
    assert_eq!(listed["items"][0]["id"], 7);
    assert_eq!(listed["items"][0]["rings"][0]["state"], "rolling");
    let whole = hub.get(&hub.team, "/rollouts/7").await.ok().body;
    assert_eq!(whole["items"][0]["parts"], json!(["workload"]));
    assert_eq!(whole["skipped"][0]["author"], "Bob");
    run(&hub, "UPDATE rollout_items SET assignment = 'spy-functional-test', workload = 'spy'", &[]).await;
    hub.get(&hub.team, "/rollouts/7").await.refused(404, "NotFound");
    assert_eq!(hub.get(&hub.team, "/rollouts").await.ok().body["items"], json!([]));
    hub.get(&hub.viewer, "/rollouts/99").await.refused(404, "NotFound");
    assert_eq!(hub.get(&hub.viewer, "/rollouts?state=Complete").await.ok().body["items"], json!([]));
}

async fn words_are_for_the_platform_team_and_are_in_the_audit_log(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    let leads = leader(&hub, None);
    hub.post(&hub.viewer, "/rollouts/7/pause", json!({})).await.refused(403, "Forbidden");
    hub.post(&hub.platform, "/rollouts/7/dance", json!({})).await.refused(404, "NoSuchRoute");
    hub.post(&hub.platform, "/rollouts/7/override", json!({})).await.refused(400, "ReasonNeeded");
    hub.post(&hub.platform, "/rollouts/7/pause", json!({"ring": "rest"})).await.refused(400, "BadBody");
    hub.post(&hub.platform, "/rollouts/7/resume", json!({})).await.refused(409, "NothingToResume");
    hub.post(&hub.platform, "/rollouts/7/pause", json!({"reason": "line 4"})).await.ok();
    assert!(hub.services.asked().contains(&"spoken".to_owned()));
    let audit = hub.get(&hub.viewer, "/audit?action=rollout.").await.ok().body;
    let entry = &audit["items"][0];
    assert_eq!(
        (&entry["action"], &entry["who"], &entry["object"]),
        (&json!("rollout.pause"), &json!("anna"), &json!("rollout 7"))
    );
    assert_eq!(entry["detail"]["reason"], "line 4");
    let tried: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|item| item["action"].as_str().unwrap()).collect();
    assert_eq!(
        tried,
        ["rollout.pause", "rollout.resume", "rollout.pause", "rollout.override", "rollout.dance", "rollout.pause"]
    );
    let of_dev = hub.get(&hub.viewer, "/audit?action=rollout.&environment=dev").await.ok().body;
    assert_eq!(of_dev["items"], audit["items"], "refused or not, a write has its environment");
    leads.abort();
    let leads = leader(&hub, Some("the leader knows better"));
    let refused = hub.post(&hub.platform, "/rollouts/7/pause", json!({})).await.refused(409, "Refused");
    assert_eq!(refused.body["detail"], "the leader knows better");
    leads.abort();
}

pub fn apply_entry() -> String {
    let package = |name: &str| {
        let digest = kedge_model::wire::Digest::of(name.as_bytes());
        json!({"digest": digest.to_string(), "size": 1, "repo": "r", "commit": COMMIT})
    };
    json!([{
        "assignment": "hello-functional-test", "mode": "apply", "platform": package("p"), "workload": package("w"),
        "parameters": {"to": "host", "scope": "namespace", "conflicts": "fail", "timeoutSeconds": 1, "soakSeconds": 0,
            "rollback": "auto", "drift": "repair"},
    }, {
        "assignment": "spy-functional-test", "mode": "observe", "objects": [],
        "content": format!("sha256:{}", "1".repeat(64)),
    }])
    .to_string()
}

async fn without_a_policy_the_question_is_about_what_is_desired(hub: Hub) {
    hub.state(4, &apply_entry()).await;
    let sql = "INSERT INTO counts (environment, cluster_type, ring, assignment, packages, running, condition, count) \
               VALUES ('dev', 'drone', 'all', 'hello-functional-test', $1, $1, 'Converged', 5)";
    run(&hub, sql, &[&key()]).await;
    members(&hub, "all", "Reporting", 5).await;
    let path = format!("/rollout-status?environment=dev&workload=hello&sourceCommit={COMMIT}");
    let answer = hub.get(&hub.viewer, &path).await.ok().body;
    assert_eq!((&answer["headline"], &answer["state"]), (&json!("5 of 5: 5 converged; complete"), &json!("Settled")));
    members(&hub, "all", "Joined", 1).await;
    let answer = hub.get(&hub.viewer, &path).await.ok().body;
    assert_eq!(
        (&answer["headline"], &answer["state"]),
        (&json!("6 of 6: 5 converged, 1 waiting; not complete: 1 waiting"), &json!("Moving"))
    );
}

async fn a_restart_is_for_whole_streams_and_says_what_does_not_fit(hub: Hub) {
    hub.state(4, &apply_entry()).await;
    let body = |selector: Value| json!({"kind": "restart", "selector": selector, "reason": "a leak"});
    hub.post(&hub.viewer, "/operations", body(json!({"environment": "dev"}))).await.refused(403, "Forbidden");
    let done = hub.post(&hub.platform, "/operations", body(json!({"environment": "dev"}))).await.ok().body;
    assert_eq!(done["done"], "restart asked for 1 assignment in 1 stream");
    let unfit: Vec<&str> =
        done["notApplicable"].as_array().unwrap().iter().map(|unfit| unfit["clusterType"].as_str().unwrap()).collect();
    assert_eq!(unfit, ["drone", "large"], "observed, and never issued: {done}");
    let counter: i64 = sqlx::query_scalar("SELECT counter FROM restarts WHERE assignment = 'hello-functional-test'")
        .fetch_one(hub.store.pool())
        .await
        .unwrap();
    assert_eq!(counter, 1);
    let wrong = body(json!({"environment": "dev", "ring": "canary"}));
    let refused = hub.post(&hub.platform, "/operations", wrong).await.refused(422, "UnknownRing");
    assert_eq!(refused.body["hint"], "its rings are: all");
    let wrong = body(json!({"environment": "dev", "workload": "hallo"}));
    hub.post(&hub.platform, "/operations", wrong).await.refused(422, "UnknownWorkload");
    let only = body(json!({"environment": "dev", "workload": "spy"}));
    hub.post(&hub.platform, "/operations", only).await.refused(422, "NothingFits");
    let reapply = json!({"kind": "reapply", "selector": {"environment": "dev", "workload": "hello"}});
    hub.post(&hub.platform, "/operations", reapply).await.refused(409, "NothingFailed");
    let now = json!({"kind": "now", "selector": {"environment": "dev", "workload": "hello"}});
    hub.post(&hub.platform, "/operations", now).await.refused(409, "NothingWaits");
}

async fn a_version_that_should_last_is_written_to_git(hub: Hub) {
    hub.state(4, &apply_entry()).await;
    let mut body = json!({"environment": "dev", "workload": "hello", "clusterType": "drone", "version": "1.4.2",
        "until": "2999-12-01", "reason": "the driver: \"x\" #1"});
    let done = hub.post(&hub.platform, "/rollouts", body.clone()).await.ok().body;
    assert_eq!(done["written"]["commit"], "c0ffee");
    let asked = hub.services.asked().join("\n");
    let file = done["written"]["file"].as_str().unwrap();
    assert!(file.starts_with("pins/hello-") && file.ends_with(".yaml"), "{file}");
    let text = asked.split_once(".yaml\n").unwrap().1;
    for line in [
        "kind: Pin",
        "  workload: hello",
        "  version: 1.4.2",
        "    - drone",
        "2999-12-01",
        "Pin hello to version 1.4.2",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let audit = hub.get(&hub.viewer, "/audit?action=rollout.pin").await.ok().body;
    assert_eq!(audit["items"][0]["detail"]["version"], "1.4.2");
    body["until"] = json!("2001-01-01");
    hub.post(&hub.platform, "/rollouts", body.clone()).await.refused(400, "BadUntil");
    body["until"] = json!("soon");
    hub.post(&hub.platform, "/rollouts", body).await.refused(400, "BadUntil");
    let again = json!({"environment": "dev", "workload": "hello", "reason": "mended"});
    hub.post(&hub.platform, "/rollouts", again).await.refused(409, "NothingToStart");
    let sql = "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
               VALUES ('dev', 'platform', 'drone', 'hello-functional-test', 'hello', 'f', 7)";
    run(&hub, sql, &[]).await;
    let again = json!({"environment": "dev", "workload": "hello", "reason": "mended"});
    let done = hub.post(&hub.platform, "/rollouts", again).await.ok().body;
    let said = done["done"].as_str().unwrap();
    assert!(said.starts_with("1 assignment of hello starts again"), "{said}");
    for (lane, cluster_type) in [("platform", "drone"), ("https://h/app@main", "drone"), ("platform", "large")] {
        let sql = format!(
            "INSERT INTO rollout_blocked (environment, lane, cluster_type, assignment, workload, fingerprint, rollout) \
             VALUES ('dev', '{lane}', '{cluster_type}', 'hello-functional-test', 'hello', 'f', 7)"
        );
        run(&hub, &sql, &[]).await;
    }
    let again = json!({"environment": "dev", "workload": "hello", "reason": "mended"});
    let done = hub.post(&hub.platform, "/rollouts", again).await.ok().body;
    let said = done["done"].as_str().unwrap();
    assert!(said.starts_with("2 assignments of hello start again"), "of two lanes it counts once: {said}");
}

/// Takes words on promotions as the leader does.
fn promotion_leader(hub: &Hub) -> tokio::task::JoinHandle<()> {
    let store = hub.store.clone();
    tokio::spawn(async move {
        loop {
            let sql = "UPDATE promotion_words SET taken_at = 1 WHERE taken_at IS NULL";
            sqlx::query(sql).execute(store.pool()).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
}

async fn promotions_and_evidence_are_shown_and_words_need_a_role_and_a_reason(hub: Hub) {
    hub.get(&hub.viewer, "/promotions/dev").await.refused(404, "NotFound");
    govern(&hub, Offline::Complete).await;
    let listed = hub.get(&hub.viewer, "/promotions").await.ok().body;
    assert_eq!((&listed["items"][0]["environment"], &listed["policy"]["promoter"]), (&json!("dev"), &json!("kedge")));
    assert_eq!(listed["items"][0]["rings"], json!(["canary", "rest"]));
    hub.get(&hub.team, "/promotions").await.refused(403, "Forbidden");
    hub.post(&hub.viewer, "/promotions/dev/start", json!({})).await.refused(403, "Forbidden");
    hub.post(&hub.platform, "/promotions/dev/override", json!({})).await.refused(400, "ReasonNeeded");
    hub.post(&hub.platform, "/promotions/dev/start", json!({"commit": "nonsense"})).await.refused(400, "BadCommit");
    hub.post(&hub.platform, "/promotions/dev/approve", json!({})).await.refused(409, "NothingWaits");
    hub.post(&hub.platform, "/policy/approve", json!({})).await.refused(409, "NothingWaits");
    // Who names no commit means the one that waits, and the log says which that was.
    let promotion = |commit: &str, phase: &str| json!({"commit": commit, "subject": "s", "author": "a", "phase": {"phase": phase}, "createdAt": 1});
    let standing = json!({"current": "old", "promotions": [promotion(COMMIT, "waiting"), promotion("old", "passed")]});
    let sql = "INSERT INTO promotions (environment, body, updated_at, tick) VALUES ('dev', $1, 1, 1)";
    run(&hub, sql, &[&standing.to_string()]).await;
    let leads = promotion_leader(&hub);
    hub.post(&hub.platform, "/promotions/dev/approve", json!({"reason": "fine"})).await.ok();
    leads.abort();
    let entry =
        hub.get(&hub.viewer, "/audit?action=promotion.&environment=dev&limit=1").await.ok().body["items"][0].clone();
    assert_eq!((&entry["object"], &entry["detail"]["commit"]), (&json!(COMMIT), &json!(COMMIT)), "{entry:#}");
    let statement = json!({"_type": "https://in-toto.io/Statement/v1"});
    use base64::Engine as _;
    let payload = base64::engine::general_purpose::STANDARD.encode(statement.to_string());
    let body = json!({"payloadType": "application/vnd.in-toto+json", "payload": payload, "signatures": []}).to_string();
    let sql = "INSERT INTO evidence (id, environment, commit_id, kind, rollout, event, body, created_at) \
               VALUES (41, 'dev', $1, 'promotion', NULL, 'passed', $2, 1000)";
    run(&hub, sql, &[COMMIT, &body]).await;
    let listed = hub.get(&hub.viewer, "/evidence?environment=dev").await.ok().body;
    assert_eq!((&listed["items"][0]["id"], &listed["items"][0]["event"]), (&json!(41), &json!("passed")));
    let one = hub.get(&hub.viewer, "/evidence/41").await.ok().body;
    assert_eq!((&one["statement"], &one["envelope"]["payload"]), (&statement, &json!(payload)));
    hub.get(&hub.team, "/evidence").await.refused(403, "Forbidden");
}

async fn pages_of_clusters_and_assignments_tell_of_rings_rollouts_and_permits(hub: Hub) {
    govern(&hub, Offline::Complete).await;
    rolls(&hub, Offline::Complete, |_| {}).await;
    let id: ClusterId = hub.cluster(1, "drone-1", "drone", "{}").await;
    run(&hub, "UPDATE clusters SET ring = 'canary'", &[]).await;
    let sql = format!(
        "INSERT INTO slots (cluster, environment, ring, cluster_type, generation, since) \
         VALUES ($1, 'dev', 'canary', 'drone', 3, {})",
        now().0
    );
    run(&hub, &sql, &[&id.to_string()]).await;
    let cluster = hub.get(&hub.viewer, "/clusters/drone-1").await.ok().body;
    assert_eq!((&cluster["ring"], &cluster["rollouts"][0]["rollout"]), (&json!("canary"), &json!(7)));
    assert_eq!(cluster["rollouts"][0]["rings"], "canary rolling");
    assert!(cluster["changingSince"].is_string());
    let assignment = hub.get(&hub.viewer, "/assignments/dev/drone/hello-functional-test").await.ok().body;
    assert_eq!(assignment["rollouts"][0]["rings"], "canary rolling, rest waiting");
}

on_each_database!(
    one_question_is_answered_with_one_sentence,
    it_is_complete_only_when_every_ring_has_passed_and_the_policy_says_so,
    what_is_settled_in_one_ring_is_not_complete_while_another_waits,
    a_commit_that_nobody_knows_or_that_was_taken_over_is_said_so,
    a_stopped_rollout_is_over_and_says_why,
    rollouts_are_listed_and_application_teams_see_their_own,
    words_are_for_the_platform_team_and_are_in_the_audit_log,
    without_a_policy_the_question_is_about_what_is_desired,
    a_restart_is_for_whole_streams_and_says_what_does_not_fit,
    a_version_that_should_last_is_written_to_git,
    promotions_and_evidence_are_shown_and_words_need_a_role_and_a_reason,
    pages_of_clusters_and_assignments_tell_of_rings_rollouts_and_permits,
);
