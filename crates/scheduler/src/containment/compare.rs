//! Two renderings of one file: with an application's texts, and with harmless ones in their place. They must have the
//! same documents, keys and types; in what Kedge itself applies the texts may reach a few fields only.

use kedge_goyaml::node::{self, Node, NodeValue, Notes, Style};
use kedge_goyaml::{Limits, Value};

use super::shell::{self, first_difference, plain_skeleton, shell_skeleton};
use super::word::reads_as_text;

/// A rendering is bounded by its budget; this is above it.
const LIMITS: Limits = Limits { bytes: 8 << 20, nodes: 400_000, depth: 100 };

/// A text that is longer may be longer than a key can be (1,024 characters).
const LONG: usize = 500;

/// Where the renderings differ, by the line of the one with the application's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub line: u32,
    pub why: String,
}

/// What both renderings call the namespace, and what is asked of a HostNamespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules<'a> {
    pub namespace: &'a str,
    pub harmless_namespace: &'a str,
    /// Names are as written in both: then the spec of a HostNamespace has to be the same.
    pub names_kept: bool,
    /// A text of the application could begin a comment.
    pub may_comment: bool,
    /// Characters of the longest text of the application.
    pub longest: usize,
}

/// A kind that Kedge applies by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Own {
    Delivery,
    HostNamespace,
    Other,
}

/// The way to a node, and whose it is.
struct Walk<'a> {
    rules: Rules<'a>,
    own: Option<Own>,
    path: Vec<String>,
}

/// What is wrong with a text in a file of a language that nobody knows.
pub const UNKNOWN_LANGUAGE: &str = "the text has characters that may mean something";

pub fn shell(actual: &str, harmless: &str) -> Result<(), Mismatch> {
    let doubt = shell::doubt(harmless);
    let skeleton = |text: &str| shell_skeleton(text, doubt.is_none());
    let differs = first_difference(&skeleton(actual), &skeleton(harmless));
    let Some(line) = differs.or_else(|| shell::moved_end(actual, harmless)) else { return Ok(()) };
    let why = match doubt {
        None => "a shell would read more than a value there".to_owned(),
        Some(doubt) => format!("a shell would read more than a value there, or may do so: {doubt}"),
    };
    Err(Mismatch { line, why })
}

/// A file that isn't YAML: what it is made for knows.
fn unknown(actual: &str, harmless: &str) -> Result<(), Mismatch> {
    let differs = first_difference(&plain_skeleton(actual), &plain_skeleton(harmless));
    match differs.or_else(|| shell::moved_end(actual, harmless)) {
        None => Ok(()),
        Some(line) => Err(Mismatch { line, why: UNKNOWN_LANGUAGE.to_owned() }),
    }
}

pub fn yaml(actual: &str, harmless: &str, rules: Rules<'_>) -> Result<(), Mismatch> {
    let both = (node::parse_noting(actual, &LIMITS), node::parse_noting(harmless, &LIMITS));
    let ((actual_nodes, actual_notes), (harmless_nodes, harmless_notes)) = match both {
        (Ok(actual), Ok(harmless)) => (actual, harmless),
        // As long as a harmless text is, it may be the length that no reader takes.
        (Err(error), Err(_)) if rules.longest > LONG => {
            let why =
                format!("the file isn't YAML, which the length of a text may be the reason for: {}", error.message);
            return Err(Mismatch { line: error.line, why });
        }
        (Err(_), Err(_)) => return unknown(actual, harmless),
        (Err(error), Ok(_)) => {
            return Err(Mismatch { line: error.line, why: format!("the file isn't YAML any more: {}", error.message) });
        }
        (Ok(_), Err(error)) => {
            let why = format!("only with this text the file is YAML: {}", error.message);
            return Err(Mismatch { line: error.line, why });
        }
    };
    notes(&actual_notes, &harmless_notes, rules)?;
    // To YAML the lines of most other languages are one long scalar.
    let is_scalar = |document: &Node| matches!(document.value, NodeValue::Scalar { .. });
    if actual_nodes.iter().chain(&harmless_nodes).any(is_scalar) {
        unknown(actual, harmless)?;
    }
    if actual_nodes.len() != harmless_nodes.len() {
        let line = actual_nodes.get(harmless_nodes.len()).map_or(1, |extra| extra.line);
        let why = format!("the file has {} documents instead of {}", actual_nodes.len(), harmless_nodes.len());
        return Err(Mismatch { line, why });
    }
    actual_nodes.iter().zip(&harmless_nodes).try_for_each(|(actual, harmless)| document(actual, harmless, rules))
}

