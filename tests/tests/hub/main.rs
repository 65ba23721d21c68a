//! The suite `hub`: a real hub with real parts around it. `lab_*` prove the parts themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod agents;
mod answers;
mod artifacts;
mod compare;
mod database;
mod each_database;
mod git_faults;
mod gitea;
mod history;
mod journey;
mod lab_git;
mod lab_gitea;
mod lab_hub;
mod lab_part;
mod lab_postgres;
mod lab_sample;
mod openapi;
mod people;
mod publish;
mod publish_gitea;
mod several;
mod strain;
