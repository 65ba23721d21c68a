//! Rollouts of environments: which change is in which ring, decided from what is true of the clusters (`crates/rollout`
//! decides, this module gathers facts, saves, and says what each stream should hold). The leader's: the reconciler hands in heads,
//! `lead` looks again when facts, words, policies or the clock may have changed something.

pub mod candidate;
pub mod checks;
pub mod compose;
pub mod controller;
mod edits;
pub mod facts;
pub mod head;
mod lead;
pub mod outcome;
mod pass;
pub mod policy;
mod propose;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;
pub mod words;

pub use checks::Checks;
pub use controller::{Describe, Parts, Passed, RolloutController, Shared};
pub use head::{Head, Occasion};
pub use outcome::outcome;
pub use policy::Policies;
