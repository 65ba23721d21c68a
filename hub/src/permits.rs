//! `maxUnavailable` of a ring, from the policy to the poll: how many of its clusters may change at once (`limits`, asked by the
//! controller of rollouts), who waits for a permit and gets one (`limiter`, asked by polls), and what ends it (`update_permits`, told
//! by the writer of status). The tables are `store::permits`; a permit outlives the hub that gave it.

pub mod limiter;
pub mod limits;
pub mod update_permits;

pub use limiter::{UpdateLimiter, UpdatePermit};
pub use update_permits::{Said, UpdatePermits};
