//! Flux brings what the hub published; the agent tells the hub what became of it.

use std::fs;

use kedge_tests::lab::flux::Flux;
use kedge_tests::lab::kubernetes::Kubernetes;
use kedge_tests::world::harbour::manifests::Manifests;
use kedge_tests::world::harbour::{Access, CHANGED_WITHIN, Harbour, Terms};

use crate::quiet::assert_only_own_things_were_written;

/// What the cluster type's reconciler template writes for every assignment.
const RECONCILER: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: {{ .DeploymentTargetName }}
  namespace: @FLUX@
spec:
  interval: 2s
  url: {{ .Manifests.repo }}
  ref:
    branch: {{ .Manifests.branch }}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: {{ .DeploymentTargetName }}
  namespace: @FLUX@
spec:
  interval: 5s
  retryInterval: 2s
  timeout: 20s
  path: {{ .Manifests.path }}
  prune: true
  wait: true
  targetNamespace: {{ .Namespace }}
  sourceRef:
    kind: GitRepository
    name: {{ .DeploymentTargetName }}
";

/// What a platform team makes once by hand: the cluster follows its type's folder of the environment's branch.
fn follow_the_platform(harbour: &Harbour, namespace: &str) {
    let url = harbour.world.git.url("gitops");
    harbour.kubernetes.apply(&format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: platform, namespace: {namespace}}}\nspec: \
         {{interval: 2s, url: {url:?}, ref: {{branch: dev}}}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
         metadata: {{name: platform, namespace: {namespace}}}\nspec: {{interval: 5s, retryInterval: 2s, path: ./drone, prune: true, \
         sourceRef: {{kind: GitRepository, name: platform}}}}\n"
    ));
}

/// What Flux itself says.
fn flux_says(harbour: &Harbour, namespace: &str, target: &str) -> (String, String, String) {
    let name = harbour.assignment(target);
    let path = format!("/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{namespace}/kustomizations/{name}");
    let object = harbour.kubernetes.get(&path).unwrap_or_default();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready").cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (text(&ready["status"]), text(&ready["message"]), text(&object["status"]["lastAppliedRevision"]))
}

#[test]
fn flux_brings_what_the_hub_published_and_the_agent_reports_the_same_revision_and_its_failure() {
    let Some(kubernetes) = Kubernetes::shared() else { return };
    let namespace = format!("flux-{}", kubernetes.unique());
    let Some(_flux) = Flux::start(&kubernetes, &namespace) else { return };
    let reconciler = RECONCILER.replace("@FLUX@", &namespace);
    let terms = Terms { reconciler: Some(reconciler), access: Access::Observe, ..Terms::default() };
    let targets = [("shop", Manifests::web("1"))];
    let Some(mut harbour) = Harbour::prepare(kubernetes, &terms, &targets, |_, _| {}) else { return };
    follow_the_platform(&harbour, &namespace);
    harbour.add_agent();
    harbour.await_so("Flux made the Deployment and it is available", CHANGED_WITHIN, |harbour| {
        harbour.deployment("shop", "web").is_some_and(|web| web["status"]["availableReplicas"] == 1)
    });
    harbour.await_so("the hub knows that it runs", CHANGED_WITHIN, |harbour| {
        harbour.seen("shop").is_some_and(|seen| seen.condition == "Converged")
    });
    let head = harbour.world.git.head("hello-gitops", "dev").unwrap();
    let (_, _, revision) = flux_says(&harbour, &namespace, "shop");
    assert!(revision.contains(&head), "{revision} is {head}");
    let seen = harbour.seen("shop").unwrap().whole.to_string();
    assert!(seen.contains(&head[..7]), "the same revision: {seen}");

    // The next commit of the application comes by Flux alone.
    harbour.push_observed("shop", &Manifests::web("2"));
    harbour.await_version("shop", "web", "2");
    let head = harbour.world.git.head("hello-gitops", "dev").unwrap();
    harbour.await_so("the hub knows the new revision", CHANGED_WITHIN, |harbour| {
        let seen = harbour.seen("shop").unwrap();
        seen.condition == "Converged" && seen.whole.to_string().contains(&head[..7])
    });

    // A broken commit: what Flux says of it is what the hub says.
    let broken = Manifests::web("3")
        .file("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: [not, a, map]\n");
    harbour.push_observed("shop", &broken);
    harbour.await_so("the hub says Failed in Flux's own words", CHANGED_WITHIN, |harbour| {
        let (status, message, _) = flux_says(harbour, &namespace, "shop");
        let first = message.split(['\n', ':']).next().unwrap_or_default().trim().to_owned();
        let seen = harbour.seen("shop").unwrap();
        status == "False" && !first.is_empty() && seen.condition == "Failed" && seen.message.contains(&first)
    });
    eprintln!("the hub says: {:?}", harbour.seen("shop").unwrap());
    assert_eq!(harbour.version("shop", "web").as_deref(), Some("2"), "what runs stays");
    assert_only_own_things_were_written(&harbour);
    assert!(fs::metadata(harbour.agents[0].root()).is_ok());
}
