//! The files that cross an air gap: a bundle (signed documents and the blobs that they name, in one container or in parts for
//! FAT32), and the request and answer of a join. The hub and the CLI write and read them, the agent reads and writes them. Only
//! std's I/O; whoever carries a file is a stranger, and nothing is believed before its signature is.

mod error;
mod index;
mod join;
mod output;
mod parts;
mod reader;
mod writer;

pub use error::BundleError;
pub use index::{BlobEntry, Index, Writer as Author, fingerprint, fingerprints};
pub use join::{JoinAnswerFile, JoinRequestFile, MAX_JOIN_FILE};
pub use output::Output;
pub use parts::{EXTENSION, Parts, find};
pub use reader::{Bundle, Reader};
pub use writer::{Sealed, Writer};

/// What a container begins with: the name and the version.
pub const MAGIC: &[u8; 8] = b"kedgebn1";
/// Magic and the index's length.
pub const HEAD: u64 = 16;
/// The index as it is written. Thousands of clusters with their documents have a tenth of it.
pub const MAX_INDEX: u64 = 64 * 1024 * 1024;
/// More packages and artifacts than any fleet delivers at once.
pub const MAX_BLOBS: usize = 262_144;
/// Documents of all kinds in one index.
pub const MAX_DOCUMENTS: usize = 65_536;
/// What FAT32 can hold, and a little less: tools differ on what a gigabyte is.
pub const FAT32_PART: u64 = 4_000_000_000;
