//! Webhooks out: what the history tells, as CloudEvents, to the destinations that the configuration names. The leader runs one
//! dispatcher for each, so that one that fails holds nobody else; how far each has got is in the database, so that a hub that
//! dies loses nothing and sends a few again. `docs/events.md` is for those who receive them.

mod cloud;
mod delivery;
mod dispatcher;
mod problem;
mod sign;
#[cfg(test)]
mod tests;
mod window;

use std::sync::Arc;
use std::time::Duration;

use crate::config::Destination;
use crate::store::events::Delivery;
use crate::store::meta::RESTORED_AT;
use crate::store::{Store, StoreError, Term};
use cloud::Source;
use dispatcher::EventDispatcher;

/// All destinations. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Events {
    store: Store,
    destinations: Arc<[Destination]>,
    /// Who says it: the hub's own address, in every event.
    source: Arc<str>,
}

/// Between two tries to begin while the database is away.
const BEGIN_AGAIN: Duration = Duration::from_secs(5);

impl Events {
    pub fn new(store: Store, destinations: &[Destination], source: &str) -> Events {
        Events { store, destinations: Arc::from(destinations), source: Arc::from(source) }
    }

    /// Sends until it is dropped, or until this term is over.
    pub async fn lead(self, term: Term) {
        let names: Vec<&str> = self.destinations.iter().map(|destination| destination.name.as_str()).collect();
        let (deliveries, source) = loop {
            match self.begin(term, &names).await {
                Ok(begun) => break begun,
                Err(StoreError::Fenced(_)) => return,
                Err(error) => report(&error),
            }
            tokio::time::sleep(BEGIN_AGAIN).await;
        };
        let dispatchers = self.destinations.iter().filter_map(|destination| {
            let delivery = deliveries.iter().find(|delivery| delivery.name == destination.name)?.clone();
            Some(EventDispatcher::new(self.store.clone(), term, destination.clone(), delivery, Arc::clone(&source)))
        });
        let mut dispatchers: Vec<_> = dispatchers.map(|dispatcher| Box::pin(dispatcher.run())).collect();
        if dispatchers.is_empty() {
            return std::future::pending().await;
        }
        // Only the end of the term ends one, and then all.
        futures_util::future::select_all(dispatchers.drain(..)).await;
    }

    /// How far each has got, and as whom this hub speaks.
    async fn begin(&self, term: Term, names: &[&str]) -> Result<(Vec<Delivery>, Arc<Source>), StoreError> {
        // Dispatchers show them again as long as they last.
        let shown = problem::shown(&self.store).await?;
        if !shown.is_empty() {
            problem::hide(&self.store, term, &shown.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        }
        let restored = self.store.meta(RESTORED_AT).await?;
        let era = restored.map(|at| format!("{at}-")).unwrap_or_default();
        let deliveries = self.store.open_deliveries(term, names).await?;
        Ok((deliveries, Arc::new(Source { address: self.source.to_string(), era })))
    }
}

fn report(error: &StoreError) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(error, "it can't be read how far events were sent; trying again");
}
