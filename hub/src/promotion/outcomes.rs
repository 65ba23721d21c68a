//! What promotion asks of the rollouts of environments: a trait, so that tests need none.

use std::fmt;

use async_trait::async_trait;
use kedge_rollout::chain::Outcome;
use kedge_rollout::{Rollout, RolloutId};

use crate::store::StoreError;

#[async_trait]
pub trait Outcomes: Send + Sync + fmt::Debug {
    /// What became of a commit of main in an environment; none: it hasn't been read there yet.
    async fn outcome(&self, environment: &str, main: &str) -> Result<Option<Outcome>, StoreError>;

    async fn rollout(&self, id: RolloutId) -> Result<Option<Rollout>, StoreError>;

    /// Rollouts that ended and whose evidence isn't kept yet, the oldest first, some at a time.
    async fn unwitnessed(&self) -> Result<Vec<Rollout>, StoreError>;

    /// Rollouts of application sources that a Git server should know of: unfinished, or ended a short while ago.
    async fn of_sources(&self) -> Result<Vec<Rollout>, StoreError>;

    /// Rollouts with a ring that rolls and whose gate has external checks.
    async fn checking(&self) -> Result<Vec<Rollout>, StoreError>;

    /// How far a rollout is, in a few words: `66 of 73 converged`.
    async fn headline(&self, rollout: &Rollout) -> Result<String, StoreError>;
}
