//! The task that reads the warnings of documents that were stored before the hub kept warnings: once after an upgrade, in the
//! background. Documents that come meanwhile bring their own.

use std::time::Duration;

use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::tally::Deltas;
use kedge_hub_types::status::warnings::Warned;
use kedge_model::wire::ClusterId;
use tokio::sync::watch;

use crate::store::{Store, StoreError};

/// Documents of one round.
const ROUND: i64 = 100;
/// After the database failed.
const RETRY: Duration = Duration::from_secs(10);

/// Ends when nothing is left, or on shutdown.
pub async fn run(store: Store, mut shutdown: watch::Receiver<bool>) {
    loop {
        let left = tokio::select! {
            biased;
            _ = shutdown.wait_for(|stop| *stop) => return,
            left = round(&store) => left,
        };
        match left {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::warn!(%error, "warnings of stored documents can't be read; trying again");
                tokio::select! {
                    _ = shutdown.wait_for(|stop| *stop) => return,
                    () = tokio::time::sleep(RETRY) => {}
                }
            }
        }
    }
}

/// Whether there may be more.
pub async fn round(store: &Store) -> Result<bool, StoreError> {
    let found = store.unwarned(ROUND).await?;
    for cluster in &found {
        one(store, cluster).await?;
    }
    Ok(!found.is_empty())
}

async fn one(store: &Store, cluster: &ClusterId) -> Result<(), StoreError> {
    let mut tx = store.write().await?;
    let Some(seat) = tx.seat(cluster, store.backend()).await? else {
        // Nobody's: it is looked at once.
        tx.put_warned(cluster, &Warned::default()).await?;
        return tx.commit().await;
    };
    // Another hub, or a new document, may have been here first.
    if seat.warned.is_some() {
        return Ok(());
    }
    let stored = tx.stored_document(cluster).await?;
    // One that can't be read warns of nothing that anybody could show.
    let prepared = stored.and_then(|stored| Prepared::read(&stored.envelopes, stored.received_at, None).ok());
    let warned = prepared.as_ref().filter(|_| seat.active).map(|prepared| prepared.warned.clone()).unwrap_or_default();
    if let (true, Some(prepared)) = (seat.active, &prepared) {
        let mut deltas = Deltas::default();
        deltas.warned(&seat.stream, &Warned::default(), &warned);
        tx.put_warnings(cluster, &seat.stream, &Warned::default(), prepared).await?;
        tx.apply(deltas).await?;
    }
    tx.put_warned(cluster, &warned).await?;
    tx.commit().await
}
