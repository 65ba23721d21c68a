//! The lab's cluster itself: controllers, scheduler, node and proxy do what the other tests rely on.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::Method;
use kedge_tests::lab::await_true;
use kedge_tests::lab::kubernetes::{Kubernetes, Verdict};
use kedge_tests::world::harbour::manifests::{deployment, job, with_outcome};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);

/// A namespace for a test.
fn namespace(kubernetes: &Kubernetes) -> String {
    let name = format!("lab-{}", kubernetes.unique());
    kubernetes.apply(&format!(
        "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: \
         {{name: platform-config, namespace: {name}}}\n"
    ));
    name
}

fn make(kubernetes: &Kubernetes, namespace: &str, mut object: Value) -> String {
    object["metadata"]["namespace"] = json!(namespace);
    kubernetes.apply(&object.to_string());
    let (api, plural) = match object["kind"].as_str().unwrap() {
        "Job" => ("/apis/batch/v1", "jobs"),
        _ => ("/apis/apps/v1", "deployments"),
    };
    format!("{api}/namespaces/{namespace}/{plural}/{}", object["metadata"]["name"].as_str().unwrap())
}

#[test]
fn deployments_become_available_and_jobs_end_as_their_pods_do() {
    let Some(kubernetes) = Kubernetes::shared() else { return };
    let own = namespace(&kubernetes);
    let good = make(&kubernetes, &own, deployment("good", "1"));
    let done = make(&kubernetes, &own, job("done"));
    let failed = make(&kubernetes, &own, with_outcome(job("failed"), "fails"));
    kubernetes.await_object(&good, "available", |object| object["status"]["availableReplicas"] == 1);
    kubernetes.await_object(&done, "complete", |object| object["status"]["succeeded"] == 1);
    kubernetes.await_object(&failed, "failed", |object| object["status"]["failed"] == 1);
    for (name, outcome, reason) in [
        ("pull", "image-pull", "ImagePullBackOff"),
        ("crash", "crash-loop", "CrashLoopBackOff"),
        ("slow", "never-ready", "running"),
    ] {
        make(&kubernetes, &own, with_outcome(deployment(name, "1"), outcome));
        let pods = format!("/api/v1/namespaces/{own}/pods?labelSelector=app={name}");
        kubernetes.await_object(&pods, reason, |list| {
            list["items"][0]["status"]["containerStatuses"][0]["state"].to_string().contains(reason)
        });
    }
    kubernetes.kubectl(&["delete", "namespace", &own, "--timeout=60s"]);
}

#[test]
fn a_service_account_may_do_what_its_role_says_and_is_written_down() {
    let Some(kubernetes) = Kubernetes::shared() else { return };
    let own = namespace(&kubernetes);
    kubernetes.kubectl(&["create", "serviceaccount", "reader", "-n", &own]);
    kubernetes.kubectl(&[
        "create",
        "rolebinding",
        "reader",
        "--clusterrole=view",
        "-n",
        &own,
        &format!("--serviceaccount={own}:reader"),
    ]);
    let token = kubernetes.token(&own, "reader");
    let client = kedge_tests::lab::http::client();
    let proxy = kubernetes.proxy();
    let url = format!("https://{}/api/v1/namespaces/{own}/configmaps", proxy.address());
    let mut status = 0;
    // The authorizer learns of the binding a moment later.
    await_true("the role holds", SOON, || {
        status = client.get(&url).bearer_auth(&token).send().unwrap().status().as_u16();
        status == 200
    });
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    assert_eq!(client.post(&url).bearer_auth(&token).json(&body).send().unwrap().status().as_u16(), 403);
    let written = kubernetes.audited(&format!("{own}:reader"));
    assert!(written.iter().any(|one| one.verb == "create" && one.code == 403 && one.is_write()), "{written:?}");
    let seen = proxy.requests();
    assert!(seen.last().is_some_and(|request| request.method == "POST" && request.changes_objects()), "{seen:?}");

    let refusals = AtomicU32::new(0);
    proxy.judge(move |_| match refusals.fetch_add(1, Ordering::Relaxed) {
        0 => Verdict::Answer(429, Some(1), "{}".to_owned()),
        1 => Verdict::Break,
        _ => Verdict::Pass,
    });
    let ask = || client.get(&url).bearer_auth(&token).send();
    assert_eq!(ask().unwrap().status().as_u16(), 429);
    assert!(ask().is_err());
    assert_eq!(ask().unwrap().status().as_u16(), 200);
    proxy.cut();
    assert!(ask().is_err());
    proxy.mend();
    assert_eq!(ask().unwrap().status().as_u16(), 200);
}

#[test]
fn an_api_server_that_was_away_is_there_again_with_what_it_had() {
    let Some(mut kubernetes) = Kubernetes::start() else { return };
    let own = namespace(&kubernetes);
    kubernetes.control_plane().stop_api_server(Signal::SIGKILL);
    assert!(kubernetes.try_ask(Method::GET, "/version", None).is_none());
    kubernetes.control_plane().start_api_server();
    let good = make(&kubernetes, &own, deployment("good", "1"));
    kubernetes.await_object(&good, "available", |object| object["status"]["availableReplicas"] == 1);
}
