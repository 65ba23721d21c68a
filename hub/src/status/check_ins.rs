//! The task that writes contacts and judges check-in deadlines. A missed check-in makes its cluster Unknown since then; a
//! contact with a fresh look brings it back. What the hub itself missed, because it was down, is nobody's missed check-in.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kedge_hub_types::history::{Entry, Place, What};
use kedge_hub_types::status::tally::{Deltas, Weight};
use kedge_model::wire::{ClusterId, Stream, Timestamp};
use tokio::sync::watch;

use super::contacts::Contacts;
use super::{Figures, Heard};
use crate::permits::Said;
use crate::store::status::check_ins::{ContactRow, Contacted, Due};
use crate::store::{Store, StoreError, Tx, now};

/// A cluster that turns Unknown, or is back.
struct Turned {
    cluster: ClusterId,
    stream: Stream,
    /// None: it is back.
    since: Option<Timestamp>,
    what: What,
    at: Timestamp,
}

/// Counts of nobody are taken away so often.
const SWEEP: Duration = Duration::from_secs(300);
/// Contacts of so long go into one commit, and deadlines are judged as often.
const EVERY: Duration = Duration::from_secs(2);
/// Rows of one transaction: short enough for others to get their turn.
const BATCH: usize = 1000;
/// Another hub may hold a contact for as long before it is written.
const MARGIN_MS: i64 = 5_000;
/// No heartbeat for so long means that agents could not reach any hub.
const PAUSE_MS: i64 = 30_000;
/// A database that can't be written is said again after so long.
const SAID: Duration = Duration::from_secs(60);
/// An applier that hasn't looked at what runs for so long is stuck; agents look every few minutes.
pub const LOOK_PATIENCE_MS: i64 = 30 * 60 * 1000;

