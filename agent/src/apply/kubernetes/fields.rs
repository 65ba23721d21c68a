//! Who manages which field of an object, as `managedFields` tell it: whom a conflict is with, and whether the field is left to them, taken
//! back, or a person has to decide. Pure.

use serde_json::{Map, Value};

use crate::cluster::metadata::{Managed, Metadata};
use crate::cluster::request::Cause;

/// One step into an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Field(String),
    /// An element of a list, by the fields that tell it from others.
    Key(Map<String, Value>),
    /// An element of a set.
    Value(Value),
    Index(usize),
}

/// What is done about conflicts.
#[derive(Debug, Default, PartialEq)]
pub struct Ruling {
    /// Fields that are left to others: they are taken out of what we apply.
    pub left: Vec<Vec<Part>>,
    /// The same, as people read them.
    pub left_names: Vec<String>,
    /// Field and manager of what isn't ours to take.
    pub refused: Vec<(String, String)>,
}

/// How much we may do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rights {
    /// `conflicts: take`.
    pub take: bool,
    /// The same content was applied before: nothing new is wanted of any field.
    pub again: bool,
}

/// Deeper than any object of the server's own kinds.
const DEEPEST: usize = 64;

/// Decides about every conflict that the server named.
pub fn rule(conflicts: &[Cause], live: &Metadata, ours: bool, rights: Rights) -> Ruling {
    let mut ruling = Ruling::default();
    let others: Vec<&Managed> = live.managed_fields.iter().filter(|managed| !managed.is_ours()).collect();
    for conflict in conflicts.iter().filter(|cause| cause.reason == "FieldManagerConflict") {
        let field = conflict.field.as_str();
        let owners = others.iter().filter_map(|managed| Some((*managed, find(&managed.fields, field)?)));
        let owners: Vec<(&Managed, Vec<Part>)> = owners.collect();
        let leaves = |owner: &Managed| {
            let applies = owner.operation == "Apply";
            let scales = owner.subresource == "scale" || (applies && ours && field == ".spec.replicas");
            scales || (applies && ours && rights.again && !rights.take)
        };
        let forces =
            |owner: &Managed| rights.take || (ours && owner.operation == "Update" && owner.subresource.is_empty());
        if let Some((_, path)) = owners.iter().find(|(owner, _)| leaves(owner)) {
            ruling.left.push(path.clone());
            ruling.left_names.push(field.trim_start_matches('.').to_owned());
        } else if let Some((owner, _)) = owners.iter().find(|(owner, _)| !forces(owner)) {
            ruling.refused.push((field.to_owned(), owner.manager.clone()));
        } else if owners.is_empty() && !rights.take {
            // It changed hands since; the server's own words name the manager.
            ruling.refused.push((field.to_owned(), manager_of(&conflict.message).to_owned()));
        }
    }
    ruling
}

/// Takes a field out.
pub fn remove(object: &mut Value, path: &[Part]) {
    let Some((part, rest)) = path.split_first() else { return };
    match (part, object) {
        (Part::Field(name), Value::Object(fields)) if rest.is_empty() => _ = fields.remove(name),
        (Part::Field(name), Value::Object(fields)) => {
            if let Some(inner) = fields.get_mut(name) {
                remove(inner, rest);
            }
        }
        (part, Value::Array(items)) => {
            let Some(at) = items.iter().enumerate().position(|(at, item)| is_meant(part, at, item)) else { return };
            match rest.is_empty() {
                true => _ = items.remove(at),
                false => remove(&mut items[at], rest),
            }
        }
        _ => {}
    }
}

fn is_meant(part: &Part, at: usize, item: &Value) -> bool {
    match part {
        Part::Field(_) => false,
        Part::Key(key) => key.iter().all(|(name, value)| item.get(name) == Some(value)),
        Part::Value(value) => item == value,
        Part::Index(index) => at == *index,
    }
}

/// Where a field is that the server wrote as `.spec.containers[name="web"].image`, if it is among these.
fn find(fields: &Value, wanted: &str) -> Option<Vec<Part>> {
    let mut path = Vec::new();
    search(fields, wanted, &mut path).then_some(path)
}

fn search(fields: &Value, left: &str, path: &mut Vec<Part>) -> bool {
    let Some(fields) = fields.as_object().filter(|_| path.len() < DEEPEST) else { return false };
    for (key, inner) in fields {
        let Some((part, text)) = read(key) else { continue };
        let Some(rest) = left.strip_prefix(text.as_str()) else { continue };
        path.push(part);
        if rest.is_empty() || ((rest.starts_with('.') || rest.starts_with('[')) && search(inner, rest, path)) {
            return true;
        }
        path.pop();
    }
    false
}

