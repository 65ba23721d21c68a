//! The agent of one cluster: it joins, pulls what is desired, applies it in journaled transactions, and tells what really runs.
//! What runs depends on nothing but the disk.

pub mod apply;
pub mod archive;
pub mod bind;
pub mod clock;
pub mod command;
pub mod content;
pub mod facts;
pub mod goal;
pub mod objects;
pub mod observed;
pub mod paths;
pub mod policy;
pub mod record;
pub mod step;
pub mod trace;
