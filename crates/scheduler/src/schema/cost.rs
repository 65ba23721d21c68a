//! What a schema may cost. A few kilobytes of references can ask for more checks of one value than a machine does in a year, so
//! they are counted before the first is done. Called when a schema is compiled.

use std::collections::BTreeMap;

use serde_json::Value;

/// Checks along one way from the root of a configuration to a value. Schemas of whole Kubernetes objects stay far below.
const MOST: u64 = 100_000;

/// How deep a configuration is looked into. Deeper ones are rare, and what is as deep costs no more at each level.
const DEPTH: usize = 8;

/// A schema that refers to itself without going into the value never ends.
const NESTING: usize = 500;

/// Keywords whose schemas look at the same value.
const SAME: [&str; 12] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
    "contentSchema",
];
/// Of these only what is referred to counts.
const STORED: [&str; 2] = ["$defs", "definitions"];
/// Keywords whose schemas look at the values inside, each at all of them.
const INSIDE: [&str; 8] = [
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "items",
];
/// Keywords of which one schema looks at one value inside.
const ONE_EACH: [&str; 2] = ["properties", "prefixItems"];
/// Published schemas of schemas, which the validator knows.
const PUBLISHED: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// Why a schema isn't used.
pub fn check(schema: &Value) -> Result<(), String> {
    let mut count = Count { root: schema, ids: BTreeMap::new(), known: BTreeMap::new() };
    count.collect_ids(schema, 0)?;
    match count.of(schema, DEPTH, 0)? {
        cost if cost > MOST => Err(format!(
            "its references ask for {} checks of one value, and at most {MOST} are done: repeat fewer references to schemas that \
             repeat others",
            if cost == u64::MAX { "countless".to_owned() } else { cost.to_string() }
        )),
        _ => Ok(()),
    }
}

struct Count<'s> {
    root: &'s Value,
    /// Schemas that have a name, by that name.
    ids: BTreeMap<&'s str, &'s Value>,
    /// By the schema's address and the depth that is left; none while it is being counted.
    known: BTreeMap<(*const Value, usize), Option<u64>>,
}

impl<'s> Count<'s> {
    fn collect_ids(&mut self, schema: &'s Value, nesting: usize) -> Result<(), String> {
        if nesting > NESTING {
            return Err(format!("it is nested more than {NESTING} deep"));
        }
        match schema {
            Value::Object(fields) => {
                for (key, value) in fields {
                    if let ("$id" | "id" | "$anchor" | "$dynamicAnchor", Value::String(id)) = (key.as_str(), value) {
                        self.ids.insert(id.trim_start_matches('#'), schema);
                    }
                    self.collect_ids(value, nesting + 1)?;
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.collect_ids(item, nesting + 1)),
            _ => Ok(()),
        }
    }

    /// Checks that a schema asks for at a value with `depth` levels inside that are looked at.
    fn of(&mut self, schema: &'s Value, depth: usize, nesting: usize) -> Result<u64, String> {
        let Value::Object(fields) = schema else { return Ok(1) };
        let key = (std::ptr::from_ref(schema), depth);
        match self.known.get(&key) {
            Some(Some(cost)) => return Ok(*cost),
            Some(None) => return Err("it refers to itself without going into the value".to_owned()),
            None => {}
        }
        if nesting > NESTING {
            return Err(format!("its references are nested more than {NESTING} deep"));
        }
        self.known.insert(key, None);
        let mut cost = 1u64;
        for (keyword, value) in fields {
            let keyword = keyword.as_str();
            let more = if let ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) = (keyword, value) {
                match self.target(reference)? {
                    Some(target) => self.of(target, depth, nesting + 1)?,
                    None => 1,
                }
            } else if SAME.contains(&keyword) && !STORED.contains(&keyword) {
                self.sum(value, depth, nesting)?
            } else if depth == 0 {
                0
            } else if INSIDE.contains(&keyword) {
                self.sum(value, depth - 1, nesting)?
            } else if ONE_EACH.contains(&keyword) {
                self.most(value, depth - 1, nesting)?
            } else {
                0
            };
            cost = cost.saturating_add(more);
        }
        self.known.insert(key, Some(cost));
        Ok(cost)
    }

    /// Of a schema, a list of schemas, or schemas by name: all of them.
    fn sum(&mut self, value: &'s Value, depth: usize, nesting: usize) -> Result<u64, String> {
        if is_schema(value) {
            return self.of(value, depth, nesting + 1);
        }
        children(value).try_fold(0u64, |sum, child| Ok(sum.saturating_add(self.of(child, depth, nesting + 1)?)))
    }

