//! Agents and those who pretend to be: tokens, certificates, documents, memberships, promises.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_model::wire::{Envelope, JoinToken, PackagesKey};
use kedge_status::{Condition, Nonce, PAYLOAD_TYPE, StatusDocument};
use kedge_tests::agent::identity::Identity;
use kedge_tests::agent::trust::{Trust, settings};
use kedge_tests::agent::{AgentError, body};
use kedge_tests::lab::{await_some, await_true};
use kedge_tests::world::cluster::{self, Cluster, block_on, now, report, within};
use kedge_tests::world::{Database, SOON, World};

use crate::each_database::on_each_database;

on_each_database![
    tokens_let_in_as_often_and_as_long_as_they_say,
    documents_are_taken_from_their_owner_only_and_never_back_in_time,
    moves_relabels_and_retirements_reach_the_agent_and_the_counts,
    a_broken_promise_is_unknown_since_then_and_comes_back,
];

/// The word of a refusal.
#[track_caller]
fn reason<T: std::fmt::Debug>(outcome: Result<T, AgentError>) -> String {
    outcome.unwrap_err().reason().unwrap_or("no refusal with a reason").to_owned()
}

fn tokens_let_in_as_often_and_as_long_as_they_say(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "1", "--labels", "site=north"]);

    // A guess, a token of another hub, and one that was never given.
    let wrong = JoinToken { secret: "guessed".into(), ..token.clone() };
    assert_eq!(reason(Cluster::try_join(&wrong, "thief")), "TokenUnknown");
    let strange = JoinToken { id: "0000".into(), ..token.clone() };
    assert_eq!(reason(Cluster::try_join(&strange, "thief")), "TokenUnknown");
    let elsewhere = JoinToken { authority: kedge_model::wire::Digest::of(b"another authority"), ..token.clone() };
    assert!(
        matches!(Cluster::try_join(&elsewhere, "lost"), Err(AgentError::Link(_))),
        "the agent doesn't believe this hub"
    );

    // The answer is lost on the way: the same key asks again and uses nothing up.
    let identity = Arc::new(Identity::generate());
    let first = Cluster::join_as(identity.clone(), &token, "drone-1").unwrap();
    let again = Cluster::join_as(identity, &token, "drone-1").unwrap();
    assert_eq!(first.agent.membership, again.agent.membership);
    assert_eq!(first.agent.membership.labels.get("site").map(String::as_str), Some("north"));
    // Another key with the same token: used up.
    assert_eq!(reason(Cluster::try_join(&token, "drone-2")), "TokenUsedUp");

    let brief = world.token("drone", &["--expires", "1s"]);
    let until = now().0 + 1100;
    await_true("the token expires", SOON, || now().0 > until);
    assert_eq!(reason(Cluster::try_join(&brief, "late")), "TokenExpired");
    let revoked = world.token("drone", &[]);
    world.kedge.run(["token", "revoke", &revoked.id]);
    assert_eq!(reason(Cluster::try_join(&revoked, "late")), "TokenRevoked");
    let listed = world.kedge.run(["token", "list"]);
    assert!(listed.contains(&revoked.id) && !listed.contains(&revoked.secret), "{listed}");
}

#[test]
fn a_certificate_of_another_authority_gets_no_connection() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    // The same key, but certified by somebody else.
    let pair = drone.agent.identity.pair();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, drone.agent.identity.cluster.to_string());
    let foreign = params.self_signed(&pair).unwrap();
    let good = drone.agent.certificate.clone();
    drone.agent.use_certificate(foreign.pem());
    let refused = drone.look().unwrap_err();
    assert!(matches!(refused, AgentError::Link(_)), "{refused}");
    drone.agent.use_certificate(good);
    drone.look().unwrap();
    // Without any certificate there is nothing but the join.
    let stranger = settings(Trust::Authorities(drone.agent.keys.authorities.clone()), None);
    let reply = block_on(async {
        let mut link = kedge_tests::agent::link::Link::open(&drone.agent.hub, stranger).await.unwrap();
        link.post("/agent/v1/poll", &body(&drone.agent.request())).await.unwrap()
    });
    assert_eq!(reply.status, 401);
}

