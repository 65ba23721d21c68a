//! A simulated agent: what it believes, what it applies, what it remembers through a crash.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::wire::ClusterId;

use crate::database::{Condition, Content, State};

#[derive(Clone, Debug)]
pub struct Agent {
    pub id: ClusterId,
    /// Off until then.
    pub off_until: i64,
    /// Its link is cut until then.
    pub cut_until: i64,
    pub interval: i64,
    /// How wrong its clock is: it writes that into its document, and nobody may care.
    pub clock: i64,
    pub sequence: u64,
    pub stream: Option<usize>,
    /// The last generation per stream: precious.
    pub generations: BTreeMap<usize, u64>,
    pub entries: Vec<(Content, Condition)>,
    /// Of its document.
    pub version: u64,
    pub written_at: i64,
    /// The last version that a hub acknowledged.
    pub acknowledged: u64,
    /// Raised by a crash and by new content: an older end of applying means nothing.
    pub epoch: u32,
    /// What failed once already, for failures that pass.
    pub tried: BTreeSet<(usize, Content)>,
}

/// What it asks with.
#[derive(Clone, Debug)]
pub struct Request {
    pub sequence: u64,
    pub stream: Option<usize>,
    pub generation: u64,
    pub version: u64,
    /// None: the hub has acknowledged it.
    pub document: Option<Vec<(Content, Condition)>>,
}

/// What it is answered.
#[derive(Clone, Debug)]
pub struct Answer {
    pub acknowledged: u64,
    /// Stream and sequence.
    pub membership: Option<(usize, u64)>,
    pub state: Option<Offer>,
}

#[derive(Clone, Debug)]
pub struct Offer {
    pub stream: usize,
    pub generation: u64,
    pub state: State,
}

impl Agent {
    pub fn request(&self) -> Request {
        Request {
            sequence: self.sequence,
            stream: self.stream,
            generation: self.generation(),
            version: self.version,
            document: (self.version > self.acknowledged).then(|| self.entries.clone()),
        }
    }

    pub fn generation(&self) -> u64 {
        self.stream.and_then(|stream| self.generations.get(&stream)).copied().unwrap_or_default()
    }

    /// Whether this may be believed; `signed` says whether a hub issued exactly that.
    pub fn believes(&self, offer: &Offer, signed: bool) -> bool {
        signed && self.stream == Some(offer.stream) && offer.generation > self.generation()
    }

    /// Takes a state over. Whether there is something to apply.
    pub fn accept(&mut self, offer: &Offer, now: i64) -> bool {
        self.generations.insert(offer.stream, offer.generation);
        let before = std::mem::take(&mut self.entries);
        self.entries = offer
            .state
            .iter()
            .enumerate()
            .map(|(place, content)| match before.get(place) {
                Some((old, condition)) if old == content => (*content, *condition),
                _ => (*content, Condition::Converging),
            })
            .collect();
        self.epoch += 1;
        self.write(now);
        self.is_changing()
    }

    pub fn is_changing(&self) -> bool {
        self.entries.iter().any(|(_, condition)| *condition == Condition::Converging)
    }

    pub fn write(&mut self, now: i64) {
        self.version += 1;
        self.written_at = now + self.clock;
    }
}
