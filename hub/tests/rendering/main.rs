//! kustomize and helm on other people's text, by both ways that a hub has: in bubblewrap, and by a real renderer. What holds for
//! both is one test.

// A test fails by a panic, also in what its tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod programs;
mod real;
mod requests;
mod stand;
