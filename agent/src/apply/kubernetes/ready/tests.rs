//! Objects as real controllers write them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod reasons;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn id(group: &str, kind: &str) -> ObjectId {
    ObjectId {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: "things".to_owned(),
        namespace: Some("shop".to_owned()),
        name: "web".to_owned(),
    }
}

/// `ready`, `waiting: …` or `failed: …`.
fn told(group: &str, kind: &str, live: Value) -> String {
    tell(ready(&id(group, kind), &live))
}

fn tell(readiness: Readiness) -> String {
    match readiness {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Waiting { reason, message } => format!("waiting {reason}: {message}"),
        Readiness::Failed { reason, message } => format!("failed {reason}: {message}"),
    }
}

fn deployment(status: Value) -> Value {
    json!({"metadata": {"generation": 3}, "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}}, "status": status})
}

#[test]
fn a_deployment_is_ready_when_all_its_pods_are_new_and_available() {
    let available = json!([{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]);
    let whole = json!({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "conditions": available});
    assert_eq!(told("apps", "Deployment", deployment(whole.clone())), "ready");
    for (change, expected) in [
        (json!({"observedGeneration": 2}), "has generation 3, and its controller has seen 2 so far"),
        (json!({"updatedReplicas": 1, "replicas": 4}), "has 1 of 3 new pods"),
        (json!({"replicas": 5}), "still has 2 old pods"),
        (json!({"availableReplicas": 2}), "has 2 of 3 pods available"),
        (json!({"availableReplicas": null}), "has 0 of 3 pods available"),
    ] {
        let mut status = whole.clone();
        change.as_object().unwrap().iter().for_each(|(key, value)| status[key] = value.clone());
        assert_eq!(
            told("apps", "Deployment", deployment(status)),
            format!("waiting NotReady: Deployment shop/web {expected}")
        );
    }
    assert!(told("apps", "Deployment", deployment(json!({}))).contains("hasn't been seen by its controller yet"));
    let mut paused = deployment(json!({"observedGeneration": 3, "replicas": 3}));
    paused["spec"]["paused"] = json!(true);
    assert!(told("apps", "Deployment", paused).ends_with("has 0 of 3 new pods and is paused"));
    let mut none = deployment(json!({"observedGeneration": 3}));
    none["spec"]["replicas"] = json!(0);
    assert_eq!(told("apps", "Deployment", none), "ready");
}

#[test]
fn a_deployment_says_why_it_makes_no_progress() {
    let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "ReplicaSet \"web-5d\" has timed out progressing."}]);
    let status = json!({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 1, "conditions": late});
    assert_eq!(
        told("apps", "Deployment", deployment(status)),
        "failed NotReady: Deployment shop/web has 1 of 3 new pods and makes no progress: ReplicaSet \"web-5d\" has timed out progressing."
    );
    let refused = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "pods \"web-5d-x\" is forbidden: exceeded quota: workspace"}]);
    let status = json!({"observedGeneration": 3, "conditions": refused});
    assert_eq!(
        told("apps", "Deployment", deployment(status)),
        "waiting NotReady: Deployment shop/web has 0 of 3 new pods: pods can't be made: pods \"web-5d-x\" is forbidden: exceeded quota: workspace"
    );
}

#[test]
fn a_stateful_set_is_ready_by_its_strategy() {
    let set = |strategy: Value, status: Value| {
        let mut whole = json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 1, "updatedReplicas": 2,
            "currentRevision": "web-a", "updateRevision": "web-b"});
        status.as_object().unwrap().iter().for_each(|(key, value)| whole[key] = value.clone());
        told(
            "apps",
            "StatefulSet",
            json!({"metadata": {"generation": 1}, "spec": {"replicas": 3, "updateStrategy": strategy}, "status": whole}),
        )
    };
    let rolling = |partition: i64| json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
    assert!(set(json!({}), json!({})).ends_with("has 2 of 3 new pods"));
    assert_eq!(set(json!({}), json!({"updateRevision": "web-a", "updatedReplicas": 0})), "ready");
    assert_eq!(set(json!({}), json!({"updatedReplicas": 3})), "ready");
    assert_eq!(set(rolling(1), json!({})), "ready");
    assert!(set(rolling(0), json!({})).ends_with("has 2 of 3 new pods"));
    assert_eq!(set(rolling(7), json!({"updatedReplicas": 0})), "ready");
    assert_eq!(set(json!({"type": "OnDelete"}), json!({"updatedReplicas": 0})), "ready");
    assert!(set(json!({"type": "OnDelete"}), json!({"readyReplicas": 1})).ends_with("has 1 of 3 pods ready"));
    assert!(set(json!({}), json!({"replicas": 4})).ends_with("has 1 pods too many"));
}

