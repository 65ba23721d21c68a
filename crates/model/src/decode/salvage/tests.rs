//! What is made out of texts that aren't YAML, and what is left open.

use super::*;

const BROKEN: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: east-us-config # ours
  labels:
    platform-config: \"true\"
    region: east-us
  annotations:
    note: x
data:
  A: [1, 2
";

fn one(text: &str, fault_line: Option<usize>) -> Salvaged {
    let mut found = read(text, 1, fault_line);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn labels(pairs: &[(&str, &str)]) -> Option<Labels> {
    Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn kind_name_and_labels_are_found_when_the_fault_is_elsewhere() {
    for text in [BROKEN.to_owned(), BROKEN.replace('\n', "\r\n")] {
        let found = one(&text, Some(12));
        assert_eq!(found.kind, Some(Kind::ConfigMap));
        assert_eq!(found.name.as_deref(), Some("east-us-config"));
        assert_eq!(found.labels, labels(&[("platform-config", "true"), ("region", "east-us")]));
    }
}

#[test]
fn labels_are_left_out_when_the_fault_is_among_them() {
    let found = one(BROKEN, Some(7));
    assert_eq!(found.name.as_deref(), Some("east-us-config"));
    assert_eq!(found.labels, None);
}

#[test]
fn metadata_without_labels_has_none() {
    let found = one("kind: ConfigMap\nmetadata:\n  name: a\ndata:\n\tb: c\n", Some(5));
    assert_eq!(found.labels, labels(&[]));
}

#[test]
fn labels_that_cannot_be_made_out_are_left_out() {
    for text in [
        "metadata: {labels: {a: b}}",
        "metadata:\n  labels: {a: b}\n",
        "metadata:\n  labels:\n    a\n",
        "metadata:\n\tname: a\n\tlabels:\n\t\ta: b\n",
        "metadata:\n  name: a\n\tlabels:\n",
        "metadata:\n  labels:\n    a:\n      b: c\n",
        "metadata:\n  labels:\n    a: b\n      c\n",
        "metadata:\n  labels:\n    a: |\n      b\n",
        "metadata:\n  labels:\n    <<: *common\n",
        "metadata:\n    name: a\n  labels:\n    a: b\n",
        "kind ConfigMap",
        "",
    ] {
        assert_eq!(one(&format!("kind: ConfigMap\n{text}"), None).labels, None, "{text}");
    }
}

#[test]
fn fields_of_other_fields_are_not_taken() {
    let text = "\
# kind: Template
kind: ConfigMap
metadata:
  annotations:
    name: wrong
    labels: wrong
    note: |
      labels:
        wrong: wrong
  ownerReferences:
  - kind: Wrong
    name: wrong
  name: right
  labels:
    a: b
data:
  kind: Template
  metadata: |
    name: wrong
";
    let found = one(text, None);
    assert_eq!((found.kind, found.name.as_deref()), (Some(Kind::ConfigMap), Some("right")));
    assert_eq!(found.labels, labels(&[("a", "b")]));
    let found = one("kind: ConfigMap\nmetadata:\n  note: |\n    name: wrong\n  name: right\n", None);
    assert_eq!(found.name.as_deref(), Some("right"));
}

#[test]
fn objects_without_a_line_between_them_are_two() {
    let template = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata:\n  name: t\nspec: {}\n";
    let found = read(&format!("{template}{BROKEN}"), 1, Some(6));
    assert_eq!(found.iter().map(|found| found.kind).collect::<Vec<_>>(), [Some(Kind::Template), Some(Kind::ConfigMap)]);
    assert_eq!(found[1].name.as_deref(), Some("east-us-config"));
    assert_eq!(found[1].labels, labels(&[("platform-config", "true"), ("region", "east-us")]));

    let found = read("kind: ConfigMap\nmetadata:\n  name: a\nmetadata:\n  labels:\n    a: b\n", 1, Some(4));
    assert_eq!(found[0].kind, Some(Kind::ConfigMap));
    assert!(found.iter().all(|found| found.labels.is_none()), "nobody knows which labels were meant");
}

#[test]
fn objects_inside_a_list_or_braces_are_found_by_their_kind() {
    for text in [
        "apiVersion: v1\nkind: List\nitems:\n- kind: Template\n  a: [\n- kind: ConfigMap\n",
        "{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {",
        "{apiVersion: v1, kind: ConfigMap, data: {",
        "kind: [\nitems: {kind: ConfigMap}",
    ] {
        let found = read(text, 1, None);
        assert_eq!(found.last().unwrap().kind, Some(Kind::ConfigMap), "{text}");
        assert_eq!(found.last().unwrap().labels, None);
    }
    assert_eq!(one("apiVersion: v1\ndata:\n  a: b\n", None).kind, Some(Kind::ConfigMap), "nothing else has data");
    assert_eq!(one("kind: Deployment\nspec:\n  kind: ConfigMap\n", None).kind, None, "it says what it is");
    assert_eq!(one("# kind: ConfigMap\nnothing: [\n", None).kind, None);
}

#[test]
fn a_text_of_nothing_but_kinds_is_one_object() {
    assert_eq!(one(&"kind: ConfigMap\n".repeat(100_000), None).kind, Some(Kind::ConfigMap));
}
