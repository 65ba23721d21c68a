//! What a harbour's platform is made of: the sample's branches, reshaped before the hub starts, and the changes that teams push.

use std::fs;

use crate::lab::await_true;
use crate::world::sample::{ENVIRONMENTS, Sample, edit};
use crate::world::{SOON, World};

use super::access::Access;
use super::manifests::Manifests;
use super::{CLUSTER_TYPE, Harbour};

/// How the platform team delivers here.
#[derive(Debug, Clone)]
pub struct Terms {
    /// To become ready, and to stay so.
    pub timeout: String,
    pub soak: String,
    /// Further lines of the Delivery, such as `scope: cluster`.
    pub delivery: Vec<String>,
    /// Whether the application's objects are applied as the namespace's account `deployer`.
    pub impersonate: bool,
    /// Another reconciler template than the sample's, as the text of its one manifest.
    pub reconciler: Option<String>,
    /// Another namespace template than the sample's, likewise.
    pub namespace: Option<String>,
    /// What the agent may do.
    pub access: Access,
    /// Whether the agent reaches the API server without the proxy: for what is measured.
    pub direct: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            timeout: "20s".to_owned(),
            soak: "1s".to_owned(),
            delivery: Vec::new(),
            impersonate: true,
            reconciler: None,
            namespace: None,
            access: Access::Apply,
            direct: false,
        }
    }
}

impl Terms {
    /// With a line more in the Delivery.
    pub fn delivery(line: &str) -> Terms {
        Terms { delivery: vec![line.to_owned()], ..Terms::default() }
    }

    #[must_use]
    pub fn and(mut self, line: &str) -> Terms {
        self.delivery.push(line.to_owned());
        self
    }

    #[must_use]
    pub fn timeout(mut self, timeout: &str) -> Terms {
        timeout.clone_into(&mut self.timeout);
        self
    }

    #[must_use]
    pub fn soak(mut self, soak: &str) -> Terms {
        soak.clone_into(&mut self.soak);
        self
    }

    /// The agent applies the application's objects as itself.
    #[must_use]
    pub fn as_itself(mut self) -> Terms {
        self.impersonate = false;
        self
    }
}

const TEMPLATE: &str = "templates/kedge.yaml";
const NAMESPACE: &str = "templates/kedge-namespace.yaml";
const SETTINGS: &str = "cluster-types/north/drone/config.yaml";

pub(super) fn assignment(target: &str, id: &str) -> String {
    format!("hello-{}", target_name(target, id))
}

fn target_name(target: &str, id: &str) -> String {
    format!("{target}-{id}")
}

/// One environment with one cluster type, and the terms.
pub(super) fn reshape(sample: &Sample, terms: &Terms) {
    let control = &sample.control_plane;
    let old = control.head("main");
    control.switch("main");
    for environment in ENVIRONMENTS.into_iter().filter(|name| *name != "dev") {
        control.remove(&format!(".environments/{environment}.yaml"));
    }
    let template = fs::read_to_string(control.path(TEMPLATE)).unwrap();
    control.write(TEMPLATE, &template_text(&template, terms));
    if let Some(namespace) = &terms.namespace {
        let template = fs::read_to_string(control.path(NAMESPACE)).unwrap();
        control.write(NAMESPACE, &with_manifest(&template, namespace));
    }
    let main = control.commit("Make the harbour");
    control.push("main");
    control.switch("dev");
    for gone in ["cluster-types/south", "scheduling/lines.yaml", "configs/hello-line-test.yaml"] {
        if control.path(gone).exists() {
            control.remove(gone);
        }
    }
    // Room for what tests run: a quota counts pods that have ended for a while.
    let settings = fs::read_to_string(control.path(SETTINGS)).unwrap();
    let settings = settings
        .replace("memory: 256Mi", "memory: 64Gi")
        .replace("pods: \"5\"", "cpu: \"64\"\n    disk: 64Gi\n    pods: \"500\"");
    control.write(SETTINGS, &settings);
    let base = fs::read_to_string(control.path("base-repo.yaml")).unwrap();
    control.write("base-repo.yaml", &base.replace(&old, &main));
    control.commit("Make the harbour");
    control.push("dev");
}

fn template_text(template: &str, terms: &Terms) -> String {
    if let Some(reconciler) = &terms.reconciler {
        return with_manifest(template, reconciler);
    }
    let mut text = template
        .replace("timeout: 5m", &format!("timeout: {}", terms.timeout))
        .replace("soak: 30s", &format!("soak: {}", terms.soak));
    if !terms.impersonate {
        text = text.replace("        serviceAccount: deployer\n", "");
    }
    for line in &terms.delivery {
        text.push_str(&format!("        {line}\n"));
    }
    text
}

/// A template with this one manifest instead of its own.
fn with_manifest(template: &str, manifest: &str) -> String {
    let (head, _) = template.split_once("    - |\n").expect("it has a manifest");
    let body: String = manifest.lines().map(|line| format!("      {line}\n")).collect();
    format!("{head}    - |\n{body}")
}

/// The application's targets, each with its folder.
pub(super) fn add_targets(sample: &Sample, manifests_repo: &str, id: &str, targets: &[(&str, Manifests)]) {
    let text = fs::read_to_string(sample.hello.path("workload/hello.yaml")).unwrap();
    let (head, _) = text.split_once("  deploymentTargets:\n").expect("it has targets");
    let entries: String =
        targets.iter().map(|(target, _)| target_entry(manifests_repo, &target_name(target, id))).collect();
    sample.hello.change("workload/hello.yaml", &format!("{head}  deploymentTargets:\n{entries}"));
    sample.hello_gitops.switch("dev");
    for (target, manifests) in targets {
        manifests.write(&sample.hello_gitops, &target_name(target, id), id);
    }
    sample.hello_gitops.commit("Begin");
    sample.hello_gitops.push("dev");
}