#[test]
fn a_daemon_set_is_ready_on_every_node_that_it_is_for() {
    let set = |strategy: &str, change: Value| {
        let mut status = json!({"observedGeneration": 2, "desiredNumberScheduled": 4, "currentNumberScheduled": 4,
            "updatedNumberScheduled": 4, "numberReady": 4, "numberAvailable": 4});
        change.as_object().unwrap().iter().for_each(|(key, value)| status[key] = value.clone());
        let spec = json!({"updateStrategy": {"type": strategy}});
        told("apps", "DaemonSet", json!({"metadata": {"generation": 2}, "spec": spec, "status": status}))
    };
    assert_eq!(set("RollingUpdate", json!({})), "ready");
    assert!(set("RollingUpdate", json!({"updatedNumberScheduled": 3})).ends_with("has 3 of 4 new pods"));
    assert_eq!(set("OnDelete", json!({"updatedNumberScheduled": 0})), "ready");
    assert!(set("RollingUpdate", json!({"numberReady": 1})).ends_with("has 1 of 4 pods ready"));
    assert!(set("RollingUpdate", json!({"numberAvailable": 2})).ends_with("has 2 of 4 pods available"));
    assert!(set("RollingUpdate", json!({"currentNumberScheduled": 2})).ends_with("is on 2 of 4 nodes"));
    assert_eq!(set("RollingUpdate", json!({"desiredNumberScheduled": 0})), "ready", "no node fits");
}

#[test]
fn a_replica_set_is_ready_with_its_number_of_pods() {
    let set = |status: Value| {
        told("apps", "ReplicaSet", json!({"metadata": {"generation": 1}, "spec": {"replicas": 2}, "status": status}))
    };
    assert_eq!(
        set(json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2})),
        "ready"
    );
    assert!(set(json!({"observedGeneration": 1, "replicas": 3})).ends_with("has 1 pods too many"));
    assert!(
        set(json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 1})).ends_with("has 1 of 2 pods ready")
    );
}

#[test]
fn a_job_must_complete() {
    let job = |conditions: Value, more: Value| {
        let mut status = json!({"conditions": conditions});
        more.as_object().unwrap().iter().for_each(|(key, value)| status[key] = value.clone());
        told("batch", "Job", json!({"spec": {"completions": 2}, "status": status}))
    };
    assert_eq!(job(json!([{"type": "Complete", "status": "True"}]), json!({})), "ready");
    assert_eq!(
        job(
            json!([{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}]),
            json!({})
        ),
        "failed JobFailed: Job shop/web has failed: Job has reached the specified backoff limit"
    );
    assert_eq!(
        job(json!([]), json!({"active": 1, "succeeded": 1, "failed": 2})),
        "waiting NotReady: Job shop/web hasn't completed: 1 of 2 pods succeeded, 1 run, 2 failed so far"
    );
    assert_eq!(told("batch", "Job", json!({"spec": {"suspend": true}})), "ready");
    assert_eq!(told("batch", "CronJob", json!({"spec": {}})), "ready");
}

#[test]
fn a_pod_is_ready_or_done() {
    let pod = |status: Value| told("", "Pod", json!({ "status": status }));
    assert_eq!(pod(json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})), "ready");
    assert_eq!(pod(json!({"phase": "Succeeded"})), "ready");
    assert_eq!(
        pod(
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "message": "containers with unready status: [a]"}]})
        ),
        "waiting NotReady: Pod shop/web isn't ready: containers with unready status: [a]"
    );
    assert_eq!(
        pod(json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})),
        "failed NotReady: Pod shop/web has failed: The node was low on resource: memory."
    );
    assert!(pod(json!({"phase": "Pending"})).ends_with("is Pending"));
}

