//! Argo CD's Application, with a status as its controller writes it.

use kedge_tests::lab::kubernetes::Kubernetes;
use kedge_tests::world::harbour::manifests::Manifests;
use kedge_tests::world::harbour::{Access, CHANGED_WITHIN, Harbour, Terms};
use serde_json::{Value, json};

use crate::quiet::assert_only_own_things_were_written;

const DEFINITION: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applications.argoproj.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: argoproj.io
  scope: Namespaced
  names: {kind: Application, plural: applications, singular: application, listKind: ApplicationList}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

const RECONCILER: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: {{ .DeploymentTargetName }}
  namespace: @ARGO@
spec:
  project: default
  source:
    repoURL: {{ .Manifests.repo }}
    targetRevision: {{ .Manifests.branch }}
    path: {{ .Manifests.path }}
  destination:
    server: https://kubernetes.default.svc
    namespace: {{ .Namespace }}
";

/// What Argo CD's controller writes.
fn status(sync: &str, health: &str, phase: &str, message: &str, revision: &str) -> Value {
    json!({"status": {
        "sync": {"status": sync, "revision": revision},
        "health": {"status": health},
        "operationState": {
            "phase": phase, "message": message, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z",
            "operation": {"sync": {"revision": revision}},
            "syncResult": {"revision": revision, "source": {"repoURL": "x"}},
        },
        "reconciledAt": "2026-01-01T00:00:05Z",
    }})
}

#[test]
fn an_application_is_reported_with_its_revision_health_and_message() {
    let Some(kubernetes) = Kubernetes::shared() else { return };
    let namespace = format!("argo-{}", kubernetes.unique());
    kubernetes.apply(DEFINITION);
    kubernetes.kubectl(&["wait", "--for=condition=Established", "crd/applications.argoproj.io", "--timeout=60s"]);
    kubernetes.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"));
    let reconciler = RECONCILER.replace("@ARGO@", &namespace);
    let terms = Terms { reconciler: Some(reconciler), access: Access::Observe, ..Terms::default() };
    let Some(mut harbour) = Harbour::prepare(kubernetes, &terms, &[("shop", Manifests::web("1"))], |_, _| {}) else {
        return;
    };
    harbour.add_agent();
    let name = harbour.assignment("shop");
    harbour.await_so("nothing of it is known", CHANGED_WITHIN, |harbour| {
        harbour.seen("shop").is_some_and(|seen| seen.condition != "Converged")
    });

    // Argo CD's own part: the published Application is there, and its controller says what it did.
    harbour.await_published("shop");
    harbour.world.sample.gitops.fetch();
    let text = harbour.world.sample.gitops.git(["show", &format!("origin/dev:drone/{name}/reconciler.yaml")]);
    harbour.kubernetes.apply(&text);
    let head = harbour.world.git.head("hello-gitops", "dev").unwrap();
    let write = |status: &Value| {
        let text = status.to_string();
        let arguments =
            ["patch", "applications.argoproj.io", &name, "--type=merge", "-p", &text, "--namespace", &namespace];
        harbour.kubernetes.kubectl(&arguments);
    };
    write(&status("Synced", "Healthy", "Succeeded", "successfully synced (all tasks run)", &head));
    harbour.await_so("the hub knows that it runs", CHANGED_WITHIN, |harbour| {
        harbour
            .seen("shop")
            .is_some_and(|seen| seen.condition == "Converged" && seen.whole.to_string().contains(&head[..7]))
    });
    let why = "one or more objects failed to apply, reason: admission webhook denied the request";
    write(&status("OutOfSync", "Degraded", "Failed", why, &head));
    harbour.await_so("the hub says Failed in Argo CD's own words", CHANGED_WITHIN, |harbour| {
        harbour.seen("shop").is_some_and(|seen| seen.condition == "Failed" && seen.message.contains("failed to apply"))
    });
    assert_only_own_things_were_written(&harbour);
}
