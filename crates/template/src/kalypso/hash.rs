//! hashstructure v1 with FNV-1 64: the decimal that Kalypso puts into names and annotations.

use crate::depth::check_depth;
use crate::function::Meter;
use crate::value::{Key, Opaque, Value};

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;
const BYTES_PER_STEP: u64 = 256;

/// Kalypso's `hash`. What hashstructure can't hash gives an empty text, as Kalypso does.
pub(super) fn hash(meter: &mut Meter, arguments: &[Value]) -> Result<Value, String> {
    let hashed = match arguments.first() {
        Some(value) => visit(meter, value, 0)?,
        None => None,
    };
    Ok(Value::str(hashed.map_or_else(String::new, |hash| hash.to_string())))
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, &byte| hash.wrapping_mul(PRIME) ^ u64::from(byte))
}

fn ordered(first: u64, second: u64) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..].copy_from_slice(&second.to_le_bytes());
    fnv(&bytes)
}

fn visit(meter: &mut Meter, value: &Value, depth: usize) -> Result<Option<u64>, String> {
    check_depth(depth)?;
    meter.steps(1)?;
    Ok(Some(match value {
        // An absent value counts as the int 0.
        Value::Nil => fnv(&0i64.to_le_bytes()),
        Value::Bool(truth) => fnv(&[u8::from(*truth)]),
        Value::Int(int) | Value::Int64(int) => fnv(&int.to_le_bytes()),
        Value::Uint64(int) => fnv(&int.to_le_bytes()),
        Value::Float(float) => fnv(&float.to_le_bytes()),
        Value::Complex(..) => return Ok(None),
        Value::Str(text) => {
            meter.steps(text.len() as u64 / BYTES_PER_STEP)?;
            fnv(text.as_bytes())
        }
        Value::List(list) => {
            let mut hash = 0;
            for item in &list.items {
                let Some(item) = visit(meter, item, depth + 1)? else {
                    return Ok(None);
                };
                hash = ordered(hash, item);
            }
            hash
        }
        Value::Map(map) => {
            let mut hash = 0;
            for (key, value) in map.entries.borrow().iter() {
                let Some(value) = visit(meter, value, depth + 1)? else {
                    return Ok(None);
                };
                hash ^= ordered(visit_key(key), value);
            }
            hash
        }
        Value::Struct(data) => {
            let name = data.type_name.rsplit('.').next().unwrap_or(data.type_name);
            let mut hash = fnv(name.as_bytes());
            for (field, value) in &data.fields {
                let Some(value) = visit(meter, value, depth + 1)? else {
                    return Ok(None);
                };
                hash ^= ordered(fnv(field.as_bytes()), value);
            }
            hash
        }
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Duration(int) | Opaque::Month(int) | Opaque::Weekday(int) => fnv(&int.to_le_bytes()),
            Opaque::Byte(byte) => fnv(&[*byte]),
            Opaque::Time(time) => fnv(&time.binary()),
            // All its fields are private, which leaves the type's name.
            Opaque::Version(_) => fnv(b"Version"),
        },
    }))
}

fn visit_key(key: &Key) -> u64 {
    match key {
        Key::Nil => fnv(&0i64.to_le_bytes()),
        Key::Bool(truth) => fnv(&[u8::from(*truth)]),
        Key::Int(int) => fnv(&int.to_le_bytes()),
        Key::Uint(int) => fnv(&int.to_le_bytes()),
        Key::Float(float) => fnv(&float.0.to_le_bytes()),
        Key::Str(text) => fnv(text.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use super::*;
    use crate::value::MapKind;

    fn hash_of(value: Value) -> String {
        let mut meter = Meter { steps_left: 1000, bytes_left: 1000 };
        match hash(&mut meter, &[value]) {
            Ok(Value::Str(text)) => text.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn map<const N: usize>(kind: MapKind, entries: [(&str, Value); N]) -> Value {
        Value::map(kind, entries.into_iter().map(|(key, value)| (Key::Str(Rc::from(key)), value)).collect())
    }

    #[test]
    fn hashes_are_those_of_kalypso() {
        let text = Value::str;
        assert_eq!(hash_of(text("x")), "12638153115695167399");
        assert_eq!(
            hash_of(map(MapKind::StringString, [("workload", text("w")), ("workspace", text("ws"))])),
            "12630863596351565384"
        );
        let list = Value::list(vec![text("a"), text("b")]);
        assert_eq!(hash_of(map(MapKind::StringAny, [("l", list)])), "12536984482178995987");
        let inner = map(MapKind::AnyAny, [("a", text("b"))]);
        assert_eq!(hash_of(map(MapKind::StringAny, [("m", inner.clone())])), "15791873261301798022");
        let mixed = Value::list(vec![text("a"), Value::Int(1)]);
        assert_eq!(
            hash_of(map(MapKind::StringAny, [("l", mixed), ("m", inner), ("s", text("x"))])),
            "13135242491998128885"
        );
        assert_eq!(hash_of(Value::dict(BTreeMap::new())), "0");
        assert_eq!(hash_of(Value::Complex(1.0, 1.0)), "");
    }
}
