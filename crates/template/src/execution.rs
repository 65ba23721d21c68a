//! Walks a parse tree over a context and writes the output, as Go's exec.go does, within budgets. `Template::render` calls it.

mod call;
mod evaluation;

use std::ops::Range;
use std::rc::Rc;

use crate::context::Data;
use crate::error::{Error, Place, TEMPLATE_NAME};
use crate::function::Meter;
use crate::item::{Inner, Item};
use crate::printer::{excerpt, print_within};
use crate::quote::quote;
use crate::syntax::{Branch, Command, Node, Operand, Pipe};
use crate::template::{Limits, Template};
use crate::uses;
use crate::value::{Element, MapKind, Value};

/// How many levels of control actions and parentheses may be open, per level of template depth.
const LEVELS_PER_DEPTH: usize = 4;

/// How often a manifest writes text of an application, usually at most.
const PLACES: usize = 16;

/// `range` takes the entries of a map out first; that costs, even when it stops at the first.
const ENTRIES_PER_STEP: usize = 64;

/// An execution's error; boxed, because it is rare and results are everywhere.
pub(crate) type Failure = Box<Error>;

/// What a text names as the failing expression.
#[derive(Clone, Copy)]
pub(crate) enum At<'v> {
    Start,
    Node(&'v Node),
    Pipe(&'v Pipe),
    Command(&'v Command),
    Operand(&'v Operand),
}

/// How a body ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

pub(crate) struct Run<'v, 'm> {
    template: &'v Template,
    data: &'v Data<'v>,
    limits: &'v Limits,
    meter: &'m mut Meter,
    output: String,
    /// Where the application's text was written as it is, and how often that, or whether it is empty, was all.
    places: Vec<Range<usize>>,
    direct: u32,
    variables: Vec<(&'v str, Item<'v>)>,
    /// The last thing looked at. Go keeps it when it comes back from an argument, and so do its texts.
    at: At<'v>,
    /// The template or definition that runs.
    name: &'v str,
    depth: usize,
    levels: usize,
}

/// What one pass gave.
#[derive(Default)]
pub(crate) struct Output {
    pub text: String,
    pub places: Vec<Range<usize>>,
    pub direct: u32,
}

pub(crate) fn run<'v>(
    template: &'v Template,
    data: &'v Data<'v>,
    limits: &'v Limits,
    meter: &mut Meter,
) -> Result<Output, Error> {
    let Some(nodes) = template.trees.get(TEMPLATE_NAME) else {
        return Ok(Output::default());
    };
    let root = Item::plain(Inner::Root);
    let mut run = Run {
        template,
        data,
        limits,
        meter,
        output: String::with_capacity(template.source.len() + template.source.len() / 4),
        places: Vec::new(),
        direct: 0,
        variables: vec![("$", root.clone())],
        at: At::Start,
        name: TEMPLATE_NAME,
        depth: 0,
        levels: 0,
    };
    match run.walk(&root, nodes) {
        Ok(_) => Ok(Output { text: run.output, places: run.places, direct: run.direct }),
        Err(failure) => Err(*failure),
    }
}

impl<'v> Run<'v, '_> {
    #[cold]
    fn fail(&self, message: impl Into<String>) -> Failure {
        let (at, expression) = match self.at {
            At::Start => return Box::new(Error::plain(message)),
            At::Node(node) => (position(node), node.to_string()),
            At::Pipe(pipe) => (pipe.at, pipe.to_string()),
            At::Command(command) => (command.at, command.to_string()),
            At::Operand(operand) => (operand.at, operand.to_string()),
        };
        let before = &self.template.source[..at.min(self.template.source.len())];
        let line = 1 + before.bytes().filter(|&b| b == b'\n').count();
        let column = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
        Box::new(Error {
            line: u32::try_from(line).ok(),
            column: u32::try_from(column).ok(),
            message: message.into(),
            context: Some(Box::new(Place { template: self.name.to_owned(), expression })),
            config_key: None,
        })
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.steps(1)
    }

    fn steps(&mut self, count: usize) -> Result<(), Failure> {
        self.meter.steps(count as u64).map_err(|message| self.fail(message))
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.meter.bytes(text.len() as u64).map_err(|message| self.fail(message))?;
        self.output.push_str(text);
        Ok(())
    }

    /// Enters a control action, a template or parentheses: the machine's stack bounds their nesting.
    fn enter(&mut self) -> Result<(), Failure> {
        let most = self.limits.depth.saturating_mul(LEVELS_PER_DEPTH);
        if self.levels >= most {
            return Err(self.fail(format!("exceeded maximum nesting of actions ({most})")));
        }
        self.levels += 1;
        Ok(())
    }

    fn walk(&mut self, dot: &Item<'v>, nodes: &'v [Node]) -> Result<Flow, Failure> {
        for node in nodes {
            let flow = match node {
                Node::Text(text) => {
                    self.step()?;
                    self.write(text)?;
                    Flow::Next
                }
                Node::Action { pipe, .. } => {
                    self.at = At::Node(node);
                    self.step()?;
                    let before = self.data.reads.total();
                    let item = self.pipeline(dot, pipe)?;
                    let read = self.data.reads.total().wrapping_sub(before);
                    if pipe.variables.is_empty() {
                        self.at = At::Node(node);
                        let start = self.output.len();
                        self.print(item)?;
                        if read == 1 && uses::is_direct(pipe) {
                            self.direct += 1;
                            if self.places.capacity() == 0 {
                                self.places.reserve(PLACES);
                            }
                            self.places.push(uses::place(&self.output, start, pipe));
                        }
                    }
                    Flow::Next
                }
                Node::If(branch) => self.choose(dot, branch, false)?,
                Node::With(branch) => self.choose(dot, branch, true)?,
                Node::Range(branch) => self.range(dot, branch)?,
                Node::Template { name, pipe, .. } => {
                    self.invoke(dot, node, name, pipe.as_ref())?;
                    Flow::Next
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, item: Item<'v>) -> Result<(), Failure> {
        match item.inner {
            Inner::Nothing => self.write("<no value>"),
            Inner::Text(text) => self.write(text),
            Inner::Value(Value::Str(text)) => self.write(&text),
            _ => {
                let value = item.into_value(self.data);
                let before = self.output.len();
                let room = usize::try_from(self.meter.bytes_left).unwrap_or(usize::MAX);
                let fits = print_within(&mut self.output, std::slice::from_ref(&value), room);
                let made = if fits { (self.output.len() - before) as u64 } else { u64::MAX };
                self.meter.bytes(made).map_err(|message| self.fail(message))
            }
        }
    }

    fn choose(&mut self, dot: &Item<'v>, branch: &'v Branch, moves_dot: bool) -> Result<Flow, Failure> {
        self.at = At::Pipe(&branch.pipe);
        self.step()?;
        self.enter()?;
        let mark = self.variables.len();
        let before = self.data.reads.total();
        let item = self.pipeline(dot, &branch.pipe)?;
        // A template may ask whether a text is empty: a harmless one in its place is empty just when it is.
        if !moves_dot && self.data.reads.total().wrapping_sub(before) == 1 && uses::is_bare(&branch.pipe) {
            self.direct += 1;
        }
        let flow = if item.is_true(self.data) {
            self.walk(if moves_dot { &item } else { dot }, &branch.body)?
        } else if let Some(otherwise) = &branch.otherwise {
            self.walk(dot, otherwise)?
        } else {
            Flow::Next
        };
        self.variables.truncate(mark);
        self.levels -= 1;
        Ok(flow)
    }

    fn invoke(&mut self, dot: &Item<'v>, node: &'v Node, name: &'v str, pipe: Option<&'v Pipe>) -> Result<(), Failure> {
        self.at = At::Node(node);
        self.step()?;
        let Some(nodes) = self.template.trees.get(name) else {
            return Err(self.fail(format!("template {} not defined", quote(name))));
        };
        if self.depth >= self.limits.depth {
            return Err(self.fail(format!("exceeded maximum template depth ({})", self.limits.depth)));
        }
        self.enter()?;
        let dot = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Item::NOTHING,
        };
        let variables = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        let (at, outer) = (self.at, std::mem::replace(&mut self.name, name));
        self.depth += 1;
        self.walk(&dot, nodes)?;
        self.depth -= 1;
        self.levels -= 1;
        self.variables = variables;
        self.at = at;
        self.name = outer;
        Ok(())
    }

    fn range(&mut self, dot: &Item<'v>, branch: &'v Branch) -> Result<Flow, Failure> {
        self.at = At::Pipe(&branch.pipe);
        self.step()?;
        self.enter()?;
        let mark = self.variables.len();
        let item = self.pipeline(dot, &branch.pipe)?;
        let ran = self.iterate(item, branch)?;
        let flow = match (ran, &branch.otherwise) {
            (false, Some(otherwise)) => self.walk(dot, otherwise)?,
            _ => Flow::Next,
        };
        self.variables.truncate(mark);
        self.levels -= 1;
        Ok(flow)
    }

    /// Runs the body per element; false when there was none.
    fn iterate(&mut self, item: Item<'v>, branch: &'v Branch) -> Result<bool, Failure> {
        if let Inner::Part(part) = item.inner
            && let Some(texts) = self.data.texts(part)
        {
            for (key, text) in texts {
                let text = Item::plain(Inner::Text(text));
                if !self.iteration(branch, Item::plain(Inner::Text(key)), text)? {
                    break;
                }
            }
            return Ok(!texts.is_empty());
        }
        let value = item.into_value(self.data);
        match &value {
            Value::Nil => Ok(false),
            Value::Int(count) => self.count(branch, &value, *count, Value::Int),
            Value::Int64(count) => self.count(branch, &value, *count, Value::Int64),
            Value::Uint64(count) => {
                let most = i64::try_from(*count).unwrap_or(i64::MAX);
                self.count(branch, &value, most, |at| Value::Uint64(at.unsigned_abs()))
            }
            Value::List(list) => {
                for (at, item) in list.items.iter().enumerate() {
                    let index = Item::value(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
                    let item = match list.element {
                        Element::Any => Item::boxed(item.clone()),
                        _ => Item::value(item.clone()),
                    };
                    if !self.iteration(branch, index, item)? {
                        break;
                    }
                }
                Ok(!list.items.is_empty())
            }
            Value::Map(map) => {
                self.steps(map.entries.borrow().len() / ENTRIES_PER_STEP)?;
                let entries: Vec<_> =
                    map.entries.borrow().iter().map(|(key, value)| (Value::from(key), value.clone())).collect();
                let ran = !entries.is_empty();
                for (key, value) in entries {
                    let key = if map.kind == MapKind::AnyAny { Item::boxed(key) } else { Item::value(key) };
                    let value = match map.kind {
                        MapKind::StringString => Item::value(value),
                        _ => Item::boxed(value),
                    };
                    if !self.iteration(branch, key, value)? {
                        break;
                    }
                }
                Ok(ran)
            }
            Value::Opaque(opaque) if opaque.as_int().is_some() => {
                let count = opaque.as_int().unwrap_or(0);
                self.count(branch, &value, count, |at| Value::Opaque(Rc::new(opaque.with_int(at))))
            }
            value => Err(self.fail(format!("range can't iterate over {}", excerpt("%v", value)))),
        }
    }

    fn count(
        &mut self,
        branch: &'v Branch,
        value: &Value,
        count: i64,
        make: impl Fn(i64) -> Value,
    ) -> Result<bool, Failure> {
        if branch.pipe.variables.len() > 1 {
            let number = excerpt("%v", value);
            return Err(self.fail(format!("can't use {number} to iterate over more than one variable")));
        }
        for at in 0..count {
            if !self.iteration(branch, Item::NOTHING, Item::value(make(at)))? {
                break;
            }
        }
        Ok(count > 0)
    }

    /// One element; false after `break`.
    fn iteration(&mut self, branch: &'v Branch, index: Item<'v>, item: Item<'v>) -> Result<bool, Failure> {
        self.step()?;
        let mark = self.variables.len();
        let (names, assigns) = (&branch.pipe.variables, branch.pipe.assigns);
        match (names.as_slice(), assigns) {
            ([], _) => {}
            ([name], true) => self.assign(name, item.clone())?,
            ([name, second, ..], true) => {
                self.assign(name, index)?;
                self.assign(second, item.clone())?;
            }
            (names, false) => {
                if let Some(slot) = self.variables.get_mut(mark - 1) {
                    slot.1 = item.clone();
                }
                if names.len() > 1
                    && let Some(slot) = self.variables.get_mut(mark - 2)
                {
                    slot.1 = index;
                }
            }
        }
        let flow = self.walk(&item, &branch.body)?;
        self.variables.truncate(mark);
        Ok(flow != Flow::Break)
    }

    fn assign(&mut self, name: &str, item: Item<'v>) -> Result<(), Failure> {
        let slot = self.find_variable(name)?;
        self.variables[slot].1 = item;
        Ok(())
    }
}

fn position(node: &Node) -> usize {
    match node {
        Node::Action { at, .. } | Node::Template { at, .. } => *at,
        Node::If(branch) | Node::With(branch) | Node::Range(branch) => branch.at,
        Node::Text(_) | Node::Break | Node::Continue => 0,
    }
}
