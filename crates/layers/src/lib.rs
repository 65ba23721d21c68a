//! Whether a crate's modules depend in one direction: each top-level module is in a layer, and names modules of lower layers only. Called
//! by a test of the crate itself, which says its layers. It reads the sources; modules and items of tests don't count.

mod code;
mod crate_tree;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate_tree::SourceFile;

/// The layers of a crate from low to high, each with its top-level modules.
pub type Layers<'l> = &'l [&'l [&'l str]];

/// Why the modules of a crate don't depend in one direction.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// A module names one that isn't below it.
    Upward { file: PathBuf, line: usize, lower: String, higher: String },
    /// A module is in no layer.
    Unlisted(String),
    /// A layer names what is no module.
    Missing(String),
    /// A module is in two layers.
    Twice(String),
    /// An exception that nothing needs any more.
    Stale { lower: String, higher: String },
}

#[derive(Debug, thiserror::Error)]
#[error("{path} can't be read")]
pub struct ScanError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Everything that is wrong with the crate whose sources are in this folder. An exception is a pair of modules of which the first may name
/// the second although it is no lower one.
pub fn violations(
    sources: &Path,
    layers: Layers<'_>,
    exceptions: &[(&str, &str)],
) -> Result<Vec<Violation>, ScanError> {
    let (mut found, mut heights) = (Vec::new(), BTreeMap::new());
    for (height, layer) in layers.iter().enumerate() {
        for module in *layer {
            if heights.insert((*module).to_owned(), height).is_some() {
                found.push(Violation::Twice((*module).to_owned()));
            }
        }
    }
    let files = crate_tree::read(sources)?;
    let modules: BTreeSet<&str> = files.iter().filter_map(SourceFile::top).collect();
    found.extend(
        modules.iter().filter(|one| !heights.contains_key(**one)).map(|one| Violation::Unlisted((*one).into())),
    );
    found.extend(heights.keys().filter(|one| !modules.contains(one.as_str())).cloned().map(Violation::Missing));
    let mut needed = BTreeSet::new();
    for file in &files {
        // The root names all.
        let Some(lower) = file.top() else { continue };
        for (line, higher) in paths::named(&file.text, file.module.len()) {
            let (Some(low), Some(high)) = (heights.get(lower), heights.get(&higher)) else { continue };
            if lower == higher || high < low {
                continue;
            }
            if exceptions.contains(&(lower, higher.as_str())) {
                needed.insert((lower.to_owned(), higher));
            } else {
                found.push(Violation::Upward { file: file.path.clone(), line, lower: lower.to_owned(), higher });
            }
        }
    }
    let stale = exceptions.iter().map(|(lower, higher)| ((*lower).to_owned(), (*higher).to_owned()));
    let stale = stale.filter(|pair| !needed.contains(pair));
    found.extend(stale.map(|(lower, higher)| Violation::Stale { lower, higher }));
    found.sort();
    Ok(found)
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Upward { file, line, lower, higher } => write!(
                f,
                "{}:{line}: `{lower}` names `{higher}`, which is not below it: move what both need into a lower module, or \
                 define a trait in `{lower}`",
                file.display()
            ),
            Violation::Unlisted(module) => write!(f, "the module `{module}` is in no layer: put it into one"),
            Violation::Missing(module) => write!(f, "there is no module `{module}`: take it out of its layer"),
            Violation::Twice(module) => write!(f, "the module `{module}` is in two layers: leave it in one"),
            Violation::Stale { lower, higher } => {
                write!(f, "`{lower}` no longer names `{higher}`: take the exception out")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::fs;

    use super::*;

    fn scan(files: &[(&str, &str)], layers: Layers<'_>, exceptions: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = violations(folder.path(), layers, exceptions).unwrap();
        let root = format!("{}/", folder.path().display());
        found.iter().map(|one| one.to_string().replace(&root, "")).collect()
    }

    const LIB: (&str, &str) = ("lib.rs", "pub mod goal;\npub mod plan;\n#[cfg(feature = \"x\")]\nmod run;\n");

    #[test]
    fn a_lower_module_that_names_a_higher_one_is_found_with_its_line() {
        let files = [
            LIB,
            ("goal.rs", "//! Not crate::run.\nmod kind;\n\nuse crate::plan::Plan;\n"),
            (
                "goal/kind.rs",
                "use std::fmt;\nuse super::super::{plan, goal::Goal};\nfn f() { crate::run::go(\"crate::plan\") }\n",
            ),
            ("plan.rs", "use crate::{\n    goal,\n    plan::own,\n};\n"),
            ("run.rs", "use crate::plan::Plan;\n"),
        ];
        let found = scan(&files, &[&["goal"], &["plan"], &["run"]], &[]);
        let heads: Vec<&str> = found.iter().filter_map(|one| one.split(", which").next()).collect();
        assert_eq!(
            heads,
            [
                "goal/kind.rs:2: `goal` names `plan`",
                "goal/kind.rs:3: `goal` names `run`",
                "goal.rs:4: `goal` names `plan`"
            ]
        );
    }

    #[test]
    fn neighbours_in_a_layer_do_not_name_each_other() {
        let files = [LIB, ("goal.rs", ""), ("plan.rs", "use crate::goal;\n"), ("run.rs", "")];
        assert_eq!(scan(&files, &[&["goal", "plan"], &["run"]], &[]).len(), 1);
    }

    #[test]
    fn what_only_tests_name_does_not_count() {
        let tested = "use crate::goal::Goal;\n#[cfg(test)]\nmod tests {\n    use crate::run::go;\n}\n#[cfg(test)]\nmod fake;\n\
                      #[cfg(test)]\npub use crate::run::fake;\n";
        let files = [LIB, ("goal.rs", ""), ("plan.rs", tested), ("plan/fake.rs", "use crate::run;\n"), ("run.rs", "")];
        assert_eq!(scan(&files, &[&["goal"], &["plan"], &["run"]], &[]), Vec::<String>::new());
    }

    #[test]
    fn the_list_must_be_the_modules_and_an_exception_must_be_needed() {
        let files = [LIB, ("goal.rs", "use crate::plan;\n"), ("plan.rs", ""), ("run.rs", "")];
        let found = scan(&files, &[&["goal"], &["plan", "gaol"]], &[("goal", "plan"), ("plan", "goal")]);
        assert_eq!(
            found,
            [
                "the module `run` is in no layer: put it into one",
                "there is no module `gaol`: take it out of its layer",
                "`plan` no longer names `goal`: take the exception out"
            ]
        );
    }
}
