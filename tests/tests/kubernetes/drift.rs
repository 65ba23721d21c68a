//! What others do to our objects: repaired within seconds, told, or left alone.

use std::time::{Duration, Instant};

use kedge_tests::lab::await_true;
use kedge_tests::world::harbour::manifests::{Manifests, annotated, config_map, secret};
use kedge_tests::world::harbour::{CHANGED_WITHIN, Harbour};

/// What must not happen would have happened by then.
const A_WHILE: Duration = Duration::from_secs(5);

/// On a busy machine; the benchmark measures it alone.
const REPAIRED_WITHIN: Duration = Duration::from_secs(15);

#[test]
fn a_deleted_and_a_changed_object_are_back_within_seconds_and_the_hub_is_told_what_differed() {
    let manifests = Manifests::web("1").with(&secret("login", "password", "kept-secret-1"));
    let Some(harbour) = Harbour::start(&[("shop", manifests)]) else { return };
    harbour.await_converged("shop");
    let uid = harbour.deployment("shop", "web").unwrap()["metadata"]["uid"].clone();
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    let began = Instant::now();
    harbour.await_so("the Deployment is back", REPAIRED_WITHIN, |harbour| {
        harbour.deployment("shop", "web").is_some_and(|web| web["metadata"]["uid"] != uid)
    });
    eprintln!("a deleted Deployment was back after {:?}", began.elapsed());

    harbour.kubectl("shop", &["set", "image", "deployment/web", "main=registry.example.com/app:hacked"]);
    harbour.await_version("shop", "web", "1");
    let (assignment, agent) = (harbour.assignment("shop"), &harbour.agents[0]);
    let why = || {
        let ran = agent.command(&["why", &assignment]).output().unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    await_true("what differed is told", CHANGED_WITHIN, || why().contains("app:hacked") && why().contains("image"));

    harbour
        .kubectl("shop", &["patch", "secret", "login", "-p", "{\"stringData\":{\"password\":\"guessed-secret-2\"}}"]);
    let password = harbour.path("shop", "/api/v1", "secrets", "login");
    harbour
        .kubernetes
        .await_object(&password, "is as it was", |object| object["data"]["password"] == "a2VwdC1zZWNyZXQtMQ==");
    harbour.await_converged("shop");
    let told = format!("{:?} {} {} {}", harbour.history("shop"), harbour.story(), agent.log(), why());
    for value in ["kept-secret-1", "guessed-secret-2", "Z3Vlc3NlZC1zZWNyZXQtMg", "a2VwdC1zZWNyZXQtMQ"] {
        assert!(!told.contains(value), "a secret's value was told: {value}");
    }
}

#[test]
fn objects_may_be_told_of_only_or_ignored_and_nothing_is_repaired_while_held() {
    let manifests = Manifests::web("1")
        .with(&annotated(config_map("told", "key", "ours"), "kedge.dev/drift", "report"))
        .with(&annotated(config_map("ignored", "key", "ours"), "kedge.dev/drift", "ignore"));
    let Some(harbour) = Harbour::start(&[("shop", manifests)]) else { return };
    harbour.await_converged("shop");
    let value = |harbour: &Harbour, name: &str| {
        harbour.kubernetes.get(&harbour.path("shop", "/api/v1", "configmaps", name)).unwrap()["data"]["key"].clone()
    };
    let patch = "{\"data\":{\"key\":\"theirs\"}}";
    harbour.kubectl("shop", &["patch", "configmap", "ignored", "-p", patch]);
    harbour.kubectl("shop", &["patch", "configmap", "told", "-p", patch]);
    harbour.await_so("the hub is told", CHANGED_WITHIN, |harbour| {
        let told = harbour.seen("shop").unwrap().whole.to_string();
        told.contains("told") && !told.contains("ignored")
    });
    harbour.stays_so("both are left alone", A_WHILE, |harbour| {
        value(harbour, "told") == "theirs" && value(harbour, "ignored") == "theirs"
    });

    let assignment = harbour.assignment("shop");
    let hold = harbour.agents[0].command(&["hold", &assignment, "--reason", "a test"]).output().unwrap();
    assert!(hold.status.success(), "{}", String::from_utf8_lossy(&hold.stderr));
    harbour.await_so("the hub knows of the hold", CHANGED_WITHIN, |harbour| harbour.story().contains("a test"));
    harbour.kubectl("shop", &["delete", "deployment", "web", "--wait=false"]);
    harbour.await_so("it is gone", REPAIRED_WITHIN, |harbour| harbour.deployment("shop", "web").is_none());
    harbour.stays_so("nothing is repaired while held", A_WHILE, |harbour| harbour.deployment("shop", "web").is_none());
    let unhold = harbour.agents[0].command(&["unhold", &assignment]).output().unwrap();
    assert!(unhold.status.success(), "{}", String::from_utf8_lossy(&unhold.stderr));
    harbour.await_so("it is back", CHANGED_WITHIN, |harbour| harbour.deployment("shop", "web").is_some());
}