#[test]
fn an_expired_certificate_may_renew_and_nothing_else() {
    let Some(world) = World::start_with(Database::Sqlite, |settings, _| {
        settings.agents.push("certificate_lifetime = \"10s\"".into())
    }) else {
        return;
    };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let until = drone.agent.certificate_until();
    await_true("the certificate expires", SOON, || now() > until);
    drone.agent.disconnect();
    assert_eq!(reason(drone.look()), "CertificateExpired");
    drone.set_all(&Condition::Converged);
    assert_eq!(reason(drone.send()), "CertificateExpired");
    within(drone.agent.renew()).unwrap();
    drone.look().unwrap();
    drone.send().unwrap();
}

#[test]
fn a_revoked_cluster_is_out_at_once_also_while_it_waits() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let held = drone.hold();
    std::thread::sleep(Duration::from_millis(300));
    assert!(!held.is_answered(), "there is no news");
    let began = Instant::now();
    world.kedge.run(["cluster", "revoke", "drone-1"]);
    let (mut drone, answer) = held.answer(Duration::from_secs(5));
    assert_eq!(reason(answer), "Revoked");
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(reason(drone.look()), "Revoked");
    assert_eq!(reason(within(drone.agent.renew())), "Revoked");
    drone.set_all(&Condition::Converged);
    assert_eq!(reason(drone.send()), "Revoked");
    let token = world.token("drone", &[]);
    assert_eq!(reason(Cluster::join_as(drone.agent.identity.clone(), &token, "drone-1")), "Revoked");
}

fn documents_are_taken_from_their_owner_only_and_never_back_in_time(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "3"]);
    let (mut one, mut two) = (Cluster::join(&token, "drone-1"), Cluster::join(&token, "drone-2"));
    one.await_generation(1);
    two.await_generation(1);

    // Broken in every way: refused with a word, and nothing changes.
    one.set_all(&Condition::Converging);
    let good = one.seal();
    let payload = good.payload.clone();
    let sign = |cluster: &Cluster, payload: Vec<u8>| cluster.agent.identity.sign(PAYLOAD_TYPE, payload);
    let mut cut = payload.clone();
    cut.truncate(payload.len() / 2);
    let mut noise = payload.clone();
    noise.iter_mut().rev().take(20).for_each(|byte| *byte ^= 0x5a);
    let broken = [sign(&one, cut), sign(&one, noise), sign(&one, Vec::new()), sign(&one, vec![0xff; 5000])];
    for envelope in &broken {
        let refused = one.carry(envelope).unwrap_err();
        assert!(refused.status().is_some_and(|status| (400..500).contains(&status)), "{refused}");
    }
    // Another cluster's document with my signature, and mine with a changed byte.
    let theirs = {
        two.set_all(&Condition::Converged);
        two.seal()
    };
    let forged = Envelope { signatures: sign(&one, theirs.payload.clone()).signatures, ..theirs.clone() };
    assert!(one.carry(&forged).is_err());
    assert_eq!(world.count("hello-functional-test", "Converged"), 0);

    // What its owner signed is taken whoever brings it: a peer, a USB stick.
    one.carry(&theirs).unwrap();
    assert_eq!(world.count("hello-functional-test", "Converged"), 1);
    one.carry(&good).unwrap();
    one.carry(&good).unwrap();
    assert_eq!(world.count("hello-functional-test", "Converging"), 1);

    // A later truth, then the older document again: no harm.
    one.converge();
    assert_eq!(world.count("hello-functional-test", "Converged"), 2);
    one.carry(&good).unwrap();
    assert_eq!(
        (world.count("hello-functional-test", "Converged"), world.count("hello-functional-test", "Converging")),
        (2, 0)
    );
    let newer = one.seal();
    // The next epoch goes on from the current values, and a document of the epoch before changes nothing.
    one.document = one.document.next_epoch(2, Nonce([2; 16]), now()).unwrap();
    one.send().unwrap();
    one.set(
        "hello-functional-test",
        report(
            Condition::Failed { reason: "HealthCheck".into(), message: "no".into() },
            None,
            None,
            one.agent.generation,
        ),
    );
    one.send().unwrap();
    assert_eq!(world.count("hello-functional-test", "Failed"), 1);
    one.carry(&newer).unwrap();
    assert_eq!(world.count("hello-functional-test", "Failed"), 1, "an older epoch doesn't come back");
    assert!(!one.look().unwrap().want_status);
}

