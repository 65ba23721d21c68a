//! Problems as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

use std::path::Path;

use kedge_model::{Origin, Problem};

use super::Problems;

impl Problems {
    /// `here` is the folder that the platform was read from: files of other repositories can't be annotated.
    pub fn to_github(&self, here: &Path) -> String {
        self.found.keys().map(|(_, problem)| annotation(problem, here) + "\n").collect()
    }
}

fn annotation(problem: &Problem, here: &Path) -> String {
    let mut properties = Vec::new();
    let mut message = problem.message.clone();
    if let Some(origin) = &problem.origin {
        match file_here(origin, here) {
            Some(file) => {
                properties.push(format!("file={}", escape_property(&file)));
                if origin.line > 0 {
                    properties.push(format!("line={}", origin.line));
                }
                if origin.column > 0 {
                    properties.push(format!("col={}", origin.column));
                }
            }
            None => message = format!("{origin} of {}: {message}", origin.source),
        }
    }
    properties.push(format!("title={}", escape_property(problem.code)));
    if let Some(hint) = &problem.hint {
        message = format!("{message}\nHint: {hint}");
    }
    format!("::{} {}::{}", problem.severity.as_str(), properties.join(","), escape_data(&message))
}

/// The path from the folder that the workflow runs in.
fn file_here(origin: &Origin, here: &Path) -> Option<String> {
    if Path::new(&origin.source.repo) != here {
        return None;
    }
    // A revision of a repository is its whole tree, whatever the folder is called.
    if origin.source.revision.is_some() || here == Path::new(".") {
        return Some(origin.file.to_string());
    }
    let path = here.join(&*origin.file);
    let path = match std::env::current_dir() {
        Ok(current) => path.strip_prefix(&current).unwrap_or(&path).to_path_buf(),
        Err(_) => path,
    };
    let text = path.to_string_lossy();
    Some(text.strip_prefix("./").unwrap_or(&text).to_owned())
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kedge_model::Source;

    use super::*;

    fn origin(repo: &str, revision: Option<&str>) -> Origin {
        let source = Source { repo: repo.to_owned(), revision: revision.map(str::to_owned) };
        Origin { source: Arc::new(source), file: "types/a,b.yaml".into(), line: 3, column: 7 }
    }

    #[test]
    fn an_annotation_names_the_place_and_escapes_what_github_would_read() {
        let problem = Problem::error("NotYaml", "100% wrong\n::error::x").at(origin(".", None)).hint("a, b: c");
        assert_eq!(
            annotation(&problem, Path::new(".")),
            "::error file=types/a%2Cb.yaml,line=3,col=7,title=NotYaml::100%25 wrong%0A::error::x%0AHint: a, b: c"
        );
    }

    #[test]
    fn a_file_below_the_folder_is_named_from_where_the_workflow_runs() {
        let problem = Problem::warning("X", "m").at(origin("./platform", None));
        assert_eq!(
            annotation(&problem, Path::new("./platform")),
            "::warning file=platform/types/a%2Cb.yaml,line=3,col=7,title=X::m"
        );
    }

    #[test]
    fn a_file_of_another_repository_is_named_in_the_message() {
        let problem = Problem::warning("X", "m").at(origin("https://git.example/main", Some("main@sha1:0a")));
        assert_eq!(
            annotation(&problem, Path::new(".")),
            "::warning title=X::types/a,b.yaml:3:7 of https://git.example/main (main@sha1:0a): m"
        );
    }
}
