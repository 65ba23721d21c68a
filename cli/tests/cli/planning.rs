//! `kedge plan` between folders and between revisions.

use crate::stage::{Stage, copy};

/// The small platform twice: `old` as it is, `control-plane` to be changed.
fn two_sides() -> Stage {
    let stage = Stage::small();
    copy(&stage.file("control-plane"), &stage.file("old"));
    stage
}

fn plan(stage: &Stage, more: &[&str]) -> crate::stage::Run {
    let args = ["plan", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--from", "old"];
    stage.kedge(args.iter().chain(more))
}

#[test]
fn no_change_is_what_was_compared_and_the_summary() {
    let run = plan(&two_sides(), &[]).exits(0);
    assert_eq!(run.stdout, "plan for dev: old → control-plane\n0 of 2 assignments on 0 of 3 cluster types\n");
}

#[test]
fn a_changed_value_shows_old_and_new() {
    let stage = two_sides();
    stage.edit("control-plane/configs/west.yaml", "mysql://west:3306", "mysql://west:3307");
    let run = plan(&stage, &[]).exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    plan for dev: old → control-plane
    ~ drone/hello-functional-test changed
        DATABASE_URL  "mysql://west:3306" → "mysql://west:3307"
        files: reconciler.yaml, platform-config.yaml
    1 of 2 assignments on 1 of 3 cluster types
    "#);
    assert_eq!(run.stderr, "");
}

#[test]
fn added_and_removed_assignments_and_cluster_types_are_marked() {
    let stage = two_sides();
    stage.remove("control-plane/cluster-types/vm.yaml");
    stage.edit("control-plane/cluster-types/idle.yaml", "region: south", "region: east");
    let run = plan(&stage, &[]).exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    plan for dev: old → control-plane
    - cluster type vm
    + idle/hello-functional-test added
        DATABASE_URL  + "mysql://common:3306"
        ENABLED       + "yes"
        GREETING      + "hello {{ .Workload }}"
        LIMITS        + {"cpu":"100m","extra":["one"],"memory":"1Gi"}
        REGION        + "nowhere"
        files: reconciler.yaml, namespace.yaml, platform-config.yaml
    - vm/hello-functional-test removed
        files: reconciler.yaml, namespace.yaml, platform-config.sh
    2 of 3 assignments on 2 of 3 cluster types
    "#);
}

#[test]
fn a_quarantine_on_the_new_side_exits_with_three() {
    let stage = two_sides();
    stage.edit("control-plane/cluster-types/vm.yaml", "reconciler: flux", "reconciler: argo");
    plan(&stage, &[]).exits(3).shows(&["! vm/hello-functional-test quarantined\n", "argo"]).says(&["error["]);
}

#[test]
fn what_is_only_missing_because_an_input_fails_is_kept() {
    let stage = two_sides();
    stage.write("new-sources.yaml", stage.read("sources.yaml").replace("path: hello", "path: gone"));
    let args = [
        "plan",
        "-e",
        "dev",
        "-c",
        "control-plane",
        "--from",
        "old",
        "-s",
        "new-sources.yaml",
        "--from-sources",
        "sources.yaml",
    ];
    let run = stage.kedge(args).exits(3);
    let run = run.shows(&[
        "= drone/hello-functional-test kept: application `hello`, which may own it, failed to load",
        "0 of 2 assignments",
    ]);
    assert!(!run.stdout.contains("- drone"), "{}", run.stdout);
}

#[test]
fn diffs_are_shown_on_request() {
    let stage = two_sides();
    stage.edit("control-plane/configs/west.yaml", "mysql://west:3306", "mysql://west:3307");
    plan(&stage, &["--diff"]).exits(0).shows(&[
        "--- a/drone/hello-functional-test/platform-config.yaml\n+++ b/drone/hello-functional-test/platform-config.yaml\n",
        "\n-  DATABASE_URL: mysql://west:3306\n+  DATABASE_URL: mysql://west:3307\n",
    ]);
}

#[test]
fn json_and_yaml_have_the_whole_plan() {
    let stage = two_sides();
    stage.edit("control-plane/configs/west.yaml", "mysql://west:3306", "mysql://west:3307");
    let run = plan(&stage, &["-o", "json"]).exits(0);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["summary"], "1 of 2 assignments on 1 of 3 cluster types");
    assert_eq!(value["changes"][0]["assignment"], "drone/hello-functional-test");
    let key = &value["changes"][0]["keys"][0];
    assert_eq!(
        (&key["key"], &key["old"], &key["new"]),
        (&"DATABASE_URL".into(), &"mysql://west:3306".into(), &"mysql://west:3307".into())
    );
    plan(&stage, &["-o", "yaml"]).exits(0).shows(&[
        "- assignment: drone/hello-functional-test\n",
        "summary: 1 of 2 assignments on 1 of 3 cluster types\n",
    ]);
}

#[test]
fn markdown_redacts_what_looks_secret_and_what_the_schema_calls_write_only() {
    let stage = two_sides();
    stage.edit(
        "control-plane/configs/west.yaml",
        "  REGION: west\n",
        "  REGION: west\n  API_TOKEN: hunter2\n  PIN: hunter3\n",
    );
    stage.write(
        "control-plane/schema.yaml",
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: ConfigSchema\nmetadata:\n  name: s\nspec:\n  schema: '{\"properties\": {\"PIN\": {\"writeOnly\": true, \"maxLength\": 3}}}'\n",
    );
    let run = plan(&stage, &["-o", "markdown", "--diff"]).exits(3);
    assert!(!run.stdout.contains("hunter") && !run.stderr.contains("hunter"), "{}{}", run.stdout, run.stderr);
    let run = run.shows(&["### Kedge plan for <code>dev</code>", "redacted", "quarantined"]);
    assert!(run.stdout.chars().count() < 60_000);
    plan(&stage, &[]).shows(&["hunter2"]).says(&["hunter3"]);
}

#[test]
fn an_input_that_fails_on_the_old_side_is_noted() {
    let stage = two_sides();
    stage.write("old-sources.yaml", stage.read("sources.yaml").replace("path: hello", "path: gone"));
    plan(&stage, &["--from-sources", "old-sources.yaml"])
        .exits(0)
        .shows(&["+ drone/hello-functional-test added\n"])
        .says(&["note: 1 input of old failed to load, so more may look added"]);
}

#[test]
fn a_folder_alone_needs_the_other_side() {
    let stage = two_sides();
    let run = stage.kedge(["plan", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml"]);
    run.exits(2).says(&["Error: a folder has no commit before it", "Hint: name the other side with --from"]);
}

#[test]
fn a_side_that_is_neither_revision_nor_folder_is_named() {
    let stage = two_sides();
    let args = ["plan", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--from", "nowhere"];
    stage.kedge(args).exits(1).says(&["Error: the control plane `nowhere` does not exist"]);
}