/// One key of `fieldsV1`, and how the server writes it in a path.
fn read(key: &str) -> Option<(Part, String)> {
    let (tag, rest) = key.split_once(':')?;
    match tag {
        "f" => Some((Part::Field(rest.to_owned()), format!(".{rest}"))),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
            let text: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            Some((Part::Key(keys), format!("[{}]", text.join(","))))
        }
        "v" => {
            let value: Value = serde_json::from_str(rest).ok()?;
            let text = format!("[={value}]");
            Some((Part::Value(value), text))
        }
        "i" => {
            let index: usize = rest.parse().ok()?;
            Some((Part::Index(index), format!("[{index}]")))
        }
        _ => None,
    }
}

/// `conflict with "kubectl-edit" using apps/v1`.
fn manager_of(message: &str) -> &str {
    message.split('"').nth(1).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(manager: &str, operation: &str, subresource: &str) -> Metadata {
        let fields = json!({"f:spec": {
            "f:replicas": {},
            "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:name": {}, "f:image": {}}}}},
        }});
        serde_json::from_value(json!({"managedFields": [
            {"manager": "kedge", "operation": "Apply", "fieldsV1": {"f:spec": {"f:other": {}}}},
            {"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields},
        ]}))
        .unwrap()
    }

    fn conflict(field: &str) -> Vec<Cause> {
        let message = "conflict with \"x\" using apps/v1".to_owned();
        vec![Cause { reason: "FieldManagerConflict".to_owned(), message, field: field.to_owned() }]
    }

    const IMAGE: &str = ".spec.template.spec.containers[name=\"web\"].image";

    #[test]
    fn an_autoscalers_replicas_are_left_to_it_even_when_the_rest_is_taken() {
        for (take, owner) in [(false, "horizontal-pod-autoscaler"), (true, "kubectl")] {
            let rights = Rights { take, again: false };
            let ruling = rule(&conflict(".spec.replicas"), &live(owner, "Update", "scale"), true, rights);
            assert_eq!(ruling.left_names, ["spec.replicas"]);
            let mut object = json!({"spec": {"replicas": 2, "x": 1}});
            ruling.left.iter().for_each(|path| remove(&mut object, path));
            assert_eq!(object, json!({"spec": {"x": 1}}));
        }
    }

    #[test]
    fn what_somebody_edited_by_hand_is_taken_back_where_the_object_is_ours() {
        let edited = live("kubectl-edit", "Update", "");
        assert_eq!(rule(&conflict(IMAGE), &edited, true, Rights::default()), Ruling::default());
        let foreign = rule(&conflict(IMAGE), &edited, false, Rights::default());
        assert_eq!(foreign.refused, [(IMAGE.to_owned(), "kubectl-edit".to_owned())]);
        let taken = rule(&conflict(IMAGE), &edited, false, Rights { take: true, again: false });
        assert_eq!(taken, Ruling::default());
    }

    #[test]
    fn another_applier_is_not_fought_but_does_not_stop_new_content_silently() {
        let applied = live("flux", "Apply", "");
        let new = rule(&conflict(IMAGE), &applied, true, Rights::default());
        assert_eq!(new.refused, [(IMAGE.to_owned(), "flux".to_owned())]);
        let again = rule(&conflict(IMAGE), &applied, true, Rights { take: false, again: true });
        assert_eq!(again.left.len(), 1);
        let mut object = json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "web", "image": "y"}]}}}});
        remove(&mut object, &again.left[0]);
        assert_eq!(
            object["spec"]["template"]["spec"]["containers"],
            json!([{"name": "a", "image": "x"}, {"name": "web"}])
        );
    }

    #[test]
    fn a_field_that_changed_hands_since_is_told_in_the_servers_words() {
        let ruling = rule(&conflict(".data.x"), &Metadata::default(), true, Rights::default());
        assert_eq!(ruling.refused, [(".data.x".to_owned(), "x".to_owned())]);
    }

    proptest::proptest! {
        #[test]
        fn any_fields_and_paths_are_read_without_a_panic(keys in proptest::collection::vec("[fkvi.]:?[a-z{}\":0-9]{0,8}", 0..6), wanted in "[.a-z\\[\\]=\"]{0,20}") {
            let mut fields = json!({});
            for key in &keys {
                fields = json!({ key: fields, "f:x": {} });
            }
            if let Some(path) = find(&fields, &wanted) {
                remove(&mut json!({"x": [{"a": 1}]}), &path);
            }
        }
    }
}
