//! `platform-config.env`: the platform's configuration as systemd's `EnvironmentFile=` reads it, made from what the
//! configuration template wrote. It is never in Git. Pure.

use std::fmt::Write as _;

use kedge_goyaml::{Limits, NodeValue, node};

/// Its name in the platform package of a host.
pub const NAME: &str = "platform-config.env";

/// A made file, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    File {
        text: String,
        /// Keys that can't be names of variables.
        left_out: Vec<String>,
    },
    OtherShape,
}

/// From `platform-config.yaml`: the `data` of its one ConfigMap.
pub fn from_config_map(text: &str) -> Made {
    let Ok(documents) = node::parse(text, &Limits::default()) else { return Made::OtherShape };
    let [document] = documents.as_slice() else { return Made::OtherShape };
    let is = |key: &str, word: &str| document.get(key).and_then(|node| node.text()) == Some(word);
    if !is("kind", "ConfigMap") || !is("apiVersion", "v1") {
        return Made::OtherShape;
    }
    let Some(NodeValue::Map(entries)) = document.get("data").map(|data| &data.value) else {
        return Made::OtherShape;
    };
    let pairs: Option<Vec<_>> = entries.iter().map(|(key, value)| Some((key.text()?, value.text()?))).collect();
    match pairs {
        Some(pairs) => write(pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()))),
        None => Made::OtherShape,
    }
}

/// From `platform-config.sh`: lines of `export K="v"`. A value that the template didn't escape is taken as it stands.
pub fn from_exports(text: &str) -> Made {
    match exported(text) {
        Some(pairs) => write(pairs.into_iter()),
        None => Made::OtherShape,
    }
}

/// The names and values that lines of `export K="v"` set; none when there are other lines.
pub fn exported(text: &str) -> Option<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_end_matches('\r');
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let (key, value) = line.trim_start().strip_prefix("export ").and_then(|rest| rest.split_once('='))?;
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let mut whole = value[1..].to_owned();
                // A value with line breaks goes on until a line that ends with its quote.
                while !ends_quoted(&whole, quote) {
                    whole.push('\n');
                    whole.push_str(lines.next()?);
                }
                whole.truncate(whole.trim_end().len().saturating_sub(1));
                if quote == '"' { unescape(&whole) } else { whole }
            }
            _ if value.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ';' | '&' | '|')) => {
                return None;
            }
            _ => value.to_owned(),
        };
        pairs.push((key.trim().to_owned(), value));
    }
    Some(pairs)
}

/// Whether the text ends with a quote that isn't escaped.
fn ends_quoted(text: &str, quote: char) -> bool {
    let Some(inside) = text.trim_end().strip_suffix(quote) else { return false };
    let escapes = inside.chars().rev().take_while(|c| *c == '\\').count();
    quote == '\'' || escapes % 2 == 0
}

/// What a shell makes of a text between double quotes.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some('"' | '\\' | '$' | '`')) => out.extend(rest.next()),
            ('\\', Some('\n')) => {
                rest.next();
            }
            _ => out.push(c),
        }
    }
    out
}

fn write(pairs: impl Iterator<Item = (String, String)>) -> Made {
    let (mut text, mut left_out) = (String::new(), Vec::new());
    for (key, value) in pairs {
        if !is_variable(&key) || value.contains('\0') {
            left_out.push(key);
            continue;
        }
        let _ = write!(text, "{key}=\"");
        for c in value.chars() {
            if matches!(c, '"' | '\\' | '$' | '`') {
                text.push('\\');
            }
            text.push(c);
        }
        text.push_str("\"\n");
    }
    match text.is_empty() && left_out.is_empty() {
        true => Made::OtherShape,
        false => Made::File { text, left_out },
    }
}

fn is_variable(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(made: Made) -> String {
        match made {
            Made::File { text, .. } => text,
            Made::OtherShape => panic!("no file was made"),
        }
    }

    /// As systemd reads a line of an `EnvironmentFile=` (load_env_file: values in double quotes).
    fn systemd(text: &str) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        let mut rest = text.chars().peekable();
        while rest.peek().is_some() {
            let key: String = rest.by_ref().take_while(|c| *c != '=').collect();
            assert_eq!(rest.next(), Some('"'));
            let mut value = String::new();
            loop {
                match rest.next().unwrap() {
                    '"' => break,
                    '\\' => match rest.next().unwrap() {
                        c @ ('"' | '\\' | '`' | '$') => value.push(c),
                        '\n' => {}
                        c => value.extend(['\\', c]),
                    },
                    c => value.push(c),
                }
            }
            assert_eq!(rest.next(), Some('\n'));
            pairs.push((key, value));
        }
        pairs
    }

    #[test]
    fn a_config_map_becomes_lines_that_systemd_reads() {
        let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\ndata:\n  A: plain\n  B: 'say \"hi\" for $5 `now` \\ '\n  C: |\n    two\n    lines\n  my.key: x\n  N: 8080\n";
        let Made::File { text, left_out } = from_config_map(yaml) else { panic!() };
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            systemd(&text),
            [
                pair("A", "plain"),
                pair("B", "say \"hi\" for $5 `now` \\ "),
                pair("C", "two\nlines\n"),
                pair("N", "8080")
            ]
        );
        assert_eq!(left_out, ["my.key"]);
    }

    #[test]
    fn export_lines_lose_the_shell_and_keep_their_values() {
        let shell = "# made by a template\nexport A=\"x y\"\nexport B=\"\\$5 \\\"q\\\" \\\\\"\nexport C='it is'\nexport D=8080\nexport E=\"{\"raw\": \"$HOME\"}\"\nexport F=\"one\ntwo\"\n\n";
        let got = systemd(&text(from_exports(shell)));
        let values: Vec<&str> = got.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["x y", "$5 \"q\" \\", "it is", "8080", "{\"raw\": \"$HOME\"}", "one\ntwo"]);
    }

    #[test]
    fn other_shapes_give_none() {
        for shell in ["", "A=1", "export A=$(id) b", "set -e\nexport A=\"1\"", "export A=\"open"] {
            assert_eq!(from_exports(shell), Made::OtherShape, "{shell:?}");
        }
        for yaml in [
            "",
            "a: b",
            "apiVersion: v1\nkind: ConfigMap\ndata: [1]",
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: {b: c}",
            ": :",
        ] {
            assert_eq!(from_config_map(yaml), Made::OtherShape, "{yaml:?}");
        }
    }

    proptest! {
        #[test]
        fn any_value_comes_through_systemd_unchanged(values in proptest::collection::vec("[^\\x00]{0,40}", 1..5)) {
            let pairs: Vec<_> = values.iter().enumerate().map(|(n, value)| (format!("K{n}"), value.clone())).collect();
            let Made::File { text, .. } = write(pairs.clone().into_iter()) else { panic!() };
            prop_assert_eq!(systemd(&text), pairs);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = from_exports(&text);
            let _ = from_exports(&format!("export A=\"{text}"));
            let _ = from_config_map(&text);
        }
    }
}
