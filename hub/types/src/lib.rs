//! The values that the hub's modules hand to each other and that its database keeps: no SQL, no task, no clock. Each module here is
//! named after the one whose values it holds.

pub mod causes;
pub mod events;
pub mod git;
pub mod history;
pub mod pack;
pub mod permits;
pub mod platform;
pub mod rollout;
pub mod state;
pub mod status;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
