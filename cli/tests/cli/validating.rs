//! `kedge validate`: what is found, in which form, and the exit codes.

use crate::stage::Stage;

const UNKNOWN_FIELD: &str = "\
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata:
  name: extra
  labels:
    region: south
spec:
  reconciler: flux
  namespaceService: namespace
  configTyp: configmap
";

#[test]
fn a_sound_platform_has_no_problems() {
    let run = Stage::small().validate().exits(0);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "no problems in environment dev (2 assignments)\n"));
}

#[test]
fn warnings_alone_exit_with_zero() {
    let stage = Stage::small();
    stage.edit("control-plane/gitops-repo.yaml", "path: .", "path: ./somewhere");
    stage.validate().exits(0).shows(&["warning[PathIgnored]: "]).says(&["1 warning in environment dev"]);
}

#[test]
fn an_error_is_shown_with_its_line_and_exits_with_one() {
    let stage = Stage::small();
    stage.write("control-plane/extra.yaml", UNKNOWN_FIELD.replace("region: south", "region: true"));
    let run = stage.validate().exits(1).shows(&["--> extra.yaml:6:13", "6 |     region: true\n  |             ^^^^\n"]);
    assert_eq!(run.stderr, "1 error and 1 warning in environment dev (2 assignments)\n");
}

