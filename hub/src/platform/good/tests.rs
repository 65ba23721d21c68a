//! What stays in force when something breaks.

use kedge_model::Broken;

use super::*;

fn objects(repo: &str, file: &str, text: &str, owner: Option<&str>) -> Vec<Arc<Object>> {
    let source = Source { repo: repo.to_owned(), revision: Some("main@sha1:0a".to_owned()) };
    let origin = Origin { source: Arc::new(source), file: file.into(), line: 0, column: 0 };
    let options = Options { application: owner.map(str::to_owned), ..Options::default() };
    let decoded = decode::objects(text.as_bytes(), &origin, &options);
    assert!(decoded.broken.is_empty(), "{:?}", decoded.problems);
    decoded.objects.into_iter().map(Arc::new).collect()
}

fn config(name: &str, file: &str, value: &str) -> Arc<Object> {
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: \"{value}\"}}\n");
    objects("r", file, &text, None).remove(0)
}

fn base(commit: &str) -> Arc<Object> {
    let text = format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata: {{name: main}}\nspec: {{repo: r, branch: main, path: ., commit: {commit}}}\n"
    );
    objects("r", "base.yaml", &text, None).remove(0)
}

fn set(objects: &[Arc<Object>]) -> BTreeMap<ObjectId, Arc<Object>> {
    objects.iter().map(|object| (object.id(), Arc::clone(object))).collect()
}

fn platform(objects: &[Arc<Object>]) -> Platform {
    Platform { environment: "dev".to_owned(), objects: set(objects), ..Platform::default() }
}

fn broken(kind: Option<Kind>, name: Option<&str>, file: &str) -> Broken {
    let source = Source { repo: "r".to_owned(), revision: Some("main@sha1:0b".to_owned()) };
    let origin = Origin { source: Arc::new(source), file: file.into(), line: 1, column: 1 };
    let problem = Problem::error("X", "broken").at(origin);
    Broken { kind, name: name.map(str::to_owned), owner: None, labels: None, problem }
}

fn failing(registration: Option<&str>) -> Failing {
    Failing { registration: registration.map(str::to_owned), problem: Problem::error("X", "failing") }
}

fn stale(platform: &Platform, name: &str) -> Option<String> {
    let id = ObjectId { kind: Kind::ConfigMap, owner: None, name: name.to_owned() };
    platform.objects[&id].stale_since.clone()
}

#[test]
fn a_broken_object_stays_as_it_was_and_is_no_longer_broken() {
    let good = set(&[config("a", "a.yaml", "1"), config("b", "b.yaml", "1")]);
    let mut fresh = platform(&[config("b", "b.yaml", "2")]);
    fresh.broken = vec![broken(Some(Kind::ConfigMap), Some("a"), "a.yaml")];
    fresh.failing = vec![failing(None)];
    keep_platform(&mut fresh, &good, "t1");
    assert_eq!(stale(&fresh, "a").as_deref(), Some("t1"));
    assert_eq!(stale(&fresh, "b"), None);
    assert!(fresh.broken.is_empty());

    // Still broken: still stale since the first time.
    let good = fresh.objects.clone();
    let mut again = platform(&[config("b", "b.yaml", "2")]);
    again.broken = vec![broken(Some(Kind::ConfigMap), Some("a"), "a.yaml")];
    again.failing = vec![failing(None)];
    keep_platform(&mut again, &good, "t2");
    assert_eq!(stale(&again, "a").as_deref(), Some("t1"));

    // Mended: fresh again.
    let mut mended = platform(&[config("a", "a.yaml", "3"), config("b", "b.yaml", "2")]);
    keep_platform(&mut mended, &again.objects, "t3");
    assert_eq!(stale(&mended, "a"), None);
}

#[test]
fn a_new_object_that_is_broken_stays_broken() {
    let mut fresh = platform(&[]);
    fresh.broken = vec![broken(Some(Kind::ConfigMap), Some("new"), "n.yaml")];
    keep_platform(&mut fresh, &BTreeMap::new(), "t1");
    assert_eq!(fresh.broken.len(), 1);
}

#[test]
fn what_was_in_a_file_that_nobody_can_read_stays_also_against_a_farther_namesake() {
    let good = set(&[config("a", "near.yaml", "near")]);
    let mut fresh = platform(&[config("a", "far.yaml", "far")]);
    fresh.broken = vec![broken(None, None, "near.yaml")];
    fresh.failing = vec![failing(None)];
    keep_platform(&mut fresh, &good, "t1");
    assert_eq!(stale(&fresh, "a").as_deref(), Some("t1"));
    assert!(fresh.broken.is_empty());
}

#[test]
fn nothing_is_removed_while_the_platform_fails_and_all_that_is_gone_after() {
    let good = set(&[config("a", "a.yaml", "1"), config("b", "b.yaml", "1")]);
    let mut fresh = platform(&[config("b", "b.yaml", "1")]);
    fresh.failing = vec![failing(None)];
    keep_platform(&mut fresh, &good, "t1");
    assert_eq!(fresh.objects.len(), 2);
    let mut fresh = platform(&[config("b", "b.yaml", "1")]);
    keep_platform(&mut fresh, &good, "t1");
    assert_eq!(fresh.objects.len(), 1);
}

#[test]
fn a_base_that_cannot_be_had_counts_as_it_was_with_its_commit() {
    let good = set(&[base("aa"), config("a", "a.yaml", "1")]);
    let mut fresh = platform(&[base("bb")]);
    fresh.broken = vec![broken(Some(Kind::BaseRepo), Some("main"), "base.yaml")];
    fresh.failing = vec![failing(None)];
    keep_platform(&mut fresh, &good, "t1");
    assert_eq!(fresh.promoted_commit(), Some("aa"));
    assert!(fresh.broken.is_empty());
    assert_eq!(stale(&fresh, "a").as_deref(), Some("t1"));
}

#[test]
fn a_failing_application_keeps_its_own_workloads_only() {
    let registration = |name: &str| {
        let text = format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {{name: {name}}}\nspec: {{workload: {{repo: r-{name}, branch: main, path: .}}, workspace: w}}\n"
        );
        objects("r", &format!("{name}.yaml"), &text, None).remove(0)
    };
    let workload = |name: &str| {
        let text = format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {{name: {name}}}\nspec: {{deploymentTargets: []}}\n"
        );
        objects(&format!("r-{name}"), "w.yaml", &text, Some(name)).remove(0)
    };
    let good = set(&[registration("one"), registration("two"), workload("one"), workload("two")]);
    let mut fresh = platform(&[registration("one"), registration("two")]);
    fresh.failing = vec![failing(Some("one"))];
    keep_platform(&mut fresh, &good, "t1");
    keep_applications(&mut fresh, &good, "t1");
    let names: Vec<&str> = fresh.of_kind(Kind::Workload).map(|object| object.meta.name.as_str()).collect();
    assert_eq!(names, ["one"]);

    // A registration that is gone for good takes its workloads with it.
    let mut fresh = platform(&[registration("two"), workload("two")]);
    fresh.failing = vec![failing(Some("one"))];
    keep_platform(&mut fresh, &good, "t1");
    keep_applications(&mut fresh, &good, "t1");
    assert_eq!(fresh.of_kind(Kind::Workload).count(), 1);
}
