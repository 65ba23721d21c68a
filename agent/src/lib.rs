//! The agent of one cluster: it joins, pulls what is desired, applies it in journaled transactions, and tells what really runs.
//! What runs depends on nothing but the disk.

pub mod agenda;
pub mod apply;
pub mod archive;
pub mod bind;
pub mod clock;
pub mod command;
pub mod commands;
pub mod config;
pub mod contact;
pub mod content;
pub mod desired;
pub mod drift;
pub mod engine;
pub mod external;
pub mod facts;
pub mod goal;
pub mod health;
pub mod holds;
pub mod identity;
pub mod join;
pub mod link;
pub mod objects;
pub mod observed;
pub mod paths;
pub mod plan;
pub mod policy;
pub mod record;
pub mod records;
pub mod report;
pub mod run;
pub mod step;
pub mod store;
pub mod told;
pub mod trace;
pub mod worker;
