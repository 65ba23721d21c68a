//! How often a cluster may change what it holds: each change is a line of history.

use std::sync::LazyLock;
use std::time::Duration;

use crate::history::pace::Pace;

/// A technician who holds and releases all of a host several times is let go on.
const ALLOWED: u32 = 128;
const FORGET_ONE: Duration = Duration::from_secs(20);

/// A document comes by the writer itself, by a peer or in a file: all ways share one count.
pub static PACE: LazyLock<Pace> = LazyLock::new(|| Pace::new(ALLOWED, FORGET_ONE));
