//! The platform's configuration: bound late, applied alone, and workloads that ask for it are rolled.

use kedge_tests::world::harbour::Harbour;
use kedge_tests::world::harbour::manifests::{Manifests, annotated, deployment};
use serde_json::Value;

/// What a Deployment's pods were made for, and its generation.
fn rolled(harbour: &Harbour, name: &str) -> (Value, Value) {
    let object = harbour.deployment("shop", name).unwrap();
    (
        object["spec"]["template"]["metadata"]["annotations"]["kedge.dev/config"].clone(),
        object["metadata"]["generation"].clone(),
    )
}

#[test]
fn names_of_the_cluster_are_bound_and_a_change_is_applied_alone() {
    let asks = annotated(deployment("asks", "1"), "kedge.dev/restart-on", "config");
    let Some(harbour) = Harbour::start(&[("shop", Manifests::web("1").with(&asks))]) else { return };
    harbour.await_converged("shop");
    let (web, asked) = (rolled(&harbour, "web"), rolled(&harbour, "asks"));
    assert!(web.0.is_null() && asked.0.is_string(), "{web:?} {asked:?}");

    harbour.push_setting("shop", "WHO", "the ${cluster.name}, $${not.bound}");
    harbour.await_converged("shop");
    let settings = harbour.path("shop", "/api/v1", "configmaps", "platform-config");
    let data = harbour.kubernetes.get(&settings).unwrap()["data"].clone();
    assert_eq!(data["WHO"], "the drone-1, ${not.bound}", "{data:#}");
    assert_eq!(rolled(&harbour, "web"), web, "who doesn't ask isn't touched");
    let now = rolled(&harbour, "asks");
    assert!(now.0.is_string() && now.0 != asked.0 && now.1 != asked.1, "{asked:?}, then {now:?}");

    harbour.push_setting("shop", "WHO", "${cluster.labels.nobody-set-this}");
    let message = harbour.await_failed("shop", "Unbound");
    assert!(message.contains("nobody-set-this"), "{message}");
    assert_eq!(harbour.kubernetes.get(&settings).unwrap()["data"]["WHO"], "the drone-1, ${not.bound}");

    harbour.push_setting("shop", "WHO", "${host.ip}");
    let message = harbour.await_failed("shop", "Unbound");
    assert!(message.contains("host.ip"), "{message}");
}
