//! How a change moves: through the rings of an environment, and from one environment to the next. Pure: no clock, no I/O, no
//! randomness; the hub and the simulation drive the same functions. `advance` moves one rollout, `promote` the chain; both take a
//! value and facts and return the next value, which the caller saves before it acts on it.

pub mod answer;
pub mod approval;
pub mod calendar;
pub mod chain;
pub mod gate;
pub mod moment;
pub mod policy;
pub mod ring;
pub mod rollout;
pub mod version;
pub mod word;

pub use answer::Answer;
pub use chain::{
    Chain, ChainFacts, EnvironmentFacts, MainCommit, Named, Outcome, OutcomeState, Promotion, PromotionPhase, Standing,
    hear_promotion, promote,
};
pub use gate::{CheckFact, Counts, Verdict};
pub use ring::{permits, ring_of};
pub use rollout::{Cause, Facts, Item, Lane, Phase, Progress, RingFacts, RingState, Rollout, RolloutId, advance, hear};
pub use word::{Person, Refused, Say, Word};
