//! A small platform, written as people write it.

use std::sync::Arc;

use kedge_model::decode::{self, Options};
use kedge_model::{AssignmentId, Origin, Platform, Source};

pub const CLUSTER_TYPES: &str = r#"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: drone, labels: {region: east, edge: "true"}}
spec: {reconciler: rec, namespaceService: ns, configType: cfg}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata: {name: large, labels: {region: west}}
spec: {reconciler: rec, namespaceService: ns}
"#;

pub const TEMPLATES: &str = r#"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: rec}
spec:
  type: reconciler
  manifests: ["first: {{ .DeploymentTargetName }}\n", "", "second: {{ .Manifests.repo }}\n"]
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: ns}
spec: {type: namespace, manifests: ["{{ .Namespace }}"]}
---
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata: {name: cfg}
spec: {type: config, contentType: sh, manifests: ["{{ range $k, $v := .ConfigData }}{{ $k }}={{ $v }};{{ end }}"]}
"#;

pub const REGISTRATION: &str = r"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: WorkloadRegistration
metadata: {name: greeting}
spec: {workload: {repo: r, branch: main, path: .}, workspace: team}
";

pub const WORKLOAD: &str = r#"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Workload
metadata: {name: hello, labels: {family: force}}
spec:
  deploymentTargets:
  - {name: test, environment: dev, labels: {purpose: test, family: own}, manifests: {repo: here}}
  - {name: uat, environment: stage, labels: {purpose: uat}}
"#;

pub const POLICY: &str = r"
apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata: {name: everywhere}
spec:
  deploymentTargetSelector: {workspace: team, labelSelector: {matchLabels: {purpose: test}}}
  clusterTypeSelector: {labelSelector: {}}
";

pub fn read(platform: &mut Platform, file: &str, text: &str, application: Option<&str>) {
    let source = Arc::new(Source { repo: "test".to_owned(), revision: None });
    let origin = Origin { source, file: Arc::from(file), line: 0, column: 0 };
    let decoded = decode::objects(
        text.as_bytes(),
        &origin,
        &Options { application: application.map(str::to_owned), ..Options::default() },
    );
    for object in decoded.objects {
        platform.objects.insert(object.id(), Arc::new(object));
    }
    platform.broken.extend(decoded.broken);
    platform.problems.extend(decoded.problems);
}

pub fn platform_with(extra: &[&str]) -> Platform {
    let mut platform = Platform { environment: "dev".to_owned(), ..Platform::default() };
    for (file, text) in [
        ("types.yaml", CLUSTER_TYPES),
        ("templates.yaml", TEMPLATES),
        ("reg.yaml", REGISTRATION),
        ("policy.yaml", POLICY),
    ] {
        read(&mut platform, file, text, None);
    }
    read(&mut platform, "workload.yaml", WORKLOAD, Some("greeting"));
    for text in extra {
        read(&mut platform, "extra.yaml", text, None);
    }
    platform
}

pub fn config(name: &str, labels: &str, data: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{platform-config: \"true\"{labels}}}}}\ndata: {data}\n"
    )
}

pub fn id(cluster_type: &str, target: &str) -> AssignmentId {
    AssignmentId { cluster_type: Arc::from(cluster_type), target: Arc::from(target) }
}
