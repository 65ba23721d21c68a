//! The events between what is settled and what was read: which may be sent now, and how far the cursor may go. Pure. The first
//! unsettled one of each subject may be on its way, so that events of one subject arrive in order, and a subject that is
//! refused holds no other. Owned by a `dispatcher`.

use std::collections::{BTreeMap, HashSet};

use kedge_hub_types::history::Recorded;
use tokio::time::Instant;

/// An event on its way.
#[derive(Clone, Debug)]
pub struct Pending {
    pub entry: Recorded,
    pub subject: String,
    /// It was refused for the first time then.
    pub refused_since: Option<Instant>,
    pub tries: u32,
    /// Not before this.
    pub due: Option<Instant>,
}

/// Entries of the history by their number.
#[derive(Debug)]
pub struct Window {
    pending: BTreeMap<i64, Pending>,
    /// Everything up to here was read.
    read: i64,
}

/// So many wait in memory; what comes after them is read when there is room.
pub const MOST: usize = 256;

impl Window {
    pub fn new(settled: i64) -> Window {
        Window { pending: BTreeMap::new(), read: settled }
    }

    /// How many more may be read.
    pub fn room(&self) -> usize {
        MOST.saturating_sub(self.pending.len())
    }

    /// Where reading goes on.
    pub fn read(&self) -> i64 {
        self.read
    }

    /// Everything up to this one is settled.
    pub fn settled(&self) -> i64 {
        self.pending.keys().next().map_or(self.read, |first| first - 1)
    }

    pub fn oldest(&self) -> Option<&Pending> {
        self.pending.values().next()
    }

    /// The next entry; with a subject: it is to be sent.
    pub fn take(&mut self, entry: Recorded, subject: Option<String>) {
        self.read = self.read.max(entry.id);
        if let Some(subject) = subject {
            let pending = Pending { subject, refused_since: None, tries: 0, due: None, entry };
            self.pending.insert(pending.entry.id, pending);
        }
    }

    /// What may be sent now: the first of each subject, the oldest first.
    pub fn ready(&self, now: Instant, most: usize) -> Vec<Pending> {
        let heads = self.heads().filter(|pending| pending.due.is_none_or(|due| due <= now));
        heads.take(most).cloned().collect()
    }

    /// When the next one that waits may be sent.
    pub fn due(&self) -> Option<Instant> {
        self.heads().filter_map(|pending| pending.due).min()
    }

    pub fn settle(&mut self, id: i64) {
        self.pending.remove(&id);
    }

    pub fn find(&mut self, id: i64) -> Option<&mut Pending> {
        self.pending.get_mut(&id)
    }

    fn heads(&self) -> impl Iterator<Item = &Pending> {
        let mut seen = HashSet::new();
        self.pending.values().filter(move |pending| seen.insert(pending.subject.as_str()))
    }
}
