//! What must survive a power cut: ledgers, two fsynced copies with a sequence and a checksum. The agent keeps everything precious
//! in them. They write through a `Disk`, so that a test can lose what wasn't synced.

pub mod disk;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod file;
pub mod ledger;

pub use disk::{CountingDisk, Disk, FileLock, RealDisk};
pub use ledger::{Ledger, LedgerError, MAX_LEDGER, Opened, open_copy};
