//! Who applies an application's objects, and what that one can't do: the account that the agent makes in the namespace.

use kedge_tests::lab::kubernetes::Kubernetes;
use kedge_tests::world::harbour::manifests::{
    ID, Manifests, config_map, deployment, secret, widget, widget_definition, widget_group,
};
use kedge_tests::world::harbour::{Harbour, Terms};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

fn binding(kind: &str, name: &str, role: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    })
}

fn role(name: &str, group: &str, resource: &str, verb: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": [resource], "verbs": [verb]}],
    })
}

/// What people deploy, beyond the web server: all of it is in Kubernetes' own `admin`.
fn honest(version: &str) -> Manifests {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}});
    let mut own = binding("RoleBinding", "reader", "view");
    own["subjects"] = json!([{"kind": "ServiceAccount", "name": "reader"}]);
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web"},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
    });
    let all = [
        config_map("settings", "key", "value"),
        secret("password", "key", "value"),
        role("reads", "", "configmaps", "get"),
        account,
        own,
        scaler,
        budget,
        policy,
    ];
    all.iter().fold(Manifests::web(version), Manifests::with)
}

#[test]
fn a_workload_gets_no_more_rights_than_its_namespaces_account_has() {
    let targets = ["honest", "binds", "grants", "wide", "elsewhere", "takes"].map(|target| (target, honest("1")));
    let Some(harbour) = Harbour::start_with(&Terms::default().as_itself(), &targets) else { return };
    for (target, _) in &targets {
        harbour.await_converged(target);
    }
    let user = format!("system:serviceaccount:{}:kedge-workload", harbour.namespace("honest"));
    let asked = harbour.kubernetes.audited(&harbour.own_namespace());
    let path = format!("/namespaces/{}/deployments/", harbour.namespace("honest"));
    let applied: Vec<_> = asked.iter().filter(|one| one.verb == "patch" && one.uri.contains(&path)).collect();
    assert!(!applied.is_empty() && applied.iter().all(|one| one.impersonated.as_deref() == Some(&user)), "{applied:?}");

    let mut theirs = secret("theirs", "key", "value");
    theirs["metadata"]["namespace"] = json!(harbour.own_namespace());
    let mut account = binding("RoleBinding", "kedge-workload-more", "view");
    account["subjects"] = json!([]);
    harbour.push_all(&[
        ("honest", &honest("2")),
        ("binds", &honest("2").with(&binding("RoleBinding", "all", "cluster-admin"))),
        ("grants", &honest("2").with(&role("all", "*", "*", "*"))),
        ("wide", &honest("2").with(&binding("ClusterRoleBinding", &format!("all-{ID}"), "cluster-admin"))),
        ("elsewhere", &honest("2").with(&theirs)),
        ("takes", &honest("2").with(&account)),
    ]);
    for (target, reason, words) in [
        ("binds", "Forbidden", ["RoleBinding", "can't give rights that it doesn't have itself"]),
        ("grants", "Forbidden", ["Role", "kedge.dev/aggregate-to-workload"]),
        ("wide", "ClusterScope", ["ClusterRoleBinding", "scope: cluster"]),
        ("elsewhere", "NamespaceEscape", ["Secret theirs", "confined to"]),
        ("takes", "BadPackage", ["kedge-workload-more", "choose another name"]),
    ] {
        let message = harbour.await_failed(target, reason);
        assert!(words.iter().all(|word| message.contains(word)), "{target}: {words:?} in: {message}");
        assert_eq!(harbour.version(target, "web").as_deref(), Some("1"), "{target} goes on as it was");
    }
    let made = |target: &str, plural: &str| {
        harbour.kubernetes.exists(&harbour.path(target, &format!("/apis/{RBAC}/v1"), plural, "all"))
    };
    assert!(!made("binds", "rolebindings") && !made("grants", "roles"));
    let wide = format!("/apis/{RBAC}/v1/clusterrolebindings/all-{}", harbour.id());
    assert!(!harbour.kubernetes.exists(&wide));
    let own = format!("/api/v1/namespaces/{}/secrets/theirs", harbour.own_namespace());
    assert!(!harbour.kubernetes.exists(&own));
    harbour.await_converged("honest");
    assert_eq!(harbour.version("honest", "web").as_deref(), Some("2"));
}

