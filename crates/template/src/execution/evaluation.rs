//! Pipelines, operands and fields: how an expression gets its value.

use super::{At, Failure, Run};
use crate::item::{Inner, Item};
use crate::number::Number;
use crate::syntax::{Command, Operand, Pipe, Term};
use crate::value::{Key, MapKind, Opaque, Value};

/// Long scopes and long chains of fields cost extra.
const VARIABLES_PER_STEP: usize = 32;
const FIELDS_PER_STEP: usize = 8;

impl<'v> Run<'v, '_> {
    pub(super) fn pipeline(&mut self, dot: &Item<'v>, pipe: &'v Pipe) -> Result<Item<'v>, Failure> {
        self.at = At::Pipe(pipe);
        let mut last = None;
        for command in &pipe.commands {
            last = Some(self.command(dot, command, last)?.unboxed());
        }
        let item = last.unwrap_or(Item::NOTHING);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, item.clone())?;
            } else {
                self.variables.push((name, item.clone()));
            }
        }
        Ok(item)
    }

    fn command(&mut self, dot: &Item<'v>, command: &'v Command, last: Option<Item<'v>>) -> Result<Item<'v>, Failure> {
        self.step()?;
        let Some((first, arguments)) = command.operands.split_first() else {
            return Ok(Item::NOTHING);
        };
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &first.term {
            Term::Field(names) => {
                self.at = At::Operand(first);
                return self.fields(dot.clone(), names, has_arguments);
            }
            Term::Chain(inner, names) => {
                self.at = At::Operand(first);
                let item = self.chained(dot, inner)?;
                return self.fields(item, names, has_arguments);
            }
            Term::Call(callee) => {
                self.at = At::Operand(first);
                return self.call(dot, *callee, At::Command(command), arguments, last);
            }
            Term::Pipe(pipe) => {
                self.refuse_arguments(first, has_arguments)?;
                return self.parenthesised(dot, pipe);
            }
            Term::Variable(names) => {
                self.at = At::Operand(first);
                return self.variable(first, names, has_arguments);
            }
            _ => {}
        }
        self.at = At::Operand(first);
        self.refuse_arguments(first, has_arguments)?;
        match &first.term {
            Term::Bool(truth) => Ok(Item::value(Value::Bool(*truth))),
            Term::Dot => Ok(dot.clone()),
            Term::Number(number) => self.constant(number),
            Term::Text { text, .. } => Ok(Item::plain(Inner::Text(text))),
            _ => Err(self.fail("nil is not a command")),
        }
    }

    fn refuse_arguments(&self, operand: &Operand, has_arguments: bool) -> Result<(), Failure> {
        if has_arguments {
            return Err(self.fail(format!("can't give argument to non-function {operand}")));
        }
        Ok(())
    }

    pub(super) fn parenthesised(&mut self, dot: &Item<'v>, pipe: &'v Pipe) -> Result<Item<'v>, Failure> {
        self.enter()?;
        let item = self.pipeline(dot, pipe)?;
        self.levels -= 1;
        Ok(item)
    }

    /// What stands before the fields of a chain.
    pub(super) fn chained(&mut self, dot: &Item<'v>, inner: &'v Operand) -> Result<Item<'v>, Failure> {
        self.at = At::Operand(inner);
        match &inner.term {
            Term::Pipe(pipe) => self.parenthesised(dot, pipe),
            Term::Call(callee) => self.call(dot, *callee, At::Operand(inner), &[], None),
            _ => Err(self.fail("can't take fields of this")),
        }
    }

    pub(super) fn variable(
        &mut self,
        operand: &'v Operand,
        names: &'v [Box<str>],
        has_arguments: bool,
    ) -> Result<Item<'v>, Failure> {
        let Some((name, fields)) = names.split_first() else {
            return Ok(Item::NOTHING);
        };
        let found = self.variables.iter().rev().enumerate().find(|(_, (known, _))| *known == &**name);
        let Some((distance, (_, item))) = found else {
            return Err(self.fail(format!("undefined variable: {name}")));
        };
        let item = item.clone();
        self.steps(distance / VARIABLES_PER_STEP)?;
        if fields.is_empty() {
            self.refuse_arguments(operand, has_arguments)?;
            return Ok(item);
        }
        self.fields(item, fields, has_arguments)
    }

    /// An untyped number takes the type that it looks like.
    pub(super) fn constant(&self, number: &Number) -> Result<Item<'v>, Failure> {
        let value = if let Some((real, imaginary)) = number.complex {
            Value::Complex(real, imaginary)
        } else if let Some(float) = number.float.filter(|_| number.reads_as_float()) {
            Value::Float(float)
        } else if let Some(int) = number.int {
            Value::Int(int)
        } else {
            return Err(self.fail(format!("{} overflows int", number.text)));
        };
        Ok(Item::value(value))
    }

    pub(super) fn fields(
        &mut self,
        mut item: Item<'v>,
        names: &'v [Box<str>],
        has_arguments: bool,
    ) -> Result<Item<'v>, Failure> {
        self.steps(names.len() / FIELDS_PER_STEP)?;
        for (at, name) in names.iter().enumerate() {
            item = self.field(item, name, has_arguments && at + 1 == names.len())?;
        }
        Ok(item)
    }

    fn field(&mut self, item: Item<'v>, name: &'v str, has_arguments: bool) -> Result<Item<'v>, Failure> {
        match &item.inner {
            Inner::Nothing if item.boxed => {
                return Err(self.fail(format!("nil pointer evaluating interface {{}}.{name}")));
            }
            Inner::Nothing => return Ok(Item::NOTHING),
            Inner::Root => {
                if let Some(field) = self.data.field(name) {
                    if has_arguments {
                        return Err(self.fail(format!("{name} has arguments but cannot be invoked as function")));
                    }
                    return Ok(field);
                }
            }
            Inner::Part(part) => {
                self.refuse_map_arguments(name, has_arguments)?;
                return Ok(self.data.entry(*part, name).unwrap_or(Item::NOTHING));
            }
            Inner::Text(_) => {}
            Inner::Value(Value::Struct(data)) => {
                if let Some((_, field)) = data.fields.iter().find(|(known, _)| *known == name) {
                    if has_arguments {
                        return Err(self.fail(format!("{name} has arguments but cannot be invoked as function")));
                    }
                    return Ok(Item::value(field.clone()));
                }
            }
            Inner::Value(Value::Map(map)) => {
                self.refuse_map_arguments(name, has_arguments)?;
                let entries = map.entries.borrow();
                return Ok(match entries.get(&Key::Str(name.into())) {
                    Some(value) if map.kind == MapKind::StringString => Item::value(value.clone()),
                    Some(value) => Item::boxed(value.clone()),
                    None => Item::NOTHING,
                });
            }
            Inner::Value(Value::Opaque(opaque)) => {
                if let Some(value) = method(opaque, name) {
                    if has_arguments {
                        return Err(self.fail(format!("wrong number of args for {name}: want 0 got 1")));
                    }
                    return Ok(Item::value(value));
                }
            }
            Inner::Value(_) => {}
        }
        Err(self.fail(format!("can't evaluate field {name} in type {}", item.static_type())))
    }

    fn refuse_map_arguments(&self, name: &str, has_arguments: bool) -> Result<(), Failure> {
        if has_arguments {
            return Err(self.fail(format!("{name} is not a method but has arguments")));
        }
        Ok(())
    }
}

