//! Real pairs of Kalypso's input and output, and its vectors, from the folder that KEDGE_KALYPSO names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kedge_model::kinds::{
    ClusterType, ConfigMap, ConfigValue, DeploymentTarget, Manifest, SchedulingPolicy, TargetSelector, Template,
    TemplateType, Workload, WorkloadRegistration,
};
use kedge_model::{Labels, Meta, Object, Origin, Platform, Source, Spec};
use kedge_scheduler::{Outcome, PROMOTED_COMMIT, schedule};
use serde_json::Value;

use crate::stage::{Stage, skip, tree};

type Tree = BTreeMap<String, Vec<u8>>;

fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("KEDGE_KALYPSO").map(PathBuf::from);
    if folder.is_none() {
        skip(test, "KEDGE_KALYPSO is not set");
    }
    folder
}

fn pairs(folder: &Path) -> Vec<PathBuf> {
    let mut pairs: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("manifest.json").is_file())
        .collect();
    pairs.sort();
    assert!(!pairs.is_empty(), "no pairs in {}", folder.display());
    pairs
}

fn render(stage: &Stage, pair: &Path) {
    let manifest: Value = serde_json::from_slice(&fs::read(pair.join("manifest.json")).unwrap()).unwrap();
    let args = [
        "render".as_ref(),
        "--environment".as_ref(),
        manifest["environment"].as_str().unwrap().as_ref(),
        "--control-plane".as_ref(),
        pair.join("input/control-plane-env").as_os_str(),
        "--sources".as_ref(),
        pair.join("input/sources.yaml").as_os_str(),
        "--out".as_ref(),
        "out".as_ref(),
    ]
    .map(std::ffi::OsStr::to_owned);
    stage.kedge(args).exits(0);
}

/// Without what Kalypso's workflows added and what it forgot to delete.
fn expected(pair: &Path) -> Tree {
    let all = tree(&pair.join("expected"));
    let ours = |path: &str| {
        let stale = path
            .strip_suffix("/config.yaml")
            .is_some_and(|folder| all.contains_key(&format!("{folder}/platform-config.yaml")));
        path == PROMOTED_COMMIT || !(path.starts_with(".github/") || stale)
    };
    all.iter().filter(|(path, _)| ours(path)).map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
}

