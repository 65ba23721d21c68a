//! Calls: arguments are counted, typed and checked against the parameters, as Go's reflection does.

mod argument;
mod compare;
mod escape;
mod index;

use super::evaluation::Given;
use super::{At, Failure, Run};
use crate::depth;
use crate::function::{Function, Param};
use crate::item::{Inner, Item};
use crate::printer::{sprint_within, sprintf_within, sprintln_within};
use crate::syntax::{Builtin, Callee, Operand, Term};
use crate::value::Value;

/// What a function may read of its arguments for one step.
const BYTES_PER_STEP: usize = 256;
const ITEMS_PER_STEP: usize = 64;

/// What a parameter takes.
#[derive(Clone, Copy)]
enum Target {
    Param(Param),
    /// Go's `reflect.Value`: anything as it is.
    Reflect,
}

/// The parameters of a callee.
struct Signature {
    fixed: &'static [Target],
    rest: Option<Target>,
}

impl Builtin {
    fn signature(self) -> Signature {
        const REFLECT: Target = Target::Reflect;
        const ANY: Target = Target::Param(Param::Any);
        let (fixed, rest): (&'static [Target], _) = match self {
            Builtin::And | Builtin::Or | Builtin::Call | Builtin::Eq | Builtin::Index => (&[REFLECT], Some(REFLECT)),
            Builtin::Ge | Builtin::Gt | Builtin::Le | Builtin::Lt | Builtin::Ne => (&[REFLECT, REFLECT], None),
            Builtin::Len | Builtin::Not => (&[REFLECT], None),
            Builtin::Html | Builtin::Js | Builtin::UrlQuery | Builtin::Print | Builtin::Println => (&[], Some(ANY)),
            Builtin::Printf => (&[Target::Param(Param::Str)], Some(ANY)),
        };
        Signature { fixed, rest }
    }
}

