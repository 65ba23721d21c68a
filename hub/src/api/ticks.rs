//! The number of the newest change, asked of the database at most a few times a second however many watch.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::store::{Store, StoreError};

#[derive(Debug, Default)]
pub struct Ticks {
    known: Mutex<Option<(Instant, i64)>>,
}

/// Other hubs' changes are seen within so long, and the database is asked no more often.
pub const FRESH: Duration = Duration::from_millis(300);

impl Ticks {
    pub async fn current(&self, store: &Store) -> Result<i64, StoreError> {
        let mut known = self.known.lock().await;
        if let Some((at, tick)) = *known
            && at.elapsed() < FRESH
        {
            return Ok(tick);
        }
        let tick = store.current_tick().await?;
        *known = Some((Instant::now(), tick));
        Ok(tick)
    }
}
