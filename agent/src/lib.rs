//! The agent of one cluster: it joins, pulls what is desired, applies it in journaled transactions, and tells what really runs.
//! What runs depends on nothing but the disk.

#[cfg(not(any(feature = "host", feature = "kubernetes")))]
compile_error!(
    "kedge-agent is built for hosts (the feature `host`), for Kubernetes clusters (`kubernetes`), or for both"
);

pub mod airgap;
pub mod alive;
pub mod apply;
pub mod archive;
pub mod bind;
pub mod causes;
pub mod clock;
#[cfg(feature = "kubernetes")]
pub mod cluster;
pub mod command;
pub mod commands;
pub mod config;
pub mod contact;
pub mod content;
pub mod daemon;
pub mod desired;
pub mod drift;
pub mod engine;
pub mod external;
#[cfg(feature = "host")]
pub mod facts;
pub mod goal;
#[cfg(feature = "host")]
pub mod health;
pub mod holds;
pub mod identity;
pub mod join;
pub mod link;
pub mod metrics;
pub mod objects;
#[cfg(feature = "kubernetes")]
pub mod observe;
pub mod observed;
pub mod overview;
pub mod paths;
pub mod peers;
pub mod plan;
pub mod record;
pub mod records;
pub mod report;
pub mod run;
pub mod step;
pub mod store;
pub mod swarm;
pub mod tally;
pub mod tasks;
pub mod told;
pub mod trace;
pub mod worker;
