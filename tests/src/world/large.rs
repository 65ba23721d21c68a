//! The sample grown large, for measurements: many cluster types, many targets of one application, every target on every type.

use std::fmt::Write as _;
use std::fs;

use super::sample::Sample;

/// The file whose one value touches one assignment.
pub const ONE_VALUE: &str = "configs/one-value.yaml";

/// The cluster type and the target that this value is for.
pub const CLUSTER_TYPE: &str = "type-007";
pub const TARGET: &str = "hello-target-007";

/// ConfigMaps besides the sample's own: a quarter for all, the others by region and group.
const CONFIG_MAPS: usize = 40;

impl Sample {
    /// Leaves only the environment dev, with `side` cluster types and `side` targets: their product is the assignments.
    pub fn grow(&self, side: usize) {
        let main = self.grow_main();
        self.grow_application(side);
        let plane = &self.control_plane;
        plane.switch("dev");
        for folder in ["cluster-types", "scheduling", "configs"] {
            plane.remove(folder);
        }
        let base = fs::read_to_string(plane.path("base-repo.yaml")).unwrap();
        let commit = base.lines().find(|line| line.trim_start().starts_with("commit:")).expect("it names one");
        plane.write("base-repo.yaml", &base.replace(commit, &format!("  commit: \"{main}\"")));
        for index in 0..side {
            plane.write(&format!("cluster-types/type-{index:03}.yaml"), &cluster_type(index));
        }
        for index in 0..CONFIG_MAPS {
            plane.write(&format!("configs/config-{index:02}.yaml"), &config_map(index));
        }
        plane.write("scheduling/everything.yaml", EVERYTHING);
        plane.write(ONE_VALUE, &one_value("first"));
        plane.commit("Grow");
        plane.push("dev");
    }

    fn grow_main(&self) -> String {
        let plane = &self.control_plane;
        plane.switch("main");
        for environment in ["stage", "prod"] {
            plane.remove(&format!(".environments/{environment}.yaml"));
        }
        plane.commit("One environment");
        plane.push("main");
        plane.head("main")
    }

    fn grow_application(&self, side: usize) {
        let file = "workload/hello.yaml";
        let text = fs::read_to_string(self.hello.path(file)).unwrap();
        let (head, _) = text.split_once("  deploymentTargets:\n").expect("it has targets");
        let repo = text.lines().find_map(|line| line.trim().strip_prefix("repo: ")).expect("it names one").to_owned();
        let mut grown = format!("{head}  deploymentTargets:\n");
        for index in 0..side {
            write!(
                grown,
                "    - name: target-{index:03}\n      environment: dev\n      labels:\n        runs: kubernetes\n        group: g{}\n      manifests:\n        repo: {repo}\n        branch: dev\n        path: ./functional-test\n",
                index % 10
            )
            .unwrap();
        }
        self.hello.change(file, &grown);
    }

    /// Sets the one value, commits, and does not push yet.
    pub fn commit_one_value(&self, value: &str) -> String {
        self.control_plane.switch("dev");
        self.control_plane.write(ONE_VALUE, &one_value(value));
        self.control_plane.commit("Change one value")
    }
}

const EVERYTHING: &str = "apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: everything
spec:
  deploymentTargetSelector:
    workspace: hello-team
    labelSelector:
      matchLabels:
        runs: kubernetes
  clusterTypeSelector:
    labelSelector:
      matchLabels:
        runs: kubernetes
";

fn cluster_type(index: usize) -> String {
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata:
  name: type-{index:03}
  labels:
    region: region-{}
    runs: kubernetes
spec:
  reconciler: kedge
  namespaceService: kedge-namespace
  configType: configmap
",
        index % 4
    )
}

fn config_map(index: usize) -> String {
    let labels = match index % 4 {
        0 => String::new(),
        1 => format!("    region: region-{}\n", index % 4),
        2 => format!("    group: g{}\n", index % 10),
        _ => format!("    region: region-{}\n    group: g{}\n", index % 3, index % 10),
    };
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: 60-config-{index:02}
  labels:
    platform-config: \"true\"
{labels}data:
  ENVIRONMENT: Dev
  REGION: everywhere
  KEY_{}: value {index} of the platform
",
        index % 20
    )
}

fn one_value(value: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: 70-one-value
  labels:
    platform-config: \"true\"
    cluster-type: {CLUSTER_TYPE}
    deployment-target: {TARGET}
data:
  ONE_VALUE: {value}
"
    )
}