/// Paths that one has and the other hasn't, or that differ.
fn differing(one: &Tree, other: &Tree) -> Vec<String> {
    let paths: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

/// Both directions: nothing is missing and nothing is too much.
fn is_exact(pair: &Path) {
    let stage = Stage::empty();
    render(&stage, pair);
    assert_eq!(differing(&expected(pair), &tree(&stage.file("out"))), Vec::<String>::new(), "{}", pair.display());
}

/// The pairs that everybody has, each a test.
const NAMED: [&str; 5] = ["B1", "B2", "B10", "B11", "B16"];

macro_rules! named_pairs {
    ($($test:ident: $pair:literal),+ $(,)?) => {$(
        #[test]
        fn $test() {
            if let Some(folder) = folder(concat!("kalypso::", stringify!($test))) {
                is_exact(&folder.join($pair));
            }
        }
    )+};
}

named_pairs! {
    pair_b1_is_rendered_byte_for_byte: "B1",
    pair_b2_is_rendered_byte_for_byte: "B2",
    pair_b10_is_rendered_byte_for_byte: "B10",
    pair_b11_is_rendered_byte_for_byte: "B11",
    pair_b16_is_rendered_byte_for_byte: "B16",
}

#[test]
fn every_further_pair_is_rendered_byte_for_byte() {
    let Some(folder) = folder("kalypso::every_further_pair_is_rendered_byte_for_byte") else { return };
    for pair in pairs(&folder) {
        if !NAMED.iter().any(|name| pair.ends_with(name)) {
            is_exact(&pair);
        }
    }
}

/// Renders one pair over another: the result is as if it were rendered alone, and files that are the same in both
/// were not touched.
fn render_over(test: &str, before: &str, after: &str) {
    let Some(folder) = folder(test) else { return };
    let stage = Stage::empty();
    render(&stage, &folder.join(before));
    let old = tree(&stage.file("out"));
    let times = |tree: &Tree| -> BTreeMap<String, std::time::SystemTime> {
        let time = |path: &String| fs::metadata(stage.file("out").join(path)).unwrap().modified().unwrap();
        tree.keys().map(|path| (path.clone(), time(path))).collect()
    };
    let old_times = times(&old);
    std::thread::sleep(std::time::Duration::from_millis(20));
    render(&stage, &folder.join(after));
    let new = tree(&stage.file("out"));
    let new_times = times(&new);
    let changed = differing(&old, &new);
    assert!(!changed.is_empty(), "the pairs differ");
    for path in new.keys().filter(|path| old.contains_key(*path)) {
        assert_eq!(old_times[path] != new_times[path], changed.contains(path), "{path}");
    }
    assert_eq!(differing(&expected(&folder.join(after)), &new), Vec::<String>::new());
}

#[test]
fn one_changed_value_changes_only_the_files_that_it_is_in() {
    render_over("kalypso::one_changed_value_changes_only_the_files_that_it_is_in", "B2", "B1");
}

#[test]
fn one_changed_label_changes_only_the_assignments_that_it_gives() {
    render_over("kalypso::one_changed_label_changes_only_the_assignments_that_it_gives", "B11", "B10");
}

#[test]
fn every_vector_is_composed_and_rendered_exactly() {
    let Some(folder) = folder("kalypso::every_vector_is_composed_and_rendered_exactly") else { return };
    let vectors: Vec<Value> = serde_json::from_slice(&fs::read(folder.join("vectors.json")).unwrap()).unwrap();
    assert!(!vectors.is_empty());
    let mut wrong = Vec::new();
    for vector in &vectors {
        let name = vector["name"].as_str().unwrap();
        let schedule = schedule(&platform(vector));
        let assignment = schedule.assignments.values().next().unwrap_or_else(|| panic!("{name}: nothing is assigned"));
        let found = match &assignment.outcome {
            Outcome::Rendered(files) => files.reconciler.to_string(),
            Outcome::Quarantined(reasons) => format!("error: {}", reasons[0].message),
        };
        match (&vector["output"], &vector["error"]) {
            (Value::String(output), _) if *output == found => {}
            (Value::Null, Value::String(_)) if found.starts_with("error: ") => {}
            (output, error) => wrong.push(format!("{name}\n  wanted {output} {error}\n  found  {found:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), vectors.len(), wrong.join("\n"));
}

/// One cluster type, one target, the vector's ConfigMaps, and its template as reconciler.
fn platform(vector: &Value) -> Platform {
    let cluster_type = &vector["clusterType"];
    let target = &vector["deploymentTarget"];
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let labels = texts(&target["labels"]);
    let workload = labels.get("workload").cloned().unwrap();
    let full_name = name(target);
    let short_name = full_name.strip_prefix(&format!("{workload}-")).unwrap().to_owned();
    let own: Labels =
        labels.iter().filter(|(key, _)| !["workload", "workspace"].contains(&key.as_str())).map(pair).collect();
    let template = |name: &str, text: &str| {
        let manifests = vec![Manifest { text: text.to_owned(), line: 1 }];
        let spec = Template { template_type: Some(TemplateType::Reconciler), content_type: None, manifests };
        object(name, Labels::new(), Spec::Template(spec), None)
    };
    let mut objects = vec![
        template("vector", vector["template"].as_str().unwrap()),
        template("nothing", ""),
        object(
            &name(cluster_type),
            texts(&cluster_type["labels"]),
            Spec::ClusterType(ClusterType {
                reconciler: "vector".to_owned(),
                namespace_service: "nothing".to_owned(),
                config_type: Some("nothing".to_owned()),
            }),
            None,
        ),
        object(
            "all",
            Labels::new(),
            Spec::SchedulingPolicy(SchedulingPolicy {
                targets: TargetSelector::default(),
                cluster_types: Default::default(),
            }),
            None,
        ),
        object(
            "registration",
            Labels::new(),
            Spec::WorkloadRegistration(WorkloadRegistration {
                workload: Default::default(),
                workspace: labels.get("workspace").cloned(),
                sources: Vec::new(),
            }),
            None,
        ),
        object(
            &workload,
            Labels::new(),
            Spec::Workload(Workload {
                targets: vec![DeploymentTarget {
                    name: short_name,
                    labels: own,
                    environment: target["environment"].as_str().unwrap().to_owned(),
                    manifests: texts(&target["manifests"]),
                    config_schemas: Vec::new(),
                    line: 1,
                }],
                config_schemas: Vec::new(),
            }),
            Some("registration"),
        ),
    ];
    for map in vector["configMaps"].as_array().unwrap() {
        let data = texts(&map["data"]).into_iter().map(|(key, text)| (key, ConfigValue { text, line: 1 })).collect();
        objects.push(object(&name(map), texts(&map["labels"]), Spec::ConfigMap(ConfigMap { data }), None));
    }
    Platform {
        environment: target["environment"].as_str().unwrap().to_owned(),
        objects: objects.into_iter().map(|object| (object.id(), Arc::new(object))).collect(),
        ..Platform::default()
    }
}

fn object(name: &str, labels: Labels, spec: Spec, owner: Option<&str>) -> Object {
    let source = Arc::new(Source { repo: "vectors.json".to_owned(), revision: None });
    Object {
        meta: Meta { name: name.to_owned(), labels, ..Meta::default() },
        spec,
        origin: Origin { source, file: "vectors.json".into(), line: 1, column: 1 },
        owner: owner.map(str::to_owned),
        stale_since: None,
    }
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let map = value.as_object().cloned().unwrap_or_default();
    map.into_iter().map(|(key, value)| (key, value.as_str().unwrap().to_owned())).collect()
}

fn pair((key, value): (&String, &String)) -> (String, String) {
    (key.clone(), value.clone())
}
