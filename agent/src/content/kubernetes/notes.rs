//! What an object's own annotations ask of us. A word that we don't know is an error: to guess could mean to delete.

use kedge_goyaml::{Node, Value};
use kedge_model::kinds::Drift;

use super::document::wrong;
use crate::record::Failure;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notes {
    /// `kedge.dev/prune: never`.
    pub keep: bool,
    /// `kedge.dev/recreate: "true"`.
    pub recreate: bool,
    /// `kedge.dev/drift`.
    pub drift: Option<Drift>,
    /// `kedge.dev/restart-on: config`.
    pub restart_on_config: bool,
}

const PREFIX: &str = "kedge.dev/";
/// Those that we set ourselves are in objects that were copied from a cluster; a version is for people.
const NO_WISHES: [&str; 4] = ["assignment", "restart", "config", "version"];

impl Notes {
    /// So many lines of the file are before the text that the object was read from.
    pub fn of(object: &Node, file: &str, before: u32) -> Result<Notes, Failure> {
        let mut notes = Notes::default();
        let annotations = object.get("metadata").and_then(|metadata| metadata.get("annotations"));
        for (key, value) in annotations.and_then(Node::entries).unwrap_or_default() {
            let Some(name) = key.text().and_then(|key| key.strip_prefix(PREFIX)) else { continue };
            if NO_WISHES.contains(&name) {
                continue;
            }
            let refuse = |why: String| Err(wrong(file, before + key.line, &why));
            let Some(Value::String(text)) = value.resolve() else {
                return refuse(format!("`{PREFIX}{name}` must be a text; write its value in quotes"));
            };
            match (name, text.as_str()) {
                ("prune", "never") => notes.keep = true,
                // Volume claims are kept otherwise; the applier reads it from the object.
                ("prune", "always") => notes.keep = false,
                ("recreate", "true") => notes.recreate = true,
                ("recreate", "false") => notes.recreate = false,
                ("drift", "repair") => notes.drift = Some(Drift::Repair),
                ("drift", "report") => notes.drift = Some(Drift::Report),
                ("drift", "ignore") => notes.drift = Some(Drift::Ignore),
                ("restart-on", "config") => notes.restart_on_config = true,
                ("prune", _) => return refuse(unknown(name, &text, "`never` and `always`")),
                ("recreate", _) => return refuse(unknown(name, &text, "\"true\" and \"false\"")),
                ("drift", _) => return refuse(unknown(name, &text, "`repair`, `report` and `ignore`")),
                ("restart-on", _) => return refuse(unknown(name, &text, "`config`")),
                _ => {
                    let name: String = name.chars().take(SHOWN).flat_map(char::escape_debug).collect();
                    return refuse(format!(
                        "there is no annotation `{PREFIX}{name}`; there are prune, recreate, drift and restart-on"
                    ));
                }
            }
        }
        Ok(notes)
    }
}

/// What is shown of somebody's text.
const SHOWN: usize = 60;

fn unknown(name: &str, text: &str, known: &str) -> String {
    let text: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    format!("`{PREFIX}{name}: {text}` has no meaning; there is {known}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use kedge_goyaml::{Limits, node};

    use super::*;

    fn notes(annotations: &str) -> Result<Notes, String> {
        let text = format!("metadata:\n  annotations:\n    a/b: 1\n{annotations}");
        Notes::of(&node::parse(&text, &Limits::default()).unwrap()[0], "x.yaml", 5).map_err(|failure| failure.message)
    }

    #[test]
    fn every_wish_is_understood() {
        let all = "    kedge.dev/prune: never\n    kedge.dev/recreate: \"true\"\n    kedge.dev/drift: report\n    kedge.dev/restart-on: config\n    kedge.dev/assignment: x\n";
        let expected = Notes { keep: true, recreate: true, drift: Some(Drift::Report), restart_on_config: true };
        assert_eq!(notes(all).unwrap(), expected);
        assert_eq!(notes("    kedge.dev/prune: always\n").unwrap(), Notes::default());
        assert_eq!(notes("").unwrap(), Notes::default());
    }

    #[test]
    fn another_word_is_refused_with_its_line() {
        for (text, expected) in [
            (
                "    kedge.dev/prune: keep\n",
                "x.yaml:9: `kedge.dev/prune: keep` has no meaning; there is `never` and `always`",
            ),
            (
                "    kedge.dev/recreate: true\n",
                "x.yaml:9: `kedge.dev/recreate` must be a text; write its value in quotes",
            ),
            ("    kedge.dev/drift: Report\n", "there is `repair`, `report` and `ignore`"),
            ("    kedge.dev/restart-on: Config\n", "there is `config`"),
            ("    kedge.dev/prun: never\n", "there is no annotation `kedge.dev/prun`"),
        ] {
            let message = notes(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
