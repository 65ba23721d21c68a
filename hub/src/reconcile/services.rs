//! The real services behind the steps. Made by `run`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kedge_hub_types::history::Entry;
use kedge_scheduler::{Delta, Scheduler};

use super::steps::{Steps, Stop};
use crate::catalog::{self, CatalogNotes};
use crate::git::Head;
use crate::metrics::{Metrics, ReconcileOutcome, StepName};
use crate::pack::{BlobError, PackError, Packed, Packer, Pins, Tenancy};
use crate::publish::{Next, PublishJob, Published, Publisher};
use crate::rollout::{Occasion, RolloutController};
use crate::state::{IssueError, proof};
use crate::store::{Store, Term, now};

pub struct Services {
    pub store: Store,
    pub publisher: Arc<Publisher>,
    pub packer: Arc<Packer>,
    pub controller: Arc<RolloutController>,
    pub metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

#[async_trait]
impl Steps for Services {
    async fn catalog(
        &self,
        term: Term,
        environment: &str,
        scheduler: &Scheduler,
        delta: Option<&Delta>,
        notes: &CatalogNotes,
    ) -> Result<(), Stop> {
        let updated = catalog::update(&self.store, term, environment, scheduler, delta, notes).await;
        updated.map_err(|error| Stop::from(&error))
    }

    async fn forget(&self, term: Term, environment: &str) -> Result<(), Stop> {
        catalog::forget(&self.store, term, environment).await.map_err(|error| Stop::from(&error))
    }

    async fn publish(&self, term: Term, job: PublishJob<'_>) -> Result<Published, Stop> {
        let published = self.publisher.publish(term, job).await;
        published.map_err(|error| Stop::of(&error, error.next(), error.hint()))
    }

    async fn pack(&self, environment: &str, head: &Head, tenancy: &Tenancy, pins: &Pins) -> Result<Packed, Stop> {
        let packed = self.packer.pack_with(environment, head, tenancy, pins, now()).await;
        let mut packed = packed.map_err(|error| match &error {
            PackError::Store(error) => Stop::from(error),
            PackError::Emptied { .. } => Stop::of(&error, Next::Wait, Some("push the files again".to_owned())),
            PackError::Blobs(BlobError::Full { .. }) => {
                Stop::of(&error, Next::Retry(None), Some("make room for packages".to_owned()))
            }
            PackError::Blobs(_) | PackError::Branch { .. } | PackError::Interrupted => {
                Stop::of(&error, Next::Retry(None), None)
            }
        })?;
        let proven = proof::problems(&self.store, environment).await.map_err(|error| Stop::from(&error))?;
        packed.problems.extend(proven);
        Ok(packed)
    }

    async fn issue(&self, term: Term, packed: &Packed, occasion: &Occasion) -> Result<usize, Stop> {
        match self.controller.issue(term, packed, occasion).await {
            Ok(passed) => {
                self.metrics.states_issued.inc_by(passed.issued.len() as u64);
                Ok(passed.issued.len())
            }
            Err(IssueError::Store(error)) => Err(Stop::from(&error)),
            Err(error) => Err(Stop::of(&error, Next::Stalled, None)),
        }
    }

    async fn approved(&self) -> Result<BTreeSet<String>, Stop> {
        let approved = self.store.approved_environments().await.map_err(|error| Stop::from(&error))?;
        Ok(approved.into_iter().collect())
    }

    async fn tell(&self, news: Vec<Entry>) -> Result<(), Stop> {
        self.store.record(news).await.map_err(|error| Stop::from(&error))
    }

    fn measured(&self, step: StepName, took: Duration) {
        self.metrics.step(step, took);
    }

    fn ended(&self, outcome: ReconcileOutcome) {
        self.metrics.reconciles.get_or_create(&outcome.into()).inc();
    }
}
