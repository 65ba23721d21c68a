//! Why something isn't ready, by what is around it.

use super::*;

fn pod(name: &str, container: Value) -> Value {
    json!({"metadata": {"name": name, "creationTimestamp": "2026-01-02T00:00:00Z"}, "status": {"phase": "Pending", "containerStatuses": [container]}})
}

fn event(pod: &str, reason: &str, message: &str) -> Value {
    json!({"type": "Warning", "involvedObject": {"kind": "Pod", "name": pod}, "reason": reason, "message": message, "lastTimestamp": "2026-01-01T00:00:00Z"})
}

#[test]
fn an_image_that_cant_be_pulled_is_named_with_the_registrys_words() {
    let waits = json!({"name": "web", "image": "acme.io/web:9", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"acme.io/web:9\""}}});
    let pods = [pod("web-1", waits)];
    let trouble = pods_reason(&pods, &[]).unwrap();
    assert_eq!(trouble.reason, "ImagePull");
    let words =
        "rpc error: code = NotFound desc = failed to pull and unpack image \"acme.io/web:9\": acme.io/web:9: not found";
    let events = [
        event("web-1", "Failed", &format!("Failed to pull image \"acme.io/web:9\": {words}")),
        event("web-1", "BackOff", "Back-off pulling image"),
        event("web-2", "Failed", "Failed to pull image \"acme.io/web:9\": other"),
    ];
    let trouble = pods_reason(&pods, &events).unwrap();
    assert_eq!(trouble.message, format!("pod web-1, container web: the image acme.io/web:9 can't be pulled: {words}"));
}

#[test]
fn a_container_that_ends_again_and_again_says_how_and_its_last_line() {
    let ends = |end: Value| {
        pod(
            "web-1",
            json!({"name": "web", "restartCount": 4, "ready": false, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            "lastState": {"terminated": end}}),
        )
    };
    let trouble =
        pods_reason(&[ends(json!({"exitCode": 3, "reason": "Error", "message": "starting\nno license\n\n"}))], &[])
            .unwrap();
    assert_eq!((trouble.reason, trouble.wants_last_line()), ("CrashLoop", false));
    assert_eq!(
        trouble.message,
        "pod web-1, container web: it ended with exit code 3, 4 restarts; its last line: no license"
    );
    let mut trouble = pods_reason(&[ends(json!({"exitCode": 1}))], &[]).unwrap();
    assert!(trouble.wants_last_line());
    trouble.add_last_line("panic: no database\n");
    assert!(trouble.message.ends_with("; its last line: panic: no database"), "{}", trouble.message);
    let trouble = pods_reason(&[ends(json!({"exitCode": 137, "reason": "OOMKilled"}))], &[]).unwrap();
    assert!(trouble.message.contains("needed more memory than its limit (OOMKilled)"));
    let unknown =
        pod("web-1", json!({"name": "web", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}));
    assert!(pods_reason(&[unknown], &[]).unwrap().message.ends_with("it ends again and again, 1 restarts"));
    let between = json!({"name": "web", "restartCount": 3, "ready": false, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2}}});
    assert_eq!(pods_reason(&[pod("web-1", between)], &[]).unwrap().reason, "CrashLoop");
    let recovered = json!({"name": "web", "restartCount": 3, "ready": true, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2}}});
    assert_eq!(pods_reason(&[pod("web-1", recovered)], &[]), None);
}

