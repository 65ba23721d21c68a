//! What is looked up for a scrape, and kept for a few seconds: several Prometheus servers and many scrapes ask the database
//! once. Owned by `Metrics`; the handler of `/metrics` calls `refresh`.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use tokio::time::Instant;

use super::own::{Found, Own};
use super::series::{Measure, Series};
use super::{events, fleet};
use crate::store::events::Delivery;
use crate::store::figures::Figures;
use crate::store::{Store, now};

/// The last look. Cheap to clone; all clones see the same.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Where this hub's own figures are; set once at the start.
    own: OnceLock<Own>,
    /// One asks at a time; the others take what it found.
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

#[derive(Clone, Debug, Default)]
struct Last {
    fleet: Option<(Instant, Arc<Looked>)>,
    own: Found,
    /// When somebody last looked, whatever came of it.
    tried: Option<Instant>,
    /// Whether the database answered the last time it was asked.
    up: bool,
}

/// What the database said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    pub figures: Figures,
    pub deliveries: Vec<Delivery>,
}

/// Of two scrapes within this time the second gets what the first found.
const FRESH: Duration = Duration::from_secs(10);
/// A database that was away is asked again after this: scrapes that wait for it together don't wait for each other.
const AGAIN: Duration = Duration::from_secs(2);
/// Figures that couldn't be renewed for so long are left out: an old number would look like a true one.
const STALE: Duration = Duration::from_secs(60);
/// Prometheus gives up after ten seconds; the hub's own counters must come by then.
const PATIENCE: Duration = Duration::from_secs(4);

/// The figures of the whole fleet, as a collector.
#[derive(Debug)]
pub(super) struct FleetFigures(pub(super) Gathered);

/// Those of this hub's machine.
#[derive(Debug)]
pub(super) struct OwnFigures(pub(super) Gathered);

impl Gathered {
    /// Where to look for this hub's own figures.
    pub fn know(&self, own: Own) {
        // A second call would be of the same hub.
        let _ = self.inner.own.set(own);
    }

    /// Looks again unless somebody just did.
    pub async fn refresh(&self, store: &Store) {
        let _turn = self.inner.turn.lock().await;
        let last = self.last();
        let fresh = last.fleet.is_some_and(|(at, _)| at.elapsed() < FRESH);
        if fresh || last.tried.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        let own = match self.inner.own.get().cloned() {
            Some(own) => tokio::task::spawn_blocking(move || own.look()).await.unwrap_or_default(),
            None => Found::default(),
        };
        let look = async {
            let (figures, deliveries) = (store.figures().await?, store.deliveries().await?);
            Ok::<Looked, crate::store::StoreError>(Looked { figures, deliveries })
        };
        let looked = tokio::time::timeout(PATIENCE, look).await;
        let mut last = self.inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.own = own;
        last.tried = Some(Instant::now());
        last.up = matches!(looked, Ok(Ok(_)));
        match looked {
            Ok(Ok(looked)) => last.fleet = Some((Instant::now(), Arc::new(looked))),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the figures of the fleet can't be read for metrics");
            }
            Err(_) => tracing::warn!("the database is too slow for the figures of the fleet"),
        }
    }

    #[cfg(test)]
    pub(super) fn put(&self, looked: Looked, own: Found) {
        let mut last = self.inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Last { fleet: Some((Instant::now(), Arc::new(looked))), own, tried: None, up: true };
    }

    fn last(&self) -> Last {
        self.inner.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Collector for FleetFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let last = self.0.last();
        let Some((at, looked)) = last.fleet else { return Ok(()) };
        if at.elapsed() > STALE {
            return Ok(());
        }
        let now = now();
        let fleet = fleet::series(&looked.figures, now);
        fleet.iter().chain(&events::series(&looked.deliveries, now)).try_for_each(|series| series.encode(&mut encoder))
    }
}

impl Collector for OwnFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let last = self.0.last();
        let mut all = last.own.series(now());
        let help = "1 when the database answered the last scrape; without it there are no figures of the fleet";
        all.push(Series::new("database_up", Measure::Count, help).with(&[], i64::from(last.up)));
        if let Some((_, looked)) = last.fleet.as_ref().filter(|(at, _)| at.elapsed() <= STALE) {
            let help = "Size of the database, with what was deleted and not given back to the disk";
            all.push(Series::new("database_size", Measure::Bytes, help).with(&[], looked.figures.database_bytes));
        }
        all.iter().try_for_each(|series| series.encode(&mut encoder))
    }
}
