//! Why a file isn't taken, by what helps: try again, copy it again, ask whose it is, get a newer program.

use std::io;
use std::path::PathBuf;

use kedge_model::wire::{Digest, EnvelopeError, KeySetError};

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A stick that was pulled out, a full disk: the same again may go well.
    #[error("the file can't be read or written")]
    Io(#[from] io::Error),
    #[error("{path} can't be read")]
    File { path: PathBuf, source: io::Error },
    #[error("{0} holds no bundle: neither a file that ends in `.kedge` nor parts of one (`.kedge.001`)")]
    Nothing(PathBuf),
    #[error("this isn't a Kedge bundle")]
    NotABundle,
    #[error("the bundle is cut: it should have {expected} bytes and has {found}")]
    Truncated { expected: u64, found: u64 },
    #[error("part {0} of the bundle is missing")]
    MissingPart(PathBuf),
    #[error("the bundle is longer than it says: {expected} bytes, and it has {found}")]
    Trailing { expected: u64, found: u64 },
    #[error("the index is {0} bytes long, more than {most}", most = crate::MAX_INDEX)]
    IndexTooLarge(u64),
    /// The bytes aren't what was signed, or nobody believed signed them.
    #[error("the signature is not to be believed")]
    Signature(#[source] EnvelopeError),
    #[error("the bundle is of another fleet: its authority is {0}")]
    OtherFleet(Digest),
    #[error("the bundle's key sets don't lead on from the ones that are known")]
    KeySets(#[source] KeySetError),
    /// Signed, and still not as the format says.
    #[error("the bundle is malformed: {0}")]
    Malformed(String),
    #[error("the bundle needs `{}`, which this program doesn't know", .0.join("`, `"))]
    Unsupported(Vec<String>),
    #[error("the content of {0} is not what its digest says")]
    WrongBlob(Digest),
    #[error("{0} is not in the bundle")]
    NoBlob(Digest),
}

impl BundleError {
    /// The way out, for a person.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BundleError::Io(_) | BundleError::File { .. } => Some("check the stick and try again; nothing was changed"),
            BundleError::Truncated { .. } | BundleError::Trailing { .. } | BundleError::WrongBlob(_) => {
                Some("the file was damaged on its way: copy it again")
            }
            BundleError::MissingPart(_) => {
                Some("bring all parts in one folder, under the names that the export gave them")
            }
            BundleError::Signature(EnvelopeError::Untrusted(_)) | BundleError::OtherFleet(_) => {
                Some("the hub that this host belongs to has to export it")
            }
            BundleError::Signature(_) => Some("the file was changed on its way: copy it again"),
            BundleError::KeySets(_) => Some("export a bundle anew: it carries every key set from the first on"),
            BundleError::Unsupported(_) => Some("install a newer version of this program"),
            BundleError::Nothing(_)
            | BundleError::NotABundle
            | BundleError::IndexTooLarge(_)
            | BundleError::Malformed(_)
            | BundleError::NoBlob(_) => None,
        }
    }
}