#[test]
fn a_copied_identity_is_noticed_and_the_first_one_stays() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let token = world.token("drone", &[]);
    let identity = Arc::new(Identity::generate());
    let mut original = Cluster::join_as(identity.clone(), &token, "drone-1").unwrap();
    original.await_generation(1);
    original.converge();
    // The disk was copied: the same key, the same epoch, but a nonce of its own.
    let mut copy = Cluster::join_as(identity, &token, "drone-1").unwrap();
    copy.document = StatusDocument::new(copy.agent.identity.key.public(), 1, Nonce([9; 16]));
    copy.await_generation(1);
    copy.set_all(&Condition::Failed { reason: "Clone".into(), message: "I am the copy".into() });
    assert!(copy.send().is_err(), "the copy's document isn't taken");
    let shown = world.api.get("/api/v1/clusters/drone-1");
    assert!(shown["clonedSince"].is_string(), "{shown}");
    assert_eq!(world.count("hello-functional-test", "Converged"), 1);
}

#[test]
fn bodies_that_are_too_large_cut_or_no_json_are_refused() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    let post = |drone: &mut Cluster, path: &str, bytes: &[u8]| {
        drone.agent.disconnect();
        within(drone.agent.post(path, bytes)).map(|reply| reply.status)
    };
    for path in ["/agent/v1/poll", "/agent/v1/status", "/agent/v1/join", "/agent/v1/renew"] {
        let large = vec![b' '; 9 << 20];
        // The hub may hang up before it has read all of it; then there is no answer.
        let answered = post(&mut drone, path, &large);
        assert!(answered.as_ref().is_ok_and(|status| *status == 413) || answered.is_err(), "{path}: {answered:?}");
        assert_eq!(post(&mut drone, path, b"{\"half\": ").unwrap(), 400, "{path}");
        assert_eq!(post(&mut drone, path, b"\xff\xfe\x00").unwrap(), 400, "{path}");
    }
    // A body that ends before it should: no answer is owed, and the hub goes on.
    block_on(async {
        let link = drone.agent.connect().await.unwrap();
        link.write(b"POST /agent/v1/status HTTP/1.1\r\nhost: hub\r\ncontent-length: 1000\r\n\r\n{\"payloadType\"")
            .await
            .unwrap();
    });
    drone.agent.disconnect();
    drone.look().unwrap();
    let reply = within(drone.agent.get("/agent/v1/blobs/sha256:../../../etc/passwd", &[])).unwrap();
    assert!((400..500).contains(&reply.status));
    let unknown = kedge_model::wire::Digest::of(b"nobody's");
    assert_eq!(within(drone.agent.fetch(&unknown, 0)).unwrap().status, 404);
}

#[test]
fn a_package_is_resumed_where_it_broke_and_only_own_packages_are_given() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    let package = drone.packages()[1].clone();
    let whole = drone.fetch(&package);
    let reply = within(drone.agent.fetch(&package.digest, 100)).unwrap();
    assert_eq!((reply.status, &reply.body[..]), (206, &whole[100..]));
    assert_eq!(within(drone.agent.fetch(&package.digest, package.size + 1)).unwrap().status, 416);
    let mut line = world.join("factory-line", "line-1");
    line.await_generation(1);
    let other = line.packages()[1].clone();
    assert_ne!(other.digest, package.digest);
    assert_eq!(within(drone.agent.fetch(&other.digest, 0)).unwrap().status, 404, "another stream's package");
}

