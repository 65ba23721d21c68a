//! Fills the cache from the database: everything at the start, then what other hubs issue, asked for every second.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::cache::DesiredStateCache;
use crate::store::{Store, StoreError};

/// How late another hub's state may be here.
const INTERVAL: Duration = Duration::from_secs(1);

impl DesiredStateCache {
    /// Shows the newest state of every stream. The tick from which `follow` goes on.
    pub async fn load(&self, store: &Store) -> Result<i64, StoreError> {
        // The tick first: what is written meanwhile is seen twice, which does no harm.
        let tick = store.newest_tick().await?;
        for (stream, issued) in store.newest_envelopes().await? {
            self.show(&stream, issued);
        }
        Ok(tick)
    }
}

/// Shows what came after a tick, until told to stop. While the database is away, what is shown stays.
pub async fn follow(
    store: Store,
    desired_states: Arc<DesiredStateCache>,
    mut after: i64,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut timer = tokio::time::interval(INTERVAL);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut away = false;
    loop {
        tokio::select! {
            _ = timer.tick() => {}
            _ = shutdown.wait_for(|stop| *stop) => return,
        }
        match store.envelopes_after(after).await {
            Ok(found) => {
                away = false;
                for (stream, issued, tick) in found {
                    desired_states.show(&stream, issued);
                    after = after.max(tick);
                }
            }
            Err(error) if !away => {
                away = true;
                tracing::warn!(%error, "other hubs' states can't be looked up");
            }
            Err(_) => {}
        }
    }
}