impl<'v> Run<'v, '_> {
    pub(super) fn call(
        &mut self,
        dot: &Item<'v>,
        callee: Callee,
        place: At<'v>,
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        match callee {
            Callee::Function(function) => self.call_function(dot, function, None, place, given),
            Callee::Builtin(builtin) => self.call_builtin(dot, builtin, place, given),
        }
    }

    fn check_count(&self, name: &str, fixed: usize, variadic: bool, given: &Given<'v>) -> Result<(), Failure> {
        let operands = given.operands.len();
        let given = operands + usize::from(given.last.is_some());
        if variadic && given < fixed {
            return Err(self.fail(format!("wrong number of args for {name}: want at least {fixed} got {operands}")));
        }
        if !variadic && given != fixed {
            return Err(self.fail(format!("wrong number of args for {name}: want {fixed} got {given}")));
        }
        Ok(())
    }

    /// Calls a function, or a method of the receiver.
    pub(super) fn call_function(
        &mut self,
        dot: &Item<'v>,
        function: &'static Function,
        receiver: Option<Value>,
        place: At<'v>,
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        let fixed = function.params;
        self.check_count(function.name, fixed.len(), function.variadic.is_some(), &given)?;
        let Given { operands, last } = given;
        if let Some(text) = self.config_yaml(dot, function, operands, last.as_ref()) {
            if let Some(operand) = operands.first() {
                self.at = At::Operand(operand);
            }
            return self.result(function.name, place, Ok(Value::str(text)));
        }
        let param = |at: usize| fixed.get(at).copied().or(function.variadic).unwrap_or(Param::Any);
        let mut values = Vec::with_capacity(operands.len() + 2);
        values.extend(receiver);
        for (at, operand) in operands.iter().enumerate() {
            let item = self.argument(dot, Target::Param(param(at)), operand)?;
            self.pay(&item)?;
            values.push(item.into_value(self.data));
        }
        if let Some(last) = last {
            let item = self.validate(last, Target::Param(param(operands.len())))?;
            self.pay(&item)?;
            values.push(item.into_value(self.data));
        }
        let result = (function.call)(self.meter, &values).and_then(|value| {
            // What a function hands back as it got it, `set` its map, was bounded when it was made.
            if !values.iter().any(|argument| argument.is_same(&value)) {
                depth::bound(self.meter, &value)?;
            }
            Ok(value)
        });
        self.result(function.name, place, result)
    }

    /// Pays for an argument by its size.
    fn pay(&mut self, item: &Item<'v>) -> Result<(), Failure> {
        let cost = match &item.inner {
            Inner::Text(text) => text.len() / BYTES_PER_STEP,
            Inner::Value(Value::Str(text)) => text.len() / BYTES_PER_STEP,
            Inner::Value(Value::List(list)) => list.items.len() / ITEMS_PER_STEP,
            _ => 0,
        };
        self.steps(cost)
    }

    /// `toYaml .ConfigData` needs no detour while the configuration is untouched.
    fn config_yaml(
        &self,
        dot: &Item<'v>,
        function: &Function,
        operands: &'v [Operand],
        last: Option<&Item<'v>>,
    ) -> Option<String> {
        use crate::context::Part;
        if function.name != "toYaml" {
            return None;
        }
        let is_config = match (operands, last) {
            ([operand], None) => match &operand.term {
                Term::Field(names) => {
                    matches!(dot.inner, Inner::Root) && names.len() == 1 && &*names[0] == "ConfigData"
                }
                _ => false,
            },
            ([], Some(last)) => matches!(last.inner, Inner::Part(Part::Config)),
            _ => false,
        };
        is_config.then(|| self.data.untouched_config()).flatten().map(crate::kalypso::config_to_yaml)
    }

    /// Charges for what a function made, and places its error.
    fn result(&mut self, name: &str, place: At<'v>, result: Result<Value, String>) -> Result<Item<'v>, Failure> {
        let result = result.and_then(|value| {
            if let Value::Str(text) = &value {
                self.meter.bytes(text.len() as u64)?;
            }
            Ok(value)
        });
        match result {
            // A function without a result gives a nil interface.
            Ok(Value::Nil) => Ok(Item::boxed(Value::Nil)),
            Ok(value) => Ok(Item::value(value)),
            Err(message) => {
                self.at = place;
                Err(self.fail(format!("error calling {name}: {message}")))
            }
        }
    }

    fn call_builtin(
        &mut self,
        dot: &Item<'v>,
        builtin: Builtin,
        place: At<'v>,
        given: Given<'v>,
    ) -> Result<Item<'v>, Failure> {
        let signature = builtin.signature();
        self.check_count(builtin.name(), signature.fixed.len(), signature.rest.is_some(), &given)?;
        let Given { operands, last } = given;
        if matches!(builtin, Builtin::And | Builtin::Or) {
            let mut item = Item::NOTHING;
            for operand in operands {
                item = self.argument(dot, Target::Reflect, operand)?;
                if item.is_true(self.data) == (builtin == Builtin::Or) {
                    return Ok(item);
                }
            }
            return Ok(last.unwrap_or(item));
        }
        let target = |at: usize| signature.fixed.get(at).copied().or(signature.rest).unwrap_or(Target::Reflect);
        let mut items = Vec::with_capacity(operands.len() + 1);
        for (at, operand) in operands.iter().enumerate() {
            items.push(self.argument(dot, target(at), operand)?);
        }
        if let Some(last) = last {
            items.push(self.validate(last, target(operands.len()))?);
        }
        for item in &items {
            self.pay(item)?;
        }
        let callee = || match operands.first() {
            Some(operand) => operand.to_string(),
            None => items.first().map_or_else(String::new, |item| item.reflect_string().into_owned()),
        };
        let truth = |truth: bool| Item::value(Value::Bool(truth));
        let result = match builtin {
            Builtin::And | Builtin::Or => Ok(Item::NOTHING),
            Builtin::Call => Err(match items.first() {
                Some(item) if !item.is_nothing() => {
                    format!("non-function {} of type {}", callee(), item.inner_type())
                }
                _ => "call of nil".to_owned(),
            }),
            Builtin::Eq => compare::equal(&items, self.data).map(truth),
            Builtin::Ne => compare::equal(&items, self.data).map(|equal| truth(!equal)),
            Builtin::Lt => compare::less(&items).map(truth),
            Builtin::Le => compare::less_or_equal(&items, self.data).map(truth),
            Builtin::Gt => compare::less_or_equal(&items, self.data).map(|less| truth(!less)),
            Builtin::Ge => compare::less(&items).map(|less| truth(!less)),
            Builtin::Not => Ok(truth(!items.first().is_some_and(|item| item.is_true(self.data)))),
            Builtin::Len => index::length(items.into_iter().next().unwrap_or(Item::NOTHING), self.data),
            Builtin::Index => index::index(items, self.data),
            Builtin::Html => self.text_of(items).map(|text| escape::html(&text)).map(text_item),
            Builtin::Js => self.text_of(items).map(|text| escape::js(&text)).map(text_item),
            Builtin::UrlQuery => self.text_of(items).map(|text| escape::url_query(&text)).map(text_item),
            Builtin::Print | Builtin::Println | Builtin::Printf => self.print_items(builtin, items).map(text_item),
        };
        let result = result.and_then(|item| {
            if let Inner::Value(Value::Str(text)) = &item.inner {
                self.meter.bytes(text.len() as u64)?;
            }
            Ok(item)
        });
        result.map_err(|message| {
            self.at = place;
            self.fail(format!("error calling {}: {message}", builtin.name()))
        })
    }

    fn print_items(&mut self, builtin: Builtin, items: Vec<Item<'v>>) -> Result<String, String> {
        let values: Vec<Value> = items.into_iter().map(|item| item.into_value(self.data)).collect();
        let room = usize::try_from(self.meter.bytes_left).unwrap_or(usize::MAX);
        let text = match (builtin, values.split_first()) {
            (Builtin::Printf, Some((Value::Str(layout), values))) => sprintf_within(layout, values, room),
            (Builtin::Println, _) => sprintln_within(&values, room),
            _ => sprint_within(&values, room),
        };
        text.ok_or_else(|| self.overdrawn())
    }

    fn overdrawn(&mut self) -> String {
        self.meter.bytes(u64::MAX).err().unwrap_or_default()
    }

    /// What html, js and urlquery escape: a lone string as it is, else all of it printed.
    fn text_of(&mut self, items: Vec<Item<'v>>) -> Result<String, String> {
        if let [item] = items.as_slice()
            && let Some(text) = item.text()
        {
            return Ok(text.to_owned());
        }
        let values: Vec<Value> = items
            .into_iter()
            .map(|item| if item.is_nothing() { Value::str("<no value>") } else { item.into_value(self.data) })
            .collect();
        let room = usize::try_from(self.meter.bytes_left).unwrap_or(usize::MAX);
        sprint_within(&values, room).ok_or_else(|| self.overdrawn())
    }
}

fn text_item<'v>(text: String) -> Item<'v> {
    Item::value(Value::str(text))
}
