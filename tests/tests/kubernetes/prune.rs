//! What goes when it is no longer wanted, and what is kept and said so.

use kedge_tests::world::harbour::manifests::{Manifests, annotated, config_map};
use kedge_tests::world::harbour::{CHANGED_WITHIN, Harbour};
use serde_json::{Value, json};

fn claim() -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// Disks for claims: each is bound to the next.
fn add_volume(harbour: &Harbour, target: &str) {
    let namespace = harbour.namespace(target);
    harbour.kubernetes.apply(&format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: volume-{namespace}}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
         accessModes: [ReadWriteOnce]\n  persistentVolumeReclaimPolicy: Retain\n  hostPath: {{path: /nowhere}}\n  \
         claimRef: {{namespace: {namespace}, name: data}}\n"
    ));
}

#[test]
fn what_a_new_version_lacks_goes_and_what_is_precious_stays() {
    let manifests = Manifests::web("1")
        .with(&config_map("old", "key", "value"))
        .with(&annotated(config_map("kept", "key", "value"), "kedge.dev/prune", "never"))
        .with(&claim());
    let Some(harbour) = Harbour::start(&[("shop", manifests)]) else { return };
    add_volume(&harbour, "shop");
    harbour.await_converged("shop");
    harbour.push("shop", &Manifests::web("2").without("service-web.yaml"));
    harbour.await_converged("shop");
    let exists = |plural: &str, name: &str| harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", plural, name));
    assert!(!exists("configmaps", "old") && !exists("services", "web"));
    assert!(exists("configmaps", "kept") && exists("persistentvolumeclaims", "data"));
    let log = harbour.agents[0].log();
    let said = log.lines().any(|line| line.contains("PersistentVolumeClaim") && line.contains("stays"));
    assert!(said, "it is said: {log}");
}

#[test]
fn a_removed_assignment_is_pruned_and_a_namespace_with_foreign_objects_is_kept() {
    let web = || Manifests::web("1");
    let targets = ["shared", "own", "stays", "stays-too", "stays-also"].map(|target| (target, web()));
    let Some(harbour) = Harbour::start(&targets) else { return };
    targets.iter().for_each(|(target, _)| harbour.await_converged(target));
    let mut foreign = config_map("theirs", "key", "value");
    foreign["metadata"]["namespace"] = json!(harbour.namespace("shared"));
    harbour.kubernetes.apply(&foreign.to_string());

    harbour.remove_target("shared");
    harbour.await_so("its Deployment is gone", CHANGED_WITHIN, |harbour| harbour.deployment("shared", "web").is_none());
    harbour.remove_target("own");
    harbour.await_so("its namespace is gone or going", CHANGED_WITHIN, |harbour| {
        let namespace = harbour.kubernetes.get(&format!("/api/v1/namespaces/{}", harbour.namespace("own")));
        namespace.is_none_or(|one| !one["metadata"]["deletionTimestamp"].is_null())
    });
    harbour.await_so("the hub knows nothing of both any more", CHANGED_WITHIN, |harbour| {
        harbour.seen("own").is_none() && harbour.seen("shared").is_none()
    });
    let kept = harbour.kubernetes.get(&format!("/api/v1/namespaces/{}", harbour.namespace("shared"))).unwrap();
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept:#}");
    assert!(harbour.kubernetes.exists(&harbour.path("shared", "/api/v1", "configmaps", "theirs")));
    let log = harbour.agents[0].log();
    assert!(log.lines().any(|line| line.contains(&harbour.namespace("shared")) && line.contains("stays")), "{log}");
    for target in ["stays", "stays-too", "stays-also"] {
        assert!(harbour.deployment(target, "web").is_some(), "{target}");
    }
}
