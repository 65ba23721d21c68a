//! YAML as Go's libraries read and write it, because Kalypso's files are what those libraries made of them.
//!
//! [`node::parse`] reads the files of a platform with positions and strict rules; [`decode()`] is yaml.v2's `Unmarshal`, which
//! says what a configuration value is; [`encode()`] is yaml.v3's `Marshal`, which writes it.

mod check;
mod compose;
mod decode;
mod encode;
mod error;
pub mod node;
mod number;
mod resolve;
mod scan;
mod split;
mod value;

pub use decode::decode;
pub use encode::{encode, encode_map, encode_ordered};
pub use error::{DecodeError, Limits, ParseError};
pub use node::{Node, NodeValue, Style};
pub use split::split;
pub use value::{Float, Key, Value};
