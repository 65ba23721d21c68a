//! Where something was written: a repository, a folder, a commit, a line.

use kedge_model::Origin;
use kedge_model::kinds::RepoRef;
use serde::{Deserialize, Serialize};

/// A place in a file of a repository, where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SourceLocation {
    pub repo: String,
    /// `branch@sha1:commit`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A folder of a branch of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RepositoryFolder {
    pub repo: String,
    pub branch: String,
    pub path: String,
}

/// A commit that an environment was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct InputCommit {
    pub repo: String,
    pub commit: String,
}

impl From<&Origin> for SourceLocation {
    fn from(origin: &Origin) -> SourceLocation {
        SourceLocation {
            repo: origin.source.repo.clone(),
            revision: origin.source.revision.clone(),
            file: origin.file.to_string(),
            line: (origin.line > 0).then_some(origin.line),
            column: (origin.column > 0).then_some(origin.column),
        }
    }
}

impl From<&RepoRef> for RepositoryFolder {
    fn from(folder: &RepoRef) -> RepositoryFolder {
        RepositoryFolder { repo: folder.repo.clone(), branch: folder.branch.clone(), path: folder.path.clone() }
    }
}
