//! What people apply to bring the agent in: the manifests, and what `kedge token create --manifest` prints.

use std::path::Path;

use kedge_tests::lab::kubernetes::{Kubernetes, decoded};
use kedge_tests::lab::pod_agent::PodAgent;
use kedge_tests::world::harbour::manifests::Manifests;
use kedge_tests::world::harbour::{CLUSTER, CLUSTER_TYPE, Harbour, Terms};

const NAMESPACE: &str = "kedge-system";

/// The pods of the DaemonSet are allowed and run; the lab's node plays them.
fn await_pods(kubernetes: &Kubernetes) {
    let path = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/kedge-agent");
    kubernetes.await_object(&path, "its pods are ready", |object| {
        let status = &object["status"];
        status["desiredNumberScheduled"] == 1
            && status["numberReady"] == 1
            && status["observedGeneration"] == object["metadata"]["generation"]
    });
}

#[test]
fn manifests_of_both_modes_are_accepted_and_a_cluster_joins_by_what_the_command_prints() {
    let Some(kubernetes) = Kubernetes::start() else { return };
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/kubernetes/manifests");
    for folder in [manifests.clone(), manifests.join("observe")] {
        kubernetes.kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "-k",
            folder.to_str().expect("a plain path"),
        ]);
        await_pods(&kubernetes);
        kubernetes.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=90s"]);
    }

    let targets = [("shop", Manifests::web("1"))];
    let Some(mut harbour) = Harbour::prepare(kubernetes, &Terms::default(), &targets, |_, _| {}) else { return };
    let text = harbour.world.kedge.run(["token", "create", "-e", "dev", "--cluster-type", CLUSTER_TYPE, "--manifest"]);
    harbour.kubernetes.apply(&text);
    await_pods(&harbour.kubernetes);

    // The pod is kwok's; its program runs here, with the account, the rights and the token that it would have.
    let secret =
        harbour.kubernetes.get(&format!("/api/v1/namespaces/{NAMESPACE}/secrets/kedge-join-token")).expect("the token");
    let token = decoded(&secret["data"]["join-token"]);
    let account = harbour.kubernetes.token(NAMESPACE, "kedge-agent");
    let kubeconfig = harbour.kubernetes.kubeconfig_for(harbour.world.folder.path(), &account, harbour.proxy.address());
    let mut agent =
        PodAgent::prepare("pod", CLUSTER, &kubeconfig, NAMESPACE, token.trim()).expect("the program is there");
    agent.start();
    harbour.agents.push(agent);
    harbour.await_converged("shop");
}
