//! From status documents to conditions, counts and check-in deadlines. Agents' requests and imports hand in documents and contacts;
//! two tasks write them: `writer` (documents, many in one commit) and `check_ins` (contacts, and what is due).

pub mod check_ins;
pub mod contacts;
mod foreign;
pub mod known;
mod past;
mod unwarned;
mod writer;

#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kedge_hub_types::status::prepared::Prepared;
use kedge_hub_types::status::{Carrier, TakeError};
use kedge_model::wire::{ClusterId, Envelope, Generation, Heads, Timestamp};
use kedge_status::{Limits, Status};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::permits::UpdatePermits;
use crate::signal::Nudge;
use crate::store::{Store, StoreError, now};
use contacts::Contacts;
use known::Known;
use writer::{Job, Outcome};

/// Takes in what clusters say. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StatusIntake {
    store: Store,
    queue: mpsc::Sender<Job>,
    /// Checking a document is work for a processor: no more at once than there are.
    readers: Arc<Semaphore>,
    known: Arc<Known>,
    contacts: Arc<Contacts>,
    heard: Heard,
    figures: Arc<Figures>,
}

/// Whom the tasks tell what their commits changed.
#[derive(Clone, Debug)]
pub struct Heard {
    pub permits: UpdatePermits,
    /// For the rollouts: counts changed.
    pub counts: Nudge,
}

/// What became of a document that is in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the database for good.
    Stored,
    /// This very document is there already.
    AlreadyKnown,
    /// A newer one is there: no harm, nothing to do.
    Older,
}

/// What a poll tells beside its question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contact {
    pub generation: Generation,
    /// Seconds since the agent's last full look.
    pub look_age: u64,
    /// The next contact is expected before this.
    pub check_in_deadline: Timestamp,
    pub heads: Heads,
    /// None: the cluster came itself, just now.
    pub carried: Option<Carried>,
}

/// A sign of life that came through somebody else: the time at which it was said counts, not the one at which it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    pub at: Timestamp,
    pub by: Carrier,
}

/// Counters since the start, for metrics.
#[derive(Debug, Default)]
pub struct Figures {
    pub stored: AtomicU64,
    /// Already known or older.
    pub needless: AtomicU64,
    pub refused: AtomicU64,
    pub commits: AtomicU64,
    pub missed_check_ins: AtomicU64,
}

/// What somebody carried here keeps its cluster known so long after it was written; polls bring deadlines of their own.
pub const CARRIED_MS: i64 = 15 * 60 * 1000;
/// Documents that wait for the writer; more make their senders wait.
const QUEUE: usize = 2048;
/// How often a merge begins again because the stored document changed meanwhile.
const MERGES: usize = 3;
/// Histories of one epoch that are kept side by side; more come from something that copies itself.
const HISTORIES: usize = 4;

impl StatusIntake {
    /// Reads what is known and starts the tasks; they end on shutdown, after what was handed in is written.
    pub async fn start(
        store: Store,
        shutdown: watch::Receiver<bool>,
    ) -> Result<(StatusIntake, JoinSet<()>), StoreError> {
        let known = Arc::new(Known::default());
        for (cluster, heads) in store.document_heads().await? {
            known.put(&cluster, &heads);
        }
        let (queue, jobs) = mpsc::channel(QUEUE);
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let (contacts, figures) = (Arc::new(Contacts::default()), Arc::new(Figures::default()));
        let heard = Heard::new(&store);
        heard.permits.look().await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(writer::run(store.clone(), jobs, heard.clone(), Arc::clone(&figures), shutdown.clone()));
        let judging = (Arc::clone(&contacts), heard.clone(), Arc::clone(&figures));
        tasks.spawn(check_ins::run(store.clone(), judging.0, judging.1, judging.2, shutdown.clone()));
        tasks.spawn(unwarned::run(store.clone(), shutdown.clone()));
        tasks.spawn(heard.permits.clone().follow(shutdown));
        let readers = Arc::new(Semaphore::new(processors));
        Ok((StatusIntake { store, queue, readers, known, contacts, heard, figures }, tasks))
    }

    /// Which rings have a limit, and the news of permits.
    pub fn permits(&self) -> &UpdatePermits {
        &self.heard.permits
    }

    /// Told whenever counts change on this hub.
    pub fn counts_changed(&self) -> &Nudge {
        &self.heard.counts
    }

