//! Judgements over statuses as the controllers write them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

mod argo;
mod flux;
mod platform;
mod watching;
mod whole;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::judged::{Judged, Standing, Subject, judge};
use super::name::{ARGO, HELM, KUSTOMIZE, Kind, Name, SOURCES};
use super::observations::{Facts, Fare, Scope, Watched};

pub const OLD: &str = "1111111111111111111111111111111111111111";
pub const NEW: &str = "2222222222222222222222222222222222222222";

pub fn kustomization() -> Kind {
    Kind::new(KUSTOMIZE, "Kustomization")
}

pub fn git() -> Kind {
    Kind::new(SOURCES, "GitRepository")
}

pub fn helm_release() -> Kind {
    Kind::new(HELM, "HelmRelease")
}

pub fn application() -> Kind {
    Kind::new(ARGO, "Application")
}

/// Of a whole object in the namespace `flux-system`, with generation 2 unless it says another.
pub fn judged(kind: &Kind, object: &Value) -> Judged {
    let metadata = &object["metadata"];
    judge(
        kind,
        &Subject {
            namespace: Some("flux-system"),
            generation: Some(metadata["generation"].as_i64().unwrap_or(2)),
            deleting: metadata.get("deletionTimestamp").is_some(),
            spec: &object["spec"],
            status: &object["status"],
        },
    )
}

pub fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 2,
        "lastTransitionTime": "2026-11-16T12:00:00Z"})
}

/// Everything is watched and listed.
pub fn facts(objects: &[(Kind, &str, Judged)]) -> Facts {
    let mut facts = Facts::default();
    for kind in [kustomization(), git(), helm_release(), application(), Kind::new(SOURCES, "HelmChart")] {
        let scope = Scope { kind, version: "v1".to_owned(), namespace: None, only: None };
        facts.watches.insert(scope, Watched { fare: Fare::Synced, listed: true });
    }
    for (kind, name, judged) in objects {
        facts.objects.insert(Name::new(kind.clone(), Some("flux-system"), name), judged.clone());
    }
    facts
}

#[test]
fn unknown_kinds_are_judged_by_their_conditions() {
    let kind = Kind::new("example.com", "Widget");
    let standing = |conditions: Value| judged(&kind, &json!({"status": {"conditions": conditions}})).standing;
    assert_eq!(standing(json!([condition("Ready", "True", "Ok", "")])), Standing::Ready);
    assert_eq!(standing(json!([condition("Ready", "False", "Broken", "no disk")])), Standing::Failed);
    let busy = json!([condition("Ready", "False", "Busy", ""), condition("Progressing", "True", "Busy", "")]);
    assert_eq!(standing(busy), Standing::Progressing);
    assert_eq!(standing(json!([condition("Available", "False", "Starting", "")])), Standing::Progressing);
    let stalled = json!([condition("Ready", "Unknown", "", ""), condition("Stalled", "True", "NoWay", "it can't")]);
    assert_eq!(standing(stalled), Standing::Failed);
    assert_eq!(standing(json!([condition("Synced", "False", "Refused", "no")])), Standing::Failed);
    assert_eq!(standing(json!([])), Standing::Ready);
}

#[test]
fn a_condition_of_an_older_generation_is_no_verdict() {
    let kind = Kind::new("example.com", "Widget");
    let object = json!({"metadata": {"generation": 3}, "status": {"conditions": [condition("Ready", "True", "", "")]}});
    assert_eq!(judged(&kind, &object).standing, Standing::Progressing);
    let object = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}});
    assert_eq!(judged(&kind, &object).standing, Standing::Progressing);
}

#[test]
fn what_is_being_deleted_is_in_progress() {
    let object = json!({"metadata": {"deletionTimestamp": "2026-11-16T12:00:00Z"},
        "status": {"conditions": [condition("Ready", "True", "Ok", "")]}});
    assert_eq!(judged(&kustomization(), &object).standing, Standing::Progressing);
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "True",
        "False",
        "Ready",
        "Stalled",
        "Reconciling",
        "Synced",
        "Healthy",
        "Degraded",
        "ComparisonError",
        "oci",
        "GitRepository",
        "dev@sha1:1",
        "2026-11-16T12:00:00Z",
        "",
        "\u{1b}[1m",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    let keys = vec![
        "conditions",
        "type",
        "status",
        "reason",
        "message",
        "observedGeneration",
        "sync",
        "health",
        "revision",
        "revisions",
        "operationState",
        "phase",
        "history",
        "artifact",
        "sourceRef",
        "chart",
        "spec",
        "name",
        "kind",
        "namespace",
        "ref",
        "url",
        "source",
        "sources",
        "helmChart",
        "lastAppliedRevision",
        "syncResult",
        "metadata",
        "lastTransitionTime",
        "suspend",
        "path",
        "branch",
        "repoURL",
        "targetRevision",
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        let entry = (prop::sample::select(keys.clone()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            prop::collection::vec(entry, 0..8).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_has_a_bounded_judgement(spec in any_json(), status in any_json(), generation in any::<Option<i64>>()) {
        let unknown = Kind::new("example.com", "Widget");
        let set = Kind::new(ARGO, "ApplicationSet");
        let oci = Kind::new(SOURCES, "OCIRepository");
        for kind in [kustomization(), git(), oci, helm_release(), application(), set, unknown] {
            let subject =
                Subject { namespace: Some("n"), generation, deleting: false, spec: &spec, status: &status };
            let judged = judge(&kind, &subject);
            prop_assert!(judged.message.len() <= 1_100 && judged.reason.len() <= 64);
            prop_assert!(!judged.message.chars().any(char::is_control));
            prop_assert!(judged.reason.chars().all(|letter| letter.is_ascii_alphanumeric()));
            let again = judged.clone().after(Some(&judged));
            prop_assert_eq!(again.standing, judged.standing);
        }
    }
}