/// A comment cuts off what the template wrote behind a text; an anchor or an alias takes another value's place.
fn notes(actual: &Notes<'_>, harmless: &Notes<'_>, rules: Rules<'_>) -> Result<(), Mismatch> {
    let comments = actual.comments.iter().map(Some).chain([None]).zip(harmless.comments.iter().map(Some).chain([None]));
    for (found, wanted) in comments {
        let fits = match (found, wanted) {
            (None, None) => true,
            (Some((_, found)), Some((_, wanted))) => found == wanted || !rules.may_comment,
            _ => false,
        };
        if !fits {
            let line = found.or(wanted).map_or(1, |(line, _)| *line);
            return Err(Mismatch { line, why: "the text begins a comment, which cuts off what follows".to_owned() });
        }
    }
    if actual.references.len() != harmless.references.len() {
        let differs = actual.references.iter().zip(&harmless.references).find(|(one, other)| one != other);
        let line = differs.map(|(one, _)| one).or(actual.references.last()).copied().unwrap_or(1);
        return Err(Mismatch { line, why: "the text becomes an anchor or an alias".to_owned() });
    }
    Ok(())
}

/// The line of a field of ours that holds this text though the application mustn't reach it.
pub fn own_line_with(text: &str, probe: &str) -> Option<u32> {
    let documents = node::parse(text, &LIMITS).ok()?;
    documents.iter().find_map(|document| probe_document(document, probe))
}

fn probe_document(document: &Node, probe: &str) -> Option<u32> {
    if let Some(items) = list_items(document) {
        return items.iter().find_map(|item| probe_document(item, probe));
    }
    let own = own_kind(document)?;
    let walk = Walk { rules: Rules { names_kept: true, ..Rules::default() }, own: Some(own), path: vec![] };
    walk.find(document, probe)
}

fn document(actual: &Node, harmless: &Node, rules: Rules<'_>) -> Result<(), Mismatch> {
    if let (Some(actual), Some(harmless)) = (list_items(actual), list_items(harmless))
        && actual.len() == harmless.len()
    {
        return actual.iter().zip(harmless).try_for_each(|(actual, harmless)| document(actual, harmless, rules));
    }
    let own = own_kind(actual).or_else(|| own_kind(harmless));
    Walk { rules, own, path: Vec::new() }.compare(actual, harmless)
}

fn list_items(document: &Node) -> Option<&[Node]> {
    let kind = document.get("kind").and_then(Node::text)?;
    kind.ends_with("List").then(|| document.get("items")?.items()).flatten()
}

fn own_kind(document: &Node) -> Option<Own> {
    document.get("apiVersion").and_then(Node::text).filter(|version| version.starts_with("kedge.dev/"))?;
    Some(match document.get("kind").and_then(Node::text) {
        Some("Delivery") => Own::Delivery,
        Some("HostNamespace") => Own::HostNamespace,
        _ => Own::Other,
    })
}

