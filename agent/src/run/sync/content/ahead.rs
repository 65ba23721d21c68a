//! Content of a state that waits for this cluster's turn: fetched when there is nothing else to fetch, so that the turn is short.

use std::time::Duration;

use kedge_model::wire::{BlobRef, DesiredState};
use tokio::time::Instant;

use super::super::super::hub::Hub;
use super::super::SyncLoop;
use super::Whose;
use crate::causes::chain;
use crate::link::FetchError;
use crate::objects::Objects;

/// There is time for it.
const AGAIN: Duration = Duration::from_secs(60);

impl<H: Hub> SyncLoop<H> {
    /// Nothing of it is applied before its turn, and nobody hears of it if it can't be had now.
    pub(super) fn fetch_ahead(&mut self) {
        self.content.ahead_at.take_if(|at| Instant::now() >= *at);
        let idle = self.content.fetch.is_free() && self.content.missing.is_empty() && self.content.ahead_at.is_none();
        let Some(generation) = self.memory.offered().map(|state| state.generation) else { return };
        if !idle || self.content.ahead.is_empty() || self.hub.is_none() {
            return;
        }
        let blobs = self.content.ahead.clone();
        match self.make_room(blobs.iter().map(|blob| blob.size).sum()) {
            Ok(()) => self.begin_fetch(Whose::Ahead(generation), blobs),
            Err(_) => self.content.ahead_at = Some(Instant::now() + AGAIN),
        }
    }

    pub(super) fn fetched_ahead(&mut self, result: &Result<(), FetchError>) {
        if let Err(error) = result {
            tracing::debug!(error = chain(error), "content that waits for its turn can't be fetched yet");
            self.content.ahead_at = Some(Instant::now() + AGAIN);
        }
        self.content.ahead.retain(|blob| !self.context.objects.has(&blob.digest));
        self.sharing.soon();
    }
}

/// The small ones first.
pub(super) fn lacking(state: &DesiredState, objects: &Objects) -> Vec<BlobRef> {
    let mut blobs: Vec<BlobRef> = state.blobs().filter(|blob| !objects.has(&blob.digest)).collect();
    blobs.sort_by_key(|blob| (blob.size, blob.digest));
    blobs.dedup();
    blobs
}
