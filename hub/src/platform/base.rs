//! The text of an environment's BaseRepo `main`: which commit it names, and the same text with another commit. Pure; called
//! when Git is read and when a promotion is written. Comments, order and all other fields stay as people wrote them.

use kedge_goyaml::{Limits, Node, NodeValue, Style, Value};

/// The BaseRepo that names the promoted commit.
pub const NAME: &str = "main";

/// Where it is written when nobody has written it yet, as Kalypso's workflow does.
pub const FILE: &str = "base-repo.yaml";

/// A file with a BaseRepo is small; more isn't edited.
const LIMITS: Limits = Limits { bytes: 1024 * 1024, nodes: 100_000, depth: 64 };

/// A whole file in Kalypso's shape.
pub fn fresh(repo: &str, branch: &str, commit: &str) -> String {
    let (repo, branch, commit) = (scalar(repo), scalar(branch), scalar(commit));
    format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: BaseRepo\nmetadata:\n  name: {NAME}\nspec:\n  repo: {repo}\n  \
         branch: {branch}\n  path: .\n  commit: {commit}\n"
    )
}

/// The same text with this commit in the BaseRepo `main`. None: it holds none, or is written so that only a person should
/// change it.
pub fn with_commit(text: &str, commit: &str) -> Option<String> {
    let documents = kedge_goyaml::node::parse(text, &LIMITS).ok()?;
    let index = documents.iter().position(is_main)?;
    let spec = documents.get(index)?.get("spec")?;
    let edited = match spec.get("commit") {
        Some(value) => replace(text, value, commit)?,
        None => insert(text, spec, commit)?,
    };
    let again = kedge_goyaml::node::parse(&edited, &LIMITS).ok()?;
    let same = again.len() == documents.len()
        && again.iter().zip(&documents).enumerate().all(|(at, (new, old))| match at == index {
            false => new.to_value() == old.to_value(),
            true => named(new).as_deref() == Some(commit) && without_commit(new) == without_commit(old),
        });
    same.then_some(edited)
}

/// Whether a document is the BaseRepo `main`.
fn is_main(document: &Node) -> bool {
    let text = |node: Option<&Node>| node.and_then(Node::text).map(str::to_owned);
    text(document.get("kind")).as_deref() == Some("BaseRepo")
        && text(document.get("metadata").and_then(|metadata| metadata.get("name"))).as_deref() == Some(NAME)
}

fn named(document: &Node) -> Option<String> {
    match document.get("spec")?.get("commit")?.resolve()? {
        Value::String(commit) => Some(commit),
        _ => None,
    }
}

/// Everything else that a document says.
fn without_commit(document: &Node) -> Vec<(String, Vec<(String, Value)>)> {
    let entries = document.entries().unwrap_or_default();
    let all = entries.iter().map(|(key, value)| {
        let inner = match (key.text(), value.entries()) {
            (Some("spec"), Some(fields)) => fields
                .iter()
                .filter(|(name, _)| name.text() != Some("commit"))
                .map(|(name, value)| (name.text().unwrap_or_default().to_owned(), value.to_value()))
                .collect(),
            _ => vec![(String::new(), value.to_value())],
        };
        (key.text().unwrap_or_default().to_owned(), inner)
    });
    all.collect()
}

/// Puts a commit where another one stands.
fn replace(text: &str, old: &Node, commit: &str) -> Option<String> {
    let NodeValue::Scalar { text: written, style } = &old.value else { return None };
    let at = offset(text, old.line, old.column)?;
    let rest = text.get(at..)?;
    let (length, new) = match style {
        // An empty value stands nowhere: the commit goes behind its colon.
        Style::Plain if written.is_empty() => return None,
        Style::Plain => (written.len(), scalar(commit)),
        Style::SingleQuoted => (written.len() + 2, format!("'{commit}'")),
        Style::DoubleQuoted => (written.len() + 2, format!("\"{commit}\"")),
        Style::Literal | Style::Folded => return None,
    };
    let taken = rest.get(..length)?;
    taken.contains(written.as_str()).then_some(())?;
    Some(format!("{}{new}{}", text.get(..at)?, rest.get(length..)?))
}

/// Adds a commit to a spec that has none.
fn insert(text: &str, spec: &Node, commit: &str) -> Option<String> {
    let (first, _) = spec.entries()?.first()?;
    let at = offset(text, first.line, first.column)?;
    let before = text.get(..at)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let lead = before.get(line_start..)?;
    let commit = scalar(commit);
    if !lead.trim().is_empty() {
        // `{repo: …}` on one line.
        return Some(format!("{before}commit: {commit}, {}", text.get(at..)?));
    }
    let (_, last) = spec.entries()?.last()?;
    let simple =
        matches!(last.value, NodeValue::Scalar { style: Style::Plain | Style::SingleQuoted | Style::DoubleQuoted, .. });
    let place = match simple.then(|| offset(text, last.line, last.column)).flatten() {
        Some(value) => text.get(value..)?.find('\n').map_or(text.len(), |end| value + end + 1),
        None => line_start,
    };
    let (head, tail) = text.split_at_checked(place)?;
    let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{gap}{lead}commit: {commit}\n{tail}"))
}

