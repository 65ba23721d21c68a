//! What evidence says of a promotion that a rollout carried, and what Git servers are told.

use std::sync::Arc;
use std::time::Duration;

use kedge_model::kinds::{Check, EnvironmentPolicy, Members, Probe, Ring};
use kedge_model::wire::Timestamp;
use kedge_rollout::chain::OutcomeState;
use kedge_rollout::{Cause, CheckFact, Counts, Item, Lane, Phase, RingState, Rollout, RolloutId, Say};

use super::super::testing::{TERM, World, key, word};
use super::LINE;
use crate::config::ForgeKind;
use crate::git::testing::{Remote as Origin, Server};
use crate::publish::forge::fake::Fake;
use crate::store::promotion::evidence::EvidenceFilter;

fn rollout(environment: &str, lane: Lane, commit: &str) -> Rollout {
    let mut policy = EnvironmentPolicy::new(environment, Vec::new());
    policy.rings.insert(0, Ring::new("canary", Members::Share(1000)));
    let url = "http://checks.example".to_owned();
    let probe = Probe::Http { url, pointer: "/x".to_owned(), equals: "1".to_owned() };
    policy.rings[0].gate.checks = vec![Check {
        name: "smoke".to_owned(),
        probe,
        every: Duration::from_secs(60),
        timeout: Duration::from_secs(1),
    }];
    let (cluster_type, assignment) = ("drone".to_owned(), "hello-dev".to_owned());
    let items = Arc::from([Item { cluster_type, assignment, workload: "hello".to_owned(), removes: false }]);
    let main = (lane == Lane::Platform).then(|| commit.to_owned());
    let cause = Cause { main, subject: "s".to_owned(), author: "Ann".to_owned(), ..Cause::of_commit(commit) };
    let mut made = Rollout::new(RolloutId(7), environment, lane, cause, Arc::new(policy), items, Timestamp(0));
    for ring in &mut made.rings {
        ring.state = RingState::Passed;
        ring.counts = vec![Counts { converged: 66, failed: 1, offline: 4, ..Counts::default() }];
    }
    made.phase = Phase::Complete { at: Timestamp(1) };
    made
}

#[tokio::test]
async fn evidence_says_generations_counts_checks_who_was_away_and_who_agreed() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    let commit = world.commit().await;
    world.pass().await;
    let mut carried = rollout("dev", Lane::Platform, &commit);
    carried.words.push(word("eve", Say::Approve { ring: Some("canary".to_owned()) }, "fine"));
    world.fakes.rollouts.lock().unwrap().push(carried);
    let mut tx = world.store.write().await.unwrap();
    for generation in [3, 4] {
        sqlx::query(
            "INSERT INTO states (environment, cluster_type, ring, generation, content, envelope, created_at, tick)
             VALUES ('dev', 'drone', 'canary', $1, '', '', 0, 0)",
        )
        .bind(generation)
        .execute(tx.connection())
        .await
        .unwrap();
    }
    for (name, unknown) in [("b-away", Some(5)), ("a-away", Some(5)), ("here", None)] {
        sqlx::query(
            "INSERT INTO clusters (id, name, environment, cluster_type, ring, labels, public_key, facts, state, sequence,
             membership, joined_at, token, certificate_serial, certificate_until, last_contact, promise_until,
             unknown_since, generation, tick) VALUES ($1, $1, 'dev', 'drone', 'canary', '{}', '', '{}', 'active', 1, '', 0,
             '', '', 0, 0, 0, $2, 0, 0)",
        )
        .bind(name)
        .bind(unknown)
        .execute(tx.connection())
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();
    let fact = CheckFact { ok: true, said: "/x is 1".to_owned(), at: Timestamp(9) };
    world.store.save_check(TERM, RolloutId(7), "canary", "smoke", &fact).await.unwrap();
    world.complete("dev", &commit).await;

    let filter = EvidenceFilter { environment: Some("dev".to_owned()), limit: 10, ..EvidenceFilter::default() };
    let kept = world.store.evidence(&filter).await.unwrap();
    let (row, body) = world.store.one_evidence(kept[0].id).await.unwrap().unwrap();
    assert_eq!((row.kind.as_str(), row.rollout, row.event.as_str()), ("promotion", Some(7), "passed"));
    let statement = super::super::verify(body.as_bytes(), &[key().public()]).unwrap();
    assert_eq!(statement.kind, "https://in-toto.io/Statement/v1");
    let predicate = statement.predicate;
    assert_eq!((predicate.approvals[0].who.as_str(), predicate.policy_digest.is_some()), ("eve", true));
    let carried = predicate.rollout.unwrap();
    let canary = &carried.rings[0];
    assert_eq!((canary.generations["drone"], canary.soak_seconds), (4, 600));
    assert_eq!((canary.items[0].counts.converged, canary.items[0].counts.offline), (66, 4));
    assert_eq!(
        (canary.offline.count, &canary.offline.clusters[..]),
        (2, &["a-away".to_owned(), "b-away".to_owned()][..])
    );
    assert_eq!(canary.checks["smoke"], fact);
    // As the standard names them.
    let envelope: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(envelope["payloadType"], "application/vnd.in-toto+json");
}

