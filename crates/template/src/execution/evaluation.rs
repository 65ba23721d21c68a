//! Pipelines, operands and fields: how an expression gets its value.

use std::rc::Rc;

use super::{At, Failure, Run};
use crate::item::{Inner, Item};
use crate::number::Number;
use crate::sprig::method;
use crate::syntax::{Command, Operand, Pipe, Term};
use crate::value::{Key, MapKind, Value};

/// Long scopes and long chains of fields cost extra.
const VARIABLES_PER_STEP: usize = 32;
const FIELDS_PER_STEP: usize = 8;

/// The arguments that a command hands to its first operand.
#[derive(Default)]
pub(super) struct Given<'v> {
    pub operands: &'v [Operand],
    /// What the pipe brought.
    pub last: Option<Item<'v>>,
}

impl Given<'_> {
    fn is_empty(&self) -> bool {
        self.operands.is_empty() && self.last.is_none()
    }
}

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
        let Some((first, operands)) = command.operands.split_first() else {
            return Ok(Item::NOTHING);
        };
        let given = Given { operands, last };
        match &first.term {
            Term::Field(names) => {
                self.at = At::Operand(first);
                return self.fields(dot, first, dot.clone(), names, given);
            }
            Term::Chain(inner, names) => {
                self.at = At::Operand(first);
                let item = self.chained(dot, inner)?;
                return self.fields(dot, first, item, names, given);
            }
            Term::Call(callee) => {
                self.at = At::Operand(first);
                return self.call(dot, *callee, At::Command(command), given);
            }
            Term::Pipe(pipe) => {
                self.refuse_arguments(first, &given)?;
                return self.parenthesised(dot, pipe);
            }
            Term::Variable(names) => {
                self.at = At::Operand(first);
                return self.variable(dot, first, names, given);
            }
            _ => {}
        }
        self.at = At::Operand(first);
        self.refuse_arguments(first, &given)?;
        match &first.term {
            Term::Bool(truth) => Ok(Item::value(Value::Bool(*truth))),
            Term::Dot => Ok(dot.clone()),
            Term::Number(number) => self.constant(number),
            Term::Text { text, .. } => Ok(Item::plain(Inner::Text(text))),
            _ => Err(self.fail("nil is not a command")),
        }
    }

    fn refuse_arguments(&self, operand: &Operand, given: &Given<'v>) -> Result<(), Failure> {
        if !given.is_empty() {
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
            Term::Call(callee) => self.call(dot, *callee, At::Operand(inner), Given::default()),
            _ => Err(self.fail("can't take fields of this")),
        }
    }

    /// Where the innermost variable of this name is.
    pub(super) fn find_variable(&mut self, name: &str) -> Result<usize, Failure> {
        let Some(slot) = self.variables.iter().rposition(|(known, _)| *known == name) else {
            return Err(self.fail(format!("undefined variable: {name}")));
        };
        self.steps((self.variables.len() - slot) / VARIABLES_PER_STEP)?;
        Ok(slot)
    }

    pub(super) fn variable(
        &mut self,
        dot: &Item<'v>,
        operand: &'v Operand,
        names: &'v [Box<str>],
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        let Some((name, fields)) = names.split_first() else {
            return Ok(Item::NOTHING);
        };
        let slot = self.find_variable(name)?;
        let item = self.variables[slot].1.clone();
        if fields.is_empty() {
            self.refuse_arguments(operand, &given)?;
            return Ok(item);
        }
        self.fields(dot, operand, item, fields, given)
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

    /// Follows the operand's chain of fields; the last one takes the arguments.
    pub(super) fn fields(
        &mut self,
        dot: &Item<'v>,
        operand: &'v Operand,
        mut item: Item<'v>,
        names: &'v [Box<str>],
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        self.steps(names.len() / FIELDS_PER_STEP)?;
        let Some((last, names)) = names.split_last() else {
            return Ok(item);
        };
        for name in names {
            item = self.field(dot, operand, item, name, Given::default())?;
        }
        self.field(dot, operand, item, last, given)
    }

    fn field(
        &mut self,
        dot: &Item<'v>,
        operand: &'v Operand,
        item: Item<'v>,
        name: &'v str,
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        let has_arguments = !given.is_empty();
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
                if let Some(method) = method::find(opaque, name) {
                    let receiver = Value::Opaque(Rc::clone(opaque));
                    return self.call_function(dot, method, Some(receiver), At::Operand(operand), given);
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