/// Of a line and a column, both from 1, in bytes.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let line = usize::try_from(line.checked_sub(1)?).ok()?;
    let column = usize::try_from(column.checked_sub(1)?).ok()?;
    let start = match line {
        0 => 0,
        line => text.match_indices('\n').nth(line - 1)?.0 + 1,
    };
    let rest = text.get(start..)?;
    let inside = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).nth(column)?;
    Some(start + inside)
}

/// Plain where that is a string, else quoted: a commit of digits alone isn't a number.
fn scalar(text: &str) -> String {
    let parsed = kedge_goyaml::node::parse(text, &LIMITS);
    let plain =
        parsed.is_ok_and(|found| matches!(&found[..], [one] if one.resolve() == Some(Value::String(text.to_owned()))));
    let safe = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-._/:@+~".contains(c));
    match plain && safe {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "abcdef1234abcdef1234abcdef1234abcdef1234";

    #[test]
    fn only_the_commit_changes() {
        for (text, wanted) in [
            (
                format!(
                    "# Ours\nkind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: r # here\n  commit: \"{OLD}\" # promoted\n  path: .\n"
                ),
                format!(
                    "# Ours\nkind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: r # here\n  commit: \"{NEW}\" # promoted\n  path: .\n"
                ),
            ),
            (
                "kind: BaseRepo\nmetadata: {name: main}\nspec: {repo: r, branch: main, path: ., commit: abc}\n"
                    .to_owned(),
                format!(
                    "kind: BaseRepo\nmetadata: {{name: main}}\nspec: {{repo: r, branch: main, path: ., commit: {NEW}}}\n"
                ),
            ),
            (
                "kind: BaseRepo\nmetadata: {name: main}\nspec: {repo: r}\n".to_owned(),
                format!("kind: BaseRepo\nmetadata: {{name: main}}\nspec: {{commit: {NEW}, repo: r}}\n"),
            ),
            (
                "kind: X\n---\nkind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: ü\n  path: .\n---\nkind: Y\n"
                    .to_owned(),
                format!(
                    "kind: X\n---\nkind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: ü\n  path: .\n  commit: {NEW}\n---\nkind: Y\n"
                ),
            ),
            (
                "kind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: r\n  path: .".to_owned(),
                format!("kind: BaseRepo\nmetadata:\n  name: main\nspec:\n  repo: r\n  path: .\n  commit: {NEW}\n"),
            ),
        ] {
            assert_eq!(with_commit(&text, NEW).as_deref(), Some(wanted.as_str()), "{text}");
        }
    }

    #[test]
    fn what_a_person_should_change_is_left_alone() {
        for text in [
            "kind: BaseRepo\nmetadata: {name: other}\nspec: {repo: r}\n",
            "kind: BaseRepo\nmetadata: {name: main}\nspec: &x {repo: r}\nmore: *x\n",
            "kind: BaseRepo\nmetadata: {name: main}\nspec:\n  repo: r\n  commit: >\n    abc\n",
            "kind: [",
        ] {
            assert_eq!(with_commit(text, NEW), None, "{text}");
        }
    }

    #[test]
    fn a_fresh_file_is_a_base_repo_that_names_the_commit() {
        for commit in [NEW, "1234567890123456789012345678901234567890", "12345e7890123456789012345678901234567890"] {
            let text = fresh("https://git.example/o/control-plane.git", "main", commit);
            let documents = kedge_goyaml::node::parse(&text, &LIMITS).unwrap();
            assert!(is_main(&documents[0]));
            assert_eq!(named(&documents[0]).as_deref(), Some(commit));
            let again = with_commit(&with_commit(&text, OLD).unwrap(), commit).unwrap();
            assert_eq!(named(&kedge_goyaml::node::parse(&again, &LIMITS).unwrap()[0]).as_deref(), Some(commit));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_edited_right_or_not_at_all(text in ".{0,200}", name in "[a-z]{0,5}", style in 0..4usize) {
            let _ = with_commit(&text, NEW);
            let commit = ["", "commit: x\n  ", "commit: 'y' #\n  ", "commit:\n  "][style];
            let whole = format!("kind: BaseRepo\nmetadata:\n  name: main\nspec:\n  {commit}repo: \"{name}\"\n{text}");
            if let Some(edited) = with_commit(&whole, NEW) {
                prop_assert!(edited.len() <= whole.len() + 60);
                prop_assert_eq!(with_commit(&edited, NEW), Some(edited.clone()));
            }
        }
    }
}
