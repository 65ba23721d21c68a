//! What a reconciliation asks of the other modules, as a trait: `Services` are the real ones, tests have a fake.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use kedge_hub_types::history::Entry;
use kedge_scheduler::{Delta, Scheduler};

use crate::catalog::CatalogNotes;
use crate::git::Head;
use crate::metrics::{ReconcileOutcome, StepName};
use crate::pack::{Packed, Pins, Tenancy};
use crate::publish::{Next, PublishJob, Published};
use crate::rollout::Occasion;
use crate::store::{StoreError, Term};

/// Where a reconciliation begins: what is before it hasn't changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Read,
    Publish,
    Pack,
}

/// Why a step didn't end well, typed by what happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    pub message: String,
    pub hint: Option<String>,
    pub next: Next,
}

/// One environment is never in two steps at once.
#[async_trait]
pub trait Steps: Send + Sync + 'static {
    /// Writes down what people may read; without a delta everything.
    async fn catalog(
        &self,
        term: Term,
        environment: &str,
        scheduler: &Scheduler,
        delta: Option<&Delta>,
        notes: &CatalogNotes,
    ) -> Result<(), Stop>;

    /// An environment is gone: it is no longer listed. Its branch and what runs stay.
    async fn forget(&self, term: Term, environment: &str) -> Result<(), Stop>;

    async fn publish(&self, term: Term, job: PublishJob<'_>) -> Result<Published, Stop>;

    async fn pack(&self, environment: &str, head: &Head, tenancy: &Tenancy, pins: &Pins) -> Result<Packed, Stop>;

    /// How many new generations there are.
    async fn issue(&self, term: Term, packed: &Packed, occasion: &Occasion) -> Result<usize, Stop>;

    /// Environments with a removal that a person agreed to, on any hub.
    async fn approved(&self) -> Result<BTreeSet<String>, Stop>;

    /// Writes down what happened.
    async fn tell(&self, _news: Vec<Entry>) -> Result<(), Stop> {
        Ok(())
    }

    fn measured(&self, _step: StepName, _took: Duration) {}

    fn ended(&self, _outcome: ReconcileOutcome) {}
}

impl Stop {
    pub fn retry(message: impl Into<String>) -> Stop {
        Stop { message: message.into(), hint: None, next: Next::Retry(None) }
    }

    /// An error of a step, with its causes.
    pub fn of(error: &dyn std::error::Error, next: Next, hint: Option<String>) -> Stop {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let line = next.to_string();
            if !message.contains(&line) {
                message.push_str(": ");
                message.push_str(&line);
            }
            cause = next.source();
        }
        Stop { message, hint, next }
    }
}

impl std::convert::From<&StoreError> for Stop {
    fn from(error: &StoreError) -> Stop {
        let next = match error {
            StoreError::Unavailable(_) | StoreError::Refused(_) => Next::Retry(None),
            StoreError::Fenced(_) => Next::Wait,
            StoreError::Corrupt(_) | StoreError::Migration(_) | StoreError::Foreign(_) => Next::Stalled,
        };
        Stop::of(error, next, None)
    }
}
