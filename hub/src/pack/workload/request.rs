//! What is to be rendered, as data: the program, its arguments and the files that it reads; and why it isn't. Made by
//! `program` from a repository, and by the renderer from what a hub sent; what comes from outside is checked here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kedge_model::name::MAX_NAME_BYTES;
use serde::{Deserialize, Serialize};

use super::sandbox::NoSandbox;
use crate::pack::archive::{self, Contents};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    Kustomize,
    Helm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub program: Program,
    /// The folder to render, from the root of the files (empty: the root itself).
    pub path: String,
    /// What a chart is told.
    pub release: String,
    pub namespace: String,
    pub files: Contents,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    #[error("`{}` can't be the path of a folder", .0.escape_debug())]
    Path(String),
    #[error("`{}` can't be the name of a release or a namespace", .0.escape_debug())]
    Name(String),
    #[error("`{}` is a file, and another file is below it", .0.escape_debug())]
    BelowFile(String),
}

/// Why there is no output, by what happens next.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// It isn't installed where it would run.
    #[error("there is no `{}`", .0.display())]
    Missing(PathBuf),
    #[error(transparent)]
    NoSandbox(#[from] NoSandbox),
    /// The request can't be met by anybody.
    #[error("{0}")]
    Refused(String),
    /// The program's own complaint, or the limit that it met.
    #[error("{0}")]
    Failed(String),
    /// The separate renderer can't be reached, or can't work: it is asked again.
    #[error("{0}")]
    Away(String),
    /// This machine's disk.
    #[error("`{}` can't be written", folder.display())]
    Folder { folder: PathBuf, source: std::io::Error },
    #[error("it was interrupted")]
    Interrupted,
}

impl Program {
    pub const ALL: [Program; 2] = [Program::Kustomize, Program::Helm];

    pub fn name(self) -> &'static str {
        match self {
            Program::Kustomize => "kustomize",
            Program::Helm => "helm",
        }
    }
}

impl From<BadRequest> for RenderError {
    fn from(bad: BadRequest) -> RenderError {
        RenderError::Refused(bad.to_string())
    }
}

impl Request {
    /// What the types alone don't say. No argument may look like an option, and each file must have a place.
    pub fn check(&self) -> Result<(), BadRequest> {
        if !self.path.is_empty() && !archive::is_plain(&self.path) {
            return Err(BadRequest::Path(self.path.chars().take(200).collect()));
        }
        for name in [&self.release, &self.namespace] {
            let fits = !name.is_empty() && name.len() <= MAX_NAME_BYTES;
            if !fits || name.starts_with('-') || name.contains(char::is_control) {
                return Err(BadRequest::Name(name.chars().take(200).collect()));
            }
        }
        for path in self.files.files().keys() {
            let parents = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
            if let Some(file) = parents.into_iter().find(|parent| self.files.files().contains_key(*parent)) {
                return Err(BadRequest::BelowFile(file.chars().take(200).collect()));
            }
        }
        Ok(())
    }

    /// How the program is called where the files are at `source`.
    pub fn arguments(&self, source: &Path) -> Vec<OsString> {
        let target = source.join(&self.path).into_os_string();
        match self.program {
            Program::Kustomize => vec!["build".into(), target],
            Program::Helm => vec![
                "template".into(),
                self.release.as_str().into(),
                target,
                "--namespace".into(),
                self.namespace.as_str().into(),
                "--include-crds".into(),
                // Pods that people start to try a release.
                "--skip-tests".into(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(files: &[&str]) -> Request {
        let mut contents = Contents::default();
        files.iter().for_each(|path| contents.add(path, Vec::new(), false).unwrap());
        let (release, namespace) = ("r".to_owned(), "n".to_owned());
        Request { program: Program::Helm, path: "chart".to_owned(), release, namespace, files: contents }
    }

    #[test]
    fn no_name_can_be_an_option_and_no_path_leaves_the_source() {
        assert_eq!(request(&["chart/Chart.yaml"]).check(), Ok(()));
        assert_eq!(Request { path: String::new(), ..request(&[]) }.check(), Ok(()));
        for name in ["", "--post-renderer", "a\nb", "a\0"] {
            let bad = Err(BadRequest::Name(name.to_owned()));
            assert_eq!(Request { release: name.to_owned(), ..request(&[]) }.check(), bad);
            assert_eq!(Request { namespace: name.to_owned(), ..request(&[]) }.check(), bad);
        }
        for path in ["/etc", "..", "a/../b", "a//b", "a/"] {
            let bad = Err(BadRequest::Path(path.to_owned()));
            assert_eq!(Request { path: path.to_owned(), ..request(&[]) }.check(), bad);
        }
    }

    #[test]
    fn no_file_is_below_another_file() {
        assert_eq!(request(&["a-b", "a.b/c", "a/b"]).check(), Ok(()));
        assert_eq!(request(&["a", "a-b", "a/b/c"]).check(), Err(BadRequest::BelowFile("a".to_owned())));
        assert_eq!(request(&["a/b", "a/b/c"]).check(), Err(BadRequest::BelowFile("a/b".to_owned())));
    }
}
