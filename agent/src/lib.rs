//! The agent of one cluster: it joins, pulls what is desired, applies it in journaled transactions, and tells what really runs.
//! What runs depends on nothing but the disk.

pub mod apply;
pub mod clock;
pub mod command;
pub mod desired;
pub mod goal;
pub mod identity;
pub mod join;
pub mod link;
pub mod objects;
pub mod observed;
pub mod paths;
pub mod record;
pub mod step;
pub mod trace;
