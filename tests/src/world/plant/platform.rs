//! What the plant's platform is made of: the sample's branches, reshaped before the hub starts, and the changes that teams push.

use crate::lab::git::Checkout;
use crate::world::policy::{FILE, Policy};
use crate::world::sample::{ENVIRONMENTS, Sample, edit};
use crate::world::workload::Workload;

use super::{PRESS, Plant};

/// The file of `main` that every environment's configuration takes its greeting from.
const GREETING: &str = "configs/hello.yaml";

/// What a box runs of the application `hello` there.
pub fn assignment(environment: &str) -> &'static str {
    match environment {
        "dev" => "hello-line-test",
        "stage" => "hello-line-uat",
        _ => "hello-line",
    }
}

/// The target's name is also its folder in the application's manifests.
fn target(environment: &str) -> &'static str {
    assignment(environment).strip_prefix("hello-").expect("they begin so")
}

/// Where the application's manifests for an environment are.
pub fn branch_of(environment: &str) -> &str {
    environment
}

/// One file with this text. It is healthy unless its text or its platform configuration has the word `sick`, or a line of the
/// box's own file `sick-of`: so content can be bad everywhere, or on single boxes.
pub fn workload(assignment: &str, text: &str) -> Workload {
    let settings = format!("etc/kedge/workloads/{assignment}/platform-config.env");
    let mut workload =
        Workload::default().file(&format!("/srv/{assignment}/app.txt"), "app.txt", &format!("{text}\n"), "");
    let files = format!("srv/{assignment}/app.txt {settings}");
    let check = format!("! grep -q sick {files} && ! {{ test -s sick-of && grep -q -F -f sick-of {files}; }}");
    workload.health.push(format!("{{exec: [/bin/sh, -c, {check:?}], timeout: 5s}}"));
    workload
}

/// Hosts only, two types of them, quick times, and the policy if there is one.
pub(super) fn reshape(sample: &Sample, policy: Option<&Policy>) {
    let control = &sample.control_plane;
    let old = control.head("main");
    control.switch("main");
    let template = std::fs::read_to_string(control.path("templates/kedge-host.yaml")).unwrap();
    control.write(
        "templates/kedge-host.yaml",
        &template.replace("timeout: 10m", "timeout: 5s").replace("soak: 1m", "soak: 1s"),
    );
    if let Some(policy) = policy {
        control.write(FILE, &policy.yaml());
    }
    let main = control.commit("Make the plant");
    control.push("main");
    for environment in ENVIRONMENTS {
        control.switch(environment);
        for gone in ["cluster-types/north", "cluster-types/south/large", "configs/hello-line-test.yaml"]
            .into_iter()
            .chain(["scheduling/functional-test.yaml", "scheduling/uat.yaml", "scheduling/edge.yaml"])
        {
            if control.path(gone).exists() {
                control.remove(gone);
            }
        }
        for file in ["cluster-type.yaml", "config.yaml"] {
            let text =
                std::fs::read_to_string(control.path(&format!("cluster-types/south/factory-line/{file}"))).unwrap();
            let text = text.replace("factory-line", PRESS).replace("Factory line", "Press");
            control.write(&format!("cluster-types/south/{PRESS}/{file}"), &text);
        }
        let base = std::fs::read_to_string(control.path("base-repo.yaml")).unwrap();
        control.write("base-repo.yaml", &base.replace(&old, &main));
        control.commit("Make the plant");
        control.push(environment);
    }
    let hello = &sample.hello;
    let text = std::fs::read_to_string(hello.path("workload/hello.yaml")).unwrap();
    hello.change("workload/hello.yaml", &host_targets(&text));
    for environment in ENVIRONMENTS {
        sample.hello_gitops.switch(branch_of(environment));
        let name = assignment(environment);
        workload(name, "version 1").push(&sample.hello_gitops, target(environment));
    }
}

/// The Workload without the targets for Kubernetes.
fn host_targets(text: &str) -> String {
    let (head, targets) = text.split_once("  deploymentTargets:\n").expect("it has targets");
    let mut kept = format!("{head}  deploymentTargets:\n");
    for target in targets.split("    - name: ").filter(|target| target.contains("runs: host")) {
        kept.push_str(&format!("    - name: {target}"));
    }
    kept
}

impl Plant {
    /// A commit on `main` that changes the greeting in every environment, when it gets there.
    pub fn push_main(&self, greeting: &str) -> String {
        let control = &self.world.sample.control_plane;
        control.switch("main");
        self.replace_line(control, GREETING, "GREETING:", &format!("  GREETING: {greeting}"))
    }

    /// A new policy on `main`.
    pub fn push_policy(&self, policy: &Policy) -> String {
        let control = &self.world.sample.control_plane;
        control.switch("main");
        control.change(FILE, &policy.yaml())
    }

    /// A commit on an environment's own branch: the name of its cluster type `factory-line`.
    pub fn push_environment(&self, environment: &str, name: &str) -> String {
        let control = &self.world.sample.control_plane;
        control.switch(environment);
        control.follow();
        let file = "cluster-types/south/factory-line/config.yaml";
        self.replace_line(control, file, "CLUSTER_NAME:", &format!("  CLUSTER_NAME: {name}"))
    }

    /// A commit of the application team for an environment.
    pub fn push_app(&self, environment: &str, text: &str) -> String {
        self.push_workload(environment, &workload(assignment(environment), text))
    }

    /// The same with anything else in it.
    pub fn push_workload(&self, environment: &str, workload: &Workload) -> String {
        let gitops = &self.world.sample.hello_gitops;
        gitops.switch(branch_of(environment));
        workload.push(gitops, target(environment))
    }

    /// A file of an environment's branch, written by a person.
    pub fn push_file(&self, environment: &str, file: &str, text: &str) -> String {
        let control = &self.world.sample.control_plane;
        control.switch(environment);
        control.follow();
        control.change(file, text)
    }

    /// A person writes this main commit into an environment's branch.
    pub fn name_by_hand(&self, environment: &str, commit: &str) -> String {
        let control = &self.world.sample.control_plane;
        control.switch(environment);
        control.follow();
        self.replace_line(control, "base-repo.yaml", "commit:", &format!("  commit: \"{commit}\""))
    }

    fn replace_line(&self, checkout: &Checkout, file: &str, begins: &str, with: &str) -> String {
        let text = std::fs::read_to_string(checkout.path(file)).unwrap();
        let line = text.lines().find(|line| line.trim_start().starts_with(begins)).expect("the line is there");
        edit(checkout, file, line, with)
    }
}
