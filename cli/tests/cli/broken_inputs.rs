//! What a broken input may do: nothing. Quarantine, failing repositories, and what stays published.

use crate::stage::Stage;

const SCHEMA: &str = "\
apiVersion: scheduler.kalypso.io/v1alpha1
kind: ConfigSchema
metadata:
  name: limits
  labels:
    cluster-type: vm
spec:
  schema: |
    {\"properties\": {\"ENABLED\": {\"type\": \"number\"}}}
";

#[test]
fn one_bad_assignment_stops_itself_only_and_keeps_its_files() {
    let stage = Stage::small();
    stage.render().exits(0);
    let before = stage.output();
    stage.write("control-plane/schema.yaml", SCHEMA);
    stage.edit("control-plane/configs/west.yaml", "mysql://west:3306", "mysql://new-west:3306");
    stage.edit("base/configs/common.yaml", "hello {{ .Workload }}", "bye {{ .Workload }}");
    stage.render().exits(3).says(&[
        "error[SchemaViolated]: the configuration breaks ConfigSchema limits: `ENABLED`",
        "stops: vm/hello-functional-test",
        "note: `vm/hello-functional-test` is kept: quarantined, so what is published stays",
        "1 assignment quarantined",
    ]);
    let after = stage.output();
    for (path, text) in &before {
        let changes = path.starts_with("drone/hello-functional-test/") && !path.ends_with("namespace.yaml");
        assert_eq!(after.get(path) != Some(text), changes, "{path}");
    }
}

#[test]
fn a_schema_that_only_warns_stops_nothing() {
    let stage = Stage::small();
    stage.write(
        "control-plane/schema.yaml",
        SCHEMA.replace("  labels:", "  annotations:\n    kedge.dev/enforce: warn\n  labels:"),
    );
    stage.render().exits(0).says(&["warning[SchemaViolated]", "1 warning"]);
    assert!(stage.output().contains_key("vm/hello-functional-test/reconciler.yaml"));
}

#[test]
fn a_failing_application_protects_its_own_assignments_only() {
    let stage = Stage::small();
    // A second application, whose target goes while the first one fails.
    for (path, text) in [
        ("base/workloads/other.yaml", "base/workloads/hello.yaml"),
        ("other/workload/other.yaml", "hello/workload/hello.yaml"),
    ] {
        let text = stage.read(text).replace("hello", "other");
        stage.write(path, text);
    }
    let sources = stage.read("sources.yaml");
    let both = format!("{sources}- repo: https://git.example/harbour/other\n  path: other\n");
    stage.write("sources.yaml", &both);
    stage.render().exits(0);
    assert_eq!(stage.output().len(), 16);

    stage.write("sources.yaml", both.replace("- repo: https://git.example/harbour/hello\n  path: hello\n", ""));
    stage.edit(
        "other/workload/other.yaml",
        "        purpose: functional-test\n        team: overwritten\n",
        "        purpose: none\n",
    );
    stage.render().exits(3).says(&[
        "note: `drone/hello-functional-test`, `vm/hello-functional-test` are kept: application `hello`, which may own it, failed to load",
        "deleted 6",
    ]);
    let files = stage.output();
    assert!(files.contains_key("vm/hello-functional-test/platform-config.sh"));
    assert!(!files.keys().any(|path| path.contains("other-functional-test")));
}

#[test]
fn a_failing_platform_input_deletes_nothing() {
    let stage = Stage::small();
    stage.render().exits(0);
    let before = stage.output();
    stage.remove("control-plane/cluster-types/vm.yaml");
    stage.write("control-plane/bad.yaml", "a: [\n");
    stage.render().exits(3).says(&[
        "note: `vm`, `vm/hello-functional-test` are kept: an input of the platform failed to load",
        "deleted 0",
    ]);
    assert_eq!(stage.output(), before);

    stage.remove("control-plane/bad.yaml");
    stage.render().exits(0).says(&["deleted 4"]);
}

#[test]
fn a_base_repo_that_fails_deletes_nothing_and_says_why() {
    let stage = Stage::small();
    stage.render().exits(0);
    let before = stage.output();
    stage.edit("sources.yaml", "  path: base\n", "  path: gone\n");
    stage.render().exits(3).says(&["BaseRepo main can't be loaded", "gone", "deleted 0"]);
    assert_eq!(stage.output(), before);
}

#[test]
fn two_policies_for_one_pair_give_one_assignment_that_names_both() {
    let stage = Stage::small();
    let second =
        stage.read("control-plane/scheduling/functional-test.yaml").replace("name: functional-test", "name: again");
    stage.write("control-plane/scheduling/again.yaml", second);
    stage.render().exits(0);
    assert_eq!(stage.output().len(), 10);
    let args = ["explain", "drone/hello-functional-test", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml"];
    stage
        .kedge(args)
        .exits(0)
        .shows(&["drone/hello-functional-test in dev: assigned by policies again, functional-test\n"]);
}

#[test]
fn a_missing_template_quarantines_its_cluster_type_and_is_named() {
    let stage = Stage::small();
    stage.edit("control-plane/cluster-types/vm.yaml", "reconciler: flux", "reconciler: argo");
    stage.render().exits(3).says(&["`argo`", "vm.yaml:", "stops: vm/hello-functional-test"]);
    let files = stage.output();
    assert!(files.contains_key("vm/README.md") && files.contains_key("drone/hello-functional-test/reconciler.yaml"));
    assert!(!files.contains_key("vm/hello-functional-test/reconciler.yaml"));
}

#[test]
fn a_template_that_fails_names_its_file_its_line_and_the_assignment() {
    let stage = Stage::small();
    stage.edit("base/templates/namespace.yaml", "{{ .Workspace }}", "{{ fail .Nobody }}");
    stage.render().exits(3).says(&[
        "template `namespace` line 6 at <.Nobody>: ",
        "templates/namespace.yaml:14",
        "stops: drone/hello-functional-test, vm/hello-functional-test",
        "2 assignments quarantined",
    ]);
}

#[test]
fn a_function_that_reads_the_machine_is_refused_by_name() {
    let stage = Stage::small();
    stage.edit("base/templates/namespace.yaml", "{{ .Workspace }}", "{{ env \"HOME\" }}");
    let run = stage.render().exits(3).says(&["function \"env\" is refused: it reads the machine"]);
    assert!(!run.stderr.contains(".home"));
}

#[test]
fn an_object_of_the_environment_wins_over_the_base_with_a_warning() {
    let stage = Stage::small();
    stage.write("control-plane/configs/common.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a-common\n  labels:\n    platform-config: \"true\"\ndata:\n  ONLY: this\n");
    stage.render().exits(0).says(&["warning[Overridden]: ConfigMap a-common", "configs/common.yaml:1"]);
    assert!(stage.output()["vm/hello-functional-test/platform-config.sh"].contains("ONLY"));
    assert!(!stage.output()["vm/hello-functional-test/platform-config.sh"].contains("ENABLED"));
}

#[test]
fn an_object_defined_twice_at_one_level_is_refused_with_both_places() {
    let stage = Stage::small();
    let text = stage.read("control-plane/configs/vm.yaml");
    stage.write("control-plane/configs/vm-again.yaml", text);
    stage.render().exits(3).says(&[
        "error[DuplicateObject]: ConfigMap c-vm is defined 2 times",
        "configs/vm-again.yaml:1",
        "configs/vm.yaml:1",
    ]);
}

#[test]
fn another_kind_in_an_application_repository_is_refused() {
    let stage = Stage::small();
    stage.write("hello/workload/policy.yaml", stage.read("control-plane/scheduling/functional-test.yaml"));
    stage.render().exits(3).says(&["SchedulingPolicy", "workload/policy.yaml:"]);
}
