//! The words of Kedge as types: the kinds people write, where each object came from, what is wrong with it, and the
//! `Platform` that the scheduler reads. No I/O, no clock; every other crate depends on this one.

pub mod address;
pub mod command;
pub mod decode;
pub mod kinds;
pub mod kubernetes;
pub mod name;
pub mod object;
pub mod origin;
pub mod platform;
pub mod problem;
pub mod quantity;
pub mod schema;
pub mod selector;
pub mod shown;
pub mod text;
pub mod wire;

pub use decode::{Decoded, Options};
pub use kinds::Spec;
pub use object::{Kind, Meta, Object, ObjectId};
pub use origin::{Origin, Source};
pub use platform::{AssignmentId, Broken, Empty, EmptyInput, Failing, Platform, Tenant};
pub use problem::{Excerpt, Problem, Severity};
pub use selector::{Mismatch, Operator, Requirement, Selector};

/// Labels of an object: sorted, so that every walk over them is the same.
pub type Labels = std::collections::BTreeMap<String, String>;