fn moves_relabels_and_retirements_reach_the_agent_and_the_counts(database: Database) {
    let Some(world) = World::start(database) else { return };
    world.await_first_states();
    let mut cluster = world.join("drone", "mover");
    cluster.await_generation(1);
    cluster.converge();
    let sequence = cluster.agent.membership.sequence;

    let held = cluster.hold();
    world.kedge.run(["cluster", "relabel", "mover", "colour=blue"]);
    let (mut cluster, answer) = held.answer(SOON);
    answer.unwrap();
    assert_eq!(cluster.agent.membership.labels.get("colour").map(String::as_str), Some("blue"));
    assert!(cluster.agent.membership.sequence > sequence);

    let held = cluster.hold();
    world.kedge.run(["cluster", "move", "mover", "--cluster-type", "large"]);
    let (moved, answer) = held.answer(SOON);
    answer.unwrap();
    cluster = moved;
    assert_eq!(cluster.agent.membership.stream.cluster_type, "large");
    cluster.await_generation(1);
    assert_eq!(cluster.agent.state.as_ref().unwrap().stream.cluster_type, "large");
    let of = |cluster_type: &str| {
        let counts = world.api.get(&format!("/api/v1/counts?environment=dev&clusterType={cluster_type}"));
        counts["total"].as_u64().unwrap()
    };
    assert_eq!(of("drone"), 0, "it counts in its new place only");
    cluster.converge();
    assert_eq!(of("large"), 1);

    // A new host takes its place.
    let token = cluster::token(&world.kedge.run(["cluster", "replace", "mover"]));
    let mut successor = Cluster::join(&token, "anything");
    assert_eq!(successor.agent.membership.stream, cluster.agent.membership.stream);
    assert_eq!(successor.agent.membership.labels.get("colour").map(String::as_str), Some("blue"));
    assert!(cluster.look().is_err(), "the old one is out");
    successor.await_generation(1);
    successor.converge();
    assert_eq!(of("large"), 1, "one place, one cluster");

    let held = successor.hold();
    world.kedge.run(["cluster", "retire", "mover"]);
    let (successor, answer) = held.answer(SOON);
    answer.unwrap();
    assert!(successor.agent.membership.retired);
    assert_eq!(of("large"), 0, "a retired cluster counts nowhere");
    let listed = world.api.list("/api/v1/clusters?state=active");
    assert!(listed.is_empty(), "{listed:?}");
}

fn a_broken_promise_is_unknown_since_then_and_comes_back(database: Database) {
    let Some(world) = World::start_with(database, |settings, _| settings.wait = "3s".to_owned()) else { return };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();
    let promise = drone.poll().unwrap().promise;
    assert_eq!(world.count("hello-functional-test", "Converged"), 1);
    // The grace of a promise is what we wait for; nothing announces it to us.
    let patience = Duration::from_secs(promise) + SOON;
    let shown = await_some("the promise is broken", patience, || {
        let shown = world.api.get("/api/v1/clusters/drone-1");
        shown["unknownSince"].is_string().then_some(shown)
    });
    assert!(shown["conditions"].to_string().contains("Unknown"), "{shown}");
    assert_eq!(
        (world.count("hello-functional-test", "Converged"), world.count("hello-functional-test", "Unknown")),
        (0, 1)
    );
    drone.look().unwrap();
    await_true("it is back", SOON, || world.count("hello-functional-test", "Converged") == 1);
    assert!(world.api.get("/api/v1/clusters/drone-1")["unknownSince"].is_null());
}

#[test]
fn an_idle_round_trip_is_a_few_hundred_bytes() {
    let Some(world) = World::start_with(Database::Sqlite, |settings, _| settings.wait = "3s".to_owned()) else {
        return;
    };
    world.await_first_states();
    let mut drone = world.join("drone", "drone-1");
    drone.await_generation(1);
    drone.converge();
    drone.poll().unwrap();
    let before = block_on(async { drone.agent.connect().await.map(|link| link.sent + link.received).unwrap() });
    let answer = drone.poll().unwrap();
    assert!(answer.state.is_none() && answer.membership.is_none());
    let after = block_on(async { drone.agent.connect().await.map(|link| link.sent + link.received).unwrap() });
    assert!(after - before < 700, "{} bytes", after - before);
}

#[test]
fn a_report_of_another_reconciler_and_its_packages_are_counted_apart() {
    let Some(world) = World::start(Database::Sqlite) else { return };
    world.await_first_states();
    let token = world.token("drone", &["--uses", "2"]);
    let (mut one, mut two) = (Cluster::join(&token, "drone-1"), Cluster::join(&token, "drone-2"));
    one.await_generation(1);
    two.await_generation(1);
    one.converge();
    let desired = one.agent.state.as_ref().unwrap().entries[0].packages_key();
    let older = PackagesKey::of_observed(&kedge_model::wire::Digest::of(b"older"));
    two.set("hello-functional-test", report(Condition::Converging, Some(desired), Some(older), two.agent.generation));
    two.send().unwrap();
    let run = |key: &PackagesKey| {
        let counts = world.api.get(&format!("/api/v1/counts?environment=dev&packages={key}"));
        counts["total"].as_u64().unwrap()
    };
    assert_eq!((run(&desired), run(&older)), (1, 1), "by what runs");
}
