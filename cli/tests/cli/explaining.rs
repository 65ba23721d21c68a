//! `kedge explain`: policies, labels and the candidates of every value.

use crate::stage::{Run, Stage};

fn explain(stage: &Stage, args: &[&str]) -> Run {
    let options = ["-e", "dev", "-c", "control-plane", "-s", "sources.yaml"];
    stage.kedge(["explain"].iter().chain(args).chain(&options))
}

#[test]
fn an_assignment_is_explained_whole() {
    let run = explain(&Stage::small(), &["drone/hello-functional-test"]).exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    drone/hello-functional-test in dev: assigned by policy functional-test

    Policies
      functional-test chose it  scheduling/functional-test.yaml:1:1
        cluster type  region in (west,east)    matches
        target        purpose=functional-test  matches

    Labels of cluster type drone
      region  west

    Labels of target hello-functional-test
      purpose    functional-test  the target, workload/hello.yaml:9 of https://git.example/harbour/hello
      team       harbour          the workload, workload/hello.yaml:1:1 of https://git.example/harbour/hello
      workload   hello            every target has it
      workspace  harbour          the registration, workloads/hello.yaml:1:1 of https://git.example/platform/control-plane at main@1f0e0d0c0b

    Configuration
      DATABASE_URL = "mysql://west:3306"
        1.  overridden  "mysql://common:3306"  a-common  configs/common.yaml:9 of https://git.example/platform/control-plane at main@1f0e0d0c0b
        2.  wins        "mysql://west:3306"    b-west    configs/west.yaml:10
      ENABLED = "yes"
        1.  wins  "yes"  a-common  configs/common.yaml:10 of https://git.example/platform/control-plane at main@1f0e0d0c0b
      GREETING = "hello {{ .Workload }}"
        1.  wins  "hello {{ .Workload }}"  a-common  configs/common.yaml:11 of https://git.example/platform/control-plane at main@1f0e0d0c0b
      LIMITS = {"cpu":"500m","extra":["one","two"],"memory":"1Gi"}
        1.  merged  "cpu: 100m\nmemory: 1Gi\nextra: [one]\n"  a-common  configs/common.yaml:12 of https://git.example/platform/control-plane at main@1f0e0d0c0b
        2.  merged  "cpu: 500m\nextra: [two]\n"               b-west    configs/west.yaml:11
      REGION = "west"
        1.  overridden  "nowhere"  a-common  configs/common.yaml:8 of https://git.example/platform/control-plane at main@1f0e0d0c0b
        2.  wins        "west"     b-west    configs/west.yaml:9
    "#);
}

#[test]
fn a_key_shows_every_candidate_and_those_that_do_not_apply() {
    let run = explain(&Stage::small(), &["drone/hello-functional-test", "REGION"]).exits(0);
    insta::assert_snapshot!(run.stdout, @r#"
    drone/hello-functional-test in dev: assigned by policy functional-test

      REGION = "west"
        1.  overridden     "nowhere"  a-common  configs/common.yaml:8 of https://git.example/platform/control-plane at main@1f0e0d0c0b
        2.  wins           "west"     b-west    configs/west.yaml:9
        -   doesn't apply  "'8080'"   c-vm      configs/vm.yaml:9, because `cluster-type` is `drone`, it asks for `vm`
    "#);
}

#[test]
fn a_merged_key_says_so() {
    explain(&Stage::small(), &["drone/hello-functional-test", "LIMITS"])
        .exits(0)
        .shows(&["merged", "\"extra\":[\"one\",\"two\"]"]);
}

#[test]
fn a_pair_that_is_not_assigned_shows_the_label_that_is_missing() {
    let run = explain(&Stage::small(), &["idle/hello-idle-test"]).exits(0);
    let run = run.shows(&["idle/hello-idle-test in dev: not assigned", "functional-test didn't choose it"]);
    run.shows(&[
        "label `region` is `south`, wanted `west` or `east`",
        "label `purpose` is `idle-test`, wanted `functional-test`",
    ]);
}

#[test]
fn a_label_from_a_capability_map_is_traced_to_its_rule() {
    let stage = Stage::small();
    stage.write(
        "control-plane/capabilities.yaml",
        "apiVersion: kedge.dev/v1alpha1\nkind: CapabilityMap\nmetadata:\n  name: gpus\nspec:\n  rules:\n  - when: {matchLabels: {purpose: functional-test}}\n    add: {accelerator: gpu}\n",
    );
    explain(&stage, &["drone/hello-functional-test"])
        .exits(0)
        .shows(&["accelerator", "CapabilityMap gpus, capabilities.yaml:7"]);
}

#[test]
fn a_target_alone_is_enough_when_it_is_on_one_cluster_type() {
    let stage = Stage::small();
    explain(&stage, &["hello-functional-test"])
        .exits(2)
        .says(&["is on 2 cluster types", "drone/hello-functional-test, vm/hello-functional-test"]);
    stage.remove("control-plane/cluster-types/vm.yaml");
    explain(&stage, &["hello-functional-test"])
        .exits(0)
        .shows(&["drone/hello-functional-test in dev: assigned by policy functional-test"]);
    explain(&stage, &["hello-idle-test"])
        .exits(2)
        .says(&["isn't assigned to any cluster type", "drone/hello-idle-test"]);
}

#[test]
fn a_wrong_name_suggests_near_ones() {
    let stage = Stage::small();
    explain(&stage, &["drone/hello-functional-tst"]).exits(2).says(&[
        "Error: there is no deployment target `hello-functional-tst` in dev",
        "Hint: did you mean drone/hello-functional-test",
    ]);
    explain(&stage, &["dron/hello-functional-test"]).exits(2).says(&["there is no cluster type `dron` in dev"]);
    explain(&stage, &["zz/x"]).exits(2).says(&["Hint: the cluster types are drone, idle, vm"]);
    explain(&stage, &["drone/hello-functional-test", "REGON"])
        .exits(2)
        .says(&["has the key `REGON`", "did you mean REGION"]);
}

#[test]
fn where_there_is_no_target_no_hint_lists_them() {
    let stage = Stage::small();
    stage.remove("base/workloads/hello.yaml");
    let run = explain(&stage, &["drone/hello-functional-test"]).exits(2);
    assert_eq!(run.stderr, "Error: there is no deployment target `hello-functional-test` in dev\n");
}

#[test]
fn a_quarantine_shows_its_reasons() {
    let stage = Stage::small();
    stage.edit("control-plane/cluster-types/vm.yaml", "reconciler: flux", "reconciler: argo");
    explain(&stage, &["vm/hello-functional-test"]).exits(0).shows(&["Quarantined, it keeps what is published", "argo"]);
}

#[test]
fn json_and_yaml_have_the_same_chain() {
    let stage = Stage::small();
    let run = explain(&stage, &["drone/hello-functional-test", "-o", "json"]).exits(0);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let candidates = value["configuration"]["REGION"]["candidates"].as_array().unwrap();
    let effects: Vec<&str> = candidates.iter().map(|candidate| candidate["effect"].as_str().unwrap()).collect();
    assert_eq!(effects, ["overridden", "wins"]);
    assert_eq!(candidates[1]["origin"]["file"], "configs/west.yaml");
    assert_eq!(value["policies"][0]["chooses"], true);
    explain(&stage, &["drone/hello-functional-test", "-o", "yaml"])
        .exits(0)
        .shows(&["assigned: true\n", "configMap: b-west\n"]);
}
