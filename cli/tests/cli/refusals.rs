//! `kedge validate` on what Kedge itself delivers: what the agents would refuse is said before, with its line and the way out.

use crate::stage::{Run, Stage};

const GITOPS: &str = "hello-gitops/functional-test";

const HOST_NAMESPACE: &str = "\
apiVersion: kedge.dev/v1alpha1
kind: HostNamespace
metadata:
  name: hello
spec:
  folders: [{path: /srv/hello, mode: \"0750\"}]
  allow:
    debs: [nginx]
";

const NAMESPACE: &str = "\
apiVersion: v1
kind: Namespace
metadata:
  name: shop
";

const WORKLOAD: &str = "\
apiVersion: kedge.dev/v1alpha1
kind: HostWorkload
metadata:
  name: hello
spec:
  debs:
    - name: nginx
      version: \"1.22\"
  files:
    - path: /srv/hello/run.sh
      file: run.sh
      mode: \"0755\"
    - path: /etc/systemd/system/hello-functional-test.service
      file: hello.service
  units:
    - name: hello-functional-test.service
      enabled: true
      running: true
";

const UNIT: &str = "\
[Unit]
Description=Hello

[Service]
ExecStart=/srv/hello/run.sh

[Install]
WantedBy=multi-user.target
";

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
";

fn delivered(to: &str, namespace: &str) -> Stage {
    let stage = Stage::small();
    let template = |name: &str, kind: &str, text: &str| {
        let indented: String = text.lines().map(|line| format!("      {line}\n")).collect();
        format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata:\n  name: {name}\nspec:\n  type: {kind}\n  manifests:\n    - |\n{indented}"
        )
    };
    let delivery = format!(
        "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  name: {{{{ .DeploymentTargetName }}}}\nspec:\n  source:\n    repo: {{{{ .Manifests.repo }}}}\n    ref:\n      branch: {{{{ .Manifests.branch }}}}\n    path: {{{{ .Manifests.path }}}}\n  to: {to}\n"
    );
    stage.write("base/templates/flux.yaml", template("flux", "reconciler", &delivery));
    stage.write("base/templates/namespace.yaml", template("namespace", "namespace", namespace));
    let sources =
        stage.read("sources.yaml") + "- repo: https://git.example/harbour/hello-gitops\n  path: hello-gitops\n";
    stage.write("sources.yaml", sources);
    stage
}

/// A workload of a host that is refused nothing.
fn host() -> Stage {
    let stage = delivered("host", HOST_NAMESPACE);
    for (file, text) in [("host-workload.yaml", WORKLOAD), ("hello.service", UNIT), ("run.sh", "#!/bin/sh\n")] {
        stage.write(&format!("{GITOPS}/{file}"), text);
    }
    stage
}

fn manifests(files: &[(&str, &str)]) -> Stage {
    let stage = delivered("kubernetes", NAMESPACE);
    for (file, text) in files {
        stage.write(&format!("{GITOPS}/{file}"), text);
    }
    stage
}

/// Of the workload's file or its unit, one word is another.
fn broken(file: &str, old: &str, new: &str) -> Run {
    let stage = host();
    stage.edit(&format!("{GITOPS}/{file}"), old, new);
    stage.validate().exits(1)
}

#[test]
fn an_honest_workload_of_a_host_is_silent() {
    let run = host().validate().exits(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no problems in environment dev (2 assignments)\n"));
}

#[test]
fn an_escaped_program_of_a_unit_is_shown_with_its_line() {
    let run = broken("hello.service", "ExecStart=/srv", "ExecStart=\\x2b/srv");
    insta::assert_snapshot!(run.stdout, @r#"
    error[NotAllowed]: `ExecStart=\\x2b/srv/hello/run.sh` must name each program plainly: an absolute path or a bare name without quotes and backslashes, and before it nothing but `@`, `-` and `:`
     --> functional-test/hello.service:5:1 (https://git.example/harbour/hello-gitops)
      |
    5 | ExecStart=\x2b/srv/hello/run.sh
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = stops: drone/hello-functional-test, vm/hello-functional-test
      = hint: the platform team can allow the unit by name in `allow.units` of HostNamespace `hello`
    "#);
}

#[test]
fn a_unit_that_a_boot_waits_for_is_an_error() {
    let run = broken("hello.service", "multi-user.target", "sysinit.target");
    insta::assert_snapshot!(run.stdout, @r#"
    error[NotAllowed]: `WantedBy=sysinit.target` may name the workload's own units and `default.target`, `graphical.target`, `multi-user.target` only: the host's boot waits for others
     --> functional-test/hello.service:8:1 (https://git.example/harbour/hello-gitops)
      |
    8 | WantedBy=sysinit.target
      | ^^^^^^^^^^^^^^^^^^^^^^^
      = stops: drone/hello-functional-test, vm/hello-functional-test
      = hint: the platform team can allow the unit by name in `allow.units` of HostNamespace `hello`
    "#);
}

#[test]
fn a_path_outside_of_the_folders_is_shown_at_its_entry() {
    let run = broken("host-workload.yaml", "path: /srv/hello/run.sh", "path: /usr/local/bin/hello");
    insta::assert_snapshot!(run.stdout, @r#"
    error[NotAllowed]: `/usr/local/bin/hello` is outside of the workload's folders (/srv/hello, /etc/kedge/workloads/hello-functional-test)
      --> functional-test/host-workload.yaml:10:7 (https://git.example/harbour/hello-gitops)
       |
    10 |     - path: /usr/local/bin/hello
       |       ^^^^^^^^^^^^^^^^^^^^^^^^^^
       = stops: drone/hello-functional-test, vm/hello-functional-test
       = hint: the platform team can add `/usr/local/bin/hello` to `allow.paths` of HostNamespace `hello`
    "#);
}

#[test]
fn a_file_that_nobody_could_pack_or_read_is_an_error_at_its_entry() {
    broken("host-workload.yaml", "file: run.sh", "file: walk.sh").shows(&[
        "error[PathMissing]",
        "walk.sh` does not exist",
        "--> functional-test/host-workload.yaml:10:7",
    ]);
    let stage = host();
    let file = stage.file(&format!("{GITOPS}/run.sh"));
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    stage.validate().exits(1).shows(&["error[Symlink]", "run.sh` is a symbolic link"]);
    let stage = host();
    stage.write(&format!("{GITOPS}/hello.service"), b"[Service]\nUser=root\n# \xff\n");
    stage.validate().exits(1).shows(&["error[BadPackage]: `hello.service` isn't UTF-8"]);
}

#[test]
fn a_unit_with_values_of_its_host_is_judged_by_its_other_lines() {
    let stage = host();
    let entry = "file: hello.service\n";
    stage.edit(&format!("{GITOPS}/host-workload.yaml"), entry, "file: hello.service\n      template: true\n");
    stage.edit(&format!("{GITOPS}/hello.service"), "[Service]\n", "[Service]\nEnvironment=HALL=${cluster.name}\n");
    stage.validate().exits(0);
    stage.edit(&format!("{GITOPS}/hello.service"), "ExecStart=/srv", "ExecStart=+/srv");
    stage.validate().exits(1).shows(&["error[NotAllowed]: `ExecStart=+/srv", "--> functional-test/hello.service:6:1"]);
}

#[test]
fn a_field_that_nobody_knows_is_a_warning_with_the_nearest() {
    let stage = host();
    stage.edit(&format!("{GITOPS}/host-workload.yaml"), "spec:\n", "spec:\n  helth: []\n");
    stage.validate().exits(0).shows(&["warning[UnknownField]", "`spec.helth`", "did you mean `health`?"]);
}

#[test]
fn a_deb_that_is_not_listed_is_an_error() {
    broken("host-workload.yaml", "name: nginx", "name: openssh-server").shows(&[
        "error[NotAllowed]: the deb `openssh-server` isn't on the namespace's list",
        "--> functional-test/host-workload.yaml:7:7",
        "the platform team can add `openssh-server` to `allow.debs` of HostNamespace `hello`",
    ]);
}

#[test]
fn a_deb_file_is_allowed_by_its_digest() {
    let stage = host();
    stage.write(&format!("{GITOPS}/tool.deb"), "a deb");
    stage.edit(&format!("{GITOPS}/host-workload.yaml"), "  debs:\n", "  debs:\n    - file: tool.deb\n");
    let run = stage.validate().exits(1);
    insta::assert_snapshot!(run.stdout, @r#"
    error[NotAllowed]: the deb file `tool.deb` isn't on the namespace's list, which has files by digest
     --> functional-test/host-workload.yaml:7:7 (https://git.example/harbour/hello-gitops)
      |
    7 |     - file: tool.deb
      |       ^^^^^^^^^^^^^^
      = stops: drone/hello-functional-test, vm/hello-functional-test
      = hint: the platform team can add `c93a6e1044b5d6a4f2da0ff48efd655b85c7f9368cb57cd4d67f0d2348f0b04e` to `allow.debFiles` of HostNamespace `hello`
    "#);
    let (_, rest) = run.stdout.split_once("can add `").unwrap();
    let digest = &rest[..64];
    let template = "base/templates/namespace.yaml";
    stage.edit(template, "debs: [nginx]", &format!("debs: [nginx]\n          debFiles: [\"{digest}\"]"));
    stage.validate().exits(0);
}

#[test]
fn a_drop_in_for_a_strangers_unit_is_an_error_with_its_way_out() {
    let run =
        broken("host-workload.yaml", "system/hello-functional-test.service\n", "system/nginx.service.d/hello.conf\n");
    run.shows(&[
        "error[NotAllowed]: the unit `nginx.service` isn't the workload's own",
        "the platform team can add `nginx.service` to `allow.units` of HostNamespace `hello`",
    ]);
}

#[test]
fn a_unit_that_the_workload_would_stop_and_does_not_bring_is_an_error_at_its_file() {
    let stage = host();
    stage.edit(
        &format!("{GITOPS}/hello.service"),
        "Description=Hello\n",
        "Conflicts=hello-functional-test-eu.service\n",
    );
    // One of its debs might bring it.
    stage.validate().exits(0);
    let debs = "  debs:\n    - name: nginx\n      version: \"1.22\"\n";
    stage.edit(&format!("{GITOPS}/host-workload.yaml"), debs, "");
    stage.validate().exits(1).shows(&[
        "error[NotAllowed]: the unit `hello-functional-test-eu.service`, which it would start or stop, is brought by neither",
        "bring a file for it, or leave its name out",
    ]);
}

#[test]
fn a_namespace_that_would_give_a_host_away_is_shown_at_its_template() {
    let stage = host();
    stage.edit("base/templates/namespace.yaml", "path: /srv/hello", "path: /etc");
    stage.validate().exits(1).shows(&[
        "error[NotAllowed]: HostNamespace `hello`: `/etc` is the system's and can't be a tenant's folder",
        "--> templates/namespace.yaml",
    ]);
}

#[test]
fn a_host_workload_that_the_hub_could_not_read_is_shown_with_its_line() {
    broken("host-workload.yaml", "      running: true\n", "      running: perhaps\n").shows(&[
        "running: perhaps\n",
        "functional-test/host-workload.yaml:18",
        "stops: drone/hello-functional-test",
    ]);
}

#[test]
fn what_only_a_host_knows_is_not_judged() {
    let stage = host();
    stage.edit(&format!("{GITOPS}/hello.service"), "ExecStart=/srv", "ExecStart=+/srv/${cluster.name}");
    stage.validate().exits(1);
    stage.edit(
        &format!("{GITOPS}/host-workload.yaml"),
        "file: hello.service",
        "file: hello.service\n      template: true",
    );
    stage.validate().exits(0);
    stage.edit("base/templates/namespace.yaml", "path: /srv/hello", "path: \"/srv/${cluster.name}\"");
    stage.validate().exits(0).says(&["isn't checked: ", "names values that only a host knows"]);
}

#[test]
fn a_repository_out_of_reach_is_a_note_that_names_it() {
    let stage = host();
    stage.edit("sources.yaml", "- repo: https://git.example/harbour/hello-gitops\n  path: hello-gitops\n", "");
    let run = stage.validate().exits(0);
    insta::assert_snapshot!(run.stderr, @r#"
    note: what drone/hello-functional-test, vm/hello-functional-test would deliver isn't checked: the sources file has no entry for https://git.example/harbour/hello-gitops on branch dev
    no problems in environment dev (2 assignments)
    "#);
    let stage = host();
    stage.remove(GITOPS);
    stage.write("hello-gitops/README.md", "Nothing yet");
    stage.validate().exits(0).says(&["note: what drone/hello-functional-test, vm/hello-functional-test would deliver"]);
}

#[test]
fn manifests_that_stay_in_their_namespace_are_silent() {
    let run = manifests(&[("web.yaml", DEPLOYMENT)]).validate().exits(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no problems in environment dev (2 assignments)\n"));
}

#[test]
fn a_cluster_role_of_a_confined_workload_is_an_error() {
    let role = format!(
        "{DEPLOYMENT}---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: all}}\n"
    );
    let stage = manifests(&[("kustomization.yaml", "resources: [web.yaml]\n"), ("web.yaml", &role)]);
    let run = stage.validate().exits(1);
    insta::assert_snapshot!(run.stdout, @r#"
    error[ClusterScope]: ClusterRole all belongs to the whole cluster, and the workload is confined to the namespace shop
     --> functional-test/web.yaml:5:1 (https://git.example/harbour/hello-gitops)
      |
    5 | apiVersion: rbac.authorization.k8s.io/v1
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = stops: drone/hello-functional-test, vm/hello-functional-test
      = hint: the platform team can bring it, or allow `scope: cluster` in the Delivery
    "#);
    stage.edit("base/templates/flux.yaml", "  to: kubernetes\n", "  to: kubernetes\n        scope: cluster\n");
    stage.validate().exits(0);
}

#[test]
fn an_object_of_another_namespace_is_an_error() {
    let escape = DEPLOYMENT.replace("name: web", "name: web, namespace: kube-system");
    manifests(&[("web.yaml", &escape)]).validate().exits(1).shows(&[
        "error[NamespaceEscape]: Deployment web is for the namespace kube-system, and the workload is confined to shop",
        "--> functional-test/web.yaml:1:1",
        "hint: leave `metadata.namespace` out",
    ]);
    let own = DEPLOYMENT.replace("name: web", "name: web, namespace: shop");
    manifests(&[("web.yaml", &own)]).validate().exits(0);
}

#[test]
fn a_custom_resource_is_a_warning_that_names_the_label() {
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\n";
    let two = format!("{certificate}---\n{}", certificate.replace("web", "api"));
    let stage = manifests(&[("web.yaml", DEPLOYMENT), ("tls.yaml", &two)]);
    let run = stage.validate().exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    warning[Forbidden]: Certificate of cert-manager.io isn't among what a workload may use by itself
     --> functional-test/tls.yaml:1:1 (https://git.example/harbour/hello-gitops)
      |
    1 | apiVersion: cert-manager.io/v1
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      = concerns: drone/hello-functional-test, vm/hello-functional-test
      = hint: where the cluster doesn't allow it yet, the platform team adds a ClusterRole labelled kedge.dev/aggregate-to-workload: "true" with the rule `apiGroups: ["cert-manager.io"]` for the resources of Certificate
    "#);
    stage.edit(
        "base/templates/flux.yaml",
        "  to: kubernetes\n",
        "  to: kubernetes\n        serviceAccount: deployer\n",
    );
    assert_eq!(stage.validate().exits(0).stdout, "", "what another account may do is in the cluster");
}

#[test]
fn names_that_the_agent_makes_are_refused() {
    let account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: kedge-workload}\n";
    manifests(&[("a.yaml", account)]).validate().exits(1).shows(&[
        "error[BadPackage]: the agent makes ServiceAccount kedge-workload itself",
        "hint: choose another name",
    ]);
}

#[test]
fn manifests_that_only_the_hub_renders_are_a_note() {
    let stage =
        manifests(&[("kustomization.yaml", "resources: [web.yaml]\nnamePrefix: x-\n"), ("web.yaml", DEPLOYMENT)]);
    stage.validate().exits(0).says(&["needs kustomize, which only the hub runs"]);
    manifests(&[("Chart.yaml", "name: x\n")])
        .validate()
        .exits(0)
        .says(&["is a Helm chart, which only the hub renders"]);
}

#[test]
fn programs_read_what_was_not_checked() {
    let stage = manifests(&[("Chart.yaml", "name: x\n")]);
    let run = stage.kedge(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml", "-o", "json"]).exits(0);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let unchecked = &value["unchecked"][0];
    assert_eq!(unchecked["assignments"][0], "drone/hello-functional-test");
    assert!(unchecked["reason"].as_str().unwrap().contains("Helm chart"), "{unchecked}");
}
