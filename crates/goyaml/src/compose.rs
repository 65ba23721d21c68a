//! The composer: tokens into one tree per document, aliases still unresolved. The decoder and the node parser call it.

mod block;
mod flow;

use std::collections::HashMap;
use std::ops::Range;

use crate::error::{Limits, ParseError};
use crate::node::Style;
use crate::scan::{Kind, Mark, Scanner};

/// Each directive is compared with all others, so there can't be many.
const MAX_TAG_DIRECTIVES: usize = 100;

/// A node of a [`Tree`]; children are indices into it.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) mark: Mark,
    pub(crate) kind: RawKind,
}

#[derive(Debug)]
pub(crate) enum RawKind {
    Scalar {
        text: String,
        style: Style,
        /// The full tag, such as `tag:yaml.org,2002:str`.
        tag: Option<String>,
        content_line: u32,
    },
    List(Vec<usize>, Option<String>),
    Map(Vec<(usize, usize)>, Option<String>),
    /// The node that the alias names.
    Alias(usize),
}

/// One document.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Raw>,
    pub(crate) root: usize,
}

#[derive(Debug)]
pub(crate) struct Composer<'a> {
    scanner: Scanner<'a>,
    limits: Limits,
    nodes: Vec<Raw>,
    anchors: HashMap<String, usize>,
    /// Handle and prefix.
    tags: Vec<(String, String)>,
    first: bool,
    /// Where anchors and aliases stand.
    references: Vec<Mark>,
}

/// What stands before a node.
struct Properties {
    start: Mark,
    end: Mark,
    anchor: Option<String>,
    tag: Option<String>,
}

