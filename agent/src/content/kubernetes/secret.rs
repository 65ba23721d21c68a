//! A Secret's `stringData` as `data`. The server would do the same once; but it wouldn't remove a key that the next version leaves out, and
//! what it keeps couldn't be compared.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::document::Document;
use crate::record::Failure;

/// `stringData` wins where both have a key, as it does on the server.
pub(super) fn settle(object: &mut Value, document: &Document) -> Result<(), Failure> {
    let plain = match object.as_object_mut().and_then(|object| object.remove("stringData")) {
        Some(Value::Object(plain)) => plain,
        None | Some(Value::Null) => return Ok(()),
        Some(_) => return Err(document.wrong("`stringData` of the Secret must be a map")),
    };
    let mut data = match object["data"].take() {
        Value::Object(data) => data,
        Value::Null => Map::new(),
        _ => return Err(document.wrong("`data` of the Secret must be a map")),
    };
    for (key, value) in plain {
        // The value itself is nobody's to see.
        let Value::String(text) = value else {
            let key = key.escape_debug();
            return Err(document.wrong(&format!("`stringData.{key}` of the Secret must be a text; write it in quotes")));
        };
        data.insert(key, Value::from(STANDARD.encode(text)));
    }
    object["data"] = Value::Object(data);
    Ok(())
}
