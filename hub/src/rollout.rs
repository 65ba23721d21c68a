//! Rollouts of environments: which change is in which ring, decided from what is true of the clusters (`crates/rollout`
//! decides, this room gathers facts, saves, and says what each stream should hold). The leader's: the walk hands in heads,
//! `lead` looks again when facts, words, policies or the clock may have changed something.

pub mod candidate;
pub mod change;
pub mod checks;
pub mod compose;
pub mod desk;
mod edits;
pub mod facts;
pub mod head;
mod lead;
pub mod limits;
pub mod outcome;
pub mod policy;
mod propose;
pub mod running;
pub mod signal;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod told;
mod turn;
pub mod words;

pub use checks::Checks;
pub use desk::{Describe, Desk, Parts, Passed, Shared};
pub use head::{Head, Occasion};
pub use outcome::outcome;
pub use policy::Policies;
pub use signal::Nudge;
