//! What the decoder needs of a YAML node, and nothing more: the rest of the decoder doesn't know the parser.

use kedge_goyaml::{Limits, Node, NodeValue, Style, Value, node};

use super::MAX_FILE_BYTES;
use super::notes::Spot;

/// What a file may use up. The decoder walks by recursion, so the depth is also what keeps its stack small.
const LIMITS: Limits = Limits { bytes: MAX_FILE_BYTES, nodes: 200_000, depth: 100 };

/// Why a text isn't YAML.
#[derive(Debug)]
pub(super) struct Fault {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

/// A node by what the decoder asks first.
#[derive(Debug)]
pub(super) enum Shape<'n> {
    Null,
    Text(&'n str),
    /// A scalar that isn't a string, and as it is written: `yes`, `8080`.
    Bool(bool, &'n str),
    Number(&'n str),
    List(&'n [Node]),
    Map(&'n [(Node, Node)]),
}

/// The documents of a text that begins on a line of a file.
pub(super) fn parse(text: &str, first_line: usize) -> Result<Vec<Node>, Fault> {
    let before = u32::try_from(first_line.saturating_sub(1)).unwrap_or(u32::MAX);
    match node::parse(text, &LIMITS) {
        Ok(mut documents) => {
            if before > 0 {
                documents.iter_mut().for_each(|document| shift(document, before));
            }
            Ok(documents)
        }
        Err(error) => Err(Fault {
            line: error.line.saturating_add(before) as usize,
            column: error.column as usize,
            message: move_line(error.message, before),
            hint: error.hint,
        }),
    }
}

/// The parser's words on a key that is there twice count lines from where its text begins.
fn move_line(message: String, by: u32) -> String {
    match message.split_once(", on line ") {
        Some((what, lines)) => {
            let first = lines.split(' ').next().and_then(|line| line.parse::<u32>().ok()).unwrap_or_default();
            format!("{what}, first on line {}", first.saturating_add(by))
        }
        None => message,
    }
}

fn shift(node: &mut Node, by: u32) {
    node.line = node.line.saturating_add(by);
    node.content_line = node.content_line.saturating_add(by);
    match &mut node.value {
        NodeValue::Scalar { .. } => {}
        NodeValue::List(items) => items.iter_mut().for_each(|item| shift(item, by)),
        NodeValue::Map(entries) => {
            for (key, value) in entries {
                shift(key, by);
                shift(value, by);
            }
        }
    }
}

pub(super) fn shape(node: &Node) -> Shape<'_> {
    match &node.value {
        NodeValue::List(items) => Shape::List(items),
        NodeValue::Map(entries) => Shape::Map(entries),
        NodeValue::Scalar { text, style, .. } => {
            if *style != Style::Plain && node.tag.is_none() {
                return Shape::Text(text);
            }
            match node.resolve() {
                Some(Value::Null) => Shape::Null,
                Some(Value::Bool(value)) => Shape::Bool(value, text),
                Some(Value::Int(_) | Value::Uint(_) | Value::Float(_)) => Shape::Number(text),
                _ => Shape::Text(text),
            }
        }
    }
}

/// The text of a scalar as it is written, whatever YAML makes of it.
pub(super) fn text_of(node: &Node) -> Option<&str> {
    node.text().filter(|_| !node.is_null()).or_else(|| node.is_null().then_some(""))
}

/// The keys and values of a map; nothing when it isn't one. A key stays what is written.
pub(super) fn entries(node: &Node) -> impl DoubleEndedIterator<Item = (&str, Spot, &Node)> {
    let pairs = node.entries().unwrap_or_default();
    pairs.iter().filter_map(|(key, value)| Some((key.text()?, spot(key), value)))
}

/// The value of a key of a map; none when the node isn't a map.
pub(super) fn find<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    node.get(name)
}

/// Where a node begins, and how wide it is on its first line.
pub(super) fn spot(node: &Node) -> Spot {
    let width = match &node.value {
        NodeValue::Scalar { text, style, .. } => {
            let first = text.lines().next().unwrap_or_default().chars().count();
            match style {
                Style::Plain => first,
                Style::SingleQuoted | Style::DoubleQuoted => first + 2,
                _ => 1,
            }
        }
        _ => 1,
    };
    Spot { line: node.line as usize, column: node.column as usize, width }
}

/// A text for a message: on one line and not too long.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

impl Shape<'_> {
    /// For messages: "must be a map, but is …".
    pub fn describe(&self) -> String {
        match self {
            Shape::Null => "empty".to_owned(),
            Shape::Text(_) => "a string".to_owned(),
            Shape::Bool(_, text) => format!("the boolean `{text}`"),
            Shape::Number(text) => format!("the number `{}`", short(text)),
            Shape::List(_) => "a list".to_owned(),
            Shape::Map(_) => "a map".to_owned(),
        }
    }
}
