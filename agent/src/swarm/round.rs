//! One download from the first look at who has it to the last byte: seats holders, asks each for its list, gives each that agrees a
//! chunk at a time, lets the fast take over from the slow, and drops who misbehaved. Everything runs inside of one future.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use kedge_model::wire::{BlobRef, ClusterId};
use rand::seq::SliceRandom as _;
use tokio::time::Instant;

use super::chunks::ChunkList;
use super::download::Download;
use super::holder::{Holder, HolderError, Misbehavior, Sources};
use super::piece::{self, Fault, Piece};
use super::seat::{AT_ONCE, Said, Seat, Seats, Work};

pub struct Round<'a> {
    blob: &'a BlobRef,
    sources: &'a dyn Sources,
    download: &'a mut Download,
    seats: Seats,
    under_way: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// How often each chunk was taken over.
    taken_over: BTreeMap<usize, u32>,
    progress: Instant,
    looked: Option<Instant>,
    wrong: u32,
}

/// Why it isn't whole.
#[derive(Debug)]
pub enum Stopped {
    Nobody,
    Disk(io::Error),
}

enum Ended {
    Listed(ClusterId, Result<ChunkList, Fault>),
    Fetched(ClusterId, Piece, Result<(), Fault>),
    /// It was taken over by another.
    Dropped,
}

/// Without a chunk: then the hub is asked.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who has it is asked again so often: a look at a table.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Whether somebody should take over is asked so often.
const TICK: Duration = Duration::from_millis(500);
/// Each costs the whole content; more lists than that aren't worth it.
const WRONG_TRIES: u32 = 3;
/// So that two slow ones don't take a chunk from each other for ever.
const TAKEN_OVER: u32 = 2;

