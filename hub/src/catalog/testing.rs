//! A platform with two tenants, secrets and a quarantine, for the tests of the catalog and of the API.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_api::environments::{PublishSummary, WaitingRemovals};
use kedge_api::findings::Finding;
use kedge_api::repositories::{RepositoryFailure, RepositorySummary};
use kedge_api::source::InputCommit;
use kedge_model::decode::{self, Options};
use kedge_model::{Object, Origin, Platform, Source};
use kedge_scheduler::{Change, Scheduler};

use super::CatalogNotes;

const PLATFORM: &str = r#"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Environment
metadata: {name: dev}
spec: {controlPlane: {repo: "https://git.example/platform/control-plane", branch: dev, path: .}}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: GitOpsRepo
metadata: {name: dev}
spec: {repo: "https://git.example/platform/gitops", branch: dev, path: .}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: drone, labels: {region: west, edge: "true"}}
spec: {reconciler: flux, namespaceService: ns}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: large, labels: {region: east}}
spec: {reconciler: missing, namespaceService: ns}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: flux}
spec: {type: reconciler, manifests: ["kind: A\nname: {{ .DeploymentTargetName }}"]}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: ns}
spec: {type: namespace, manifests: ["kind: N\nname: {{ .Namespace }}"]}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: functional-test}
spec:
  deploymentTargetSelector: {labelSelector: {matchLabels: {purpose: functional-test}}}
  clusterTypeSelector: {labelSelector: {matchLabels: {region: west}}}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: everywhere}
spec:
  deploymentTargetSelector: {workspace: harbour}
  clusterTypeSelector: {labelSelector: {matchLabels: {region: east}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: common, labels: {platform-config: "true"}}
data:
  REGION: nowhere
  DB_PASSWORD: hunter2
  PIN: "4711"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: west, labels: {platform-config: "true", region: west}}
data:
  REGION: west
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ConfigSchema
metadata: {name: pins}
spec: {schema: '{"properties": {"PIN": {"writeOnly": true}}}'}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: {name: hello}
spec: {workload: {repo: "https://git.example/harbour/hello", branch: main, path: .}, workspace: harbour}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: {name: spy}
spec: {workload: {repo: "https://git.example/secret/spy", branch: main, path: .}, workspace: intelligence}
"#;

/// A workload with one target.
fn workload(name: &str) -> String {
    format!(
        r#"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata: {{name: {name}, labels: {{team: {name}}}}}
spec:
  deploymentTargets:
  - name: functional-test
    labels: {{purpose: functional-test}}
    environment: dev
    manifests: {{repo: "https://git.example/{name}-gitops", branch: dev, path: .}}
"#
    )
}

pub fn objects(text: &str, repo: &str, owner: Option<&str>) -> Vec<Object> {
    let source = Arc::new(Source { repo: repo.to_owned(), revision: Some("dev@sha1:1f0e0d0c0b0a".to_owned()) });
    let file = Origin { source, file: Arc::from("all.yaml"), line: 0, column: 0 };
    let decoded = decode::objects(text.as_bytes(), &file, &Options::default());
    assert!(decoded.problems.is_empty(), "{:#?}", decoded.problems);
    let mut objects = decoded.objects;
    objects.iter_mut().for_each(|object| object.owner = owner.map(str::to_owned));
    objects
}

pub fn platform() -> Platform {
    let mut all = objects(PLATFORM, "https://git.example/platform/control-plane", None);
    all.extend(objects(&workload("hello"), "https://git.example/harbour/hello", Some("hello")));
    all.extend(objects(&workload("spy"), "https://git.example/secret/spy", Some("spy")));
    let objects = all.into_iter().map(|object| (object.id(), Arc::new(object))).collect();
    Platform { environment: "dev".to_owned(), objects, ..Platform::default() }
}

/// `drone/hello-functional-test`, `drone/spy-functional-test`, and `large/hello-functional-test` in quarantine.
pub fn scheduler() -> Scheduler {
    Scheduler::new(platform())
}

