//! The hub as the loop sees it: a trait, so that weeks without it pass in a test within a moment.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use kedge_model::wire::{BlobRef, Envelope, PollAnswer, PollRequest};

use crate::link::{FetchError, HubLink, LinkError};
use crate::objects::Objects;

pub(super) trait Hub: 'static {
    /// `host:port`, for people.
    fn name(&self) -> String;
    fn poll(&self, request: &PollRequest, patience: Duration) -> impl Future<Output = Result<PollAnswer, LinkError>>;
    fn send(&self, document: &Envelope) -> impl Future<Output = Result<(), LinkError>>;
    fn prove(&self, state: &Envelope) -> impl Future<Output = Result<(), LinkError>>;
    fn fetch(&self, blob: &BlobRef, objects: &Objects) -> impl Future<Output = Result<(), FetchError>>;
    /// Believes these authorities from now on.
    fn trust(&self, authorities: &[String]) -> Result<(), LinkError>;
    /// What peers are talked to with; none where there are none.
    fn line(self: &Arc<Self>) -> Option<Arc<HubLink>> {
        None
    }
}

/// Something that is under way with the hub, or nothing.
pub(super) struct Pending<T>(Option<Pin<Box<dyn Future<Output = T>>>>);

impl Hub for HubLink {
    fn name(&self) -> String {
        self.hub()
    }

    async fn poll(&self, request: &PollRequest, patience: Duration) -> Result<PollAnswer, LinkError> {
        HubLink::poll(self, request, patience).await
    }

    async fn send(&self, document: &Envelope) -> Result<(), LinkError> {
        HubLink::send(self, document).await
    }

    async fn prove(&self, state: &Envelope) -> Result<(), LinkError> {
        HubLink::prove(self, state).await
    }

    async fn fetch(&self, blob: &BlobRef, objects: &Objects) -> Result<(), FetchError> {
        HubLink::fetch(self, blob, objects).await
    }

    fn trust(&self, authorities: &[String]) -> Result<(), LinkError> {
        HubLink::trust(self, authorities)
    }

    fn line(self: &Arc<Self>) -> Option<Arc<HubLink>> {
        Some(Arc::clone(self))
    }
}

impl<T> Default for Pending<T> {
    fn default() -> Pending<T> {
        Pending(None)
    }
}

impl<T> Pending<T> {
    pub(super) fn is_free(&self) -> bool {
        self.0.is_none()
    }

    pub(super) fn begin(&mut self, work: impl Future<Output = T> + 'static) {
        self.0 = Some(Box::pin(work));
    }

    /// What is under way is dropped.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }

    /// Waits for the end of what is under way; for ever if nothing is. May be dropped and called again.
    pub(super) async fn end(&mut self) -> T {
        match &mut self.0 {
            Some(work) => {
                let ended = work.as_mut().await;
                self.0 = None;
                ended
            }
            None => std::future::pending().await,
        }
    }
}