impl Walk<'_> {
    fn compare(&mut self, actual: &Node, harmless: &Node) -> Result<(), Mismatch> {
        if actual.tag != harmless.tag {
            return Err(self.mismatch(actual, "the text becomes a tag"));
        }
        match (&actual.value, &harmless.value) {
            (NodeValue::Scalar { .. }, NodeValue::Scalar { .. }) => self.scalar(actual, harmless),
            (NodeValue::List(items), NodeValue::List(others)) => {
                if items.len() != others.len() {
                    let why = format!("the list has {} items instead of {}", items.len(), others.len());
                    return Err(self.mismatch(actual, &why));
                }
                for (index, (item, other)) in items.iter().zip(others).enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.compare(item, other)?;
                    self.path.pop();
                }
                Ok(())
            }
            (NodeValue::Map(entries), NodeValue::Map(others)) => {
                for ((key, value), (other_key, other)) in entries.iter().zip(others) {
                    if key.text() != other_key.text() || key.tag != other_key.tag {
                        return Err(self.mismatch(key, "the text becomes a key, or adds one"));
                    }
                    self.path.push(key.text().unwrap_or("?").to_owned());
                    self.compare(value, other)?;
                    self.path.pop();
                }
                if entries.len() != others.len() {
                    let at = entries.get(others.len()).map_or(actual, |(key, _)| key);
                    let why = format!("the map has {} keys instead of {}", entries.len(), others.len());
                    return Err(self.mismatch(at, &why));
                }
                Ok(())
            }
            (found, wanted) => {
                let why = format!("it is {} instead of {}", shape(found), shape(wanted));
                Err(self.mismatch(actual, &why))
            }
        }
    }

    fn scalar(&self, actual: &Node, harmless: &Node) -> Result<(), Mismatch> {
        if is_block(actual) && !is_block(harmless) {
            return Err(self.mismatch(actual, "the text begins a block of lines"));
        }
        if ends_open(actual) && !ends_open(harmless) {
            return Err(self.mismatch(actual, "the text ends with `:`, so that some readers take it as a key"));
        }
        let (text, other) = (actual.text().unwrap_or_default(), harmless.text().unwrap_or_default());
        let both_text = is_text(actual) && is_text(harmless);
        if text == other && (both_text || actual.resolve() == harmless.resolve()) {
            return Ok(());
        }
        // A number that was made of a text, such as its hash, is one either way.
        if !both_text && type_of(actual) != type_of(harmless) {
            let why = format!("it is {} instead of {}", type_of(actual), type_of(harmless));
            return Err(self.mismatch(actual, &why));
        }
        let same = || {
            self.without_namespace(text, self.rules.namespace)
                == self.without_namespace(other, self.rules.harmless_namespace)
        };
        if self.own.is_none() || self.is_free() || same() {
            return Ok(());
        }
        let why = match self.own {
            Some(Own::Delivery) => {
                "in a Delivery text of the application may reach `spec.source` alone, and `.Namespace` elsewhere"
            }
            Some(Own::HostNamespace) => {
                "in a HostNamespace names may reach `user` and `folders`, `.Namespace` elsewhere, and no other text of the application"
            }
            _ => "in an object that Kedge applies no text of the application may be outside of `metadata`",
        };
        Err(self.mismatch(actual, why))
    }

    /// Whether an application's text may be at this place of an object of ours.
    fn is_free(&self) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match (self.own, path.as_slice()) {
            (_, ["metadata", "name" | "labels" | "annotations", ..]) => true,
            (Some(Own::Delivery), ["spec", "source", ..]) => true,
            (Some(Own::HostNamespace), ["spec", "user" | "folders", ..]) => !self.rules.names_kept,
            _ => false,
        }
    }

    fn without_namespace(&self, text: &str, namespace: &str) -> String {
        if namespace.is_empty() { text.to_owned() } else { text.replace(namespace, "\0") }
    }

    fn find(mut self, node: &Node, probe: &str) -> Option<u32> {
        self.find_in(node, probe)
    }

    fn find_in(&mut self, node: &Node, probe: &str) -> Option<u32> {
        if self.is_free() {
            return None;
        }
        match &node.value {
            NodeValue::Scalar { text, .. } => text.contains(probe).then_some(node.line),
            NodeValue::List(items) => items.iter().find_map(|item| self.find_in(item, probe)),
            NodeValue::Map(entries) => entries.iter().find_map(|(key, value)| {
                if key.text().is_some_and(|key| key.contains(probe)) {
                    return Some(key.line);
                }
                self.path.push(key.text().unwrap_or("?").to_owned());
                let found = self.find_in(value, probe);
                self.path.pop();
                found
            }),
        }
    }

    fn mismatch(&self, at: &Node, why: &str) -> Mismatch {
        let mut path = self.path.join(".").replace(".[", "[");
        if path.is_empty() {
            path.push_str("the document");
        }
        Mismatch { line: at.line, why: format!("at `{path}` {why}") }
    }
}

fn is_text(node: &Node) -> bool {
    match &node.value {
        NodeValue::Scalar { text, style: Style::Plain } if node.tag.is_none() => reads_as_text(text),
        _ => matches!(node.resolve(), Some(Value::String(_))),
    }
}

/// `[a:]`, which is text to some readers and a map to others.
fn ends_open(node: &Node) -> bool {
    matches!(&node.value, NodeValue::Scalar { text, style: Style::Plain } if text.ends_with(':'))
}

fn is_block(node: &Node) -> bool {
    matches!(node.value, NodeValue::Scalar { style: Style::Literal | Style::Folded, .. })
}

fn type_of(node: &Node) -> &'static str {
    match node.resolve() {
        Some(Value::Null) => "nothing",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Int(_) | Value::Uint(_) | Value::Float(_)) => "a number",
        Some(Value::String(_)) if !is_text(node) => "what some readers take as a number, a date or a boolean",
        _ => "text",
    }
}

