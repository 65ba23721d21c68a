//! What must survive a power cut: ledgers (two fsynced copies with a sequence and a checksum) and files that are replaced as a
//! whole. The agent keeps everything precious in it. It writes through a `Disk`, so that a test can lose what wasn't synced.

pub mod disk;
pub mod ledger;

pub use disk::{Disk, RealDisk};
pub use ledger::{Ledger, LedgerError, Opened};
