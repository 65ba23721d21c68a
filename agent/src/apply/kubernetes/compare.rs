//! What differs between an object as it is and as applying it again would make it, in words that a person reads. Pure. Values that may
//! be secret are never shown.

use std::collections::BTreeSet;

use serde_json::Value;

/// What the server keeps by itself, or what isn't ours to say.
const OF_THE_SERVER: [&str; 7] =
    ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink", "deletionTimestamp"];
/// More fields are only counted.
const SHOWN: usize = 4;
/// A longer value is cut.
const MAX_VALUE: usize = 80;
/// A field of such a name may hold a secret.
const SECRET: [&str; 8] = ["password", "passwd", "secret", "token", "credential", "apikey", "private", "lastapplied"];

/// None: nothing differs.
pub fn difference(live: &Value, wanted: &Value) -> Option<String> {
    let mut found = Vec::new();
    let hidden = wanted["kind"] == "Secret";
    let keys = |value: &Value| value.as_object().map(|fields| fields.keys().cloned().collect::<Vec<_>>());
    let all: BTreeSet<String> = [keys(live), keys(wanted)].into_iter().flatten().flatten().collect();
    for key in all.iter().filter(|key| key.as_str() != "status") {
        let (mut is, mut should) = (live[key].clone(), wanted[key].clone());
        if key == "metadata" {
            for value in [&mut is, &mut should] {
                if let Some(fields) = value.as_object_mut() {
                    fields.retain(|name, _| !OF_THE_SERVER.contains(&name.as_str()));
                }
            }
        }
        walk(&is, &should, key, hidden && key != "metadata", &mut found);
    }
    if found.is_empty() {
        return None;
    }
    let mut text = found.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if found.len() > SHOWN {
        text.push_str(&format!(", and {} more", found.len() - SHOWN));
    }
    Some(text)
}

fn walk(is: &Value, should: &Value, path: &str, hidden: bool, found: &mut Vec<String>) {
    match (is, should) {
        (Value::Object(live), Value::Object(wanted)) => {
            let keys: BTreeSet<&String> = live.keys().chain(wanted.keys()).collect();
            for key in keys {
                let inner = match key.contains(['.', '/']) {
                    true => format!("{path}[{key}]"),
                    false => format!("{path}.{key}"),
                };
                let of = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(Value::Null);
                let (mut is, mut should) = (of(live), of(wanted));
                // What is wholly missing is told by its fields.
                for (one, other) in
                    [(&mut is, should.is_object()), (&mut should, live.get(key).is_some_and(Value::is_object))]
                {
                    if one.is_null() && other {
                        *one = Value::Object(serde_json::Map::new());
                    }
                }
                walk(&is, &should, &inner, hidden || looks_secret(key), found);
            }
        }
        (Value::Array(live), Value::Array(wanted)) => match (named(live), named(wanted)) {
            (Some(old), Some(new)) => {
                let names: BTreeSet<&str> = old.iter().chain(&new).map(|(name, _)| *name).collect();
                for name in names {
                    let of = |items: &[(&str, &Value)]| {
                        items.iter().find(|(other, _)| *other == name).map_or(Value::Null, |(_, item)| (*item).clone())
                    };
                    walk(&of(&old), &of(&new), &format!("{path}[{name}]"), hidden || looks_secret(name), found);
                }
                let order =
                    |items: &[(&str, &Value)]| items.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
                if old.len() == new.len() && order(&old) != order(&new) && live.len() == wanted.len() {
                    let same: BTreeSet<String> = order(&old).into_iter().collect();
                    if same == order(&new).into_iter().collect() {
                        found.push(format!("{path} is in another order"));
                    }
                }
            }
            _ => {
                for at in 0..live.len().max(wanted.len()) {
                    let of = |items: &[Value]| items.get(at).cloned().unwrap_or(Value::Null);
                    walk(&of(live), &of(wanted), &format!("{path}[{at}]"), hidden, found);
                }
            }
        },
        (is, should) if is == should => {}
        (is, should) => found.push(match (is, should) {
            _ if hidden => format!("{path} differs"),
            (Value::Null, should) => format!("{path} is missing instead of {}", show(should)),
            (is, Value::Null) => format!("{path} is {} and was not applied", show(is)),
            (is, should) => format!("{path} is {} instead of {}", show(is), show(should)),
        }),
    }
}

/// Elements by name, if each has one of its own.
fn named(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let all: Option<Vec<(&str, &Value)>> = items.iter().map(|item| Some((item.get("name")?.as_str()?, item))).collect();
    let all = all?;
    let different: BTreeSet<&str> = all.iter().map(|(name, _)| *name).collect();
    (different.len() == all.len()).then_some(all)
}

fn show(value: &Value) -> String {
    match value {
        Value::Object(fields) => format!("{{{} fields}}", fields.len()),
        Value::Array(items) => format!("[{} elements]", items.len()),
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    match text.len() > MAX_VALUE {
        true => format!("{}…", &text[..text.floor_char_boundary(MAX_VALUE)]),
        false => text.to_owned(),
    }
}

fn looks_secret(key: &str) -> bool {
    let key = key.to_lowercase().replace(['_', '-'], "");
    SECRET.iter().any(|word| key.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_changed_image_is_told_with_both_values() {
        let object = |image: &str, rv: &str| {
            json!({"kind": "Deployment", "metadata": {"name": "web", "resourceVersion": rv, "generation": 1}, "status": {"x": rv},
                "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s"}, {"name": "web", "image": image}]}}}})
        };
        assert_eq!(difference(&object("shop:1", "1"), &object("shop:1", "2")), None);
        assert_eq!(
            difference(&object("evil:9", "1"), &object("shop:1", "2")).unwrap(),
            "spec.template.spec.containers[web].image is evil:9 instead of shop:1"
        );
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_told() {
        let live = json!({"metadata": {"labels": {"a/b": "1"}}, "spec": {"ports": [80, 443], "x": 1}});
        let wanted = json!({"metadata": {"labels": {}}, "spec": {"ports": [80], "y": true}});
        assert_eq!(
            difference(&json!({"metadata": {}}), &json!({"metadata": {"labels": {"a": "b"}}})).unwrap(),
            "metadata.labels.a is missing instead of b"
        );
        assert_eq!(
            difference(&live, &wanted).unwrap(),
            "metadata.labels[a/b] is 1 and was not applied, spec.ports[1] is 443 and was not applied, \
             spec.x is 1 and was not applied, spec.y is missing instead of true"
        );
    }

    #[test]
    fn no_secret_is_shown() {
        let secret =
            |value: &str| json!({"kind": "Secret", "data": {"k": value}, "metadata": {"labels": {"a": value}}});
        let text = difference(&secret("c2Vj"), &secret("b3Ro")).unwrap();
        assert_eq!(text, "data.k differs, metadata.labels.a is c2Vj instead of b3Ro");
        let env = |value: &str| json!({"spec": {"env": [{"name": "DB_PASSWORD", "value": value}]}});
        assert_eq!(difference(&env("geheim"), &env("anders")).unwrap(), "spec.env[DB_PASSWORD].value differs");
    }

    #[test]
    fn many_fields_are_counted() {
        let object =
            |value: u8| json!({"spec": {"a": value, "b": value, "c": value, "d": value, "e": value, "f": value}});
        assert!(difference(&object(1), &object(2)).unwrap().ends_with(", and 2 more"));
    }
}