fn target_entry(manifests_repo: &str, name: &str) -> String {
    format!(
        "    - name: {name}\n      environment: dev\n      labels: {{purpose: functional-test, runs: kubernetes}}\n      \
         manifests: {{repo: {manifests_repo:?}, branch: dev, path: ./{name}}}\n"
    )
}

impl Harbour {
    /// Pushes what a target should run; the hub has made a desired state of it. The commit.
    #[track_caller]
    pub fn push(&self, target: &str, manifests: &Manifests) -> String {
        self.push_all(&[(target, manifests)])
    }

    /// The same for several targets in one commit.
    #[track_caller]
    pub fn push_all(&self, changes: &[(&str, &Manifests)]) -> String {
        let gitops = &self.world.sample.hello_gitops;
        for (target, manifests) in changes {
            manifests.write(gitops, &target_name(target, &self.id), &self.id);
        }
        let commit = gitops.commit("Change what runs");
        gitops.push("dev");
        for (target, _) in changes {
            self.await_so(&format!("the hub wants {commit} for {target}"), SOON, |harbour| {
                harbour.entry(target).is_some_and(|entry| entry["workload"]["commit"] == commit.as_str())
            });
        }
        commit
    }

    /// Pushes what a target should run where another reconciler brings it; the commit.
    pub fn push_observed(&self, target: &str, manifests: &Manifests) -> String {
        let gitops = &self.world.sample.hello_gitops;
        manifests.write(gitops, &target_name(target, &self.id), &self.id);
        let commit = gitops.commit("Change what runs");
        gitops.push("dev");
        commit
    }

    /// The files of a target are on the environment's GitOps branch.
    pub fn await_published(&self, target: &str) {
        let path = format!("{CLUSTER_TYPE}/{}/reconciler.yaml", self.assignment(target));
        await_true(&format!("{path} is published"), SOON, || {
            self.world.sample.gitops.fetch();
            self.world.git.head("gitops", "dev").is_some()
                && self.world.sample.gitops.files("origin/dev").contains(&path)
        });
    }

    /// Adds a target.
    pub fn add_target(&self, target: &str, manifests: &Manifests) {
        self.change_targets(|text| {
            let repo = self.world.git.url("hello-gitops");
            format!("{text}{}", target_entry(&repo, &target_name(target, &self.id)))
        });
        self.push(target, manifests);
    }

    /// Adds many, and doesn't wait.
    pub fn add_targets(&self, targets: &[(&str, Manifests)]) {
        let gitops = &self.world.sample.hello_gitops;
        for (target, manifests) in targets {
            manifests.write(gitops, &target_name(target, &self.id), &self.id);
        }
        gitops.commit("Add targets");
        gitops.push("dev");
        let repo = self.world.git.url("hello-gitops");
        let entry = |(target, _): &(&str, Manifests)| target_entry(&repo, &target_name(target, &self.id));
        let entries: String = targets.iter().map(entry).collect();
        self.change_targets(|text| format!("{text}{entries}"));
    }

    /// The application team takes a target back.
    pub fn remove_target(&self, target: &str) {
        let name = target_name(target, &self.id);
        self.change_targets(|text| {
            let repo = self.world.git.url("hello-gitops");
            text.replace(&target_entry(&repo, &name), "")
        });
        await_true(&format!("the hub doesn't want {target} any more"), SOON, || self.entry(target).is_none());
    }

    fn change_targets(&self, change: impl FnOnce(&str) -> String) {
        let hello = &self.world.sample.hello;
        let text = fs::read_to_string(hello.path("workload/hello.yaml")).unwrap();
        hello.change("workload/hello.yaml", &change(&text));
    }

    /// A value of the platform's configuration on this cluster type; the hub has made a desired state of it for this target.
    #[track_caller]
    pub fn push_setting(&self, target: &str, key: &str, value: &str) {
        let digest = || Some(self.entry(target)?["platform"]["digest"].clone());
        let before = digest();
        self.write_setting(key, value);
        self.await_so(&format!("the hub wants {key} for {target}"), SOON, |_| digest() != before);
    }

    fn write_setting(&self, key: &str, value: &str) -> String {
        let control = &self.world.sample.control_plane;
        control.switch("dev");
        control.follow();
        let text = fs::read_to_string(control.path(SETTINGS)).unwrap();
        let new = format!("  {key}: {value:?}");
        match text.lines().find(|line| line.trim_start().starts_with(&format!("{key}:"))) {
            Some(line) => edit(control, SETTINGS, line, &new),
            None => control.change(SETTINGS, &text.replacen("\ndata:\n", &format!("\ndata:\n{new}\n"), 1)),
        }
    }

    /// A change of the template that makes namespaces, on `main` and named by dev.
    pub fn change_template(&self, file: &str, change: impl FnOnce(&str) -> String) -> String {
        let control = &self.world.sample.control_plane;
        let old = control.head("main");
        control.switch("main");
        let text = fs::read_to_string(control.path(file)).unwrap();
        let main = control.change(file, &change(&text));
        control.switch("dev");
        control.follow();
        let base = fs::read_to_string(control.path("base-repo.yaml")).unwrap();
        control.change("base-repo.yaml", &base.replace(&old, &main))
    }

    /// The newest entry of the desired state about a target.
    pub fn entry(&self, target: &str) -> Option<serde_json::Value> {
        entry(&self.world, &self.assignment(target))
    }
}

fn entry(world: &World, assignment: &str) -> Option<serde_json::Value> {
    let state = world.api.state("dev", CLUSTER_TYPE, None);
    let entries = state["entries"].as_array()?;
    entries.iter().find(|entry| entry["assignment"] == assignment).cloned()
}
