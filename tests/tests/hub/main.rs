//! The suite `hub`: a real hub with real parts around it. `lab_*` prove the parts themselves.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod lab_git;
mod lab_gitea;
mod lab_hub;
mod lab_part;
mod lab_postgres;
mod publish_gitea;
