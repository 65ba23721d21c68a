//! Objects that wouldn't stay as their authors wrote them are written as they will be: only what stays can be compared and kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::document::Document;
use crate::goal::ObjectId;
use crate::record::Failure;

pub(super) fn settle(object: &mut Value, id: &ObjectId, document: &Document) -> Result<(), Failure> {
    match (id.group.as_str(), id.kind.as_str()) {
        ("", "Secret") => settle_secret(object, document),
        ("batch", "Job") => {
            settle_job(object);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A Job that removes itself when it is done would be missed, made again, and run again. It stays until it is no longer wanted.
fn settle_job(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("ttlSecondsAfterFinished");
    }
}

/// `stringData` as `data`: the server does the same once, but a key that the next version leaves out would stay.
/// `stringData` wins where both have a key, as it does on the server.
fn settle_secret(object: &mut Value, document: &Document) -> Result<(), Failure> {
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
