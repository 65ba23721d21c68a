//! What an application may not do is refused, by name, and what runs stays.

use kedge_tests::world::harbour::manifests::{ID, Manifests, config_map, deployment, widget};
use kedge_tests::world::harbour::{Harbour, Terms};
use serde_json::{Value, json};

fn cluster_role() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": format!("mine-{ID}")},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    })
}

fn elsewhere(namespace: &str) -> Value {
    let mut object = config_map("elsewhere", "key", "value");
    object["metadata"]["namespace"] = json!(namespace);
    object
}

#[test]
fn escapes_cluster_wide_unknown_and_oversized_objects_are_refused_before_any_change() {
    let start = || Manifests::web("1");
    let targets = ["escape", "wide", "unknown", "large", "twice"].map(|target| (target, start()));
    let Some(harbour) = Harbour::start(&targets) else { return };
    for (target, _) in &targets {
        harbour.await_converged(target);
    }
    let next = || Manifests::web("2").with(&config_map("new", "key", "value"));
    let twice = next().file("again.yaml", &deployment("web", "3").to_string());
    harbour.push_all(&[
        ("escape", &next().with(&elsewhere("default"))),
        ("wide", &next().with(&cluster_role())),
        ("unknown", &next().with(&widget("one"))),
        ("large", &next().with(&config_map("large", "key", &"x".repeat(1_100_000)))),
        ("twice", &twice),
    ]);
    for (target, reason, words) in [
        ("escape", "NamespaceEscape", vec!["default", "configmap-elsewhere.yaml"]),
        ("wide", "ClusterScope", vec!["ClusterRole", "clusterrole-mine-"]),
        ("unknown", "UnknownKind", vec!["Widget", "widget-one.yaml"]),
        ("large", "ObjectTooLarge", vec!["large"]),
        ("twice", "BadPackage", vec!["web"]),
    ] {
        let message = harbour.await_failed(target, reason);
        assert!(words.iter().all(|word| message.contains(word)), "{target}: {words:?} in: {message}");
        assert_eq!(harbour.version(target, "web").as_deref(), Some("1"), "{target}");
        assert!(!harbour.kubernetes.exists(&harbour.path(target, "/api/v1", "configmaps", "new")), "{target}");
    }
    assert!(!harbour.kubernetes.exists("/api/v1/namespaces/default/configmaps/elsewhere"));

    harbour.push("escape", &Manifests::web("3"));
    harbour.await_converged("escape");
    assert_eq!(harbour.version("escape", "web").as_deref(), Some("3"), "mended, it goes on");
}

#[test]
fn the_delivery_may_allow_objects_of_the_whole_cluster_and_of_other_namespaces() {
    let Some(harbour) = Harbour::start_with(
        &Terms::delivery("scope: cluster").as_itself(),
        &[("other", Manifests::web("1")), ("shop", Manifests::web("1"))],
    ) else {
        return;
    };
    harbour.await_converged("other");
    let other = harbour.namespace("other");
    harbour.push("shop", &Manifests::web("1").with(&cluster_role()).with(&elsewhere(&other)));
    harbour.await_converged("shop");
    let role = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/mine-{}", harbour.id());
    assert!(harbour.kubernetes.exists(&role));
    assert!(harbour.kubernetes.exists(&harbour.path("other", "/api/v1", "configmaps", "elsewhere")));
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert!(!harbour.kubernetes.exists(&role), "pruned");
    assert!(!harbour.kubernetes.exists(&harbour.path("other", "/api/v1", "configmaps", "elsewhere")));
}

#[test]
fn a_kind_that_the_account_may_not_touch_is_named_and_the_rest_is_applied() {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "generous"}, "spec": {"hard": {"pods": "9000"}},
    });
    let Some(harbour) = Harbour::start_with(&Terms::delivery("rollback: never"), &[("shop", Manifests::web("1"))])
    else {
        return;
    };
    harbour.await_converged("shop");
    harbour.push("shop", &Manifests::web("2").with(&quota).with(&config_map("beside", "key", "value")));
    let message = harbour.await_failed("shop", "Forbidden");
    let words = ["patch", "ResourceQuota"];
    assert!(words.iter().all(|word| message.to_lowercase().contains(&word.to_lowercase())), "{message}");
    assert!(harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", "configmaps", "beside")));
    assert!(!harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", "resourcequotas", "generous")));
}
