//! An object as a watch brings it, cut to a size: a status may list thousands of resources, of which none is needed here. Used by the
//! watches only; nothing of it is kept.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::judged::{Judged, Subject, judge};
use super::name::{Kind, Name};

#[derive(Clone, Debug, Deserialize)]
pub struct Seen {
    #[serde(default)]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Cut,
    #[serde(default)]
    status: Cut,
}

/// JSON of which the rest is dropped while it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cut(pub Value);

/// Values of one tree; what a judge reads is far less.
const MAX_VALUES: usize = 2_000;
/// `spec.chart.spec.sourceRef.name` is five deep.
const MAX_DEPTH: usize = 8;
/// Elements of a list: more than conditions or sources ever are.
const MAX_LIST: usize = 32;
const MAX_TEXT: usize = 2_048;

/// Shared by all values of a tree.
#[derive(Clone, Copy)]
struct Cutter<'a> {
    left: &'a Cell<usize>,
    depth: usize,
}

impl Seen {
    pub fn name(&self, kind: &Kind) -> Option<Name> {
        Some(Name::new(kind.clone(), self.metadata.namespace.as_deref(), self.metadata.name.as_deref()?))
    }

    pub fn judge(&self, kind: &Kind) -> Judged {
        judge(
            kind,
            &Subject {
                namespace: self.metadata.namespace.as_deref(),
                generation: self.metadata.generation,
                deleting: self.metadata.deletion_timestamp.is_some(),
                spec: &self.spec.0,
                status: &self.status.0,
            },
        )
    }
}

impl Resource for Seen {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<'de> Deserialize<'de> for Cut {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Cut, D::Error> {
        let left = Cell::new(MAX_VALUES);
        Cutter { left: &left, depth: 0 }.deserialize(deserializer).map(Cut)
    }
}

impl<'de> DeserializeSeed<'de> for Cutter<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth > MAX_DEPTH || self.left.get() == 0 {
            return IgnoredAny::deserialize(deserializer).map(|_| Value::Null);
        }
        self.left.set(self.left.get() - 1);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cutter<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value[..value.floor_char_boundary(MAX_TEXT)].to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < MAX_LIST {
            let Some(item) = items.next_element_seed(self.inner())? else { return Ok(Value::Array(list)) };
            list.push(item);
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            let value = entries.next_value_seed(self.inner())?;
            if self.left.get() > 0 && key.len() <= MAX_TEXT {
                map.insert(key.into_owned(), value);
            }
        }
        Ok(Value::Object(map))
    }
}

impl Cutter<'_> {
    fn inner(self) -> Self {
        Cutter { depth: self.depth + 1, ..self }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values(value: &Value) -> usize {
        1 + match value {
            Value::Array(list) => list.iter().map(values).sum(),
            Value::Object(map) => map.values().map(values).sum(),
            _ => 0,
        }
    }

    #[test]
    fn what_is_small_stays_as_it_is() {
        let whole = json!({"a": [1, -2, 0.5, true, null, {"b": "c"}], "d": {}});
        let Cut(cut) = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(cut, whole);
    }

    #[test]
    fn a_status_of_ten_thousand_resources_is_cut() {
        let long: Vec<Value> = (0..10_000).map(|number| json!({"name": number, "status": "Synced"})).collect();
        let text = json!({"resources": long, "sync": {"status": "Synced"}, "note": "x".repeat(9_000)}).to_string();
        let Cut(cut) = serde_json::from_str(&text).unwrap();
        assert!(values(&cut) <= MAX_VALUES);
        assert_eq!(cut["sync"]["status"], "Synced");
        assert_eq!(cut["note"].as_str().unwrap().len(), MAX_TEXT);
    }

    proptest! {
        #[test]
        fn no_text_panics_or_grows(text in ".{0,200}", depth in 0usize..100, width in 0usize..3_000) {
            let _ = serde_json::from_str::<Cut>(&text);
            let nested = format!("{}{}{}", "[".repeat(depth), "1,".repeat(width) + "1", "]".repeat(depth));
            let nested = if depth == 0 { format!("[{nested}]") } else { nested };
            let Cut(cut) = serde_json::from_str(&nested).unwrap();
            prop_assert!(values(&cut) <= MAX_VALUES + MAX_LIST);
        }
    }
}
