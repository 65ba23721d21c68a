//! What an environment doesn't read: three folders of tools at a repository's root, and what `.sourceignore` files
//! name. Works on paths alone, so that a Git tree is judged like a folder. Asked by `walk`.

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use kedge_model::{Origin, Problem};

/// The file with patterns, in the syntax of `.gitignore`.
pub const IGNORE_FILE: &str = ".sourceignore";

/// Folders at the root that hold no objects of an environment: workflows, the list of environments, onboarding forms.
const TOOL_FOLDERS: [&str; 3] = [".github", ".environments", ".onboard"];

/// The rules that hold at one place of a walk.
#[derive(Clone, Debug, Default)]
pub struct Ignore {
    tool_folders: bool,
    /// From the root down.
    levels: Vec<(String, Gitignore)>,
}

impl Ignore {
    /// The rules of an environment, before any `.sourceignore` is read.
    pub fn environment() -> Ignore {
        Ignore { tool_folders: true, levels: Vec::new() }
    }

    pub(crate) fn leaves_tools_out(&self) -> bool {
        self.tool_folders
    }

    /// Adds a folder's `.sourceignore`. Lines that aren't patterns become problems; the others hold.
    pub fn add(&mut self, folder: &str, text: &[u8], origin: &Origin) -> Vec<Problem> {
        let mut builder = GitignoreBuilder::new(folder);
        let mut problems = Vec::new();
        for (number, line) in (1u32..).zip(String::from_utf8_lossy(text).lines()) {
            if let Err(error) = builder.add_line(None, line) {
                let message = format!("`{}` is not a pattern: {}", line.trim(), cause(&error));
                problems.push(Problem::warning("IgnorePattern", message).at(origin.at(number, 0)));
            }
        }
        match builder.build() {
            Ok(built) if !built.is_empty() => self.levels.push((folder.to_owned(), built)),
            Ok(_) => {}
            Err(error) => {
                let message = format!("the patterns can't be used: {}", cause(&error));
                problems.push(Problem::warning("IgnorePattern", message).at(origin.clone()));
            }
        }
        problems
    }

    /// The rule that leaves a path out, or none. Its parents must have been asked before.
    pub fn rule(&self, path: &str, is_folder: bool) -> Option<String> {
        if self.tool_folders && is_folder && TOOL_FOLDERS.contains(&path) {
            return Some(format!("`{path}/` is never read"));
        }
        // The nearest file decides, as Git does it.
        for (folder, level) in self.levels.iter().rev().filter(|(folder, _)| is_below(folder, path)) {
            match level.matched(path, is_folder) {
                Match::None => {}
                Match::Whitelist(_) => return None,
                Match::Ignore(glob) => {
                    let file = super::tree::join(folder, IGNORE_FILE);
                    return Some(format!("`{}` in {file}", glob.original()));
                }
            }
        }
        None
    }
}

fn is_below(folder: &str, path: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn cause(error: &::ignore::Error) -> String {
    match error {
        ::ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kedge_model::Source;

    use super::*;

    fn origin() -> Origin {
        let source = Arc::new(Source { repo: "r".to_owned(), revision: None });
        Origin { source, file: IGNORE_FILE.into(), line: 0, column: 0 }
    }

    #[test]
    fn tool_folders_count_at_the_root_only() {
        let rules = Ignore::environment();
        assert!(rules.rule(".github", true).is_some());
        assert!(rules.rule(".environments", true).is_some());
        assert!(rules.rule(".onboard", true).is_some());
        assert!(rules.rule("apps/.github", true).is_none());
        assert!(rules.rule(".github", false).is_none());
        assert!(Ignore::default().rule(".github", true).is_none());
    }

    #[test]
    fn the_nearest_file_decides() {
        let mut rules = Ignore::environment();
        assert!(rules.add("", b"# docs\n/docs\n*.tmp.yaml\n", &origin()).is_empty());
        assert!(rules.add("a/b", b"!keep.tmp.yaml\n/only-here.yaml\n", &origin()).is_empty());
        assert_eq!(rules.rule("docs", true).unwrap(), "`/docs` in .sourceignore");
        assert!(rules.rule("a/docs", true).is_none());
        assert!(rules.rule("a/x.tmp.yaml", false).is_some());
        assert!(rules.rule("a/b/keep.tmp.yaml", false).is_none());
        assert_eq!(rules.rule("a/b/only-here.yaml", false).unwrap(), "`/only-here.yaml` in a/b/.sourceignore");
        assert!(rules.rule("only-here.yaml", false).is_none());
    }

    #[test]
    fn a_line_that_is_no_pattern_is_a_warning_with_its_line() {
        let mut rules = Ignore::environment();
        let problems = rules.add("", b"ok\n[z-a]\n", &origin());
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].origin.as_ref().unwrap().line, 2);
        assert!(problems[0].message.starts_with("`[z-a]` is not a pattern: "), "{}", problems[0].message);
        assert!(rules.rule("ok", false).is_some());
    }
}
