//! Fields that somebody else manages, and fields that can't be changed.

use std::time::Duration;

use kedge_tests::world::harbour::manifests::{Manifests, annotated, config_map, job};
use kedge_tests::world::harbour::{Harbour, Terms};
use serde_json::{Value, json};

/// What must not happen would have happened by then.
const A_WHILE: Duration = Duration::from_secs(6);

/// Somebody else's object, in a target's namespace.
fn theirs(harbour: &Harbour, target: &str) {
    let mut object = config_map("shared", "key", "theirs");
    object["metadata"]["namespace"] = json!(harbour.namespace(target));
    harbour.kubernetes.apply(&object.to_string());
}

fn shared(harbour: &Harbour, target: &str) -> Value {
    harbour.kubernetes.get(&harbour.path(target, "/api/v1", "configmaps", "shared")).unwrap()["data"]["key"].clone()
}

#[test]
fn a_field_of_another_manager_fails_by_name_and_what_runs_stays() {
    let Some(harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    theirs(&harbour, "shop");
    harbour.push("shop", &Manifests::web("2").with(&config_map("shared", "key", "ours")));
    let message = harbour.await_failed("shop", "Conflict");
    assert!(["shared", "lab", "key"].iter().all(|word| message.contains(word)), "{message}");
    assert_eq!(shared(&harbour, "shop"), "theirs");
    harbour.await_version("shop", "web", "1");
}

#[test]
fn a_delivery_that_takes_gets_the_field() {
    let Some(harbour) = Harbour::start_with(&Terms::delivery("conflicts: take"), &[("shop", Manifests::web("1"))])
    else {
        return;
    };
    harbour.await_converged("shop");
    theirs(&harbour, "shop");
    harbour.push("shop", &Manifests::web("2").with(&config_map("shared", "key", "ours")));
    harbour.await_converged("shop");
    assert_eq!(shared(&harbour, "shop"), "ours");
}

#[test]
fn the_replicas_of_an_autoscaler_are_not_fought_over() {
    let Some(harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    harbour.kubectl("shop", &["scale", "deployment", "web", "--replicas=3"]);
    let replicas = |harbour: &Harbour| harbour.deployment("shop", "web").unwrap()["spec"]["replicas"].clone();
    harbour.stays_so("three remain", A_WHILE, |harbour| replicas(harbour) == 3);
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!((harbour.version("shop", "web").as_deref(), replicas(&harbour)), (Some("2"), json!(3)));
}

#[test]
fn a_field_that_cannot_change_fails_by_name_unless_the_object_may_be_made_again() {
    let with_image = |mut object: Value, tag: &str| {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = json!(format!("registry.example.com/app:{tag}"));
        object
    };
    let again = |object: Value| annotated(object, "kedge.dev/recreate", "true");
    let (fixed, free) = (Manifests::web("1").with(&job("once")), Manifests::web("1").with(&again(job("once"))));
    let Some(harbour) = Harbour::start(&[("fixed", fixed), ("free", free)]) else { return };
    harbour.await_converged("fixed");
    harbour.await_converged("free");
    let of = |target: &str| harbour.kubernetes.get(&harbour.path(target, "/apis/batch/v1", "jobs", "once")).unwrap();
    let before = of("free");
    harbour.push_all(&[
        ("fixed", &Manifests::web("2").with(&with_image(job("once"), "2"))),
        ("free", &Manifests::web("2").with(&with_image(again(job("once")), "2"))),
    ]);
    let message = harbour.await_failed("fixed", "Immutable");
    assert!(["once", "spec.template", "kedge.dev/recreate"].iter().all(|word| message.contains(word)), "{message}");
    harbour.await_version("fixed", "web", "1");
    harbour.await_converged("free");
    let after = of("free");
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert!(after.to_string().contains("app:2"), "{after:#}");
}
