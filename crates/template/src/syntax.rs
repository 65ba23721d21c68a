//! The parse tree, and how Go writes an expression back in an error. The parser makes it, the execution walks it.

use std::fmt;

use crate::function::Function;
use crate::number::Number;
use crate::quote::quote;

/// A step of a template.
#[derive(Debug)]
pub(crate) enum Node {
    Text(Box<str>),
    Action { at: usize, pipe: Pipe },
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { at: usize, name: String, pipe: Option<Pipe> },
    Break,
    Continue,
}

/// `if`, `with` and `range`: a pipeline, a body, and what runs instead.
#[derive(Debug)]
pub(crate) struct Branch {
    pub at: usize,
    pub pipe: Pipe,
    pub body: Vec<Node>,
    pub otherwise: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    pub at: usize,
    /// `=` rather than `:=`.
    pub assigns: bool,
    pub variables: Vec<Box<str>>,
    pub commands: Vec<Command>,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub at: usize,
    pub operands: Vec<Operand>,
}

#[derive(Debug)]
pub(crate) struct Operand {
    pub at: usize,
    pub term: Term,
}

#[derive(Debug)]
pub(crate) enum Term {
    Bool(bool),
    Dot,
    Nil,
    Field(Vec<Box<str>>),
    /// Fields of something in parentheses, or of a function without arguments.
    Chain(Box<Operand>, Vec<Box<str>>),
    Call(Callee),
    Number(Box<Number>),
    Pipe(Pipe),
    Text {
        quoted: Box<str>,
        text: Box<str>,
    },
    /// The name with its `$`, then fields.
    Variable(Vec<Box<str>>),
}

/// What an identifier calls.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Callee {
    Function(&'static Function),
    Builtin(Builtin),
}

/// Go's own functions, which see a value's type and may leave arguments unevaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    And,
    Call,
    Eq,
    Ge,
    Gt,
    Html,
    Index,
    Js,
    Le,
    Len,
    Lt,
    Ne,
    Not,
    Or,
    Print,
    Printf,
    Println,
    UrlQuery,
}

impl Builtin {
    const ALL: [(&'static str, Builtin); 18] = [
        ("and", Builtin::And),
        ("call", Builtin::Call),
        ("eq", Builtin::Eq),
        ("ge", Builtin::Ge),
        ("gt", Builtin::Gt),
        ("html", Builtin::Html),
        ("index", Builtin::Index),
        ("js", Builtin::Js),
        ("le", Builtin::Le),
        ("len", Builtin::Len),
        ("lt", Builtin::Lt),
        ("ne", Builtin::Ne),
        ("not", Builtin::Not),
        ("or", Builtin::Or),
        ("print", Builtin::Print),
        ("printf", Builtin::Printf),
        ("println", Builtin::Println),
        ("urlquery", Builtin::UrlQuery),
    ];

    pub(crate) fn find(name: &str) -> Option<Builtin> {
        Builtin::ALL.iter().find(|(known, _)| *known == name).map(|(_, builtin)| *builtin)
    }

    pub(crate) fn name(self) -> &'static str {
        Builtin::ALL.iter().find(|(_, builtin)| *builtin == self).map_or("", |(name, _)| name)
    }
}

impl Callee {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Callee::Function(function) => function.name,
            Callee::Builtin(builtin) => builtin.name(),
        }
    }
}

/// Whether a body writes nothing, so that another definition may take its place.
pub(crate) fn is_empty(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| match node {
        Node::Text(text) => text.trim().is_empty(),
        _ => false,
    })
}

fn write_all(f: &mut fmt::Formatter<'_>, nodes: &[Node]) -> fmt::Result {
    nodes.iter().try_for_each(|node| write!(f, "{node}"))
}

impl Branch {
    fn write(&self, f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
        write!(f, "{{{{{word} {}}}}}", self.pipe)?;
        write_all(f, &self.body)?;
        if let Some(otherwise) = &self.otherwise {
            f.write_str("{{else}}")?;
            write_all(f, otherwise)?;
        }
        f.write_str("{{end}}")
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Text(text) => f.write_str(text),
            Node::Action { pipe, .. } => write!(f, "{{{{{pipe}}}}}"),
            Node::If(branch) => branch.write(f, "if"),
            Node::With(branch) => branch.write(f, "with"),
            Node::Range(branch) => branch.write(f, "range"),
            Node::Template { name, pipe, .. } => {
                write!(f, "{{{{template {}", quote(name))?;
                if let Some(pipe) = pipe {
                    write!(f, " {pipe}")?;
                }
                f.write_str("}}")
            }
            Node::Break => f.write_str("{{break}}"),
            Node::Continue => f.write_str("{{continue}}"),
        }
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            f.write_str(&self.variables.join(", "))?;
            f.write_str(if self.assigns { " = " } else { " := " })?;
        }
        for (at, command) in self.commands.iter().enumerate() {
            if at > 0 {
                f.write_str(" | ")?;
            }
            write!(f, "{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, operand) in self.operands.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            operand.write_inside(f)?;
        }
        Ok(())
    }
}

impl Operand {
    /// A pipeline that is part of something stands in parentheses.
    fn write_inside(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Pipe(pipe) => write!(f, "({pipe})"),
            _ => write!(f, "{self}"),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.term {
            Term::Bool(truth) => write!(f, "{truth}"),
            Term::Dot => f.write_str("."),
            Term::Nil => f.write_str("nil"),
            Term::Field(names) => names.iter().try_for_each(|name| write!(f, ".{name}")),
            Term::Chain(operand, names) => {
                operand.write_inside(f)?;
                names.iter().try_for_each(|name| write!(f, ".{name}"))
            }
            Term::Call(callee) => f.write_str(callee.name()),
            Term::Number(number) => f.write_str(&number.text),
            Term::Pipe(pipe) => write!(f, "{pipe}"),
            Term::Text { quoted, .. } => f.write_str(quoted),
            Term::Variable(names) => f.write_str(&names.join(".")),
        }
    }
}
