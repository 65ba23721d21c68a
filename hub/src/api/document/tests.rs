//! What every reader of OpenAPI insists on: a new route that forgets it fails here, by name.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{openapi, schemas};

fn description() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

fn operations(api: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (path, item) in api["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, item)| item["responses"].is_object()) {
            found.push((format!("{method} {path}"), operation));
        }
    }
    assert!(found.len() > 60, "{}", found.len());
    found
}

#[test]
fn every_answer_has_a_description() {
    let api = description();
    for (operation, said) in operations(&api) {
        for (status, answer) in said["responses"].as_object().unwrap() {
            let text = answer["description"].as_str().unwrap_or_default().trim();
            assert!(
                !text.is_empty(),
                "{operation} {status}: give the handler a doc comment, or the answer a `description`"
            );
        }
        assert!(said["summary"].as_str().is_some_and(|text| !text.is_empty()), "{operation} has no doc comment");
    }
}

#[test]
fn every_schema_is_used_and_every_reference_leads_to_one() {
    let api = description();
    let defined: BTreeSet<&String> = api["components"]["schemas"].as_object().unwrap().keys().collect();
    let referred = schemas::names(&api);
    let referred: BTreeSet<&String> = referred.iter().collect();
    assert_eq!(defined, referred);
}

#[test]
fn every_operation_has_a_name_of_its_own() {
    let api = description();
    let mut seen = BTreeSet::new();
    for (operation, said) in operations(&api) {
        let name = said["operationId"].as_str().unwrap_or_default();
        assert!(!name.is_empty() && seen.insert(name), "{operation}: `{name}` is missing or used twice");
    }
}

/// A generated client has one type for a thing, in a list and alone.
#[test]
fn a_list_refers_to_the_type_of_its_items() {
    let api = description();
    let schemas = api["components"]["schemas"].as_object().unwrap();
    let pages = schemas.iter().filter_map(|(name, page)| Some((name.strip_prefix("Page_")?, page)));
    let mut checked = 0;
    for (item, page) in pages.filter(|(item, _)| schemas.contains_key(*item)) {
        let to = format!("#/components/schemas/{item}");
        assert_eq!(page["properties"]["items"]["items"]["$ref"], to.as_str(), "{item}");
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}
