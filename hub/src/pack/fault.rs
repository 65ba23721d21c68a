//! Why something wasn't packed, typed by what happens next: one assignment waits for its mending, or the whole step is
//! tried again.

use kedge_hub_types::causes::chain;
use kedge_model::Problem;

use super::archive::ArchiveError;
use super::blobs::BlobError;
use super::objects::ObjectsError;
use crate::store::StoreError;

/// The step failed as a whole: nothing is known about any assignment.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Worth another try: no room, or the packages folder is away.
    #[error("packages can't be stored")]
    Blobs(#[from] BlobError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The environment branch's mirror: fetched again, or a person is needed.
    #[error("the branch {branch} of {repo} can't be read")]
    Branch { repo: String, branch: String, source: ObjectsError },
    /// A branch that was emptied is a failing repository, never a removal.
    #[error("the branch {branch} of {repo} holds nothing at {commit}; what was delivered stays")]
    Emptied { repo: String, branch: String, commit: String },
    #[error("packing was interrupted")]
    Interrupted,
}

/// One assignment's.
#[derive(Debug)]
pub(super) enum Fault {
    Quarantine(Vec<Problem>),
    Failed(PackError),
}

impl Fault {
    pub fn of(problem: Problem) -> Fault {
        Fault::Quarantine(vec![problem])
    }
}

impl From<BlobError> for Fault {
    fn from(error: BlobError) -> Fault {
        Fault::Failed(PackError::Blobs(error))
    }
}

impl From<ArchiveError> for Fault {
    fn from(error: ArchiveError) -> Fault {
        let code = match error {
            ArchiveError::Path(_) | ArchiveError::Twice(_) | ArchiveError::NotAFile(_) => "PathInvalid",
            ArchiveError::Files | ArchiveError::Bytes => "PackageTooLarge",
            ArchiveError::Compress(_) | ArchiveError::Unreadable(_) => "NotCompressed",
        };
        Fault::of(Problem::error(code, error.to_string()))
    }
}

/// A source that can't be read stops who needs it, nobody else.
impl From<ObjectsError> for Fault {
    fn from(error: ObjectsError) -> Fault {
        let (code, hint) = match &error {
            ObjectsError::Missing { .. } => ("PathMissing", "fix the path, or add it to the repository"),
            ObjectsError::WrongKind { .. } => {
                ("NotAFile", "links and submodules are never followed; put the files themselves there")
            }
            ObjectsError::TooLarge { .. } => {
                ("FileTooLarge", "put what is big somewhere with a `url` and name it as an artifact")
            }
            ObjectsError::NotACommit(_) => ("CommitInvalid", "write all 40 digits of the commit"),
            ObjectsError::Mirror { .. } | ObjectsError::Commit { .. } | ObjectsError::Unreadable { .. } => (
                "SourceUnreadable",
                "the hub fetches the mirror again; if the error stays, `git fsck` shows what is wrong",
            ),
        };
        Fault::of(Problem::error(code, chain(&error)).hint(hint))
    }
}