#[tokio::test]
async fn a_rollout_of_an_application_has_evidence_of_its_own() {
    let mut world = World::new(&["dev", "prod"], LINE).await;
    world.commit().await;
    let lane = Lane::Source { repo: "https://h/app".to_owned(), reference: "main".to_owned() };
    world.fakes.unwitnessed.lock().unwrap().push(rollout("dev", lane, "c0ffee"));
    world.pass().await;
    let filter = EvidenceFilter { commit: Some("c0ffee".to_owned()), limit: 10, ..EvidenceFilter::default() };
    let kept = world.store.evidence(&filter).await.unwrap();
    assert_eq!((kept.len(), kept[0].kind.as_str(), kept[0].event.as_str()), (1, "rollout", "completed"));
    let (_, body) = world.store.one_evidence(kept[0].id).await.unwrap().unwrap();
    assert_eq!(super::super::verify(body.as_bytes(), &[key().public()]).unwrap().subject[0].name, "https://h/app");
}

#[tokio::test]
async fn git_servers_are_told_what_changed_and_nothing_twice() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("team");
    std::fs::create_dir_all(&folder).unwrap();
    let origin = Origin::new(&folder, "gitops");
    let server = Server::start(root.path());
    let url = format!("{}/team/gitops.git", server.address);
    let fake = Fake::start(ForgeKind::GitHub).await;
    let forge = crate::config::Forge { prefix: server.address.clone(), ..fake.config() };
    let mut world = World::over(root, origin, url.clone(), vec![forge], &["dev", "prod"], LINE).await;
    let commit = world.commit().await;
    let mut app = rollout("dev", Lane::Source { repo: url, reference: "main".to_owned() }, "c0ffee");
    app.phase = Phase::Active;
    let elsewhere = rollout("dev", Lane::Source { repo: "/srv/app".to_owned(), reference: "main".to_owned() }, "beef");
    *world.fakes.sources.lock().unwrap() = vec![app, elsewhere];
    // The first word is lost on its way.
    fake.fail(503, &[("retry-after", "0")], "");
    world.pass().await;
    let task = tokio::spawn(world.controller.statuses.clone().lead(TERM));
    let told = async |commit: &str, wanted: (&str, &str)| loop {
        let found = fake
            .state()
            .statuses
            .iter()
            .find(|(known, told)| known == commit && told["context"] == "kedge/dev")
            .cloned();
        if found.is_some_and(|(_, told)| {
            (told["state"].as_str(), told["description"].as_str()) == (Some(wanted.0), Some(wanted.1))
        }) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, told("c0ffee", ("pending", "66 of 73 converged"))).await.unwrap();
    tokio::time::timeout(limit, told(&commit, ("pending", "to be read, published and packed"))).await.unwrap();
    world.outcome("dev", &commit, OutcomeState::Failed { why: "3 failed".to_owned() });
    world.pass().await;
    tokio::time::timeout(limit, told(&commit, ("failure", "3 failed"))).await.unwrap();
    world.complete("dev", &commit).await;
    tokio::time::timeout(limit, told(&commit, ("success", "passed"))).await.unwrap();
    task.abort();
    // Another leader knows what was said.
    fake.calls();
    let task = tokio::spawn(world.controller.statuses.clone().lead(TERM));
    world.outcome("prod", &commit, OutcomeState::Failed { why: "no".to_owned() });
    world.pass().await;
    let prod = async || loop {
        if fake.state().statuses.iter().any(|(_, told)| told["context"] == "kedge/prod" && told["state"] == "failure") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    tokio::time::timeout(limit, prod()).await.unwrap();
    assert!(fake.calls().iter().filter(|call| call.contains("/statuses/")).count() <= 2);
    task.abort();
}
