//! Those who give: at most a few at once, what each said, how fast it is, and how long one that failed rests. Pure: times come in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::AbortHandle;
use kedge_model::wire::ClusterId;
use tokio::time::Instant;

use super::chunks::ChunkList;
use super::holder::Holder;
use super::piece::Piece;

/// A holder that takes part.
#[derive(Debug)]
pub struct Seat {
    pub holder: Arc<dyn Holder>,
    pub list: Said,
    pub work: Option<Work>,
    /// Bytes per second, of what it gave last.
    pub rate: Option<f64>,
}

/// Its list of chunks.
#[derive(Clone, Debug)]
pub enum Said {
    Nothing,
    Asked(Instant),
    List(Arc<ChunkList>),
}

#[derive(Debug)]
pub struct Work {
    pub piece: Piece,
    pub began: Instant,
    pub got: Arc<AtomicU64>,
    pub stop: AbortHandle,
}

#[derive(Debug, Default)]
pub struct Seats {
    pub taken: BTreeMap<ClusterId, Seat>,
    /// Those that misbehaved: not again for this blob.
    out: BTreeSet<ClusterId>,
    resting: BTreeMap<ClusterId, (u32, Instant)>,
}

/// Requests at a time: enough to fill a LAN, few enough for a small host's memory.
pub const AT_ONCE: usize = 4;
/// All who were asked have so long to say their list before the first is believed.
const GRACE: Duration = Duration::from_secs(2);
/// Doubles with each failure in a row.
const FIRST_REST: Duration = Duration::from_secs(1);
/// Whoever refuses is asked again so late, and so is one that failed often.
const LONGEST_REST: Duration = Duration::from_secs(60);
/// More holders than a site has; a bound for what is remembered of them.
const MAX_RESTING: usize = 256;
/// A chunk is taken over only from one that needs so many times as long for the rest as the other for all.
const WORTH: f64 = 2.0;
/// Its rate is a guess before.
const MEASURED_AFTER: Duration = Duration::from_secs(1);
/// One whose own rate nobody knows takes over what would last longer than this.
const LONG: f64 = 10.0;

impl Seats {
    /// Whether it may take part now.
    pub fn is_welcome(&self, who: &ClusterId, now: Instant) -> bool {
        let rests = self.resting.get(who).is_some_and(|(_, until)| *until > now);
        !self.taken.contains_key(who) && !self.out.contains(who) && !rests
    }

    pub fn seat(&mut self, holder: Arc<dyn Holder>) {
        self.taken.insert(holder.cluster(), Seat { holder, list: Said::Nothing, work: None, rate: None });
    }

    pub fn dismiss(&mut self, who: &ClusterId) {
        self.out.insert(*who);
        self.taken.remove(who);
    }

    /// It failed, or refuses.
    pub fn rest(&mut self, who: &ClusterId, refused: bool, now: Instant) {
        self.taken.remove(who);
        let failures = self.resting.get(who).map_or(0, |(failures, _)| *failures).saturating_add(1);
        let rest = match refused {
            true => LONGEST_REST,
            false => FIRST_REST.saturating_mul(1 << failures.min(6).saturating_sub(1)).min(LONGEST_REST),
        };
        if self.resting.len() >= MAX_RESTING {
            self.resting.retain(|_, (_, until)| *until > now);
        }
        if self.resting.len() < MAX_RESTING {
            self.resting.insert(*who, (failures, now + rest));
        } else {
            self.out.insert(*who);
        }
    }

    /// It gave a chunk: its failures are forgotten.
    pub fn gave(&mut self, who: &ClusterId, bytes: u64, took: Duration) {
        self.resting.remove(who);
        if let Some(seat) = self.taken.get_mut(who) {
            seat.measure(bytes, took);
        }
    }

    /// The list that most of those who are here gave, unless the one in use still has a giver. None while it is to be waited for.
    pub fn list(&self, current: Option<&Arc<ChunkList>>, now: Instant) -> Option<Arc<ChunkList>> {
        let said = || self.taken.values().filter_map(Seat::list);
        if let Some(current) = current
            && said().any(|list| list == current)
        {
            return Some(Arc::clone(current));
        }
        let soon = |seat: &Seat| matches!(seat.list, Said::Asked(at) if now.saturating_duration_since(at) < GRACE);
        if self.taken.values().any(soon) {
            return None;
        }
        said().max_by_key(|list| said().filter(|other| other == list).count()).cloned()
    }

    /// Whose piece this one should take over, if anybody's.
    pub fn slowest_for(&self, thief: &ClusterId, now: Instant, mine: impl Fn(&Piece) -> bool) -> Option<ClusterId> {
        let rate = self.taken.get(thief)?.rate;
        let left = |(who, seat): (&ClusterId, &Seat)| {
            let work = seat.work.as_ref().filter(|work| mine(&work.piece))?;
            let (length, left) = (work.length(), work.seconds_left(now)?);
            let worth = rate.map_or(LONG, |rate| WORTH * length / rate.max(1.0));
            (who != thief && left > worth).then_some((*who, left))
        };
        self.taken.iter().filter_map(left).max_by(|one, other| one.1.total_cmp(&other.1)).map(|(who, _)| who)
    }
}

impl Seat {
    pub fn list(&self) -> Option<&Arc<ChunkList>> {
        match &self.list {
            Said::List(list) => Some(list),
            Said::Nothing | Said::Asked(_) => None,
        }
    }

    pub fn measure(&mut self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(0.001);
        self.rate = Some(self.rate.map_or(rate, |before| (before + rate) / 2.0));
    }
}

impl Work {
    fn length(&self) -> f64 {
        (self.piece.range.end - self.piece.range.start) as f64
    }

    /// None: it is too early to tell.
    fn seconds_left(&self, now: Instant) -> Option<f64> {
        let spent = now.saturating_duration_since(self.began);
        let got = self.got.load(Ordering::Relaxed) as f64;
        // Without a byte it is as if the next came now.
        (spent >= MEASURED_AFTER).then(|| (self.length() - got) * spent.as_secs_f64() / got.max(1.0))
    }
}