fn shape(value: &NodeValue) -> &'static str {
    match value {
        NodeValue::Scalar { .. } => "a value",
        NodeValue::List(_) => "a list",
        NodeValue::Map(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules<'_> = Rules {
        namespace: "dev-ct-w-t",
        harmless_namespace: "dev-ct-g-h",
        names_kept: false,
        may_comment: true,
        longest: 10,
    };

    fn why(actual: &str, harmless: &str) -> String {
        match yaml(actual, harmless, RULES) {
            Ok(()) => String::new(),
            Err(mismatch) => format!("{}: {}", mismatch.line, mismatch.why),
        }
    }

    #[test]
    fn text_inside_scalars_changes_nothing() {
        for (actual, harmless) in [
            ("a: x y, z", "a: gg"),
            ("a: \"x: y\"", "a: gg"),
            ("a: |\n  x: 1\n", "a: |\n  gg\n"),
            ("a: [x, z]", "a: [g, h]"),
            ("a: 1", "a: 1"),
            ("a: 12638153115695167399", "a: 12630863596351565384"),
            ("no: yaml: x", "no: yaml: g"),
        ] {
            assert_eq!(why(actual, harmless), "");
        }
    }

    #[test]
    fn documents_keys_types_and_tags_are_compared() {
        for (actual, harmless, expected) in [
            ("a: x\n---\nb: y", "a: g", "3: the file has 2 documents instead of 1"),
            ("a: x\nb: y", "a: g", "2: at `the document` the map has 2 keys instead of 1"),
            ("x: 1", "g: 1", "1: at `the document` the text becomes a key, or adds one"),
            ("a: true", "a: g", "1: at `a` it is a boolean instead of text"),
            ("a: 8080", "a: g", "1: at `a` it is a number instead of text"),
            ("a: ~", "a: g", "1: at `a` it is nothing instead of text"),
            ("a: y", "a: g", "1: at `a` it is a boolean instead of text"),
            ("a: {b: c}", "a: g", "1: at `a` it is a map instead of a value"),
            ("a: [x, y]", "a: [g]", "1: at `a` the list has 2 items instead of 1"),
            ("a: !!binary eA==", "a: g", "1: at `a` the text becomes a tag"),
            ("a: \"", "a: g", "the file isn't YAML any more"),
            ("a: \"\"x\"\"", "a: \"ggg\"", "the file isn't YAML any more"),
            ("a: ''x''", "a: 'ggg'", "the file isn't YAML any more"),
            ("a: [x:]", "a: [gg]", "1: at `a[0]` the text ends with `:`"),
            ("x; y", "gggg", "1: the text has characters"),
            ("export A=x\nexport B=\"; y\"", "export A=g\nexport B=\"ggg\"", "2: the text has characters"),
            ("a = -x", "a = gg", "1: the text has characters"),
            ("a = 1--", "a = 1gg", "1: the text has characters"),
            ("a = <<EOF\nEOF\nEOF", "a = <<EOF\nggg\nEOF", "2: the text has characters"),
            ("no: yaml: {x", "no: yaml: g", "1: the text has characters"),
        ] {
            assert!(why(actual, harmless).contains(expected), "{actual}: {}", why(actual, harmless));
        }
    }

    #[test]
    fn in_a_delivery_text_reaches_the_source_alone() {
        let delivery = |text: &str, namespace: &str, account: &str| {
            format!(
                "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata: {{name: {text}}}\nspec:\n  source: {{repo: {text}, path: {text}}}\n  to: host\n  namespace: {namespace}\n  serviceAccount: {account}\n"
            )
        };
        assert_eq!(why(&delivery("x", "dev-ct-w-t", "deployer"), &delivery("g", "dev-ct-g-h", "deployer")), "");
        assert_eq!(why(&delivery("x", "a", "dev-ct-w-t-x"), &delivery("g", "a", "dev-ct-g-h-x")), "");
        let found = why(&delivery("x", "kube-system", "a"), &delivery("g", "hhhh-hhhhhh", "a"));
        assert!(found.contains("at `spec.namespace` in a Delivery"), "{found}");
        let found = why(&delivery("x", "a", "admin"), &delivery("g", "a", "ggggg"));
        assert!(found.contains("at `spec.serviceAccount`"), "{found}");
        let list = |text: &str| {
            format!(
                "apiVersion: v1\nkind: List\nitems:\n- apiVersion: kedge.dev/v1alpha1\n  kind: Delivery\n  spec: {{scope: {text}}}\n"
            )
        };
        assert!(why(&list("cluster"), &list("ggggggg")).contains("`spec.scope`"));
    }

    #[test]
    fn in_a_host_namespace_names_reach_user_and_folders() {
        let namespace = |name: &str, deb: &str| {
            format!(
                "apiVersion: kedge.dev/v1alpha1\nkind: HostNamespace\nmetadata: {{name: n}}\nspec: {{user: {name}, allow: {{debs: [{deb}]}}}}\n"
            )
        };
        assert_eq!(why(&namespace("x", "curl"), &namespace("g", "curl")), "");
        assert!(why(&namespace("x", "bash"), &namespace("g", "gggg")).contains("`spec.allow.debs[0]`"));
        let kept = Rules { names_kept: true, ..RULES };
        assert!(yaml(&namespace("x", "curl"), &namespace("g", "curl"), kept).is_err());
    }

    #[test]
    fn a_probe_is_found_outside_of_the_source() {
        let delivery = "apiVersion: kedge.dev/v1alpha1\nkind: Delivery\nmetadata:\n  labels: {probe: x}\nspec:\n  source: {probe: x}\n";
        assert_eq!(own_line_with(delivery, "probe"), None);
        assert_eq!(own_line_with(&format!("{delivery}  probe: x\n"), "probe"), Some(7));
        assert_eq!(own_line_with("kind: Other\nprobe: x\n", "probe"), None);
    }
}
