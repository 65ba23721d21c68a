//! What must survive a power cut: ledgers (two fsynced copies with a sequence and a checksum) and files that are replaced as a
//! whole. The agent keeps everything precious in it. It writes through a `Disk`, so that a test can lose what wasn't synced.

pub mod disk;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod file;
pub mod ledger;

pub use disk::{CountingDisk, Disk, FileLock, RealDisk};
pub use file::replace_file;
pub use ledger::{Ledger, LedgerError, Opened};