    /// The most that one of several schemas asks for.
    fn most(&mut self, value: &'s Value, depth: usize, nesting: usize) -> Result<u64, String> {
        children(value).try_fold(0u64, |most, child| Ok(most.max(self.of(child, depth, nesting + 1)?)))
    }

    /// None: a published schema.
    fn target(&self, reference: &str) -> Result<Option<&'s Value>, String> {
        if PUBLISHED.iter().any(|known| reference.starts_with(known)) {
            return Ok(None);
        }
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let strange = || format!("nothing is at its reference `{}`", reference.escape_debug());
        let elsewhere = || "it refers to another document, and those aren't fetched".to_owned();
        let name = |id: &str| self.ids.get(id).copied();
        let base = match document {
            "" => self.root,
            document => {
                let last = document.rsplit('/').next().unwrap_or(document);
                name(document).or_else(|| name(last)).ok_or_else(elsewhere)?
            }
        };
        if fragment.is_empty() {
            return Ok(Some(base));
        }
        let decoded = percent_decoded(fragment);
        let found = if decoded.starts_with('/') { base.pointer(&decoded) } else { name(&decoded) };
        found.map(Some).ok_or_else(strange)
    }
}

/// `allOf` has a list, `dependentSchemas` schemas by name; `not` and `items` may have one schema.
fn is_schema(value: &Value) -> bool {
    let Value::Object(fields) = value else { return false };
    let is_keyword = |key: &String| {
        let key = key.as_str();
        SAME.contains(&key) || INSIDE.contains(&key) || ONE_EACH.contains(&key) || key.starts_with('$') || key == "type"
    };
    fields.keys().any(is_keyword)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let coded = text.get(at + 1..at + 3).filter(|_| *byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(coded.unwrap_or(*byte));
        at += if coded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Levels of definitions, each referring ten times to the next.
    fn fan(keyword: &str, levels: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/definitions/l{}", level + 1)});
            let many: Vec<Value> = (0..10).map(|_| next.clone()).collect();
            definitions.insert(format!("l{level}"), json!({keyword: many}));
        }
        definitions.insert(format!("l{levels}"), json!({}));
        json!({"allOf": [{"$ref": "#/definitions/l0"}], "definitions": definitions})
    }

    #[test]
    fn references_that_repeat_references_are_refused() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert!(check(&fan(keyword, 20)).unwrap_err().contains("checks of one value"), "{keyword}");
            assert_eq!(check(&fan(keyword, 3)), Ok(()), "{keyword}");
        }
        let inside = json!({"additionalProperties": {"allOf": [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}, {"$ref": "#"}]}});
        assert!(check(&inside).is_err());
        let by_name = json!({"$ref": "#a", "definitions": {"a": {"$anchor": "a", "allOf": [{"$ref": "#/definitions/b"}]}, "b": {}}});
        assert_eq!(check(&by_name), Ok(()));
    }

    #[test]
    fn a_reference_to_itself_is_fine_when_it_goes_into_the_value() {
        assert_eq!(check(&json!({"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}})), Ok(()));
        assert_eq!(check(&json!({"items": {"$ref": "#"}, "properties": {"items": {"type": "string"}}})), Ok(()));
        assert!(check(&json!({"$ref": "#"})).unwrap_err().contains("itself"));
        assert!(
            check(&json!({"allOf": [{"$ref": "#/definitions/a"}], "definitions": {"a": {"not": {"$ref": "#"}}}}))
                .is_err()
        );
    }

    #[test]
    fn wide_schemas_without_repetition_are_fine() {
        let wide: serde_json::Map<String, Value> = (0..5000)
            .map(|n| (format!("p{n}"), json!({"type": "string", "oneOf": [{"minLength": 1}, {"const": ""}]})))
            .collect();
        assert_eq!(check(&json!({"type": "object", "properties": wide})), Ok(()));
    }

    #[test]
    fn references_elsewhere_are_refused_by_name() {
        for reference in ["http://example.com/a.json", "file:///etc/passwd", "other.json#/a"] {
            assert!(check(&json!({"$ref": reference})).unwrap_err().contains("another document"), "{reference}");
        }
        assert!(check(&json!({"$ref": "#/definitions/none"})).unwrap_err().contains("`#/definitions/none`"));
        assert_eq!(check(&json!({"$ref": "http://json-schema.org/draft-07/schema#"})), Ok(()));
        assert_eq!(check(&json!({"$ref": "#/definitions/a%20b~1c", "definitions": {"a b/c": {}}})), Ok(()));
        assert_eq!(
            check(&json!({"$id": "http://h/root.json", "$ref": "http://h/part.json#/definitions/x",
            "definitions": {"p": {"$id": "part.json", "definitions": {"x": {}}}}})),
            Ok(())
        );
    }
}
