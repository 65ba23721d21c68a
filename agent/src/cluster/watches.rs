//! Metadata watches on what carries our label: one for each kind that goals name, each a task on the loop's runtime. They are all that
//! an idle agent asks of the API server. The applier asks what they saw; `run` hears whose objects somebody touched.

pub mod seen;
mod task;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kedge_model::wire::Digest;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Cluster;
use super::metadata::Metadata;
use crate::goal::ObjectId;
pub use seen::{Good, KindKey, Seen, Sight, Standing};

/// Cheap to clone; the tasks end with the last clone.
#[derive(Clone, Debug)]
pub struct Watches {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    runtime: Handle,
    tasks: Mutex<BTreeMap<KindKey, (AbortHandle, Instant)>>,
}

/// What the tasks have in common.
#[derive(Debug)]
struct Shared {
    cluster: Cluster,
    noticed: UnboundedSender<BTreeSet<String>>,
    seen: Mutex<Seen>,
    /// A watch stands otherwise than before.
    changed: Notify,
    /// Kinds may be served by now that weren't.
    served: Notify,
}

/// A watch that nobody names any more may be one that a plan was just made with.
const YOUNG: Duration = Duration::from_secs(600);

impl Watches {
    /// Must be called in the runtime. Assignments whose objects somebody touched go to `noticed`.
    pub fn start(cluster: Cluster, noticed: UnboundedSender<BTreeSet<String>>) -> Watches {
        let (seen, changed, served) = (Mutex::default(), Notify::new(), Notify::new());
        let shared = Arc::new(Shared { cluster, noticed, seen, changed, served });
        Watches { inner: Arc::new(Inner { shared, runtime: Handle::current(), tasks: Mutex::default() }) }
    }

    /// These kinds are what records name: others that are old and empty are left.
    pub fn follow(&self, kinds: &BTreeSet<KindKey>) {
        self.need(kinds);
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = self.seen();
        tasks.retain(|key, (task, since)| {
            let stays = kinds.contains(key) || since.elapsed() < YOUNG || seen.count(key) > 0;
            if !stays {
                task.abort();
                seen.leave(key);
            }
            stays
        });
    }

    /// Begins to watch those that aren't yet.
    pub fn need(&self, kinds: &BTreeSet<KindKey>) {
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for key in kinds {
            if !tasks.contains_key(key) {
                self.seen().follow(key);
                let task = self.inner.runtime.spawn(task::watch(Arc::clone(&self.inner.shared), key.clone()));
                tasks.insert(key.clone(), (task.abort_handle(), Instant::now()));
            }
        }
    }

    /// Waits until each of these kinds was listed, or can't be. After that time: what keeps it.
    pub async fn settle(&self, kinds: &BTreeSet<KindKey>, time: Duration) -> Result<(), String> {
        let settled = async {
            loop {
                let mut changed = std::pin::pin!(self.inner.shared.changed.notified());
                changed.as_mut().enable();
                if self.unsettled(kinds).is_none() {
                    return;
                }
                changed.await;
            }
        };
        match tokio::time::timeout(time, settled).await {
            Ok(()) => Ok(()),
            Err(_) => match self.unsettled(kinds) {
                None => Ok(()),
                Some(why) => Err(why),
            },
        }
    }

    /// A definition was applied: kinds that weren't served are asked for again at once.
    pub fn retry_unserved(&self) {
        self.inner.shared.served.notify_waiters();
    }

    /// What was seen, under its lock: for a moment only.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.inner.shared.seen()
    }

    pub fn sight(&self, id: &ObjectId) -> Sight {
        self.seen().sight(id)
    }

    /// The object is as applied with this content; the server just said so.
    pub fn approve(&self, id: &ObjectId, metadata: &Metadata, content: &Digest) {
        let concerned = self.seen().approve(id, metadata, content);
        self.inner.shared.tell(concerned);
    }

    fn unsettled(&self, kinds: &BTreeSet<KindKey>) -> Option<String> {
        let seen = self.seen();
        kinds.iter().find_map(|key| match seen.standing(key) {
            Some(Standing::Syncing(why)) => {
                let why = why.as_deref().unwrap_or("the API server hasn't answered yet");
                Some(format!("{} can't be watched: {why}", key.plural))
            }
            _ => None,
        })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let tasks = self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner);
        tasks.values().for_each(|(task, _)| task.abort());
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, concerned: impl IntoIterator<Item = Arc<str>>) {
        let names: BTreeSet<String> = concerned.into_iter().map(|name| name.to_string()).collect();
        if !names.is_empty() {
            // Nobody listens any more only when the agent ends.
            _ = self.noticed.send(names);
        }
    }
}
