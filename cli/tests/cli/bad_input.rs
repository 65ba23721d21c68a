//! One test for each kind of bad input, looking at what is said about it.

use std::fs::{self, File};
use std::os::unix::fs::symlink;

use crate::stage::{Run, Stage};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  labels:\n    cluster-type: nobody\n    platform-config: \"true\"\ndata:\n";

/// The good assignments are written, the problem is told with its place, and the exit code says that something is missing.
#[track_caller]
fn stops_only_itself(stage: &Stage, texts: &[&str]) -> Run {
    let run = stage.render().exits(3).says(texts);
    assert!(stage.output().contains_key("drone/hello-functional-test/reconciler.yaml"), "{}", run.stderr);
    assert!(stage.output().contains_key("vm/hello-functional-test/reconciler.yaml"), "{}", run.stderr);
    stage.validate().exits(1);
    run
}

#[test]
fn tabs_are_shown_where_they_indent() {
    let stage = Stage::with_bad_file(format!("{CONFIG}\tA: b\n"));
    stops_only_itself(
        &stage,
        &[
            "error[TabIndentation]: the file isn't YAML: a tab can't indent it",
            "--> bad.yaml:9:1",
            "9 | →A: b",
            "hint: indent with spaces",
        ],
    );
}

#[test]
fn duplicate_keys_are_named() {
    let stage = Stage::with_bad_file(format!("{CONFIG}  A: b\n  A: c\n"));
    stops_only_itself(&stage, &["`A`", "bad.yaml:10:3", "10 |   A: c"]);
}

#[test]
fn an_alias_bomb_is_refused_quickly() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let stage = Stage::with_bad_file(text);
    let started = std::time::Instant::now();
    stops_only_itself(&stage, &["aliases expand this document beyond", "bad.yaml:"]);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}

#[test]
fn a_file_of_a_hundred_megabytes_is_not_read() {
    let stage = Stage::with_bad_file("");
    File::create(stage.file("control-plane/bad.yaml")).unwrap().set_len(100 << 20).unwrap();
    stage.render().exits(3).says(&["error[FileTooLarge]", "bad.yaml", "104857600 bytes", "hint: "]);
}

#[test]
fn a_binary_file_is_called_one() {
    let stage = Stage::with_bad_file(b"\x7fELF\x02\x01\x01\0\0\0\0\0");
    stage.render().exits(3).says(&[
        "error[BinaryFile]: the file is binary: it contains a NUL byte",
        "bad.yaml:1:",
        "hint: name it in `.sourceignore`",
    ]);
}

#[test]
fn invalid_utf8_is_shown_with_its_byte_and_place() {
    let mut bytes = format!("{CONFIG}  A: caf").into_bytes();
    bytes.extend(b"\xe9\n");
    let stage = Stage::with_bad_file(bytes);
    stage.render().exits(3).says(&[
        "error[InvalidUtf8]: the file isn't UTF-8: byte 0xe9",
        "bad.yaml:9:9",
        "hint: save the file as UTF-8",
    ]);
}

#[test]
fn ten_thousand_levels_end_in_an_error() {
    let stage = Stage::with_bad_file(format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)));
    stage.render().exits(3).says(&["nested deeper than 100 levels", "bad.yaml:1:101"]);
    let mut deep = String::new();
    for level in 0..10_000 {
        deep.push_str(&" ".repeat(level % 60));
        deep.push_str("- ");
    }
    let stage = Stage::with_bad_file(deep);
    stage.render().exits(3).says(&["nested deeper than 100 levels", "bad.yaml:1:"]);
}

#[test]
fn a_cluster_type_without_a_spec_is_named() {
    let stage =
        Stage::with_bad_file("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ClusterType\nmetadata:\n  name: bare\n");
    stops_only_itself(&stage, &["ClusterType `bare`", "`spec`", "bad.yaml:"]);
}

#[test]
fn a_selector_with_an_unknown_operator_names_those_that_exist() {
    let stage = Stage::small();
    stage.write(
        "control-plane/bad.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1
kind: SchedulingPolicy
metadata:
  name: odd
spec:
  deploymentTargetSelector: {labelSelector: {}}
  clusterTypeSelector:
    labelSelector:
      matchExpressions:
        - key: region
          operator: Near
          values: [west]
",
    );
    stops_only_itself(&stage, &["`Near`", "bad.yaml:11:21", "NotIn", "DoesNotExist"]);
}

#[test]
fn a_schema_that_is_not_json_quarantines_what_it_applies_to() {
    let stage = Stage::small();
    stage.write(
        "control-plane/bad.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1
kind: ConfigSchema
metadata:
  name: odd
  labels:
    cluster-type: vm
spec:
  schema: \"type: object\"
",
    );
    let run =
        stage.render().exits(3).says(&["ConfigSchema", "odd", "isn't JSON", "bad.yaml:", "vm/hello-functional-test"]);
    assert!(stage.output().contains_key("drone/hello-functional-test/reconciler.yaml"), "{}", run.stderr);
    assert!(!stage.output().contains_key("vm/hello-functional-test/reconciler.yaml"), "{}", run.stderr);
}

