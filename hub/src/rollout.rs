//! Rollouts of environments: which change is in which ring, decided from what is true of the clusters (`crates/rollout`
//! decides, this room gathers facts, saves, and says what each stream should hold). The leader's; the walk hands in heads.

pub mod checks;
pub mod policy;
pub mod signal;

pub use checks::Checks;
pub use policy::Policies;
pub use signal::Nudge;
