//! The pods of an object: its selector as the API server takes it in an address.

use serde_json::Value;

/// None: the object has no pods, or would name all of them.
pub fn selector_of(live: &Value) -> Option<String> {
    let selector = live["spec"]["selector"].as_object()?;
    let structured = selector.contains_key("matchLabels") || selector.contains_key("matchExpressions");
    let labels = match structured {
        true => selector.get("matchLabels").and_then(Value::as_object),
        // A ReplicationController's is a plain map.
        false => Some(selector),
    };
    let mut terms = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str()?));
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        terms.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!terms.is_empty()).then(|| terms.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_and_expressions_become_one_text() {
        let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["x", "y"]},
            {"key": "d", "operator": "Exists"},
            {"key": "e", "operator": "DoesNotExist"},
        ]});
        let text = selector_of(&json!({"spec": {"selector": selector}}));
        assert_eq!(text.as_deref(), Some("a=1,b=2,c in (x,y),d,!e"));
        assert_eq!(selector_of(&json!({"spec": {"selector": {"app": "web"}}})).as_deref(), Some("app=web"));
        for none in [json!({}), json!({"spec": {"selector": {}}}), json!({"spec": {"selector": {"matchLabels": {}}}})] {
            assert_eq!(selector_of(&none), None);
        }
    }
}
