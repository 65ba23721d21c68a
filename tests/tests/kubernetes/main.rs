//! The suite `kubernetes`: the agent in a real Kubernetes beside a real hub with real Git over HTTP. One cluster serves all tests, and
//! every test has namespaces, a hub and agents of its own. `lab_*` prove the parts themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod apply;
mod configuration;
mod confinement;
mod conflicts;
mod drift;
mod faults;
mod kills;
mod lab_cluster;
mod leaders;
mod packaging;
mod pods;
mod prune;
mod ready;
mod tenants;
