//! Every cluster's standing, in memory: what a request is judged by without asking the database. Filled at the start and on
//! demand, kept fresh by ticks: this hub's own changes at once, other hubs' within a second. A held poll waits on its member.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use kedge_model::wire::{ClusterId, Sequence, Stream};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::store::agents::{ClusterState, StandingRow};
use crate::store::{Store, StoreError};

#[derive(Debug, Default)]
pub struct Roster {
    members: RwLock<HashMap<ClusterId, Arc<Member>>>,
    /// One copy of each stream's name for all its members.
    streams: Mutex<HashSet<Arc<Stream>>>,
    /// The same for the names of sites.
    sites: Mutex<HashSet<Arc<str>>>,
    /// The last change that is in memory; one refresh at a time.
    seen: tokio::sync::Mutex<Seen>,
}

/// A place in the order of changes.
#[derive(Debug, Default)]
struct Seen {
    tick: i64,
    id: String,
}

/// One cluster.
#[derive(Debug)]
pub struct Member {
    standing: Mutex<Standing>,
    changed: Notify,
    /// The number of the last poll: only that one is held.
    turn: AtomicU64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: ClusterState,
    pub stream: Arc<Stream>,
    pub site: Option<Arc<str>>,
    /// It may fetch for the site's other streams.
    pub relay: bool,
    pub sequence: Sequence,
    /// The hub's hold document.
    pub holds: u64,
    tick: i64,
}

/// How often other hubs' changes are looked for.
const EVERY: Duration = Duration::from_secs(1);
/// Rows of one statement: short enough for others to get their turn.
const PAGE: i64 = 2000;

impl Roster {
    /// From memory, or from the database the first time. None: no such cluster.
    pub async fn find(&self, store: &Store, id: &ClusterId) -> Result<Option<Arc<Member>>, StoreError> {
        if let Some(member) = self.known(id) {
            return Ok(Some(member));
        }
        let Some(row) = store.standing(id).await? else { return Ok(None) };
        Ok(Some(self.put(row)))
    }

    /// Takes in what was committed since the last time, by any hub.
    pub async fn refresh(&self, store: &Store) -> Result<(), StoreError> {
        let mut seen = self.seen.lock().await;
        loop {
            let rows = store.standings_after(seen.tick, &seen.id, PAGE).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            *seen = Seen { tick: last.tick, id: last.id.to_string() };
            let whole = (rows.len() as i64) < PAGE;
            rows.into_iter().for_each(|row| drop(self.put(row)));
            if whole {
                return Ok(());
            }
        }
    }

    /// Fills the roster and keeps it fresh until told to stop.
    pub async fn follow(&self, store: &Store, mut shutdown: watch::Receiver<bool>) {
        let mut fill = Some(String::new());
        let mut failing = false;
        while !*shutdown.borrow_and_update() {
            match self.step(store, &mut fill).await {
                Ok(()) => failing = false,
                Err(error) if !failing => {
                    failing = true;
                    tracing::warn!(%error, "changes of clusters can't be read; trying again");
                }
                Err(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                stopped = shutdown.changed() => if stopped.is_err() { return },
            }
        }
    }

    /// Goes on with the first filling, page by page after the last id, then looks for changes. The filling can be slow and
    /// late: whom it hasn't reached is read on demand.
    async fn step(&self, store: &Store, fill: &mut Option<String>) -> Result<(), StoreError> {
        if let Some(after) = fill {
            if after.is_empty() {
                let tick = store.last_tick().await?;
                let mut seen = self.seen.lock().await;
                if seen.tick < tick {
                    *seen = Seen { tick, id: String::new() };
                }
            }
            loop {
                let rows = store.standings_page(after, PAGE).await?;
                let Some(last) = rows.last() else { break };
                *after = last.id.to_string();
                rows.into_iter().for_each(|row| drop(self.put(row)));
            }
            *fill = None;
        }
        self.refresh(store).await
    }

    fn known(&self, id: &ClusterId) -> Option<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn put(&self, row: StandingRow) -> Arc<Member> {
        let standing = Standing {
            state: row.state,
            stream: self.one(row.stream),
            site: row.site.map(|site| self.site(&site)),
            relay: row.relay,
            sequence: row.sequence,
            holds: row.holds,
            tick: row.tick,
        };
        if let Some(member) = self.known(&row.id) {
            member.update(standing);
            return member;
        }
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        match members.get(&row.id) {
            Some(member) => {
                member.update(standing);
                Arc::clone(member)
            }
            None => {
                let member = Arc::new(Member {
                    standing: Mutex::new(standing),
                    changed: Notify::new(),
                    turn: AtomicU64::new(0),
                });
                members.insert(row.id, Arc::clone(&member));
                member
            }
        }
    }

    fn one(&self, stream: Stream) -> Arc<Stream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = streams.get(&stream) {
            return Arc::clone(known);
        }
        let stream = Arc::new(stream);
        streams.insert(Arc::clone(&stream));
        stream
    }

    fn site(&self, name: &str) -> Arc<str> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sites.get(name) {
            return Arc::clone(known);
        }
        let site: Arc<str> = Arc::from(name);
        sites.insert(Arc::clone(&site));
        site
    }
}

impl Member {
    pub fn standing(&self) -> Standing {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends when the standing changes. Enable it before `standing` is read, so that no change falls between.
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A new poll of this cluster; one that is held already ends. A client that lost its connection leaves no poll behind, and
    /// nobody holds more than one.
    pub fn take_turn(&self) -> u64 {
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        self.changed.notify_waiters();
        turn
    }

    pub fn has_turn(&self, turn: u64) -> bool {
        self.turn.load(Ordering::Acquire) == turn
    }

    fn update(&self, new: Standing) {
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        if standing.tick < new.tick {
            *standing = new;
            self.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tick: i64, state: ClusterState) -> StandingRow {
        StandingRow {
            id: ClusterId::of_public_key(&[7; 32]),
            stream: Stream::new("dev", "drone", Stream::ALL),
            state,
            sequence: Sequence(1),
            site: None,
            relay: false,
            holds: 0,
            tick,
        }
    }

    #[tokio::test]
    async fn an_older_row_never_replaces_a_newer_standing() {
        let roster = Roster::default();
        let member = roster.put(row(5, ClusterState::Revoked));
        roster.put(row(4, ClusterState::Active));
        assert_eq!(member.standing().state, ClusterState::Revoked);
    }

    #[tokio::test]
    async fn a_change_wakes_who_waits_for_the_member() {
        let roster = Roster::default();
        let member = roster.put(row(1, ClusterState::Active));
        let mut changed = std::pin::pin!(member.changed());
        changed.as_mut().enable();
        roster.put(row(2, ClusterState::Retired));
        changed.await;
        assert_eq!(member.standing().state, ClusterState::Retired);
    }

    #[test]
    fn members_share_the_name_of_their_stream() {
        let roster = Roster::default();
        let first = roster.put(row(1, ClusterState::Active)).standing().stream;
        let other = StandingRow { id: ClusterId::of_public_key(&[8; 32]), ..row(2, ClusterState::Active) };
        assert!(Arc::ptr_eq(&first, &roster.put(other).standing().stream));
    }
}