/// Another value of `REGION` in the west.
pub fn region(value: &str) -> Change {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: west, labels: {{platform-config: \"true\", region: west}}}}\n\
         data: {{REGION: {value}}}\n"
    );
    let object = objects(&text, "https://git.example/platform/control-plane", None).remove(0);
    Change::Upsert(Arc::new(object))
}

/// Another value of `REGION` that loses in the west, some lines further down.
pub fn overridden(value: &str) -> Change {
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: common, labels: {{platform-config: \"true\"}}}}\n\
         data:\n  # Two lines\n  # more.\n  REGION: {value}\n  DB_PASSWORD: hunter2\n  PIN: \"4711\"\n"
    );
    let object = objects(&text, "https://git.example/platform/control-plane", None).remove(0);
    Change::Upsert(Arc::new(object))
}

/// So many cluster types, each with as many targets; the labels of `region` are those of one cluster type.
pub fn large(side: usize) -> Platform {
    let mut platform = platform();
    let mut add = |text: String, repo: &str, owner: Option<&str>| {
        for object in objects(&text, repo, owner) {
            platform.objects.insert(object.id(), Arc::new(object));
        }
    };
    for number in 0..side {
        let control_plane = "https://git.example/platform/control-plane";
        add(
            format!(
                "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata: {{name: type-{number}, labels: {{all: yes-{number}, any: thing}}}}\nspec: {{reconciler: flux, namespaceService: ns}}\n---\n\
                 apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: type-{number}, labels: {{platform-config: \"true\", cluster-type: type-{number}}}}}\ndata: {{A: a-{number}, B: b, C: c, URL: 'https://{number}.example', SETTINGS: '{{x: 1, y: [1, 2]}}'}}\n"
            ),
            control_plane,
            None,
        );
        add(workload(&format!("w{number}")), &format!("https://git.example/w{number}"), Some("hello"));
    }
    add(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: SchedulingPolicy\nmetadata: {name: all}\nspec:\n  deploymentTargetSelector: {workspace: harbour}\n  clusterTypeSelector: {labelSelector: {matchLabels: {any: thing}}}\n".to_owned(),
        "https://git.example/platform/control-plane",
        None,
    );
    platform
}

pub fn finding(code: &str, message: &str) -> Finding {
    Finding {
        severity: "error".to_owned(),
        code: code.to_owned(),
        message: message.to_owned(),
        hint: None,
        origin: None,
        related: Vec::new(),
        stage: "pack".to_owned(),
    }
}

pub fn notes() -> CatalogNotes {
    let repository = |url: &str, failing| RepositorySummary {
        url: url.to_owned(),
        branches: BTreeMap::from([("main".to_owned(), "1f0e".to_owned())]),
        failing,
        ..RepositorySummary::default()
    };
    let failing = RepositoryFailure {
        error: "it doesn't answer".to_owned(),
        since: "2026-01-01T00:00:00Z".to_owned(),
        ..RepositoryFailure::default()
    };
    CatalogNotes {
        inputs: Some(vec![InputCommit { repo: "control-plane".to_owned(), commit: "1f0e".to_owned() }]),
        repositories: Some(vec![
            repository("https://git.example/harbour/hello", None),
            repository("https://git.example/secret/spy", Some(failing)),
        ]),
        published: Some(PublishSummary {
            outcome: "committed".to_owned(),
            commit: Some("abc".to_owned()),
            ..PublishSummary::default()
        }),
        waiting: Some(vec![WaitingRemovals {
            cluster_type: "drone".to_owned(),
            removed: vec!["drone/x".to_owned()],
            confirmed: 1,
        }]),
        pack_quarantines: Some(BTreeMap::new()),
        notices: Some(vec![finding("HandEdit", "drone/hello-functional-test/namespace.yaml was edited by hand")]),
    }
}