    /// Takes a document that its owner signed, whoever carries it: an agent, or a person (None). Answers after the commit.
    pub async fn take(&self, carrier: Option<&ClusterId>, envelope: Envelope) -> Result<Taken, TakeError> {
        let taken = self.store_document(carrier.copied(), envelope).await;
        let counter = match &taken {
            Ok(Taken::Stored) => &self.figures.stored,
            Ok(Taken::AlreadyKnown | Taken::Older) => &self.figures.needless,
            Err(_) => &self.figures.refused,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        taken
    }

    /// A poll came: written with others within seconds; brings an Unknown cluster back.
    pub async fn contact(&self, cluster: &ClusterId, contact: Contact) {
        let at = contact.carried.map_or_else(now, |carried| carried.at);
        self.contacts.put(cluster, &contact, at);
    }

    /// Whether the hub lacks the document that these heads name.
    pub fn wants(&self, cluster: &ClusterId, heads: &Heads) -> bool {
        self.known.wants(cluster, heads)
    }

    /// What a cluster last said, as a whole.
    pub async fn status(&self, cluster: &ClusterId) -> Result<Option<Status>, StoreError> {
        let Some(stored) = self.store.document(cluster).await? else { return Ok(None) };
        let read = self.on_reader(move || {
            let all: Vec<&Envelope> = stored.envelopes.iter().collect();
            let status = kedge_status::read_all(&all, &Limits::default())?;
            Ok(foreign::shown(status, &stored.tally))
        });
        read.await.map(Some).map_err(|why| StoreError::Corrupt(why.to_string()))
    }

    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    async fn store_document(&self, carrier: Option<ClusterId>, envelope: Envelope) -> Result<Taken, TakeError> {
        let received_at = now();
        let single = envelope.clone();
        let mut prepared = self.on_reader(move || Prepared::read(&[single], received_at, carrier)).await?;
        let cluster = prepared.status.cluster;
        let sent = prepared.status.heads();
        for _ in 0..MERGES {
            let (answer, answered) = oneshot::channel();
            let job = Job { prepared: Box::new(prepared), answer };
            self.queue.send(job).await.map_err(|_| TakeError::Unavailable)?;
            match answered.await.map_err(|_| TakeError::Unavailable)? {
                Ok(Outcome::Done(taken, heads)) => {
                    self.known.settle(&cluster, &heads, &sent);
                    // A merge that adds nothing shows that what was sent is a part of what is stored.
                    let part = taken == Taken::AlreadyKnown && heads != sent;
                    return Ok(if part { Taken::Older } else { taken });
                }
                Ok(Outcome::Merge(stored)) => {
                    let envelope = envelope.clone();
                    let merge = move || merged(&stored, envelope, received_at, carrier);
                    prepared = match self.on_reader(merge).await {
                        Err(TakeError::Cloned(cluster)) => return self.cloned(cluster, &sent).await,
                        other => other?,
                    };
                }
                Err(error) => {
                    if matches!(error, TakeError::Cloned(_)) {
                        self.known.refuse(&cluster, &sent);
                    }
                    return Err(error);
                }
            }
        }
        Err(TakeError::Unavailable)
    }

    async fn cloned(&self, cluster: ClusterId, sent: &Heads) -> Result<Taken, TakeError> {
        self.known.refuse(&cluster, sent);
        let marked = async {
            let mut tx = self.store.write().await?;
            tx.mark_cloned(&cluster, now()).await?;
            tx.commit().await
        };
        marked.await.map_err(|_: StoreError| TakeError::Unavailable)?;
        Err(TakeError::Cloned(cluster))
    }

    /// Runs what needs a processor where it may take one.
    async fn on_reader<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, TakeError> + Send + 'static,
    ) -> Result<T, TakeError> {
        let _permit = self.readers.acquire().await.map_err(|_| TakeError::Unavailable)?;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| TakeError::Malformed("the document can't be read".to_owned()))?
    }
}

impl Heard {
    pub fn new(store: &Store) -> Heard {
        Heard::of(&UpdatePermits::new(store.clone()))
    }

    pub fn of(permits: &UpdatePermits) -> Heard {
        Heard { permits: permits.clone(), counts: Nudge::default() }
    }

    fn tell(&self, counted: bool, freed: bool) {
        if counted {
            self.counts.nudge();
        }
        if freed {
            self.permits.freed();
        }
    }
}

/// The stored histories of an epoch with one more; what another of them contains is left out.
fn merged(
    stored: &[u8],
    envelope: Envelope,
    received_at: Timestamp,
    carrier: Option<ClusterId>,
) -> Result<Prepared, TakeError> {
    let mut envelopes: Vec<Envelope> =
        serde_json::from_slice(stored).map_err(|why| TakeError::Malformed(why.to_string()))?;
    envelopes.push(envelope);
    let limits = Limits::default();
    let read = |envelope: &Envelope| kedge_status::read(envelope, &limits).map_err(TakeError::from);
    let statuses = envelopes.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let needed = |index: usize| {
        let heads = statuses[index].heads().heads;
        let within = |(other, status): (usize, &Status)| {
            other != index && status.contains(&heads) && (status.heads().heads != heads || other < index)
        };
        !statuses.iter().enumerate().any(within)
    };
    let kept: Vec<Envelope> =
        envelopes.iter().enumerate().filter(|(index, _)| needed(*index)).map(|(_, kept)| kept.clone()).collect();
    if kept.len() > HISTORIES {
        return Err(TakeError::Cloned(statuses[0].cluster));
    }
    let copied = write_in_turns(&statuses);
    Ok(Prepared { copied, ..Prepared::read(&kept, received_at, carrier)? })
}

/// The newest goes on from one history and doesn't know of another that was written between the two: both writers live, as after a disk
/// was copied. After a disk was put back to an older copy only one does.
fn write_in_turns(histories: &[Status]) -> bool {
    let Some((newest, before)) = histories.split_last() else { return false };
    let when = |status: &Status| status.written_at_true();
    let (known, unknown): (Vec<&Status>, Vec<&Status>) =
        before.iter().partition(|status| newest.contains(&status.heads().heads));
    let between = |other: &&Status, from: &Status| when(from) < when(other) && when(other) < when(newest);
    known.iter().any(|from| from.heads() != newest.heads() && unknown.iter().any(|other| between(other, from)))
}
