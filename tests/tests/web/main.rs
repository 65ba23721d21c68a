//! The suite `web`: the page as people see it, in a real Chromium before a real hub with a fleet of real agents. Pictures of every
//! page are written to the folder `KEDGE_PICTURES`, for a person to look at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod day;
mod hand;
mod lab_browser;
mod looks;
mod safety;
mod scene;