#[test]
fn storage_addresses_and_definitions_are_waited_for() {
    assert_eq!(told("", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}})), "ready");
    assert!(
        told("", "PersistentVolumeClaim", json!({"status": {"phase": "Pending"}}))
            .ends_with("has no volume yet (Pending)")
    );
    assert!(told("", "PersistentVolumeClaim", json!({"status": {"phase": "Lost"}})).starts_with("failed"));
    assert_eq!(told("", "Service", json!({"spec": {"type": "ClusterIP"}, "status": {"loadBalancer": {}}})), "ready");
    let balanced = json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {}}});
    assert!(told("", "Service", balanced).ends_with("has no address of a load balancer yet"));
    let balanced =
        json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}});
    assert_eq!(told("", "Service", balanced), "ready");
    assert_eq!(told("networking.k8s.io", "Ingress", json!({"status": {"loadBalancer": {}}})), "ready");
    assert_eq!(told("", "Namespace", json!({"status": {"phase": "Active"}})), "ready");
    let (group, kind) = ("apiextensions.k8s.io", "CustomResourceDefinition");
    assert_eq!(
        told(group, kind, json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}})),
        "ready"
    );
    assert!(told(group, kind, json!({})).starts_with("waiting"));
    let taken = json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "False", "message": "\"cameras\" is already in use"}]}});
    assert!(told(group, kind, taken).ends_with("has names that are taken: \"cameras\" is already in use"));
    let service = json!({"status": {"conditions": [{"type": "Available", "status": "False", "message": "service/metrics not found"}]}});
    assert!(
        told("apiregistration.k8s.io", "APIService", service).ends_with("isn't Available: service/metrics not found")
    );
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(told("", "ConfigMap", gone), "waiting NotReady: ConfigMap shop/web is being deleted");
    assert_eq!(told("", "ConfigMap", json!({})), "ready");
}

#[test]
fn other_kinds_are_ready_by_their_conditions_of_this_generation() {
    let any = |status: Value| told("acme.io", "Camera", json!({"metadata": {"generation": 5}, "status": status}));
    assert_eq!(told("acme.io", "Camera", json!({})), "ready", "it is there, and nobody says more");
    assert_eq!(any(json!({"observedGeneration": 5, "conditions": [{"type": "Ready", "status": "True"}]})), "ready");
    assert!(
        any(json!({"observedGeneration": 4, "conditions": [{"type": "Ready", "status": "True"}]}))
            .contains("has seen 4 so far")
    );
    let old = any(json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4}]}));
    assert!(old.starts_with("waiting NotReady: Camera shop/web isn't Ready"), "{old}");
    assert!(
        any(json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NoLens", "message": ""}]}))
            .ends_with("isn't Ready: NoLens")
    );
    assert!(
        any(json!({"conditions": [{"type": "Available", "status": "False", "message": "m"}]}))
            .ends_with("isn't Available: m")
    );
    let stalled =
        json!([{"type": "Stalled", "status": "True", "message": "bad spec"}, {"type": "Ready", "status": "False"}]);
    assert_eq!(any(json!({ "conditions": stalled })), "failed NotReady: Camera shop/web is stalled: bad spec");
    let reconciling = json!([{"type": "Reconciling", "status": "True", "reason": "Progressing"}, {"type": "Ready", "status": "True"}]);
    assert!(any(json!({ "conditions": reconciling })).ends_with("is being reconciled: Progressing"));
    assert_eq!(any(json!({"conditions": [{"type": "Synced", "status": "False"}]})), "ready");
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "(metadata|spec|status|conditions|type|reason|message|containerStatuses|state|waiting|replicas|selector|name|phase)";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(True|False|Ready|Failed|Pending|Running|CrashLoopBackOff|ErrImagePull|\\PC{0,9})".prop_map(Value::from)
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(keys, inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_panics_and_no_message_grows(live in any_json(), pod in any_json(), words in "\\PC{0,2000}") {
        for (group, kind) in [("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"), ("apps", "ReplicaSet"), ("batch", "Job"),
            ("", "Pod"), ("", "PersistentVolumeClaim"), ("", "Service"), ("", "Namespace"), ("x", "Any"),
            ("apiextensions.k8s.io", "CustomResourceDefinition")] {
            let _ = ready(&id(group, kind), &live);
        }
        let _ = pods_reason(&[pod, live.clone()], std::slice::from_ref(&live));
        let _ = selector_of(&live);
        let said = told("x", "Any", json!({"status": {"conditions": [{"type": "Ready", "status": "False", "message": words}]}}));
        prop_assert!(said.len() < 700);
    }
}
