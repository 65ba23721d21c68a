//! What people apply to bring the agent in: the manifests, and what `kedge token create --manifest` prints. And what becomes of a cluster
//! that has the manifests of an earlier version.

use std::path::{Path, PathBuf};

use kedge_tests::lab::kubernetes::{Kubernetes, decoded};
use kedge_tests::lab::pod_agent::PodAgent;
use kedge_tests::world::harbour::manifests::{Manifests, config_map};
use kedge_tests::world::harbour::{CLUSTER, CLUSTER_TYPE, Harbour, Terms};
use serde_json::json;

const NAMESPACE: &str = "kedge-system";
/// Every node's pod had the rights to apply.
const EARLIER: &str = include_str!("fixtures/one-daemon-set.yaml");

/// The pods are allowed and run; the lab's node plays them.
fn await_pods(kubernetes: &Kubernetes, caches: bool) {
    let apps = format!("/apis/apps/v1/namespaces/{NAMESPACE}");
    let current =
        |object: &serde_json::Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
    kubernetes.await_object(&format!("{apps}/deployments/kedge-applier"), "its pods are ready", |object| {
        object["status"]["readyReplicas"] == 2 && current(object)
    });
    if caches {
        kubernetes.await_object(&format!("{apps}/daemonsets/kedge-agent"), "its pods are ready", |object| {
            let status = &object["status"];
            let one = |field: &str| status[field] == 1;
            one("desiredNumberScheduled") && one("numberReady") && one("updatedNumberScheduled") && current(object)
        });
    }
}

/// With the account, the rights and the token that a pod would have.
fn agent(harbour: &Harbour, name: &str, token: &str) -> PodAgent {
    let account = harbour.kubernetes.token(NAMESPACE, "kedge-agent");
    let kubeconfig: PathBuf =
        harbour.kubernetes.kubeconfig_for(harbour.world.folder.path(), &account, harbour.proxy.address());
    let mut agent = PodAgent::prepare(name, CLUSTER, &kubeconfig, NAMESPACE, token).expect("the program is there");
    agent.start();
    agent
}

fn manifest(harbour: &Harbour) -> String {
    harbour.world.kedge.run(["token", "create", "-e", "dev", "--cluster-type", CLUSTER_TYPE, "--manifest"])
}

/// What somebody may do, a line each.
fn rights(kubernetes: &Kubernetes, account: &str) -> Vec<String> {
    let user = format!("--as=system:serviceaccount:{NAMESPACE}:{account}");
    let listed = kubernetes.kubectl(&["auth", "can-i", "--list", "-n", NAMESPACE, &user]);
    listed.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn manifests_of_both_modes_are_accepted_and_a_cluster_joins_by_what_the_command_prints() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes/manifests");
    for (folder, caches) in [(manifests.clone(), true), (manifests.join("observe"), false)] {
        kubernetes.kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "-k",
            folder.to_str().expect("a plain path"),
        ]);
        await_pods(&kubernetes, caches);
        kubernetes.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=90s"]);
    }

    let targets = [("shop", Manifests::web("1"))];
    let Some(mut harbour) = Harbour::prepare(kubernetes, &Terms::default(), &targets, |_, _| {}) else { return };
    harbour.kubernetes.apply(&manifest(&harbour));
    await_pods(&harbour.kubernetes, true);

    // What anybody who has logged in may do, and nothing else: to ask about oneself, and to look at what is served.
    let own = rights(&harbour.kubernetes, "kedge-cache");
    let nothing = |line: &String| line.starts_with("selfsubject") || line.trim_start().starts_with("[/");
    assert!(own.len() > 3 && own.iter().all(nothing), "{own:#?}");
    assert!(rights(&harbour.kubernetes, "kedge-agent").iter().any(|line| line.starts_with("secrets")), "who has some");

    // The pod is kwok's; its program runs here.
    let secret =
        harbour.kubernetes.get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/kedge-join-token")).expect("the token");
    let token = decoded(&secret["data"]["join-token"]);
    let agent = agent(&harbour, "pod", token.trim());
    harbour.agents.push(agent);
    harbour.await_converged("shop");
}

#[test]
fn a_cluster_with_the_earlier_manifests_keeps_identity_and_inventory_and_loses_the_rights_of_its_nodes() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let first = Manifests::web("1").with(&config_map("old", "key", "value"));
    let terms = Terms::default().as_itself();
    let Some(mut harbour) = Harbour::prepare(kubernetes, &terms, &[("shop", first)], |_, _| {}) else { return };
    let apply = |harbour: &Harbour, text: &str| {
        let ran = harbour.kubernetes.try_kubectl(&["apply", "-f", "-"], text);
        assert!(ran.ok, "{}\n{}", ran.stdout, ran.stderr);
    };
    apply(&harbour, EARLIER);
    let may_all = |harbour: &Harbour| {
        let user = format!("--as=system:serviceaccount:{NAMESPACE}:kedge-agent");
        harbour.kubernetes.try_kubectl(&["auth", "can-i", "*", "*", "-A", &user], "").ok
    };
    assert!(may_all(&harbour));
    let token = harbour.world.token(CLUSTER_TYPE, &["--uses", "10"]).to_string();
    let before = agent(&harbour, "kedge-agent-7xk2p", &token);
    harbour.agents.push(before);
    harbour.await_converged("shop");
    let id = harbour.world.api.get(&format!("/api/v1/clusters/{CLUSTER}"))["id"].clone();
    harbour.agents[0].kill();

    let text = manifest(&harbour);
    apply(&harbour, &text);
    await_pods(&harbour.kubernetes, true);
    let caches = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/kedge-agent");
    let pod = harbour.kubernetes.get(&caches).expect("the caches")["spec"]["template"]["spec"].clone();
    assert_eq!(pod["serviceAccountName"], "kedge-cache");
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert!(!pod["volumes"].to_string().contains("kedge-join-token"), "{pod:#}");
    assert_eq!(pod["containers"].as_array().map(Vec::len), Some(1));
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/kedge-agent-apply";
    harbour.kubernetes.await_object(role, "it has the rules that are aggregated", |object| {
        object["rules"].to_string().contains("impersonate") && !object["rules"].to_string().contains("[\"*\"]}")
    });
    assert!(!may_all(&harbour));

    let after = agent(&harbour, "kedge-applier-1", &token);
    harbour.agents.push(after);
    harbour.push("shop", &Manifests::web("2"));
    harbour.await_converged("shop");
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"));
    assert!(
        !harbour.kubernetes.exists(&harbour.path("shop", "/api/v1", "configmaps", "old")),
        "the inventory is known"
    );
    let clusters = harbour.world.api.list("/api/v1/clusters?environment=dev");
    assert_eq!(json!([clusters.len(), clusters[0]["id"]]), json!([1, id]), "it didn't join again");
}