/// The methods without arguments that sprig's own types have.
fn method(opaque: &Opaque, name: &str) -> Option<Value> {
    match opaque {
        Opaque::Version(version) => match name {
            "Major" => Some(Value::Int64(i64::try_from(version.major).ok()?)),
            "Minor" => Some(Value::Int64(i64::try_from(version.minor).ok()?)),
            "Patch" => Some(Value::Int64(i64::try_from(version.patch).ok()?)),
            "Prerelease" => Some(Value::str(&version.prerelease)),
            "Metadata" => Some(Value::str(&version.metadata)),
            "Original" => Some(Value::str(&version.original)),
            "String" => Some(Value::str(crate::printer::opaque_text(opaque))),
            _ => None,
        },
        Opaque::Time(time) => time.method(name),
        Opaque::Duration(nanos) => match name {
            "Nanoseconds" => Some(Value::Int64(*nanos)),
            "Seconds" => Some(Value::Float(*nanos as f64 / 1e9)),
            "Minutes" => Some(Value::Float(*nanos as f64 / 6e10)),
            "Hours" => Some(Value::Float(*nanos as f64 / 3.6e12)),
            "String" => Some(Value::str(crate::printer::opaque_text(opaque))),
            _ => None,
        },
        Opaque::Byte(_) => None,
    }
}
