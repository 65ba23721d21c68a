//! Which of several objects with one name is in force.

use kedge_model::kinds::ConfigMap;
use kedge_model::{Kind, Meta, Source, Spec};

use super::*;

fn origin(repo: &str, file: &str, line: u32) -> Origin {
    let source = Arc::new(Source { repo: repo.to_owned(), revision: None });
    Origin { source, file: file.into(), line, column: 1 }
}

fn config(name: &str, label: &str, origin: Origin) -> Arc<Object> {
    let labels = [("region".to_owned(), label.to_owned())].into();
    Arc::new(Object {
        meta: Meta { name: name.to_owned(), labels, ..Meta::default() },
        spec: Spec::ConfigMap(ConfigMap::default()),
        origin,
        owner: None,
        stale_since: None,
    })
}

fn broken(name: &str, origin: Origin) -> Broken {
    let problem = Problem::error("X", "broken").at(origin);
    Broken { kind: Some(Kind::ConfigMap), name: Some(name.to_owned()), owner: None, labels: None, problem }
}

#[test]
fn the_nearer_level_wins_with_a_warning_that_names_both_places() {
    let mut layers = Layers::default();
    layers.add(vec![config("c", "a", origin("env", "e.yaml", 1))], Vec::new());
    let new = layers.add(
        vec![config("c", "b", origin("base", "b.yaml", 7)), config("d", "b", origin("base", "b.yaml", 20))],
        Vec::new(),
    );
    assert_eq!(new.iter().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["d"]);
    assert_eq!(layers.objects.len(), 2);
    let kept = layers.objects.values().next().unwrap();
    assert_eq!(kept.origin.source.repo, "env");
    let [problem] = layers.problems.as_slice() else { panic!("{:?}", layers.problems) };
    assert_eq!(
        problem.message,
        "ConfigMap c is defined in e.yaml:1:1 of env too, which is nearer and wins; the one here has no effect"
    );
    assert!(!problem.is_error());
    assert_eq!(problem.origin.as_ref().unwrap().to_string(), "b.yaml:7:1");
    assert_eq!(problem.related[0].to_string(), "e.yaml:1:1");
    assert!(layers.failures.is_empty() && layers.broken.is_empty());
}

#[test]
fn of_two_at_one_level_neither_is_used() {
    let mut layers = Layers::default();
    let objects = vec![config("c", "a", origin("env", "x.yaml", 1)), config("c", "a", origin("env", "y.yaml", 2))];
    assert!(layers.add(objects, Vec::new()).is_empty());
    assert!(layers.objects.is_empty());
    let [refused] = layers.broken.as_slice() else { panic!("{:?}", layers.broken) };
    assert_eq!(
        refused.problem.message,
        "ConfigMap c is defined 2 times: in x.yaml:1:1 of env and in y.yaml:2:1 of env; none of them is used"
    );
    assert_eq!(refused.problem.related.len(), 1);
    assert_eq!(refused.labels.as_ref().unwrap()["region"], "a");
    assert_eq!(layers.failures.len(), 1);

    // Nor does a farther one step in.
    assert!(layers.add(vec![config("c", "a", origin("base", "b.yaml", 1))], Vec::new()).is_empty());
    assert!(layers.objects.is_empty());
}

#[test]
fn labels_that_disagree_are_unknown() {
    let mut layers = Layers::default();
    let objects = vec![config("c", "a", origin("env", "x.yaml", 1)), config("c", "b", origin("env", "y.yaml", 2))];
    layers.add(objects, Vec::new());
    assert_eq!(layers.broken[0].labels, None);
}

#[test]
fn a_broken_object_is_not_replaced_by_a_farther_one() {
    let mut layers = Layers::default();
    layers.add(Vec::new(), vec![broken("c", origin("env", "e.yaml", 3))]);
    assert!(layers.add(vec![config("c", "a", origin("base", "b.yaml", 1))], Vec::new()).is_empty());
    assert!(layers.objects.is_empty());
    assert_eq!(layers.broken.len(), 1);
}

#[test]
fn a_farther_broken_object_stops_nothing() {
    let mut layers = Layers::default();
    layers.add(vec![config("c", "a", origin("env", "e.yaml", 1))], Vec::new());
    layers.add(Vec::new(), vec![broken("c", origin("base", "b.yaml", 3))]);
    assert_eq!(layers.objects.len(), 1);
    assert!(layers.broken.is_empty());
}

#[test]
fn one_file_reached_twice_is_one_definition() {
    let mut layers = Layers::default();
    let object = config("c", "a", origin("env", "x.yaml", 1));
    layers.add(vec![object.clone(), object], Vec::new());
    assert_eq!(layers.objects.len(), 1);
    assert!(layers.problems.is_empty());
}
