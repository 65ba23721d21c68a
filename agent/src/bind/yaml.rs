//! Binding in a YAML file: only the values of scalars, after parsing, so that a label's value can be no more than a value. The file is
//! written again only if something was bound.

use kedge_goyaml::{Limits, Node, NodeValue, Style, encode, node};

use super::{Names, bind};
use crate::goal::HostFacts;
use crate::record::Failure;

/// As kubectl and people write it.
const INDENT: usize = 2;

/// The file with its values bound; none: it stays as it is, byte by byte.
pub fn bind_yaml(text: &str, file: &str, facts: &HostFacts) -> Result<Option<String>, Failure> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut documents = node::parse(text, &Limits::default())
        .map_err(|error| Failure::new("BadPackage", format!("{file} isn't YAML: {error}")))?;
    let mut changed = false;
    for document in &mut documents {
        changed |= bind_node(document, file, 0, facts)?;
    }
    if !changed {
        return Ok(None);
    }
    let written: Vec<String> = documents.iter().map(|document| encode(&document.to_value(), INDENT)).collect();
    Ok(Some(written.join("---\n")))
}

/// Whether something in it was bound. Keys are names, not values. So many lines of the file are before the text that it was read from.
pub fn bind_node(node: &mut Node, file: &str, before: u32, facts: &HostFacts) -> Result<bool, Failure> {
    let mut changed = false;
    match &mut node.value {
        NodeValue::Scalar { text, style } => {
            let first_line = before + node.content_line;
            let bound = bind(text, facts, Names::All).map_err(|unbound| unbound.in_file(file, first_line))?;
            if let std::borrow::Cow::Owned(bound) = bound {
                // A string whatever it looks like: a label `true` or `7` is text.
                (*text, *style, changed) = (bound, Style::DoubleQuoted, true);
                node.tag = None;
            }
        }
        NodeValue::List(items) => {
            for item in items {
                changed |= bind_node(item, file, before, facts)?;
            }
        }
        NodeValue::Map(entries) => {
            for (_, value) in entries {
                changed |= bind_node(value, file, before, facts)?;
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::*;
    use proptest::prelude::*;

    fn bound(text: &str) -> String {
        bind_yaml(text, "platform-config.yaml", &facts()).unwrap().unwrap()
    }

    #[test]
    fn values_are_bound_and_keys_are_not() {
        let text = "kind: ConfigMap\ndata:\n  b: at ${cluster.name}\n  ${host.arch}: 1\n  m: 8080\n  list: [\"${host.ip}\", x]\n";
        assert_eq!(
            bound(text),
            "data:\n  ${host.arch}: 1\n  b: at line-7\n  list:\n    - 10.0.0.9\n    - x\n  m: 8080\nkind: ConfigMap\n"
        );
    }

    #[test]
    fn nothing_bound_leaves_every_byte() {
        for text in ["a:   1 # as it is\n", "${host.arch}:   only a key\n", "not: [yaml"] {
            assert_eq!(bind_yaml(text, "x", &facts()).unwrap(), None);
        }
    }

    #[test]
    fn a_value_with_quotes_lines_and_yaml_stays_one_value() {
        let text = bound("a: ${cluster.labels.evil}\nb: 'x ${cluster.labels.evil} y'\nc: 2\n");
        let document = &node::parse(&text, &Limits::default()).unwrap()[0];
        assert_eq!(document.entries().unwrap().len(), 3);
        assert_eq!(document.get("a").unwrap().text(), Some("a\"\nb: [c"));
        assert_eq!(document.get("b").unwrap().text(), Some("x a\"\nb: [c y"));
    }

    #[test]
    fn a_bound_number_is_text() {
        let text = bound("port: ${cluster.labels.acme.com/line-no}\n");
        assert_eq!(text, "port: \"7\"\n");
    }

    #[test]
    fn several_documents_stay_several() {
        assert_eq!(bound("a: ${host.arch}\n---\nb: 2\n"), "a: arm64\n---\nb: 2\n");
    }

    #[test]
    fn an_unbound_name_in_a_block_has_its_line() {
        let failure = bind_yaml("a: 1\nb: |\n  one\n  ${nope}\n", "namespace.yaml", &facts()).unwrap_err();
        assert!(failure.message.starts_with("namespace.yaml:4: `nope` isn't bound"), "{}", failure.message);
        let failure = bind_yaml("a: [${host.arch}", "namespace.yaml", &facts()).unwrap_err();
        assert_eq!(failure.reason, "BadPackage");
    }

    proptest! {
        #[test]
        fn any_label_comes_through_as_one_value(label in any::<String>()) {
            let mut facts = facts();
            facts.labels.insert("any".to_owned(), label.clone());
            let text = bind_yaml("a: ${cluster.labels.any}\nb: {c: '-${cluster.labels.any}-'}\n", "x", &facts).unwrap().unwrap();
            let documents = node::parse(&text, &Limits::default()).unwrap();
            prop_assert_eq!(documents.len(), 1);
            prop_assert_eq!(documents[0].get("a").and_then(Node::text), Some(label.as_str()));
            let dashed = format!("-{label}-");
            prop_assert_eq!(documents[0].get("b").and_then(|b| b.get("c")).and_then(Node::text), Some(dashed.as_str()));
        }
    }
}