#[test]
fn a_kind_that_workloads_lack_is_named_with_its_rule_and_a_label_allows_it() {
    let terms = Terms::delivery("rollback: never").as_itself();
    let Some(harbour) = Harbour::start_with(&terms, &[("shop", Manifests::web("1"))]) else { return };
    harbour.await_converged("shop");
    let group = widget_group(harbour.id());
    harbour.kubernetes.apply(&widget_definition().to_string().replace(ID, harbour.id()));
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    harbour.kubernetes.await_object(&definition, "established", |object| {
        object["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
    });
    harbour.push("shop", &Manifests::web("2").with(&widget("one")));
    let message = harbour.await_failed("shop", "Forbidden");
    let rule = format!("apiGroups: [\"{group}\"], resources: [widgets]");
    for words in [rule.as_str(), "cannot patch", "kedge.dev/aggregate-to-workload"] {
        assert!(message.contains(words), "{words} in: {message}");
    }

    harbour.kubernetes.apply(&format!(
        "apiVersion: {RBAC}/v1\nkind: ClusterRole\nmetadata:\n  name: widgets-{}\n  labels: {{kedge.dev/aggregate-to-workload: \
         \"true\"}}\nrules:\n  - apiGroups: [{group:?}]\n    resources: [widgets]\n    verbs: [get, list, watch, create, patch, delete]\n",
        harbour.id()
    ));
    let role = format!("/apis/{RBAC}/v1/clusterroles/kedge-workload");
    harbour.kubernetes.await_object(&role, "takes up the rule", |object| object["rules"].to_string().contains(&group));
    harbour.push("shop", &Manifests::web("3").with(&widget("one")));
    harbour.await_converged("shop");
    assert!(harbour.kubernetes.exists(&harbour.path("shop", &format!("/apis/{group}/v1"), "widgets", "one")));
    harbour.push("shop", &Manifests::web("4"));
    harbour.await_converged("shop");
    assert!(
        !harbour.kubernetes.exists(&harbour.path("shop", &format!("/apis/{group}/v1"), "widgets", "one")),
        "pruned"
    );
}

/// A Delivery into a namespace that somebody else made.
fn into(namespace: &str) -> String {
    format!(
        "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  name: {{{{ .DeploymentTargetName }}}}\nspec:\n  source:\n    repo: \
         {{{{ .Manifests.repo }}}}\n    ref:\n      branch: {{{{ .Manifests.branch }}}}\n    path: {{{{ .Manifests.path }}}}\n  to: \
         kubernetes\n  namespace: {namespace}\n  timeout: 20s\n  soak: 1s\n"
    )
}

#[test]
fn a_namespace_of_somebody_else_is_used_only_when_its_label_says_so() {
    let Some(kubernetes) = Kubernetes::shared() else { return };
    let theirs = format!("theirs-{}", kubernetes.unique());
    kubernetes.kubectl(&["create", "namespace", &theirs]);
    let terms = Terms { reconciler: Some(into(&theirs)), ..Terms::default() };
    let mut web = deployment("web", "1");
    // The platform's configuration is in the assignment's own namespace.
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] = json!([]);
    let targets = [("shop", Manifests::default().with(&web))];
    let Some(mut harbour) = Harbour::prepare(kubernetes, &terms, &targets, |_, _| {}) else { return };
    harbour.add_agent();
    let message = harbour.await_failed("shop", "Forbidden");
    for words in [theirs.as_str(), "kedge.dev/workloads=shared", "kedge.dev/assignment="] {
        assert!(message.contains(words), "{words} in: {message}");
    }
    let account = format!("/api/v1/namespaces/{theirs}/serviceaccounts/kedge-workload");
    assert!(!harbour.kubernetes.exists(&account));

    harbour.kubernetes.kubectl(&["label", "namespace", &theirs, "kedge.dev/workloads=shared"]);
    web["spec"]["template"]["spec"]["containers"][0]["image"] = json!("registry.example.com/app:2");
    harbour.push("shop", &Manifests::default().with(&web));
    harbour.await_converged("shop");
    assert!(harbour.kubernetes.exists(&format!("/apis/apps/v1/namespaces/{theirs}/deployments/web")));
    harbour.kubernetes.kubectl(&["delete", "namespace", &theirs, "--wait=false"]);
}

#[test]
fn the_agent_itself_is_no_administrator_and_its_account_is_made_again_when_it_is_taken_away() {
    let Some(harbour) = Harbour::start_with(&Terms::default().as_itself(), &[("shop", Manifests::web("1"))]) else {
        return;
    };
    harbour.await_converged("shop");
    let agent = format!("--as=system:serviceaccount:{}:kedge-agent", harbour.own_namespace());
    let may = |words: &[&str]| {
        let arguments: Vec<&str> = ["auth", "can-i"].iter().chain(words).copied().chain([agent.as_str()]).collect();
        harbour.kubernetes.try_kubectl(&arguments, "").ok
    };
    for refused in [
        &["*", "*", "-A"][..],
        &["create", "deployments", "-A"],
        &["create", "pods", "-n", "kube-system"],
        &["create", "clusterrolebindings"],
        &["bind", "clusterroles/cluster-admin"],
        &["escalate", "clusterroles"],
        &["impersonate", "serviceaccounts/default", "-n", "kube-system"],
        &["impersonate", "users"],
        &["impersonate", "groups/system:masters"],
        &["create", "serviceaccounts", "--subresource=token", "-n", "kube-system"],
        &["get", "nodes", "--subresource=proxy"],
    ] {
        assert!(!may(refused), "{refused:?}");
    }
    assert!(may(&["create", "namespaces"]) && may(&["bind", "clusterroles/admin"]), "what it needs");

    let namespace = harbour.namespace("shop");
    harbour.kubernetes.kubectl(&["delete", "rolebinding", "kedge-workload", "-n", &namespace]);
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"));
}
