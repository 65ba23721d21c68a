//! The suite `flux`: real Flux controllers follow the platform GitOps branch that our hub published, from a real Git server, and our
//! agent observes them. Argo CD's Application is observed with objects as its controller writes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod argo;
mod follow;
mod quiet;