#[test]
fn what_the_scheduler_and_the_kubelet_say_is_told() {
    let waits = json!({"metadata": {"name": "web-1"}, "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."}]}});
    let trouble = pods_reason(std::slice::from_ref(&waits), &[]).unwrap();
    assert_eq!(
        (trouble.reason, trouble.message.as_str()),
        ("Unschedulable", "pod web-1: no node takes it: 0/3 nodes are available: 3 Insufficient memory.")
    );
    let misses = pod(
        "web-2",
        json!({"name": "web", "state": {"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"db\" not found"}}}),
    );
    let trouble = pods_reason(&[waits, misses], &[]).unwrap();
    assert_eq!(trouble.message, "pod web-2, container web: CreateContainerConfigError: secret \"db\" not found");
    let runs = pod("web-3", json!({"name": "web", "ready": false, "state": {"running": {}}}));
    assert_eq!(pods_reason(std::slice::from_ref(&runs), &[]), None);
    let events = [event("web-3", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")];
    let trouble = pods_reason(&[runs], &events).unwrap();
    assert_eq!(
        trouble.message,
        "pod web-3, container web: Readiness probe failed: HTTP probe failed with statuscode: 503"
    );
    let mounts = pod("web-4", json!({"name": "web", "state": {"waiting": {"reason": "ContainerCreating"}}}));
    let events = [event("web-4", "FailedMount", "MountVolume.SetUp failed: configmap \"x\" not found")];
    assert!(pods_reason(&[mounts], &events).unwrap().message.ends_with("configmap \"x\" not found"));
}

#[test]
fn a_pod_of_a_job_says_how_it_failed() {
    let mut failed = pod(
        "once-1",
        json!({"name": "c", "restartCount": 0, "ready": false,
        "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no license\n"}}}),
    );
    failed["status"]["phase"] = json!("Failed");
    let trouble = pods_reason(std::slice::from_ref(&failed), &[]).unwrap();
    assert_eq!(trouble.message, "pod once-1, container c: it ended with exit code 3; its last line: no license");
    let job = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"conditions": [
        {"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}]}});
    let around = Fake { pods: vec![failed], ..Fake::default() };
    assert_eq!(
        tell(explain(&id("batch", "Job"), &job, &around)),
        "failed JobFailed: Job shop/web has failed: Job has reached the specified backoff limit: pod once-1, container c: it ended with exit code 3; its last line: no license"
    );
}

#[test]
fn pods_that_go_or_are_done_explain_nothing() {
    let mut going = pod("web-1", json!({"name": "web", "state": {"waiting": {"reason": "ErrImagePull"}}}));
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut done = going.clone();
    done["metadata"]["deletionTimestamp"] = Value::Null;
    done["status"]["phase"] = json!("Succeeded");
    assert_eq!(pods_reason(&[going, done], &[]), None);
}

#[derive(Default)]
struct Fake {
    pods: Vec<Value>,
    warnings: Vec<Value>,
    class: Option<Value>,
    line: Option<String>,
}

impl Around for Fake {
    fn pods(&self, namespace: &str, selector: &str) -> Vec<Value> {
        assert_eq!((namespace, selector), ("shop", "app=web"));
        self.pods.clone()
    }

    fn warnings(&self, _: &str) -> Vec<Value> {
        self.warnings.clone()
    }

    fn storage_class(&self, _: Option<&str>) -> Option<Value> {
        self.class.clone()
    }

    fn last_line(&self, _: &str, _: &str, _: &str) -> Option<String> {
        self.line.clone()
    }
}

#[test]
fn what_isnt_ready_is_explained_by_its_pods() {
    let crash = pod(
        "web-1",
        json!({"name": "web", "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 1}}}),
    );
    let around = Fake { pods: vec![crash], line: Some("no license".to_owned()), ..Fake::default() };
    let late = deployment(json!({"observedGeneration": 3, "replicas": 3, "updatedReplicas": 3}));
    assert_eq!(
        tell(explain(&id("apps", "Deployment"), &late, &around)),
        "waiting CrashLoop: Deployment shop/web has 0 of 3 pods available: pod web-1, container web: it ended with exit code 1, 4 restarts; its last line: no license"
    );
    let refused = json!({"involvedObject": {"kind": "StatefulSet", "name": "web"}, "reason": "FailedCreate", "message": "exceeded quota"});
    let around = Fake { warnings: vec![refused], ..Fake::default() };
    let set = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"observedGeneration": 1}});
    assert_eq!(
        tell(explain(&id("apps", "StatefulSet"), &set, &around)),
        "waiting NotReady: StatefulSet shop/web has 0 of 1 pods ready: exceeded quota"
    );
    let balanced = json!({"spec": {"type": "LoadBalancer", "selector": {"app": "web"}}});
    assert!(tell(explain(&id("", "Service"), &balanced, &around)).ends_with("has no address of a load balancer yet"));
    let failed = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"conditions": [{"type": "Failed", "status": "True"}]}});
    assert!(tell(explain(&id("batch", "Job"), &failed, &Fake::default())).starts_with("failed JobFailed"));
}

#[test]
fn a_claim_that_waits_for_its_first_pod_is_ready() {
    let claim = |class: Value, node: Value| json!({"metadata": {"annotations": {"volume.kubernetes.io/selected-node": node}}, "spec": {"storageClassName": class}, "status": {"phase": "Pending"}});
    let judge = |mode: &str, live: Value| {
        let around = Fake { class: Some(json!({ "volumeBindingMode": mode })), ..Fake::default() };
        explain(&id("", "PersistentVolumeClaim"), &live, &around) == Readiness::Ready
    };
    assert!(judge("WaitForFirstConsumer", claim(json!("local"), Value::Null)));
    assert!(judge("WaitForFirstConsumer", claim(Value::Null, Value::Null)));
    assert!(!judge("WaitForFirstConsumer", claim(json!("local"), json!("node-1"))));
    assert!(!judge("Immediate", claim(json!("local"), Value::Null)));
    assert!(!judge("WaitForFirstConsumer", claim(json!(""), Value::Null)));
}
