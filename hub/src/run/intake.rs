//! Status documents and contacts on their way from agents to `truth`, counted. Made by `run`.

use std::sync::Arc;

use async_trait::async_trait;
use kedge_model::wire::{ClusterId, Envelope, Heads};

use crate::agents::rooms::{Contact, Intake, TakeRefusal};
use crate::metrics::{DocumentResult, Metrics};
use crate::truth::{self, TakeError, Taken, Truth};

#[derive(Clone, Debug)]
pub struct CountedTruth {
    pub truth: Truth,
    pub metrics: Arc<Metrics>,
}

#[async_trait]
impl Intake for CountedTruth {
    async fn take(&self, carrier: &ClusterId, envelope: Envelope) -> Result<(), TakeRefusal> {
        let taken = self.truth.take(Some(carrier), envelope).await;
        let result = match &taken {
            Ok(Taken::Stored) => DocumentResult::Stored,
            Ok(Taken::AlreadyKnown) => DocumentResult::AlreadyKnown,
            Ok(Taken::Older) => DocumentResult::Older,
            Err(TakeError::Malformed(_)) => DocumentResult::Malformed,
            Err(TakeError::Forged(_)) => DocumentResult::Forged,
            Err(TakeError::WrongCluster(_)) => DocumentResult::WrongCluster,
            Err(TakeError::TooLarge(_)) => DocumentResult::TooLarge,
            Err(TakeError::Cloned(_)) => DocumentResult::Cloned,
            Err(TakeError::Unavailable) => DocumentResult::Unavailable,
            Err(TakeError::Unsupported(_)) => DocumentResult::Unsupported,
            Err(TakeError::UnknownCluster(_)) => DocumentResult::UnknownCluster,
            Err(TakeError::Retired(_)) => DocumentResult::Retired,
        };
        self.metrics.documents.get_or_create(&result.into()).inc();
        match taken {
            Ok(_) => Ok(()),
            Err(TakeError::Unavailable) => Err(TakeRefusal::Unavailable),
            Err(TakeError::TooLarge(_)) => Err(TakeRefusal::TooLarge),
            Err(error) => Err(TakeRefusal::Refused { reason: error.reason(), message: error.to_string() }),
        }
    }

    async fn contact(&self, cluster: &ClusterId, contact: Contact) {
        let Contact { generation, look_age, promise_until, heads } = contact;
        self.truth.contact(cluster, truth::Contact { generation, look_age, promise_until, heads }).await;
    }

    fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool {
        self.truth.wants(cluster, heads)
    }
}
