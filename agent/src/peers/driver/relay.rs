//! A relay that is the uplink fetches what the site's other streams name, once, so that those who follow them get it here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{BlobRef, DesiredState, Digest};
use kedge_peer::Name;
use tokio::time::Instant;

use super::{Driver, Ended};
use crate::link::FetchError;

/// After a failure: the disk is full, or the hub away.
const AGAIN: Duration = Duration::from_secs(60);

impl Driver {
    pub(super) fn relay_next(&mut self) {
        if self.relaying.is_some() || Instant::now() < self.relay_at || self.node.uplink() != Some(self.me) {
            return;
        }
        let Some(blob) = self.lacking() else {
            // New states set it off at once.
            self.relay_at = Instant::now() + AGAIN;
            return;
        };
        tracing::info!(blob = %blob.digest, bytes = blob.size, "fetching for the site");
        self.relaying = Some(blob.digest);
        let (link, objects) = (Arc::clone(&self.place.link), self.place.objects.clone());
        self.under_way.spawn(async move {
            let result = link.fetch(&blob, &objects).await;
            Ended::Relayed { blob: blob.digest, result }
        });
    }

    pub(super) fn relayed(&mut self, blob: Digest, result: Result<(), FetchError>) {
        self.relaying = None;
        match result {
            Ok(()) => {
                self.relay_at = Instant::now();
                self.count_content();
            }
            Err(error) => {
                tracing::warn!(%blob, %error, "content for the site can't be fetched yet");
                self.relay_at = Instant::now() + AGAIN;
            }
        }
    }

    /// The smallest that isn't here, of other streams than the own, whose content the loop fetches.
    fn lacking(&self) -> Option<BlobRef> {
        let store = self.node.store();
        let own = store.member(&self.me).filter(|own| own.relay)?;
        let streams: BTreeSet<_> =
            store.members().map(|member| &member.stream).filter(|stream| **stream != own.stream).collect();
        let states = streams.into_iter().filter_map(|stream| store.get(&Name::State(stream.clone())));
        // The store judged it when it came.
        let states = states.filter_map(|envelope| serde_json::from_slice::<DesiredState>(&envelope.payload).ok());
        let blobs = states.flat_map(|state| state.blobs().collect::<Vec<_>>());
        blobs.filter(|blob| !self.place.objects.has(&blob.digest)).min_by_key(|blob| blob.size)
    }
}
