//! Agents against the hub's listener over real sockets and real TLS, in one process: what is let in, what is told, what is
//! refused. Nothing from outside is needed but for `postgres`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod bad_input;
mod blobs;
mod fleet;
mod holds;
mod hub;
mod join;
mod poll;
mod postgres;
mod renew;
mod site;
mod slow;
mod status;
