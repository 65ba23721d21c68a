//! A value on its way through an expression. Beyond a `Value` it knows whether it sits in an interface, as Go's
//! reflection does, and it can be a borrowed text or a part of the context that nobody has had to build yet.

use std::borrow::Cow;

use crate::context::{Data, Part, TYPE_NAME};
use crate::value::{Opaque, Value};

#[derive(Clone, Debug)]
pub(crate) struct Item<'v> {
    pub inner: Inner<'v>,
    /// An element of a map or list of `interface {}`.
    pub boxed: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Inner<'v> {
    /// No value when plain, a nil interface when boxed.
    Nothing,
    /// The context itself.
    Root,
    Part(Part),
    Text(&'v str),
    Value(Value),
}

/// What comparisons see.
#[derive(Debug, PartialEq)]
pub(crate) enum Basic<'o> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(f64, f64),
    Text(&'o str),
}

impl<'v> Item<'v> {
    pub(crate) const NOTHING: Item<'static> = Item { inner: Inner::Nothing, boxed: false };

    pub(crate) fn plain(inner: Inner<'v>) -> Item<'v> {
        Item { inner, boxed: false }
    }

    /// A value of a concrete type; nil is nothing.
    pub(crate) fn value(value: Value) -> Item<'v> {
        match value {
            Value::Nil => Item::NOTHING,
            value => Item::plain(Inner::Value(value)),
        }
    }

    /// A value in an interface, which may be nil.
    pub(crate) fn boxed(value: Value) -> Item<'v> {
        match value {
            Value::Nil => Item { inner: Inner::Nothing, boxed: true },
            value => Item { inner: Inner::Value(value), boxed: true },
        }
    }

    /// What the interface holds.
    pub(crate) fn unboxed(mut self) -> Item<'v> {
        self.boxed = false;
        self
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.inner, Inner::Nothing)
    }

    pub(crate) fn into_value(self, data: &Data<'v>) -> Value {
        match self.inner {
            Inner::Nothing => Value::Nil,
            Inner::Root => data.root(),
            Inner::Part(part) => data.part(part),
            Inner::Text(text) => Value::str(text),
            Inner::Value(value) => value,
        }
    }

    /// The type of what is inside.
    pub(crate) fn inner_type(&self) -> &'static str {
        match &self.inner {
            Inner::Nothing => "interface {}",
            Inner::Root => TYPE_NAME,
            Inner::Part(Part::Config) => "map[string]interface {}",
            Inner::Part(_) => "map[string]string",
            Inner::Text(_) => "string",
            Inner::Value(value) => value.type_name(),
        }
    }

    /// The static type: an interface hides what is inside.
    pub(crate) fn static_type(&self) -> &'static str {
        if self.boxed { "interface {}" } else { self.inner_type() }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.inner {
            Inner::Text(text) => Some(text),
            Inner::Value(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_true(&self, data: &Data<'_>) -> bool {
        match &self.inner {
            Inner::Nothing => false,
            Inner::Root => true,
            Inner::Part(part) => !data.is_empty(*part),
            Inner::Text(text) => !text.is_empty(),
            Inner::Value(value) => is_true(value),
        }
    }

    pub(crate) fn basic(&self) -> Option<Basic<'_>> {
        match &self.inner {
            Inner::Text(text) => Some(Basic::Text(text)),
            Inner::Value(value) => match value {
                Value::Bool(truth) => Some(Basic::Bool(*truth)),
                Value::Int(int) | Value::Int64(int) => Some(Basic::Int(*int)),
                Value::Uint64(int) => Some(Basic::Uint(*int)),
                Value::Float(float) => Some(Basic::Float(*float)),
                Value::Complex(real, imaginary) => Some(Basic::Complex(*real, *imaginary)),
                Value::Str(text) => Some(Basic::Text(text)),
                Value::Opaque(opaque) => match **opaque {
                    Opaque::Byte(byte) => Some(Basic::Uint(u64::from(byte))),
                    _ => opaque.as_int().map(Basic::Int),
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Go's reflect kind, as far as `eq` tells kinds apart.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.inner {
            Inner::Nothing => "invalid",
            Inner::Root => "struct",
            Inner::Part(_) => "map",
            Inner::Text(_) => "string",
            Inner::Value(value) => value.kind(),
        }
    }

    /// What `reflect.Value.String` gives.
    pub(crate) fn reflect_string(&self) -> Cow<'_, str> {
        match self.text() {
            Some(text) => Cow::Borrowed(text),
            None if self.is_nothing() => Cow::Borrowed("<invalid Value>"),
            None => Cow::Owned(format!("<{} Value>", self.static_type())),
        }
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Nil => false,
        Value::Bool(truth) => *truth,
        Value::Int(int) | Value::Int64(int) => *int != 0,
        Value::Uint64(int) => *int != 0,
        Value::Float(float) => *float != 0.0,
        Value::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::List(list) => !list.items.is_empty(),
        Value::Map(map) => !map.entries.borrow().is_empty(),
        Value::Struct(_) => true,
        Value::Opaque(opaque) => opaque.as_int() != Some(0),
    }
}