impl<'a> Composer<'a> {
    pub(crate) fn new(text: &'a str, limits: Limits) -> Composer<'a> {
        Composer {
            scanner: Scanner::new(text),
            limits,
            nodes: Vec::new(),
            anchors: HashMap::new(),
            tags: Vec::new(),
            first: true,
            references: Vec::new(),
        }
    }

    /// Keeps what the trees don't show.
    pub(crate) fn note_comments(&mut self) {
        self.scanner.comments = Some(Vec::new());
    }

    /// Comments, and where anchors and aliases stand.
    pub(crate) fn into_notes(self) -> (Vec<(u32, Range<usize>)>, Vec<Mark>) {
        (self.scanner.comments.unwrap_or_default(), self.references)
    }

    /// The next document; nothing behind its end is looked at.
    pub(crate) fn next_document(&mut self) -> Result<Option<Tree>, ParseError> {
        let (mut kind, mut mark, _) = self.scanner.peek()?;
        if kind == Kind::StreamStart {
            self.scanner.take();
            (kind, mark, _) = self.scanner.peek()?;
        }
        if !self.first {
            while kind == Kind::DocumentEnd {
                self.scanner.take();
                (kind, mark, _) = self.scanner.peek()?;
            }
        }
        if kind == Kind::StreamEnd {
            return Ok(None);
        }
        let explicit = matches!(kind, Kind::Version | Kind::TagDirective | Kind::DocumentStart);
        self.read_directives()?;
        if explicit || !self.first {
            (kind, mark, _) = self.scanner.peek()?;
            if kind != Kind::DocumentStart {
                return Err(ParseError::at(mark, "a new document must begin with `---` here")
                    .with_hint("check brackets and quotes above, and the indentation"));
            }
            self.scanner.take();
            (kind, mark, _) = self.scanner.peek()?;
        }
        self.first = false;
        self.anchors.clear();
        let empty = explicit
            && matches!(
                kind,
                Kind::Version | Kind::TagDirective | Kind::DocumentStart | Kind::DocumentEnd | Kind::StreamEnd
            );
        let root = if empty { self.empty_scalar(mark)? } else { self.node(true, false, 0)? };
        if self.scanner.peek()?.0 == Kind::DocumentEnd {
            self.scanner.take();
        }
        self.tags.clear();
        Ok(Some(Tree { nodes: std::mem::take(&mut self.nodes), root }))
    }

    fn read_directives(&mut self) -> Result<(), ParseError> {
        let mut version = false;
        loop {
            let (kind, mark, _) = self.scanner.peek()?;
            match kind {
                Kind::Version => {
                    let token = self.scanner.take();
                    if version || token.text != "1.1" {
                        return Err(ParseError::at(mark, "only one `%YAML 1.1` is understood")
                            .with_hint("remove the directive"));
                    }
                    version = true;
                }
                Kind::TagDirective => {
                    let token = self.scanner.take();
                    if self.tags.iter().any(|(handle, _)| *handle == token.text) {
                        return Err(ParseError::at(mark, "this %TAG is defined twice"));
                    }
                    if self.tags.len() >= MAX_TAG_DIRECTIVES {
                        return Err(ParseError::at(mark, "too many %TAG directives"));
                    }
                    self.tags.push((token.text, token.suffix));
                }
                _ => break,
            }
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if !self.tags.iter().any(|(known, _)| known == handle) {
                self.tags.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    fn push(&mut self, mark: Mark, kind: RawKind) -> Result<usize, ParseError> {
        if self.nodes.len() >= self.limits.nodes {
            let message = format!("more than {} values in one document", self.limits.nodes);
            return Err(ParseError::at(mark, message));
        }
        self.nodes.push(Raw { mark, kind });
        Ok(self.nodes.len() - 1)
    }

    fn empty_scalar(&mut self, mark: Mark) -> Result<usize, ParseError> {
        self.push(
            mark,
            RawKind::Scalar { text: String::new(), style: Style::Plain, tag: None, content_line: mark.line },
        )
    }

    fn node(&mut self, block: bool, indentless: bool, depth: usize) -> Result<usize, ParseError> {
        let (kind, mark, _) = self.scanner.peek()?;
        if kind == Kind::Alias {
            let name = self.scanner.take().text;
            self.references.push(mark);
            let Some(target) = self.anchors.get(&name).copied() else {
                return Err(ParseError::at(mark, format!("the alias `*{name}` has no anchor"))
                    .with_hint("put a value that begins with `*` in quotes"));
            };
            return self.push(mark, RawKind::Alias(target));
        }
        let properties = self.properties(mark)?;
        let (kind, mark, _) = self.scanner.peek()?;
        let start = properties.start;
        match kind {
            Kind::BlockEntry if indentless => self.indentless_list(properties, depth),
            Kind::Scalar(style) => {
                let token = self.scanner.take();
                let scalar =
                    RawKind::Scalar { text: token.text, style, tag: properties.tag, content_line: token.content_line };
                let index = self.push(start, scalar)?;
                self.anchor(properties.anchor, index);
                Ok(index)
            }
            Kind::FlowListStart => self.flow_list(properties, depth),
            Kind::FlowMapStart => self.flow_map(properties, depth),
            Kind::BlockListStart if block => self.block_list(properties, depth),
            Kind::BlockMapStart if block => self.block_map(properties, depth),
            _ if properties.anchor.is_some() || properties.tag.is_some() => {
                let scalar = RawKind::Scalar {
                    text: String::new(),
                    style: Style::Plain,
                    tag: properties.tag,
                    content_line: properties.end.line,
                };
                let index = self.push(start, scalar)?;
                self.anchor(properties.anchor, index);
                Ok(index)
            }
            _ => Err(unexpected(kind, mark)),
        }
    }

    /// An anchor and a tag, in either order.
    fn properties(&mut self, mark: Mark) -> Result<Properties, ParseError> {
        let mut properties = Properties { start: mark, end: mark, anchor: None, tag: None };
        for _ in 0..2 {
            match self.scanner.peek()? {
                (Kind::Anchor, _, end) if properties.anchor.is_none() => {
                    properties.anchor = Some(self.scanner.take().text);
                    self.references.push(end);
                    properties.end = end;
                }
                (Kind::Tag, mark, end) if properties.tag.is_none() => {
                    let token = self.scanner.take();
                    properties.tag = Some(self.full_tag(&token.text, token.suffix, mark)?);
                    properties.end = end;
                }
                _ => break,
            }
        }
        Ok(properties)
    }

    fn full_tag(&self, handle: &str, suffix: String, mark: Mark) -> Result<String, ParseError> {
        if handle.is_empty() {
            return Ok(suffix);
        }
        match self.tags.iter().find(|(known, _)| known == handle) {
            Some((_, prefix)) => Ok(format!("{prefix}{suffix}")),
            None => Err(ParseError::at(mark, format!("the tag handle `{handle}` is not defined"))
                .with_hint("put a value that begins with `!` in quotes")),
        }
    }

    fn anchor(&mut self, name: Option<String>, index: usize) {
        if let Some(name) = name {
            self.anchors.insert(name, index);
        }
    }

    /// A place for a collection. Its anchor is known before its children are read, so that a cycle is seen as one.
    fn open(&mut self, properties: Properties, map: bool, depth: usize) -> Result<usize, ParseError> {
        if depth >= self.limits.depth {
            return Err(ParseError::too_deep(properties.start, self.limits.depth));
        }
        let kind =
            if map { RawKind::Map(Vec::new(), properties.tag) } else { RawKind::List(Vec::new(), properties.tag) };
        let index = self.push(properties.start, kind)?;
        self.anchor(properties.anchor, index);
        Ok(index)
    }

    fn close_list(&mut self, index: usize, items: Vec<usize>) -> usize {
        if let Some(RawKind::List(list, _)) = self.nodes.get_mut(index).map(|raw| &mut raw.kind) {
            *list = items;
        }
        index
    }

    fn close_map(&mut self, index: usize, entries: Vec<(usize, usize)>) -> usize {
        if let Some(RawKind::Map(map, _)) = self.nodes.get_mut(index).map(|raw| &mut raw.kind) {
            *map = entries;
        }
        index
    }
}

fn unexpected(kind: Kind, mark: Mark) -> ParseError {
    match kind {
        Kind::StreamEnd => ParseError::at(mark, "the text ends before a value is complete")
            .with_hint("check that every bracket and quote is closed"),
        Kind::FlowListEnd | Kind::FlowMapEnd | Kind::FlowEntry => {
            ParseError::at(mark, "a bracket or comma stands where a value is expected")
                .with_hint("put a value that begins with `]`, `}` or `,` in quotes")
        }
        _ => ParseError::at(mark, "a value is expected here").with_hint("check the indentation of this line"),
    }
}
