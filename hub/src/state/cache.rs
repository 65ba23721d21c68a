//! The newest desired state of every stream, in memory: what polls are answered from and wait for. Filled from the
//! database at the start, then by the leader's own states at once and by other hubs' within a second.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use kedge_hub_types::state::Issued;
use kedge_model::wire::Stream;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub struct DesiredStateCache {
    streams: RwLock<HashMap<Stream, watch::Sender<Option<Arc<Issued>>>>>,
}

impl DesiredStateCache {
    /// What is current, and a way to wait for the next. A stream without a state yet can be waited for too.
    pub fn watch(&self, stream: &Stream) -> watch::Receiver<Option<Arc<Issued>>> {
        if let Some(sender) = self.streams.read().unwrap_or_else(PoisonError::into_inner).get(stream) {
            return sender.subscribe();
        }
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        streams.entry(stream.clone()).or_insert_with(|| watch::Sender::new(None)).subscribe()
    }

    /// Shows a state, unless a newer one is there already.
    pub fn show(&self, stream: &Stream, issued: Issued) {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let sender = streams.entry(stream.clone()).or_insert_with(|| watch::Sender::new(None));
        sender.send_if_modified(|current| {
            let newer = current.as_ref().is_none_or(|known| known.generation < issued.generation);
            if newer {
                *current = Some(Arc::new(issued));
            }
            newer
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kedge_model::wire::Generation;

    use super::*;

    #[test]
    fn an_older_generation_never_replaces_a_newer_one() {
        let desired_states = DesiredStateCache::default();
        let stream = Stream::new("dev", "drone", Stream::ALL);
        let issued = |number| Issued::of(Generation(number), Bytes::from_static(b"{}"));
        desired_states.show(&stream, issued(2));
        desired_states.show(&stream, issued(1));
        assert_eq!(desired_states.watch(&stream).borrow().as_deref(), Some(&issued(2)));
    }
}