#[test]
fn json_has_every_problem_with_its_place() {
    let stage = Stage::small();
    stage.write("control-plane/extra.yaml", UNKNOWN_FIELD);
    let run = stage.kedge(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml", "-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let problem = &value["problems"][0];
    assert_eq!(problem["origin"]["file"], "extra.yaml");
    assert_eq!(problem["origin"]["line"], 10);
    assert_eq!(problem["environments"], serde_json::json!(["dev"]));
    assert_eq!(value["errors"].as_u64().unwrap() + value["warnings"].as_u64().unwrap(), 1);
}

#[test]
fn github_gets_annotations_with_paths_from_the_workflow_folder() {
    let stage = Stage::small();
    stage.write("control-plane/extra.yaml", UNKNOWN_FIELD);
    let run = stage.kedge(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml", "-o", "github"]);
    let line = run.stdout.lines().next().unwrap();
    assert!(line.contains("file=control-plane/extra.yaml,line=10,col=3,title="), "{line}");
    assert!(line.starts_with("::"), "{line}");
}

#[test]
fn a_value_that_looks_secret_is_in_no_log_and_no_annotation() {
    let stage = Stage::small();
    stage.edit("control-plane/configs/west.yaml", "  REGION: west\n", "  REGION: west\n  API_TOKEN: hunter2\n");
    stage.write(
        "control-plane/schema.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata:\n  name: s\nspec:\n  schema: '{\"properties\": {\"API_TOKEN\": {\"maxLength\": 3}}}'\n",
    );
    let github = stage.kedge(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml", "-o", "github"]);
    for run in [github.exits(1), stage.validate().exits(1), stage.render().exits(3)] {
        let all = run.stdout + &run.stderr;
        assert!(all.contains("`API_TOKEN`: \"[redacted]\" is longer than 3 characters"), "{all}");
        assert!(!all.contains("hunter2"), "{all}");
    }
}

#[test]
fn a_closed_pipe_does_not_hide_that_there_are_errors() {
    let stage = Stage::small();
    stage.write("control-plane/bad.yaml", "a: [\n");
    for format in ["text", "json", "github"] {
        let mut command = stage.command();
        command.args(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml", "-o", format]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        crate::stage::run(command.stdout(writer)).exits(1).says(&["1 error in environment dev"]);
    }
}

#[test]
fn a_folder_without_a_name_given_is_the_environment_of_its_own_name() {
    let stage = Stage::small();
    std::fs::rename(stage.file("control-plane"), stage.file("dev")).unwrap();
    stage.kedge(["validate", "dev", "-s", "sources.yaml"]).exits(0).says(&["in environment dev (2 assignments)"]);
}

#[test]
fn colours_are_off_when_piped_and_with_no_color() {
    let stage = Stage::small();
    stage.write("control-plane/extra.yaml", UNKNOWN_FIELD);
    let run = stage.validate();
    assert!(!run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'));
    let mut command = stage.command();
    command.env("CLICOLOR_FORCE", "1").args(["validate", "control-plane", "-e", "dev", "-s", "sources.yaml"]);
    assert!(crate::stage::run(&mut command).stdout.contains('\u{1b}'));
    assert!(!crate::stage::run(command.env_remove("CLICOLOR_FORCE").env("NO_COLOR", "1")).stdout.contains('\u{1b}'));
}

#[test]
fn a_template_that_nothing_uses_is_an_error_of_validate_alone() {
    let stage = Stage::small();
    stage.write(
        "base/templates/idle.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata:\n  name: unused\nspec:\n  type: reconciler\n  manifests:\n  - '{{ if }}'\n",
    );
    stage.validate().exits(1).shows(&["unused"]).says(&["1 error in environment dev"]);
    let run = stage.render().exits(0);
    assert!(!run.stderr.contains("unused"), "{}", run.stderr);
    let explain = ["explain", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "drone/hello-functional-test"];
    assert!(!stage.kedge(explain).exits(0).stderr.contains("unused"));
}

const ENVIRONMENT: &str = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Environment\nmetadata: {name: dev}\nspec: {controlPlane: {repo: https://h/cp, branch: dev}}\n";
const POLICY: &str = "\
apiVersion: kedge.dev/v1alpha1
kind: PromotionPolicy
metadata: {name: fleet}
spec:
  environments:
    - name: dev
      rings: [{name: canary, share: 10%}, {name: rest}]
    - name: prod
";

#[test]
fn a_policy_is_checked_against_environments_and_cluster_types() {
    let stage = Stage::small();
    stage.write("control-plane/.environments/dev.yaml", ENVIRONMENT);
    stage.write("control-plane/policy.yaml", POLICY);
    let run = stage.validate().exits(1);
    run.shows(&[
        "error[UnknownEnvironment]: PromotionPolicy fleet names the environment `prod`, which `.environments/` doesn't declare",
        "the environments are dev",
        "warning[RingsDontApply]: rings and maxUnavailable don't apply to cluster type",
    ]);
    stage.edit("control-plane/policy.yaml", "    - name: prod\n", "");
    stage.validate().exits(0);
    stage.edit("control-plane/policy.yaml", "share: 10%", "share: 10%, soack: 1m");
    let shown = stage.validate().exits(1).stdout;
    assert_eq!(shown.matches("did you mean `soak`?").count(), 1, "said once: {shown}");
}

#[test]
fn a_pin_that_names_what_is_not_there_is_an_error() {
    let stage = Stage::small();
    let pin = "apiVersion: kedge.dev/v1alpha1\nkind: Pin\nmetadata: {name: old}\nspec: {workload: nobody, version: v1, until: 2020-01-01}\n";
    stage.write("control-plane/pin.yaml", pin);
    stage.validate().exits(1).shows(&[
        "error[UnknownName]: Pin old names the workload `nobody`, which isn't there",
        "warning[PinExpired]: Pin old ended at 2020-01-01T00:00:00Z and has no effect any more",
    ]);
}

#[test]
fn a_source_that_the_hub_would_refuse_is_an_error_that_names_the_way_out() {
    let stage = Stage::small();
    stage.write(
        "base/templates/flux.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata:\n  name: flux\nspec:\n  type: reconciler\n  manifests:\n    - |\n      apiVersion: kedge.dev/v1alpha1\n      kind: Delivery\n      metadata:\n        name: {{ .DeploymentTargetName }}\n      spec:\n        source:\n          repo: {{ .Manifests.repo }}\n          ref:\n            branch: {{ .Manifests.branch }}\n          path: {{ .Manifests.path }}\n        to: kubernetes\n        namespace: {{ .Namespace }}\n",
    );
    stage.validate().exits(0);
    let file = "hello/workload/hello.yaml";
    let text = stage.read(file).replace("harbour/hello-gitops", "other-team/secret");
    stage.write(file, text);
    stage.validate().exits(1).shows(&[
        "error[SourceNotAllowed]",
        "`https://git.example/other-team/secret` isn't among the sources of",
        "`spec.sources` of WorkloadRegistration `hello`",
    ]);
    stage.edit("base/workloads/hello.yaml", "\nspec:\n", "\nspec:\n  sources: ['https://git.example/other-team']\n");
    stage.validate().exits(0);
    // What the hub takes for no address at all. One with a user isn't said back: it may hold a password.
    for (address, told) in [
        ("https://git.example/other-team/../x", "https://git.example/other-team/../x"),
        ("https://git.example/other-team/%2e%2e/x", "https://git.example/other-team/%2e%2e/x"),
        ("https://h@evil/other-team/m", "the repository's address contains a user or a password"),
    ] {
        let text = stage.read(file).replace("https://git.example/other-team/secret", address);
        let written = stage.read(file);
        stage.write(file, text);
        stage.validate().exits(1).shows(&["error[SourceNotAllowed]", told]);
        stage.write(file, written);
    }
}
