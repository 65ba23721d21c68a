//! The fields of `-o json`, which programs rely on: adding one is fine, renaming one is not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::stage::Stage;

/// A platform with a problem, beside `old` without it.
fn stage() -> Stage {
    let stage = Stage::small();
    crate::stage::copy(&stage.file("control-plane"), &stage.file("old"));
    stage.edit("control-plane/cluster-types/vm.yaml", "reconciler: flux", "reconciler: argo");
    stage.edit("control-plane/configs/west.yaml", "mysql://west:3306", "mysql://west:3307");
    stage
}

/// A line for each kind of object: the path to it, and its fields. A list is its items.
fn fields(stage: &Stage, args: &[&str], code: i32) -> String {
    let options = ["-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "-o", "json"];
    let run = stage.kedge(args.iter().chain(&options)).exits(code);
    let mut objects: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut todo: Vec<(String, Value)> = vec![(String::new(), serde_json::from_str(&run.stdout).unwrap())];
    while let Some((path, value)) = todo.pop() {
        match value {
            Value::Object(map) => {
                objects.entry(path.clone()).or_default().extend(map.keys().cloned());
                todo.extend(map.into_iter().map(|(key, value)| (format!("{path}.{key}"), value)));
            }
            Value::Array(items) => todo.extend(items.into_iter().map(|item| (path.clone(), item))),
            _ => {}
        }
    }
    // Problems and places have the same fields everywhere; `validate` shows them.
    objects.retain(|path, _| args[0] == "validate" || !(path.starts_with(".problems") || path.ends_with(".origin")));
    let line = |(path, keys): (&String, &BTreeSet<String>)| {
        format!("{path}: {}\n", keys.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
    };
    objects.iter().map(line).collect()
}

#[test]
fn the_fields_of_validate_are_stable() {
    insta::assert_snapshot!(fields(&stage(), &["validate"], 1), @"
    : assignments environments errors problems unchecked warnings
    .problems: assignments code environments excerpt hint message origin related severity
    .problems.origin: column file line repo revision
    ");
}

#[test]
fn the_fields_of_plan_are_stable() {
    insta::assert_snapshot!(fields(&stage(), &["plan", "--from", "old", "--diff"], 3), @"
    : assignments changes clusterTypes clusterTypesAdded clusterTypesRemoved environment from kept problems promotedCommit summary to
    .changes: assignment change files keys reasons
    .changes.files: diff name
    .changes.keys: key new old
    ");
}

#[test]
fn the_fields_of_explain_are_stable() {
    insta::assert_snapshot!(fields(&stage(), &["explain", "drone/hello-functional-test", "REGION"], 0), @"
    : assigned assignment clusterTypeLabels configuration environment policies quarantine targetLabels
    .clusterTypeLabels: region
    .configuration: REGION
    .configuration.REGION: candidates notApplied value
    .configuration.REGION.candidates: configMap effect origin text
    .configuration.REGION.notApplied: configMap origin reasons text
    .policies: chooses clusterTypeMismatches clusterTypeSelector name origin targetMismatches targetSelector workspaceMismatch
    .targetLabels: capabilityMap key origin source value
    ");
}

#[test]
fn the_fields_of_render_are_stable() {
    insta::assert_snapshot!(fields(&stage(), &["render", "--out", "out"], 3), @": assignments deleted environment kept problems quarantined unchanged written");
}
