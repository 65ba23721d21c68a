//! Binding in `platform-config.env`: each value is taken out of its quotes, bound, and quoted again as systemd reads it.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::{Names, bind};
use crate::goal::HostFacts;
use crate::record::Failure;

/// The file with its values bound; none: it stays as it is.
pub fn bind_environment(text: &str, file: &str, facts: &HostFacts, names: Names) -> Result<Option<String>, Failure> {
    if !text.contains("${") {
        return Ok(None);
    }
    let (mut out, mut changed) = (String::new(), false);
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let (key, value, behind) = variable(rest).ok_or_else(|| {
            Failure::new("BadPackage", format!("{file}:{line}: this isn't a line of `KEY=\"value\"`"))
        })?;
        let bound = bind(&value, facts, names).map_err(|unbound| unbound.in_file(file, line))?;
        changed |= matches!(bound, Cow::Owned(_));
        if bound.contains('\0') {
            return Err(Failure::new("BadPackage", format!("{file}:{line}: the value of {key} has a NUL character")));
        }
        write_variable(&mut out, key, &bound);
        line += u32::try_from(rest[..rest.len() - behind.len()].matches('\n').count()).unwrap_or(0);
        rest = behind;
    }
    Ok(changed.then_some(out))
}

/// The first variable of a text: its key, its value as systemd reads it, and what follows.
fn variable(text: &str) -> Option<(&str, String, &str)> {
    let (key, quoted) = text.split_once("=\"")?;
    let mut letters = key.bytes();
    let begins = letters.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !begins || !letters.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let mut value = String::new();
    let mut rest = quoted.char_indices();
    loop {
        match rest.next()? {
            (at, '"') => return Some((key, value, quoted[at + 1..].strip_prefix('\n')?)),
            (_, '\\') => match rest.next()?.1 {
                c @ ('"' | '\\' | '`' | '$') => value.push(c),
                '\n' => {}
                c => value.extend(['\\', c]),
            },
            (_, c) => value.push(c),
        }
    }
}

fn write_variable(out: &mut String, key: &str, value: &str) {
    // Writing to a String can't fail.
    _ = write!(out, "{key}=\"");
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '$' | '`') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push_str("\"\n");
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::*;
    use proptest::prelude::*;

    fn bound(text: &str, names: Names) -> Result<Option<String>, Failure> {
        bind_environment(text, "platform-config.env", &facts(), names)
    }

    #[test]
    fn values_are_bound_and_quoted_again() {
        let text = "A=\"at \\${cluster.name}\"\nB=\"\\${cluster.labels.evil}\"\nC=\"\\$5\nx\"\n";
        let out = bound(text, Names::All).unwrap().unwrap();
        assert_eq!(out, "A=\"at line-7\"\nB=\"a\\\"\nb: [c\"\nC=\"\\$5\nx\"\n");
    }

    #[test]
    fn beside_a_shell_its_own_names_stay() {
        let text = "A=\"\\${HOME}/\\${host.arch}\"\n";
        assert_eq!(bound(text, Names::Ours).unwrap().unwrap(), "A=\"\\${HOME}/arm64\"\n");
        let failure = bound(&format!("X=\"1\n2\"\n{text}"), Names::All).unwrap_err();
        assert!(failure.message.starts_with("platform-config.env:3: `HOME` isn't bound"), "{}", failure.message);
        assert_eq!(bound("A=\"\\${HOME}\"\n", Names::Ours).unwrap(), None);
    }

    #[test]
    fn another_format_is_refused() {
        for text in ["export A=\"${host.arch}\"\n", "A=\"${host.arch}", "A=${host.arch}\n", "A=\"${host.arch}\" B\n"] {
            assert_eq!(bound(text, Names::All).unwrap_err().reason, "BadPackage", "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_label_stays_inside_its_variable(label in "[^\\x00]{0,40}") {
            let mut facts = facts();
            facts.labels.insert("any".to_owned(), label.clone());
            let text = "A=\"x\\${cluster.labels.any}\"\nB=\"2\"\n";
            let out = bind_environment(text, "x", &facts, Names::All).unwrap().unwrap();
            let (key, value, rest) = variable(&out).unwrap();
            prop_assert_eq!((key, value), ("A", format!("x{label}")));
            prop_assert_eq!(rest, "B=\"2\"\n");
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = bound(&text, Names::All);
            let _ = bound(&format!("A=\"${{{text}"), Names::Ours);
        }
    }
}
