//! Arguments: what an operand gives for a parameter of a type.

use std::rc::Rc;

use super::Target;
use crate::execution::evaluation::Given;
use crate::execution::{At, Failure, Run};
use crate::function::Param;
use crate::item::{Inner, Item};
use crate::syntax::{Operand, Term};
use crate::value::{Opaque, Value};

impl Param {
    /// The Go type.
    pub fn type_name(self) -> &'static str {
        match self {
            Param::Any => "interface {}",
            Param::Str => "string",
            Param::Int => "int",
            Param::Float => "float64",
            Param::Bool => "bool",
            Param::Dict => "map[string]interface {}",
            Param::Time => "time.Time",
            Param::Duration => "time.Duration",
            Param::Version => "*semver.Version",
        }
    }

    fn can_be_nil(self) -> bool {
        matches!(self, Param::Any | Param::Dict | Param::Version)
    }

    fn takes(self, item: &Item<'_>) -> bool {
        self == Param::Any || !item.boxed && self.fits(item)
    }

    fn fits(self, item: &Item<'_>) -> bool {
        item.inner_type() == self.type_name()
    }
}

impl<'v> Run<'v, '_> {
    /// Evaluates an operand for a parameter.
    pub(super) fn argument(
        &mut self,
        dot: &Item<'v>,
        target: Target,
        operand: &'v Operand,
    ) -> Result<Item<'v>, Failure> {
        self.at = At::Operand(operand);
        self.step()?;
        let item = match &operand.term {
            Term::Dot => dot.clone(),
            Term::Nil => {
                return match target {
                    Target::Param(param) if !param.can_be_nil() => {
                        Err(self.fail(format!("cannot assign nil to {}", param.type_name())))
                    }
                    _ => Ok(Item::NOTHING),
                };
            }
            Term::Field(names) => self.fields(dot, operand, dot.clone(), names, Given::default())?,
            Term::Variable(names) => self.variable(dot, operand, names, Given::default())?,
            Term::Pipe(pipe) => self.parenthesised(dot, pipe)?,
            Term::Call(callee) => self.call(dot, *callee, At::Operand(operand), Given::default())?,
            Term::Chain(inner, names) => {
                let item = self.chained(dot, inner)?;
                self.fields(dot, operand, item, names, Given::default())?
            }
            Term::Bool(_) | Term::Number(_) | Term::Text { .. } => return self.literal(target, operand),
        };
        self.validate(item, target)
    }

    /// A constant takes the parameter's type.
    fn literal(&self, target: Target, operand: &'v Operand) -> Result<Item<'v>, Failure> {
        let param = match target {
            Target::Param(param) => param,
            Target::Reflect => Param::Any,
        };
        let value = match (param, &operand.term) {
            (Param::Any, Term::Bool(truth)) => Value::Bool(*truth),
            (Param::Any, Term::Number(number)) => return self.constant(number),
            (Param::Any | Param::Str, Term::Text { text, .. }) => return Ok(Item::plain(Inner::Text(text))),
            (Param::Bool, Term::Bool(truth)) => Value::Bool(*truth),
            (Param::Int | Param::Float | Param::Duration, Term::Number(number)) => {
                let value = match param {
                    Param::Int => number.int.map(Value::Int),
                    Param::Duration => number.int.map(|int| Value::Opaque(Rc::new(Opaque::Duration(int)))),
                    _ => number.float.map(Value::Float),
                };
                match value {
                    Some(value) => value,
                    None => return Err(self.mismatch(param, operand)),
                }
            }
            _ => return Err(self.mismatch(param, operand)),
        };
        Ok(Item::value(value))
    }

    #[cold]
    fn mismatch(&self, param: Param, operand: &Operand) -> Failure {
        let expected = match param {
            Param::Str => "string",
            Param::Int | Param::Duration => "integer",
            Param::Float => "float",
            Param::Bool => "bool",
            _ => return self.fail(format!("can't handle {operand} for arg of type {}", param.type_name())),
        };
        self.fail(format!("expected {expected}; found {operand}"))
    }

    /// Whether the value has the parameter's type; unpacks an interface where that helps.
    pub(super) fn validate(&self, item: Item<'v>, target: Target) -> Result<Item<'v>, Failure> {
        let Target::Param(param) = target else {
            return Ok(item);
        };
        if item.is_nothing() && !item.boxed {
            if param.can_be_nil() {
                return Ok(item);
            }
            return Err(self.fail(format!("invalid value; expected {}", param.type_name())));
        }
        if param.takes(&item) {
            return Ok(item);
        }
        if item.boxed && !item.is_nothing() && param.fits(&item) {
            return Ok(item.unboxed());
        }
        let expected = param.type_name();
        Err(self.fail(format!("wrong type for value; expected {expected}; got {}", item.inner_type())))
    }
}
