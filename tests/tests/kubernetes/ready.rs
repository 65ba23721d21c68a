//! Readiness by kind, and the reasons when it doesn't come: the change is rolled back to what ran, pruned accordingly.

use kedge_tests::world::harbour::manifests::{
    Manifests, config_map, deployment, job, pod_spec, widget, widget_definition, with_outcome,
};
use kedge_tests::world::harbour::{Harbour, Terms};
use serde_json::{Value, json};

#[test]
fn what_never_becomes_ready_rolls_back_and_its_reason_comes_from_the_pods() {
    let targets = ["pull", "crash", "room", "probe", "job"].map(|target| (target, Manifests::web("1")));
    let terms = Terms::default().timeout("12s");
    let Some(harbour) = Harbour::start_with(&terms, &targets) else { return };
    targets.iter().for_each(|(target, _)| harbour.await_converged(target));
    let next = |object: &Value| Manifests::web("2").with(object).with(&config_map("new", "key", "value"));
    let mut nowhere = deployment("web", "2");
    nowhere["spec"]["template"]["spec"]["nodeSelector"] = json!({"moon": "dark-side"});
    harbour.push_all(&[
        ("pull", &next(&with_outcome(deployment("web", "2"), "image-pull"))),
        ("crash", &next(&with_outcome(deployment("web", "2"), "crash-loop"))),
        ("room", &next(&nowhere)),
        ("probe", &next(&with_outcome(deployment("web", "2"), "never-ready"))),
        ("job", &next(&with_outcome(job("once"), "fails"))),
    ]);
    for (target, reason, words) in [
        ("pull", "ImagePull", vec!["web", "registry.example.com/app:2"]),
        ("crash", "CrashLoop", vec!["web", "no database at mysql://db: giving up"]),
        ("room", "Unschedulable", vec!["web", "node"]),
        ("probe", "NotReady", vec!["web"]),
        ("job", "JobFailed", vec!["once"]),
    ] {
        let message = harbour.await_failed(target, reason);
        assert!(words.iter().all(|word| message.contains(word)), "{target}: {words:?} in: {message}");
        harbour.await_version(target, "web", "1");
        assert!(!harbour.kubernetes.exists(&harbour.path(target, "/api/v1", "configmaps", "new")), "{target}: pruned");
    }
    let seen = harbour.seen("pull").unwrap().whole;
    assert_ne!(seen["running"], seen["desired"], "what runs is told: {seen:#}");

    harbour.push("pull", &Manifests::web("3"));
    harbour.await_converged("pull");
}

fn workload(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec("1")},
        },
    })
}

#[test]
fn every_kind_is_ready_in_its_own_way() {
    let mut replicas = workload("ReplicaSet", "plain");
    replicas["spec"]["replicas"] = json!(2);
    let mut set = workload("StatefulSet", "ordered");
    set["spec"]["serviceName"] = json!("web");
    let cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job("x")["spec"].clone()}},
    });
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone"}, "spec": pod_spec("1")});
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
        "spec": {"rules": [{"host": "web.example.com", "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}},
        }]}}]},
    });
    let all = [
        replicas,
        set,
        workload("DaemonSet", "each"),
        cron,
        pod,
        job("once"),
        ingress,
        widget_definition(),
        widget("one"),
    ];
    let manifests = all.iter().fold(Manifests::web("1"), Manifests::with);
    let terms = Terms::delivery("scope: cluster").as_itself();
    let Some(harbour) = Harbour::start_with(&terms, &[("shop", manifests)]) else { return };
    harbour.await_converged("shop");
    let status = |api: &str, plural: &str, name: &str| {
        harbour.kubernetes.get(&harbour.path("shop", api, plural, name)).unwrap()["status"].clone()
    };
    assert_eq!(status("/apis/apps/v1", "statefulsets", "ordered")["readyReplicas"], 1);
    assert_eq!(status("/apis/apps/v1", "replicasets", "plain")["readyReplicas"], 2);
    assert_eq!(status("/apis/batch/v1", "jobs", "once")["succeeded"], 1);
    assert_eq!(status("/api/v1", "pods", "lone")["phase"], "Running");
}

#[test]
fn a_custom_object_is_ready_when_its_conditions_say_so_of_the_current_generation() {
    let manifests = Manifests::web("1").with(&widget_definition()).with(&widget("one"));
    let terms = Terms::delivery("scope: cluster").as_itself().timeout("15s");
    let Some(harbour) = Harbour::start_with(&terms, &[("shop", manifests.clone())]) else { return };
    harbour.await_converged("shop");
    // Its controller says of the old generation that all is well, and of the new one nothing yet.
    let group = kedge_tests::world::harbour::manifests::widget_group(harbour.id());
    let say = |generation: u64, status: &str, reason: &str| {
        let status = json!({"status": {"observedGeneration": generation, "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "as its controller tells", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        let resource = format!("widget.{group}");
        harbour.kubectl(
            "shop",
            &["patch", &resource, "one", "--subresource=status", "--type=merge", "-p", &status.to_string()],
        );
    };
    say(1, "True", "Fine");
    let mut larger = widget("one");
    larger["spec"]["size"] = json!(2);
    harbour.push("shop", &manifests.with(&larger));
    harbour.await_so("the new one is applied", kedge_tests::world::harbour::CHANGED_WITHIN, |harbour| {
        let path = harbour.path("shop", &format!("/apis/{group}/v1"), "widgets", "one");
        harbour.kubernetes.get(&path).unwrap()["metadata"]["generation"] == 2
    });
    assert_ne!(harbour.seen("shop").unwrap().condition, "Failed");
    say(2, "True", "Fine");
    harbour.await_converged("shop");
}
