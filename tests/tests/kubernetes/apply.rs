//! What is applied, how, in which order, and what the hub knows of it.

use kedge_tests::lab::kubernetes::Request;
use kedge_tests::world::harbour::manifests::{
    ID, Manifests, annotated, config_map, widget, widget_definition, widget_group,
};
use kedge_tests::world::harbour::{CHANGED_WITHIN, Harbour, Terms};
use serde_json::{Value, json};

#[test]
fn both_packages_are_applied_as_who_they_should_be_and_the_hub_knows_what_runs() {
    let Some(harbour) = Harbour::start(&[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    let (assignment, namespace) = (harbour.assignment("shop"), harbour.namespace("shop"));
    let web = harbour.deployment("shop", "web").unwrap();
    assert_eq!(web["metadata"]["labels"]["kedge.dev/assignment"], assignment.as_str());
    assert_eq!(web["metadata"]["annotations"]["kedge.dev/assignment"], assignment.as_str());
    assert!(web["spec"]["template"]["metadata"]["labels"].get("kedge.dev/assignment").is_none(), "{web:#}");
    let managers = web["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|one| one["manager"] == "kedge" && one["operation"] == "Apply"), "{managers:?}");
    assert_eq!(web["status"]["availableReplicas"], 1);

    let get = |path: String| harbour.kubernetes.get(&path).unwrap_or_else(|| panic!("{path}"));
    let made = get(format!("/api/v1/namespaces/{namespace}"));
    assert_eq!(made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let settings = get(harbour.path("shop", "/api/v1", "configmaps", "platform-config"));
    assert_eq!(settings["data"]["CLUSTER_NAME"], "Drone");
    for (api, plural, name) in [
        ("/api/v1", "serviceaccounts", "deployer"),
        ("/api/v1", "resourcequotas", "workspace"),
        ("/api/v1", "limitranges", "workspace"),
        ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", "deployer"),
        ("/apis/networking.k8s.io/v1", "networkpolicies", "workspace"),
        ("/api/v1", "services", "web"),
    ] {
        get(harbour.path("shop", api, plural, name));
    }

    let deployer = format!("system:serviceaccount:{namespace}:deployer");
    let asked = harbour.kubernetes.audited(&harbour.own_namespace());
    let of = |plural: &str| {
        let path = format!("/namespaces/{namespace}/{plural}/");
        asked.iter().filter(|one| one.verb == "patch" && one.uri.contains(&path)).collect::<Vec<_>>()
    };
    let (workload, platform) = (of("deployments"), of("configmaps"));
    assert!(
        !workload.is_empty() && workload.iter().all(|one| one.impersonated.as_deref() == Some(&deployer)),
        "{workload:?}"
    );
    assert!(!platform.is_empty() && platform.iter().all(|one| one.impersonated.is_none()), "{platform:?}");

    let seen = harbour.seen("shop").unwrap().whole;
    assert_eq!(seen["running"], seen["desired"], "{seen:#}");
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"));
    let local = harbour.agents[0].status().expect("the pod's own status");
    assert_eq!(local["assignments"][0]["condition"], "Converged", "{local:#}");
}

/// Which object a write of the agent is about: the last words of the path, without the query.
fn subject(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    let words: Vec<&str> = path.rsplit('/').take(2).collect();
    words.into_iter().rev().collect::<Vec<_>>().join("/")
}

/// A webhook that is asked about nothing.
fn webhook() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("hook-{ID}")},
        "webhooks": [{
            "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:9/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nobody"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    })
}

#[test]
fn a_definition_and_its_object_in_one_package_are_applied_in_the_order_that_they_need() {
    let manifests = Manifests::web("1")
        .with(&widget("one"))
        .with(&widget_definition())
        .with(&webhook())
        .with(&config_map("settings", "key", "value"));
    let terms = Terms::delivery("scope: cluster").as_itself();
    let Some(harbour) = Harbour::start_with(&terms, &[("shop", manifests)]) else { return };
    harbour.await_converged("shop");
    let group = widget_group(harbour.id());
    assert!(harbour.kubernetes.exists(&harbour.path("shop", &format!("/apis/{group}/v1"), "widgets", "one")));
    let writes: Vec<String> =
        harbour.proxy.requests().iter().filter(|one| one.changes_objects()).map(subject).collect();
    let at = |what: &str| {
        writes.iter().position(|subject| subject.contains(what)).unwrap_or_else(|| panic!("{what} in {writes:?}"))
    };
    let (namespace, definition, settings) =
        (harbour.namespace("shop"), at("customresourcedefinitions/"), at("configmaps/settings"));
    assert_eq!(at(&format!("namespaces/{namespace}")), 0, "{writes:?}");
    let rest = [at("deployments/web"), at("services/web"), at("widgets/one")];
    let hook = at("validatingwebhookconfigurations/");
    assert!(definition < settings && rest.iter().all(|one| settings < *one && *one < hook), "{writes:?}");
}

#[test]
fn only_what_changed_is_applied_again() {
    let manifests = Manifests::web("1").with(&config_map("settings", "key", "value"));
    let Some(harbour) = Harbour::start(&[("shop", manifests.clone())]) else { return };
    harbour.await_converged("shop");
    harbour.proxy.forget_requests();
    harbour.push("shop", &manifests.with(&config_map("settings", "key", "another")));
    harbour.await_converged("shop");
    let writes: Vec<String> =
        harbour.proxy.requests().iter().filter(|one| one.changes_objects()).map(subject).collect();
    assert_eq!(writes, ["configmaps/settings"]);
}

#[test]
fn a_restart_from_the_hub_rolls_the_pods_and_nothing_else() {
    let manifests = Manifests::web("1").with(&annotated(config_map("settings", "key", "value"), "note", "mine"));
    let Some(harbour) = Harbour::start(&[("shop", manifests)]) else { return };
    harbour.await_converged("shop");
    let settings = harbour.path("shop", "/api/v1", "configmaps", "settings");
    let before = harbour.kubernetes.get(&settings).unwrap()["metadata"]["resourceVersion"].clone();
    harbour.world.kedge.run(["restart", "-e", "dev", "--workload", "hello", "--reason", "a leak"]);
    harbour.await_so("the pods are rolled", CHANGED_WITHIN, |harbour| {
        let web = harbour.deployment("shop", "web").unwrap();
        web["spec"]["template"]["metadata"]["annotations"]["kedge.dev/restart"] == "1"
    });
    harbour.await_converged("shop");
    assert_eq!(harbour.kubernetes.get(&settings).unwrap()["metadata"]["resourceVersion"], before);
}
