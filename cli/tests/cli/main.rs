//! The built `kedge`, driven as a person drives it: real files, exit codes, and what is said.

// A test fails by a panic, also in what its tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod air_gap;
mod bad_input;
mod broken_inputs;
mod empty_inputs;
mod explaining;
mod fake_hub;
mod fleet;
mod help;
mod json_fields;
mod kalypso_pairs;
mod online;
mod planning;
mod refusals;
mod rendering;
mod sample;
mod stage;
mod tenant_text;
mod validating;