#[test]
fn a_repository_that_cannot_be_reached_is_named_with_the_reason() {
    let stage = Stage::small();
    // Nothing listens there.
    stage.edit("base/workloads/hello.yaml", "https://git.example/harbour/hello", "https://127.0.0.1:1/harbour/hello");
    stage.edit("control-plane/base-repo.yaml", "https://git.example/platform/control-plane", "../base");
    stage.edit("control-plane/base-repo.yaml", "  commit: 1f0e0d0c0b0a09080706050403020100ffeeddcc\n", "");
    let run = stage.kedge(["render", "-e", "dev", "-c", "control-plane", "--out", "out"]);
    run.exits(3).says(&["error[RepositoryFailed]: WorkloadRegistration hello can't be loaded: https://127.0.0.1:1/harbour/hello could not be fetched", "workloads/hello.yaml:"]);
}

#[test]
fn a_repository_without_a_source_is_a_failing_one() {
    let stage = Stage::small();
    stage.edit("sources.yaml", "- repo: https://git.example/harbour/hello\n  path: hello\n", "");
    stage.render().exits(3).says(&[
        "the sources file has no entry for https://git.example/harbour/hello on branch main",
        "hint: add an entry to sources.yaml",
    ]);
}

#[test]
fn an_empty_control_plane_is_an_error_with_a_hint() {
    let stage = Stage::small();
    stage.remove("control-plane");
    fs::create_dir(stage.file("control-plane")).unwrap();
    stage
        .render()
        .exits(1)
        .says(&["Error: there is no YAML object in control-plane", "Hint: an environment branch holds ClusterTypes"]);
    assert!(!stage.file("out").exists());
}

#[test]
fn a_control_plane_that_does_not_exist_is_an_error() {
    let stage = Stage::small();
    stage.remove("control-plane");
    stage.render().exits(1).says(&["Error: the control plane `control-plane` does not exist", "Hint: "]);
    stage.kedge(["validate", "control-plane"]).exits(1).says(&["Error: the control plane `control-plane` does not"]);
}

#[test]
fn a_link_in_the_control_plane_is_named_and_not_followed() {
    let stage = Stage::small();
    stage.write("secret.yaml", format!("{CONFIG}  A: leaked\n"));
    symlink("../secret.yaml", stage.file("control-plane/link.yaml")).unwrap();
    let run =
        stops_only_itself(&stage, &["error[Symlink]: ", "`link.yaml` is a symbolic link; links are never followed"]);
    assert!(!run.stderr.contains("leaked"));
}

#[test]
fn a_ring_of_base_repos_is_refused_by_name() {
    let stage = Stage::small();
    stage.write(
        "base/back.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1
kind: BaseRepo
metadata:
  name: back
spec:
  repo: https://git.example/platform/control-plane
  branch: main
  path: .
  commit: 1f0e0d0c0b0a09080706050403020100ffeeddcc
",
    );
    stops_only_itself(&stage, &["error[BaseRepoCycle]: BaseRepo back closes a ring: main (", "→ back (", "back.yaml:"]);
}

#[test]
fn a_sources_file_with_errors_shows_them() {
    let stage = Stage::small();
    stage.write("sources.yaml", "sources:\n- repo: x\n  pth: y\n");
    stage.render().exits(1).says(&[
        "sources.yaml:",
        "Error: the sources file `sources.yaml` has",
        "Hint: a sources file looks like this",
    ]);
    stage.remove("sources.yaml");
    stage.render().exits(1).says(&["Error: the sources file `sources.yaml` can't be read", "Caused by: No such file"]);
}

#[test]
fn names_that_would_leave_the_folder_are_refused() {
    for name in ["../up", ".github", "a/b", "a\\nb"] {
        let stage = Stage::small();
        stage.edit("control-plane/cluster-types/idle.yaml", "name: idle", &format!("name: \"{name}\""));
        stage.render().exits(3).says(&["error[BadName]: `metadata.name` of ClusterType", "idle.yaml:"]);
        assert!(!stage.file("up").exists());
        assert!(
            stage.output().keys().all(|path| path.starts_with("drone/")
                || path.starts_with("vm/")
                || path.ends_with("Promoted_Commit_Id"))
        );
    }
}

#[test]
fn an_environment_that_is_no_name_is_wrong_usage() {
    let stage = Stage::small();
    for (name, reason) in [("", "empty"), ("a/b", "`/`"), ("..", "`..`"), (".", "`.`"), ("a\nb", "'\\n'")] {
        for command in ["render", "validate"] {
            let mut args = vec![command, "-e", name, "-c", "control-plane", "-s", "sources.yaml"];
            args.extend((command == "render").then_some(["--out", "out"]).into_iter().flatten());
            stage.kedge(args).exits(2).says(&["--environment", reason]);
        }
    }
    assert!(!stage.file("out").exists());
}

#[test]
fn wrong_usage_exits_with_two() {
    let stage = Stage::small();
    stage.kedge(["render", "--out", "out"]).exits(2).says(&["--environment"]);
    stage.kedge(["rendr"]).exits(2).says(&["render"]);
    stage
        .kedge(["validate", "control-plane@"])
        .exits(2)
        .says(&["Error: there is no revision behind the `@`", "Hint: "]);
}