/// Runs until told to stop; then writes the contacts that wait.
pub async fn run(
    store: Store,
    contacts: Arc<Contacts>,
    heard: Heard,
    figures: Arc<Figures>,
    mut shutdown: watch::Receiver<bool>,
) {
    let mut failing: Option<Instant> = None;
    let mut swept = Instant::now();
    loop {
        let stopping = *shutdown.borrow_and_update();
        match step(&store, &contacts, &heard, &figures, now()).await {
            Ok(()) if failing.take().is_some() => tracing::info!("the database is written again, contacts too"),
            Ok(()) => {}
            Err(error) if failing.is_none_or(|said| said.elapsed() > SAID) => {
                failing = Some(Instant::now());
                tracing::warn!(%error, "the database can't be written; contacts wait, trying again");
            }
            Err(_) => {}
        }
        if stopping {
            return;
        }
        if swept.elapsed() > SWEEP && failing.is_none() {
            swept = Instant::now();
            if let Err(error) = sweep(&store).await {
                tracing::warn!(%error, "counts of nobody can't be taken away; trying again later");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            changed = shutdown.changed() => if changed.is_err() { return },
        }
    }
}

async fn sweep(store: &Store) -> Result<(), StoreError> {
    let mut tx = store.write().await?;
    tx.sweep_counts().await?;
    tx.commit().await
}

/// Writes what came, says that a hub is alive, and only then judges: a contact that waits must not be judged as missing.
pub async fn step(
    store: &Store,
    contacts: &Contacts,
    heard: &Heard,
    figures: &Figures,
    at: Timestamp,
) -> Result<(), StoreError> {
    flush(store, contacts, heard, at).await?;
    beat(store, at).await?;
    judge(store, heard, figures, at).await
}

async fn flush(store: &Store, contacts: &Contacts, heard: &Heard, now: Timestamp) -> Result<(), StoreError> {
    loop {
        let batch = contacts.take(BATCH);
        if batch.is_empty() {
            return Ok(());
        }
        if let Err(error) = write(store, contacts, heard, &batch, now).await {
            contacts.give_back(batch);
            return Err(error);
        }
    }
}

async fn write(
    store: &Store,
    contacts: &Contacts,
    heard: &Heard,
    batch: &[(ClusterId, ContactRow)],
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut tx = store.write().await?;
    let mut deltas = Deltas::default();
    let (mut turned, mut freed) = (Vec::new(), false);
    for (cluster, contact) in batch {
        let Some(contacted) = tx.put_contact(cluster, contact).await? else { continue };
        if contacts.went_back(cluster, contact, contacted.epoch, now) && !contacted.cloned {
            tx.mark_cloned(cluster, now).await?;
            tracing::error!(%cluster, said = contact.epoch, stored = contacted.epoch,
                "the cluster speaks of an older document than it has sent: another host has its identity, or its disk was put back");
        }
        if heard.permits.limit(&contacted.stream).is_some() {
            // A state that asks for nothing new brings no document.
            let tally = tx.tally(cluster).await?;
            let said = Said { tally: tally.as_ref(), accepted: Some(contact.generation) };
            freed |= heard.permits.settle(&mut tx, cluster, &contacted.stream, said).await?;
        }
        let stuck_since = Timestamp(contact.look_at.0.saturating_add(LOOK_PATIENCE_MS));
        let stuck = (stuck_since < contact.at).then_some(stuck_since);
        let unknown = stuck.or_else(|| overdue(contact, &contacted, now));
        if unknown.is_some() == contacted.unknown_since.is_some() {
            if contact.via.is_some() && unknown != contacted.unknown_since {
                // Silent all the same, and since later than was known.
                let tick = tx.hold_tick().await?;
                tx.set_unknown(cluster, unknown, tick).await?;
            }
            continue;
        }
        let tally = tx.tally(cluster).await?;
        let weight = |unknown| Weight { stream: &contacted.stream, tally: tally.as_ref(), unknown };
        deltas.replace(weight(contacted.unknown_since.is_some()), weight(unknown.is_some()));
        let what = if unknown.is_some() { What::Unknown { stuck: true } } else { What::Back };
        let stream = contacted.stream.clone();
        turned.push(Turned { cluster: *cluster, stream, since: unknown, what, at: contact.at });
    }
    freed |= turn(&mut tx, turned).await?;
    let counted = tx.apply(deltas).await?;
    tx.commit().await?;
    heard.tell(counted, freed);
    Ok(())
}

/// A sign of life that was long on its way says nothing of now: the deadline that came with it is over already.
fn overdue(contact: &ContactRow, contacted: &Contacted, now: Timestamp) -> Option<Timestamp> {
    let until = contacted.check_in_deadline;
    let late = contact.via.is_some() && until.0 < now.0.saturating_sub(MARGIN_MS);
    (late && contacted.unknown_since.is_some()).then_some(until)
}

/// Check-ins that were due while no hub was there get that much more time, once.
async fn beat(store: &Store, at: Timestamp) -> Result<(), StoreError> {
    let mut tx = store.write().await?;
    let gap = tx.beat(at).await?;
    if gap <= PAUSE_MS {
        return tx.commit().await;
    }
    let extended = tx.extend_overdue(at, gap).await?;
    tx.commit().await?;
    // Whether no hub ran or its database couldn't be written, nobody can tell afterwards.
    tracing::info!(
        seconds = gap / 1000,
        clusters = extended,
        "for a while no hub wrote that it is alive; promises are extended"
    );
    Ok(())
}

async fn judge(store: &Store, heard: &Heard, figures: &Figures, at: Timestamp) -> Result<(), StoreError> {
    let before = Timestamp(at.0.saturating_sub(MARGIN_MS));
    while store.any_due(before).await? {
        let mut tx = store.write().await?;
        let due = tx.due(before, BATCH as i64, store.backend()).await?;
        let mut deltas = Deltas::default();
        for due in &due {
            let weight = |unknown| Weight { stream: &due.stream, tally: due.tally.as_ref(), unknown };
            deltas.replace(weight(false), weight(true));
        }
        let broken = |due: &Due| Turned {
            cluster: due.cluster,
            stream: due.stream.clone(),
            since: Some(due.check_in_deadline),
            what: What::Unknown { stuck: false },
            at: due.check_in_deadline,
        };
        let turned = due.iter().map(broken).collect();
        let freed = turn(&mut tx, turned).await?;
        let counted = tx.apply(deltas).await?;
        tx.commit().await?;
        heard.tell(counted, freed);
        figures.missed_check_ins.fetch_add(due.len() as u64, Ordering::Relaxed);
        for due in &due {
            tracing::info!(cluster = %due.cluster, stream = %due.stream, "promise broken; conditions are Unknown");
        }
        if due.is_empty() {
            // Another hub has them.
            return Ok(());
        }
    }
    Ok(())
}

/// Whether that ended somebody's permit: who is silent holds nobody up. Each cluster's history says it, also when a whole fleet
/// turns: a cluster's own page must tell since when, and the rows are written by the batch, like those that turn.
async fn turn(tx: &mut Tx, turned: Vec<Turned>) -> Result<bool, StoreError> {
    if turned.is_empty() {
        return Ok(false);
    }
    let tick = tx.tick().await?;
    let (mut freed, mut news) = (false, Vec::new());
    for Turned { cluster, stream, since, what, at } in turned {
        tx.set_unknown(&cluster, since, tick).await?;
        if since.is_some() {
            freed |= tx.end_permit(&cluster).await?;
        }
        news.push(Entry::new(at, Place::cluster(&stream, cluster), what));
    }
    tx.record(news).await?;
    Ok(freed)
}
