//! The agent of one cluster: it joins, pulls what is desired, applies it in journaled transactions, and tells what really runs.
//! What runs depends on nothing but the disk.

pub mod apply;
pub mod clock;
pub mod command;
pub mod external;
pub mod goal;
pub mod holds;
pub mod objects;
pub mod observed;
pub mod paths;
pub mod record;
pub mod report;
pub mod step;
pub mod store;
pub mod told;
pub mod trace;
