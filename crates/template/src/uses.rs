//! What a rendering did with an application's text: where it was written as it is, and whether anything else was made of
//! it. The scheduler proves with it that such text stays inside scalars, mostly without a second look.

use std::cell::Cell;
use std::ops::Range;

use crate::parser::Trees;
use crate::syntax::{Builtin, Callee, Command, Node, Operand, Pipe, Term};

/// What came of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    pub uses: Uses,
    /// The actions of values that were templates themselves, in order, without the text between them.
    pub actions: String,
}

/// How an application's text was used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Where it was written as it is, in order; a pair of quotes around it isn't part of the place.
    pub places: Vec<Range<usize>>,
    /// It was compared, cut, hashed, or written by a later pass: the places don't tell all.
    pub computed: bool,
    /// A label or a field of `manifests` was read.
    pub values: bool,
    /// All labels or all fields of `manifests` were taken at once.
    pub whole: bool,
}

/// Counts how often an application's text was read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub names: Cell<u32>,
    pub values: Cell<u32>,
    pub whole: Cell<bool>,
    /// An earlier template computed with it, and may have left it in the configuration.
    pub spread: Cell<bool>,
}

impl Reads {
    pub fn total(&self) -> u32 {
        self.names.get().wrapping_add(self.values.get())
    }

    pub fn count(counter: &Cell<u32>) {
        counter.set(counter.get().wrapping_add(1));
    }
}

/// Whether an expression is an application's text as it is, once one read is known: `.Workload`, `.Labels.x`,
/// `index .Labels "x"`, and each of them quoted.
pub(crate) fn is_direct(pipe: &Pipe) -> bool {
    match pipe.commands.as_slice() {
        [read] => is_read(read),
        [read, quoted] => is_read(read) && is_quote(quoted),
        _ => false,
    }
}

/// Whether an expression is such a text and nothing is done to it.
pub(crate) fn is_bare(pipe: &Pipe) -> bool {
    pipe.variables.is_empty() && matches!(pipe.commands.as_slice(), [read] if is_read(read))
}

fn is_read(command: &Command) -> bool {
    let is_path = |operand: &Operand| matches!(operand.term, Term::Field(_) | Term::Variable(_));
    match command.operands.as_slice() {
        [operand] => is_path(operand),
        [Operand { term: Term::Call(Callee::Builtin(Builtin::Index)), .. }, map, key] => {
            is_path(map) && matches!(key.term, Term::Text { .. })
        }
        _ => false,
    }
}

fn is_quote(command: &Command) -> bool {
    match command.operands.as_slice() {
        [Operand { term: Term::Call(callee), .. }] => matches!(callee.name(), "quote" | "squote" | "toJson"),
        _ => false,
    }
}

/// The place of what was written, without the quotes that the template put around it; those of the application are its text.
pub(crate) fn place(output: &str, start: usize, pipe: &Pipe) -> Range<usize> {
    let written = &output[start..];
    let quoted = pipe.commands.len() > 1
        && written.len() >= 2
        && (written.starts_with('"') && written.ends_with('"') || written.starts_with('\'') && written.ends_with('\''));
    match quoted {
        true => start + 1..output.len() - 1,
        false => start..output.len(),
    }
}

/// The actions of a text that is rendered again, each as Go writes it back.
pub(crate) fn note_actions(trees: &Trees, noted: &mut String) {
    for (name, nodes) in trees {
        noted.push_str(name);
        noted.push('\n');
        note_nodes(nodes, noted);
    }
}

fn note_nodes(nodes: &[Node], noted: &mut String) {
    use std::fmt::Write as _;
    for node in nodes {
        // Writing to a text never fails.
        let _ = match node {
            Node::Text(_) => Ok(()),
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                let word = match node {
                    Node::If(_) => "if",
                    Node::With(_) => "with",
                    _ => "range",
                };
                let began = writeln!(noted, "{word} {}", branch.pipe);
                note_nodes(&branch.body, noted);
                noted.push_str("else\n");
                note_nodes(branch.otherwise.as_deref().unwrap_or_default(), noted);
                noted.push_str("end\n");
                began
            }
            node => writeln!(noted, "{node}"),
        };
    }
}
