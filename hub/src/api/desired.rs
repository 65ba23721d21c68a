//! What every stream should run, read from the newest signed states and kept: a question about the fleet opens only the states
//! that were issued since the last one.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_model::wire::{Digest, Mode, Stream};
use tokio::sync::Mutex;

use super::answer::ApiError;
use super::rollouts::selection;
use crate::store::Store;

/// The newest state of each stream.
pub type Streams = BTreeMap<Stream, Arc<Wanted>>;

#[derive(Debug, Default)]
pub struct Desired {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The newest change that is seen; none: nothing is read yet.
    tick: Option<i64>,
    streams: Arc<Streams>,
}

/// A state, as far as it is compared with what runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub generation: u64,
    pub entries: BTreeMap<String, WantedEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedEntry {
    /// As clusters report it.
    pub packages: String,
    pub version: Option<String>,
    /// Of the platform's package and of the workload's; of an observed one the commit that it should reach.
    pub platform_commit: Option<String>,
    pub workload_commit: Option<String>,
    /// Its packages; none: another reconciler applies it.
    pub platform: Option<Digest>,
    pub workload: Option<Digest>,
}

impl Desired {
    pub async fn streams(&self, store: &Store) -> Result<Arc<Streams>, ApiError> {
        let mut known = self.known.lock().await;
        let newest = store.newest_tick().await?;
        let news: Vec<(Stream, bytes::Bytes)> = match known.tick {
            Some(tick) if tick == newest => Vec::new(),
            Some(tick) => {
                let issued = store.envelopes_after(tick).await?;
                issued.into_iter().map(|(stream, issued, _)| (stream, issued.envelope)).collect()
            }
            None => {
                let issued = store.newest_envelopes().await?;
                issued.into_iter().map(|(stream, issued)| (stream, issued.envelope)).collect()
            }
        };
        if !news.is_empty() {
            let streams = Arc::make_mut(&mut known.streams);
            for (stream, envelope) in news {
                let wanted = wanted(&envelope)?;
                if streams.get(&stream).is_none_or(|before| before.generation < wanted.generation) {
                    streams.insert(stream, Arc::new(wanted));
                }
            }
        }
        known.tick = Some(newest);
        Ok(Arc::clone(&known.streams))
    }
}

impl Wanted {
    /// What should run of an assignment; empty: nothing.
    pub fn packages(&self, assignment: &str) -> &str {
        self.entries.get(assignment).map_or("", |entry| entry.packages.as_str())
    }
}

fn wanted(envelope: &[u8]) -> Result<Wanted, ApiError> {
    let state = selection::desired(envelope)?;
    let entry = |entry: kedge_model::wire::Entry| {
        let packages = entry.packages_key().to_string();
        let wanted = match entry.mode {
            Mode::Apply(pair) => WantedEntry {
                packages,
                version: pair.version,
                platform: Some(pair.platform.digest),
                workload: Some(pair.workload.digest),
                platform_commit: Some(pair.platform.commit),
                workload_commit: Some(pair.workload.commit),
            },
            Mode::Observe(observation) => WantedEntry {
                packages,
                version: None,
                platform_commit: observation.expected_commit,
                workload_commit: None,
                platform: None,
                workload: None,
            },
        };
        (entry.assignment, wanted)
    };
    Ok(Wanted { generation: state.generation.0, entries: state.entries.into_iter().map(entry).collect() })
}