impl<'a> Round<'a> {
    pub fn new(blob: &'a BlobRef, sources: &'a dyn Sources, download: &'a mut Download) -> Round<'a> {
        Round {
            blob,
            sources,
            download,
            seats: Seats::default(),
            under_way: FuturesUnordered::new(),
            taken_over: BTreeMap::new(),
            progress: Instant::now(),
            looked: None,
            wrong: 0,
        }
    }

    /// The whole is on the disk and has the right digest when this returns.
    pub async fn run(mut self) -> Result<(), Stopped> {
        loop {
            if self.download.is_complete() {
                if self.download.digest().await? == self.blob.digest {
                    return Ok(());
                }
                self.begin_anew().await?;
            }
            let now = Instant::now();
            self.look(now);
            self.agree(now).await?;
            self.give(now);
            if now.saturating_duration_since(self.progress) >= PATIENCE {
                return Err(Stopped::Nobody);
            }
            tokio::select! {
                Some(ended) = self.under_way.next(), if !self.under_way.is_empty() => self.end(ended).await?,
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Seats those who have it, any of them: so many who fetch the same should not all ask the same.
    fn look(&mut self, now: Instant) {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < LOOK_EVERY) {
            return;
        }
        self.looked = Some(now);
        let mut holders = self.sources.holders(&self.blob.digest);
        holders.shuffle(&mut rand::rng());
        for holder in holders {
            if self.seats.taken.len() >= AT_ONCE {
                break;
            }
            if self.seats.is_welcome(&holder.cluster(), now) {
                self.seats.seat(holder);
            }
        }
        if self.seats.taken.is_empty() && self.sources.is_coming(&self.blob.digest) {
            self.progress = now;
        }
    }

    /// Which list is in force: what is small needs none, else what those who are here say.
    async fn agree(&mut self, now: Instant) -> Result<(), Stopped> {
        if let Some(list) = ChunkList::of_small(self.blob) {
            if self.download.list().is_none() {
                self.download.judge_by(Arc::new(list)).await?;
            }
            return Ok(());
        }
        for seat in self.seats.taken.values_mut().filter(|seat| matches!(seat.list, Said::Nothing)) {
            seat.list = Said::Asked(now);
            let (holder, blob) = (Arc::clone(&seat.holder), self.blob.clone());
            self.under_way.push(Box::pin(async move {
                let who = holder.cluster();
                Ended::Listed(who, piece::list(holder, blob).await)
            }));
        }
        let current = self.download.list();
        match self.seats.list(current, now) {
            Some(list) if current != Some(&list) => {
                self.taken_over.clear();
                Ok(self.download.judge_by(list).await?)
            }
            _ => Ok(()),
        }
    }

    /// A chunk for each who is idle and said the list in force.
    fn give(&mut self, now: Instant) {
        let Some(list) = self.download.list().cloned() else { return };
        let small = ChunkList::of_small(self.blob).is_some();
        let idle = self.seats.taken.iter().filter(|(_, seat)| seat.work.is_none());
        let idle: Vec<_> = idle.filter(|(_, seat)| small || seat.list() == Some(&list)).map(|(who, _)| *who).collect();
        for who in idle {
            let Some(index) = self.next_for(&who, now) else { continue };
            let (Some(digest), Some(seat)) = (list.digests.get(index), self.seats.taken.get_mut(&who)) else {
                continue;
            };
            let piece = Piece { index, range: list.range(index), digest: *digest };
            let (stop, registered) = AbortHandle::new_pair();
            let got = Arc::new(AtomicU64::new(0));
            let fetching = fetch(Arc::clone(&seat.holder), self.blob, piece.clone(), self.download, Arc::clone(&got));
            seat.work = Some(Work { piece, began: now, got, stop });
            let fetching = Abortable::new(fetching, registered);
            self.under_way.push(Box::pin(async move { fetching.await.unwrap_or(Ended::Dropped) }));
        }
    }

    /// The first chunk that nobody fetches; without one, another's that takes too long.
    fn next_for(&mut self, who: &ClusterId, now: Instant) -> Option<usize> {
        let works = || self.seats.taken.values().filter_map(|seat| seat.work.as_ref());
        let is_free = |index: &&usize| works().all(|work| work.piece.index != **index);
        if let Some(free) = self.download.missing().iter().find(is_free) {
            return Some(*free);
        }
        let often = |piece: &Piece| self.taken_over.get(&piece.index).is_some_and(|count| *count >= TAKEN_OVER);
        let slow = self.seats.slowest_for(who, now, |piece| !often(piece))?;
        let seat = self.seats.taken.get_mut(&slow)?;
        let work = seat.work.take()?;
        work.stop.abort();
        seat.measure(work.got.load(Ordering::Relaxed), now.saturating_duration_since(work.began));
        *self.taken_over.entry(work.piece.index).or_default() += 1;
        tracing::debug!(blob = %self.blob.digest, chunk = work.piece.index, from = %slow, to = %who, "a slow chunk goes to another");
        Some(work.piece.index)
    }

    async fn end(&mut self, ended: Ended) -> Result<(), Stopped> {
        match ended {
            Ended::Dropped => {}
            Ended::Listed(who, Ok(list)) => {
                let list = self.shared(list);
                if let Some(seat) = self.seats.taken.get_mut(&who) {
                    seat.list = Said::List(list);
                }
            }
            Ended::Fetched(who, piece, Ok(())) => {
                let now = Instant::now();
                let work = self.seats.taken.get_mut(&who).and_then(|seat| seat.work.take());
                let took = work.map_or(Duration::ZERO, |work| now.saturating_duration_since(work.began));
                self.seats.gave(&who, piece.range.end - piece.range.start, took);
                self.download.mark(piece.index).await?;
                self.progress = now;
            }
            Ended::Listed(who, Err(fault)) | Ended::Fetched(who, _, Err(fault)) => self.failed(who, fault)?,
        }
        Ok(())
    }

    fn failed(&mut self, who: ClusterId, fault: Fault) -> Result<(), Stopped> {
        let (blob, now) = (self.blob.digest, Instant::now());
        match fault {
            Fault::Disk(error) => return Err(Stopped::Disk(error)),
            Fault::Misbehavior(misbehavior) => self.drop_misbehaving(who, misbehavior),
            Fault::Slow => {
                tracing::debug!(%blob, %who, "a peer is too slow");
                self.seats.rest(&who, false, now);
            }
            Fault::Away(error) => {
                tracing::debug!(%blob, %who, %error, "a peer gives nothing");
                self.seats.rest(&who, matches!(error, HolderError::Refused(_)), now);
            }
        }
        // Its seat is free for another.
        self.looked = None;
        Ok(())
    }

    /// All chunks are as the list says and the whole isn't: the list is a lie, and so said all who gave it. Unless the disk did it.
    async fn begin_anew(&mut self) -> Result<(), Stopped> {
        self.wrong += 1;
        if self.wrong >= WRONG_TRIES {
            self.download.restart()?;
            return Err(Stopped::Nobody);
        }
        if self.download.look_at_all().await? > 0 {
            tracing::warn!(digest = %self.blob.digest, "the disk didn't keep what came from peers");
            return Ok(());
        }
        self.under_way.clear();
        let list = self.download.list().cloned();
        let gave = self.seats.taken.iter().filter(|(_, seat)| list.is_some() && seat.list() == list.as_ref());
        let misbehaving: Vec<ClusterId> = gave.map(|(who, _)| *who).collect();
        misbehaving
            .into_iter()
            .for_each(|who| self.drop_misbehaving(who, Misbehavior::Whole { blob: self.blob.digest }));
        // Those who were asked for something just now are asked again.
        let asked = |seat: &Seat| seat.work.is_some() || matches!(seat.list, Said::Asked(_));
        self.seats.taken.retain(|_, seat| !asked(seat));
        self.download.restart()?;
        self.looked = None;
        tracing::warn!(digest = %self.blob.digest, "what came from peers is something else and begins anew");
        Ok(())
    }

    fn drop_misbehaving(&mut self, who: ClusterId, misbehavior: Misbehavior) {
        tracing::warn!(%who, lie = %misbehavior, "a peer lied and is left out");
        self.seats.dismiss(&who);
        self.sources.misbehaved(who, misbehavior);
    }

    /// Equal lists are kept once.
    fn shared(&self, list: ChunkList) -> Arc<ChunkList> {
        let known = self.seats.taken.values().filter_map(|seat| seat.list()).chain(self.download.list());
        known.into_iter().find(|known| ***known == list).cloned().unwrap_or_else(|| Arc::new(list))
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Disk(error)
    }
}

fn fetch(
    holder: Arc<dyn Holder>,
    blob: &BlobRef,
    piece: Piece,
    download: &Download,
    got: Arc<AtomicU64>,
) -> impl Future<Output = Ended> + Send + 'static {
    let (blob, file) = (blob.digest, download.data());
    async move {
        let who = holder.cluster();
        Ended::Fetched(who, piece.clone(), piece::fetch(holder, blob, piece, file, got).await)
    }
}
