//! A whole control plane of real repositories for tests: main with templates and registrations, an environment branch,
//! an application.

use std::path::Path;

use crate::git::Mirrors;
use crate::git::testing::{Remote, settings, store};
use crate::store::Store;

use super::PlatformReader;

#[derive(Debug)]
pub struct Scene {
    pub root: tempfile::TempDir,
    pub store: Store,
    pub control_plane: Remote,
    pub app: Remote,
    pub gitops: Remote,
}

impl Scene {
    pub async fn new() -> Scene {
        let root = tempfile::tempdir().unwrap();
        let control_plane = Remote::new(root.path(), "control-plane");
        let app = Remote::new(root.path(), "app");
        let gitops = Remote::new(root.path(), "gitops");
        let store = store(root.path()).await;
        let scene = Scene { root, store, control_plane, app, gitops };
        scene.app.commit("main", &[("workload/workload.yaml", &workload("hello", &["dev"]))]);
        scene.gitops.commit("dev", &[("README.md", "gitops")]);
        scene.main(&[]);
        scene.dev(&[]);
        scene
    }

    /// A commit on main with these files beside the usual ones; an empty text takes one away.
    pub fn main(&self, files: &[(&str, &str)]) -> String {
        let registration = registration("hello", &self.app.path());
        let environment = environment("dev", &self.control_plane.path(), "dev");
        self.control_plane.commit(
            "main",
            &usual(
                &[
                    (".environments/dev.yaml", &environment),
                    ("templates/all.yaml", TEMPLATES),
                    ("registrations/hello.yaml", &registration),
                ],
                files,
            ),
        )
    }

    pub fn dev(&self, files: &[(&str, &str)]) -> String {
        let base = base("main", &self.control_plane.path(), "main", None);
        let gitops = gitops("dev", &self.gitops.path(), "dev");
        self.control_plane.commit(
            "dev",
            &usual(
                &[
                    ("base-repo.yaml", &base),
                    ("gitops-repo.yaml", &gitops),
                    ("cluster-types/drone.yaml", CLUSTER_TYPE),
                    ("policies/all.yaml", POLICY),
                    ("configs/region.yaml", &config("region", "REGION", "west")),
                ],
                files,
            ),
        )
    }

    pub fn mirrors(&self) -> Mirrors {
        let settings = settings(&self.control_plane.path());
        Mirrors::new(&settings, self.root.path().join("mirrors"), self.store.clone()).unwrap()
    }

    pub fn reader(&self, mirrors: &Mirrors) -> PlatformReader {
        PlatformReader::new(&settings(&self.control_plane.path()), mirrors.clone(), self.store.clone())
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }
}

fn usual<'a>(usual: &[(&'a str, &'a str)], files: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let kept = usual.iter().filter(|(path, _)| !files.iter().any(|(other, _)| other == path));
    kept.chain(files.iter().filter(|(_, text)| !text.is_empty())).copied().collect()
}

pub const TEMPLATES: &str = "apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: reconciler}
spec:
  type: reconciler
  manifests:
  - |
    repo: {{ .Manifests.repo }}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: namespace}
spec:
  type: namespace
  manifests:
  - |
    kind: Namespace
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: config}
spec:
  type: config
  manifests:
  - |
    {{ toYaml .ConfigData }}
";

pub const CLUSTER_TYPE: &str = "apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: drone, labels: {size: small}}
spec: {reconciler: reconciler, namespaceService: namespace, configType: config}
";

pub const POLICY: &str = "apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: all}
spec:
  deploymentTargetSelector: {labelSelector: {matchLabels: {edge: \"true\"}}}
  clusterTypeSelector: {labelSelector: {matchLabels: {size: small}}}
";

pub fn environment(name: &str, repo: &str, branch: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Environment\nmetadata: {{name: {name}}}\nspec: {{controlPlane: {{repo: {repo}, branch: {branch}, path: .}}}}\n"
    )
}

pub fn base(name: &str, repo: &str, branch: &str, commit: Option<&str>) -> String {
    let commit = commit.map(|commit| format!(", commit: {commit}")).unwrap_or_default();
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata: {{name: {name}}}\nspec: {{repo: {repo}, branch: {branch}, path: .{commit}}}\n"
    )
}

pub fn gitops(name: &str, repo: &str, branch: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: GitOpsRepo\nmetadata: {{name: {name}}}\nspec: {{repo: {repo}, branch: {branch}, path: .}}\n"
    )
}

pub fn registration(name: &str, repo: &str) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {{name: {name}}}\nspec: {{workload: {{repo: {repo}, branch: main, path: workload}}, workspace: team}}\n"
    )
}

pub fn workload(name: &str, environments: &[&str]) -> String {
    let mut text = format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {{name: {name}}}\nspec:\n  deploymentTargets:\n"
    );
    for environment in environments {
        text.push_str(&format!(
            "  - name: {environment}\n    labels: {{edge: \"true\"}}\n    environment: {environment}\n    manifests: {{repo: https://h/x, branch: {environment}, path: .}}\n"
        ));
    }
    text
}

pub fn config(name: &str, key: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{platform-config: \"true\"}}}}\ndata: {{{key}: \"{value}\"}}\n"
    )
}
