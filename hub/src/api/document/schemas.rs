//! The schemas of the description, as readers of OpenAPI expect them: what has a name is referred to by it, and nothing is there
//! that nobody refers to. A generic type such as `Page<T>` writes out its `T`; here it becomes a reference again. Called by
//! `document`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Components};
use utoipa::openapi::{OpenApi, Ref, RefOr, Schema};

/// How a schema's name begins in a reference.
const PREFIX: &str = "#/components/schemas/";

/// The named schemas as they were written.
type Named = BTreeMap<String, Schema>;

/// Makes every written-out copy of a named schema a reference to it.
pub fn refer(components: &mut Components) {
    let written = components.schemas.iter().filter_map(|(name, schema)| match schema {
        RefOr::T(schema) if has_shape(schema) => Some((name.clone(), schema.clone())),
        _ => None,
    });
    let named: Named = written.collect();
    for (name, schema) in &mut components.schemas {
        if let RefOr::T(schema) = schema {
            within(schema, name, &named);
        }
    }
}

/// Leaves out the schemas that no route needs.
pub fn leave_out_unused(api: &mut OpenApi) {
    let Ok(paths) = serde_json::to_value(&api.paths) else { return };
    let Some(components) = &mut api.components else { return };
    let mut used = BTreeSet::new();
    let mut found = names(&paths);
    while let Some(name) = found.pop() {
        let schema = components.schemas.get(&name).and_then(|schema| serde_json::to_value(schema).ok());
        if used.insert(name)
            && let Some(schema) = schema
        {
            found.extend(names(&schema));
        }
    }
    components.schemas.retain(|name, _| used.contains(name));
}

/// The names of all schemas that a part of the description refers to.
pub fn names(part: &Value) -> Vec<String> {
    match part {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(PREFIX));
            own.map(str::to_owned).into_iter().chain(fields.values().flat_map(names)).collect()
        }
        Value::Array(items) => items.iter().flat_map(names).collect(),
        _ => Vec::new(),
    }
}

/// A text or a number is itself; what has fields or choices is somebody's.
fn has_shape(schema: &Schema) -> bool {
    match schema {
        Schema::Object(object) => !object.properties.is_empty(),
        Schema::OneOf(_) | Schema::AllOf(_) | Schema::AnyOf(_) => true,
        _ => false,
    }
}

fn within(schema: &mut Schema, owner: &str, named: &Named) {
    match schema {
        Schema::Object(object) => {
            object.properties.values_mut().for_each(|field| shorten(field, owner, named));
            if let Some(AdditionalProperties::RefOr(value)) = object.additional_properties.as_deref_mut() {
                shorten(value, owner, named);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(item) = &mut array.items {
                shorten(item, owner, named);
            }
        }
        Schema::OneOf(choice) => choice.items.iter_mut().for_each(|item| shorten(item, owner, named)),
        Schema::AllOf(parts) => parts.items.iter_mut().for_each(|item| shorten(item, owner, named)),
        Schema::AnyOf(choice) => choice.items.iter_mut().for_each(|item| shorten(item, owner, named)),
        _ => {}
    }
}

fn shorten(place: &mut RefOr<Schema>, owner: &str, named: &Named) {
    let RefOr::T(schema) = place else { return };
    let same =
        || named.iter().filter(|(name, known)| name.as_str() != owner && *known == &*schema).map(|(name, _)| name);
    // `Page_ClusterSummary` means `ClusterSummary`, also when another type has the same fields.
    match same().find(|name| owner.ends_with(name.as_str())).or_else(|| same().next()) {
        Some(name) => *place = RefOr::Ref(Ref::from_schema_name(name)),
        None => within(schema, owner, named),
    }
}
