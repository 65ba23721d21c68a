//! In which direction a package's modules and a family of packages depend on each other, for tests that refuse an edge that goes
//! back up. It reads source text: what only tests use doesn't count.

mod modules;
mod packages;
mod source;
mod tokens;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

pub use modules::read_modules;
pub use packages::read_packages;

/// Modules or packages, and who uses whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    pub nodes: BTreeSet<String>,
    pub edges: Vec<Edge>,
}

/// One place where a node uses another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub file: PathBuf,
    pub line: usize,
}

/// What is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Direction<'a> {
    /// Each node uses only those before it.
    pub low_to_high: &'a [&'a str],
    /// Upward edges that are known. The list may only shrink.
    pub exceptions: &'a [(&'a str, &'a str)],
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    Upward(Edge),
    /// It is in the source and nobody said where it belongs.
    Unplaced(String),
    /// It has a place and isn't in the source.
    Missing(String),
    /// An exception that nothing needs any more.
    Obsolete {
        from: String,
        to: String,
    },
}

impl Graph {
    /// Everything that is against the direction, in a stable order.
    pub fn violations(&self, direction: &Direction<'_>) -> Vec<Violation> {
        let place = |name: &str| direction.low_to_high.iter().position(|placed| *placed == name);
        let goes_up = |edge: &&Edge| place(&edge.from) < place(&edge.to);
        let is_known =
            |edge: &Edge| direction.exceptions.iter().any(|(from, to)| (*from, *to) == (&*edge.from, &*edge.to));
        let upward: Vec<&Edge> = self.edges.iter().filter(goes_up).collect();
        let unplaced = self.nodes.iter().filter(|name| place(name).is_none()).cloned().map(Violation::Unplaced);
        let missing = direction.low_to_high.iter().filter(|name| !self.nodes.contains(**name));
        let missing = missing.map(|name| Violation::Missing((*name).to_owned()));
        let obsolete = direction.exceptions.iter().filter(|(from, to)| {
            let is_needed = |edge: &&Edge| (&*edge.from, &*edge.to) == (*from, *to);
            !upward.iter().any(is_needed)
        });
        let obsolete =
            obsolete.map(|(from, to)| Violation::Obsolete { from: (*from).to_owned(), to: (*to).to_owned() });
        let new = upward.iter().filter(|edge| !is_known(edge)).map(|edge| Violation::Upward((*edge).clone()));
        let mut all: Vec<Violation> = new.chain(unplaced).chain(missing).chain(obsolete).collect();
        all.sort();
        all
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Upward(Edge { from, to, file, line }) => write!(
                f,
                "{}:{line}: `{from}` uses `{to}`, which is above it; move the shared value below both, or define a trait in `{from}`",
                file.display()
            ),
            Violation::Unplaced(name) => write!(f, "`{name}` has no place among the layers; add it where it belongs"),
            Violation::Missing(name) => {
                write!(f, "`{name}` is among the layers and not in the source; remove it there")
            }
            Violation::Obsolete { from, to } => {
                write!(f, "`{from}` doesn't use `{to}` any more; remove the exception, so that it stays like that")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str) -> Edge {
        Edge { from: from.to_owned(), to: to.to_owned(), file: PathBuf::from("x.rs"), line: 1 }
    }

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let nodes = edges.iter().flat_map(|(from, to)| [(*from).to_owned(), (*to).to_owned()]).collect();
        Graph { nodes, edges: edges.iter().map(|(from, to)| edge(from, to)).collect() }
    }

    #[test]
    fn an_edge_that_goes_up_is_refused_unless_it_is_an_exception() {
        let graph = graph(&[("high", "low"), ("low", "high")]);
        let check = |exceptions| graph.violations(&Direction { low_to_high: &["low", "high"], exceptions });
        assert_eq!(check(&[]), [Violation::Upward(edge("low", "high"))]);
        assert_eq!(check(&[("low", "high")]), []);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_refused() {
        let graph = graph(&[("high", "low")]);
        let direction = Direction { low_to_high: &["low", "high"], exceptions: &[("low", "high")] };
        let (from, to) = ("low".to_owned(), "high".to_owned());
        assert_eq!(graph.violations(&direction), [Violation::Obsolete { from, to }]);
    }

    #[test]
    fn layers_name_what_is_there_and_nothing_else() {
        let graph = graph(&[("high", "low")]);
        let found = graph.violations(&Direction { low_to_high: &["high", "gone"], exceptions: &[] });
        assert_eq!(found, [Violation::Unplaced("low".to_owned()), Violation::Missing("gone".to_owned())]);
    }
}
