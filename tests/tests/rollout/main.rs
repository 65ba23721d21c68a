//! The suite `rollout`: promotion through environments and rings with a real hub, real Git over HTTP and a fleet of real agents below
//! folders. `lab_*` prove the parts themselves. The simulation of the same decisions is in `crates/sim`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod approvals;
mod bulk;
mod checks;
mod commands;
mod commit_status;
mod enforcement;
mod evidence;
mod external;
mod kills;
mod lab_plant;
mod lanes;
mod offline;
mod others;
mod pins;
mod plants;
mod prometheus;
mod promotion;
mod requests;
mod rings;
mod several;
mod shown;
mod status;
