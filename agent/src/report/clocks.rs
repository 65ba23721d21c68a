//! The clocks that told the document's times. A host's clock may be wrong, be set, or begin at 1970 with each start; so each gets
//! a number, and a contact with the hub tells how wrong it is. What older clocks told is corrected along how one led to the next.

use std::collections::BTreeSet;
use std::time::Duration;

use kedge_model::wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

/// All clocks that still matter, oldest first; the last one is the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Clocks {
    list: Vec<HostClock>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct HostClock {
    /// As reports name it: 1 is the first. 0 is the hub's own.
    number: u64,
    /// The host's start that it belongs to.
    boot: Option<String>,
    /// What it said when the host started, in milliseconds: changes when somebody sets it.
    anchor: Option<i64>,
    /// The latest time that it was seen to say.
    last: Timestamp,
    /// Milliseconds to add for the hub's time.
    offset: Option<i64>,
    /// How its successor's times differ from its own.
    next: Option<Step>,
}

/// From one clock to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Step {
    /// Milliseconds to add to a time of the one for a time of the next.
    shift: i64,
    /// Whether what is learnt of the next is true of this one too.
    binds: bool,
}

/// What the host's clocks say at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub now: Timestamp,
    pub uptime: Option<Duration>,
    pub boot: Option<String>,
}

/// Differences below aren't told: clocks that follow a time server move by less, and a register is no heartbeat.
const TOLERANCE_MS: u64 = 2_000;
/// 2025: no agent was built before, so that no clock that says less is right.
const FIRST_AGENT: Timestamp = Timestamp(1_735_689_600_000);
/// A host that started so often since its last epoch forgets the clocks that told nothing.
const MANY: usize = 64;
/// The newest are kept though they told nothing: the chain of corrections goes over them.
const NEWEST: usize = 8;

impl Reading {
    pub fn of(clock: &dyn Clock) -> Reading {
        Reading { now: clock.now(), uptime: clock.uptime(), boot: clock.boot() }
    }

    fn anchor(&self) -> Option<i64> {
        let uptime = i64::try_from(self.uptime?.as_millis()).ok()?;
        Some(self.now.0.saturating_sub(uptime))
    }
}

impl Clocks {
    /// A process begins: its clock is a new one unless it is known to be the last one's.
    pub fn begin(&mut self, reading: &Reading) {
        let Some(last) = self.list.last() else { return self.push(reading, None) };
        let same = last.boot.is_some() && last.boot == reading.boot;
        match (last.anchor, reading.anchor()) {
            (Some(was), Some(is)) if same && is_near(was, is) => self.see(reading.now),
            (Some(was), Some(is)) if same => {
                self.push(reading, Some(Step { shift: is.saturating_sub(was), binds: true }))
            }
            _ => self.push(reading, Some(guess(last.last, reading.now))),
        }
    }

    /// Whether somebody set the clock since the last look: by how many milliseconds. Then a new clock is the current one.
    pub fn notice(&mut self, reading: &Reading) -> Option<i64> {
        let Some(last) = self.list.last() else {
            self.push(reading, None);
            return None;
        };
        let shift = match (last.anchor, reading.anchor()) {
            (Some(was), Some(is)) if is_near(was, is) => 0,
            (Some(was), Some(is)) => is.saturating_sub(was),
            // Only a step back is seen without a clock that can't be set.
            _ if reading.now.0.saturating_add_unsigned(TOLERANCE_MS) < last.last.0 => reading.now.0 - last.last.0,
            _ => 0,
        };
        if shift == 0 {
            self.see(reading.now);
            return None;
        }
        let reading = Reading { boot: last.boot.clone(), ..reading.clone() };
        self.push(&reading, Some(Step { shift, binds: true }));
        Some(shift)
    }

    /// The hub told its time. Answers whether something is known now that wasn't.
    pub fn contact(&mut self, hub: Timestamp, now: Timestamp) -> bool {
        let Some((current, older)) = self.list.split_last_mut() else { return false };
        let offset = hub.0.saturating_sub(now.0);
        if current.offset.is_some_and(|known| is_near(known, offset)) {
            return false;
        }
        current.offset = Some(offset);
        let mut following = Some(offset);
        for clock in older.iter_mut().rev() {
            let bound = clock.next.filter(|next| next.binds);
            let derived = following.zip(bound).map(|(offset, next)| offset.saturating_add(next.shift));
            clock.offset = clock.offset.or(derived);
            following = clock.offset;
        }
        true
    }

    /// The number that reports name now.
    pub fn current(&self) -> u64 {
        self.list.last().map_or(0, |clock| clock.number)
    }

    /// Of the current clock, where a contact told it.
    pub fn offset(&self) -> Option<i64> {
        self.list.last()?.offset
    }

    /// Offsets that are known and that a document should say, given what it says. The current clock's always.
    pub fn news(&self, used: &BTreeSet<u64>, said: impl Fn(u64) -> Option<i64>) -> Vec<(u64, i64)> {
        let told = |clock: &HostClock| Some((clock.number, clock.offset?));
        let wanted = |(number, offset): &(u64, i64)| {
            (used.contains(number) || *number == self.current())
                && !said(*number).is_some_and(|before| is_near(before, *offset))
        };
        self.list.iter().filter_map(told).filter(wanted).collect()
    }

    /// A time of one of the clocks, as the current one would say it.
    pub fn here(&self, clock: u64, at: Timestamp) -> Timestamp {
        let Some(from) = self.list.iter().position(|known| known.number == clock) else { return at };
        let shift = match (self.list[from].offset, self.offset()) {
            (Some(was), Some(is)) => was.saturating_sub(is),
            _ => self.list[from..]
                .iter()
                .filter_map(|clock| clock.next)
                .fold(0, |sum, next| next.shift.saturating_add(sum)),
        };
        Timestamp(at.0.saturating_add(shift))
    }

    /// Forgets old clocks that told nothing of what is still said.
    pub fn tidy(&mut self, used: &BTreeSet<u64>) {
        if self.list.len() <= MANY {
            return;
        }
        let mut kept: Vec<HostClock> = Vec::new();
        let newest = self.list.len() - NEWEST;
        for (index, clock) in std::mem::take(&mut self.list).into_iter().enumerate() {
            if index >= newest || used.contains(&clock.number) {
                kept.push(clock);
            } else if let Some(before) = kept.last_mut() {
                before.skip(&clock);
            }
        }
        self.list = kept;
    }

    fn see(&mut self, now: Timestamp) {
        if let Some(last) = self.list.last_mut() {
            last.last = last.last.max(now);
        }
    }

    fn push(&mut self, reading: &Reading, step: Option<Step>) {
        let mut offset = None;
        if let (Some(last), Some(step)) = (self.list.last_mut(), step) {
            last.next = Some(step);
            // Within one start of the host the step is exact, so that what was known stays known.
            let exact = last.boot.is_some() && last.boot == reading.boot && last.anchor.is_some();
            offset = last.offset.filter(|_| exact).map(|offset| offset.saturating_sub(step.shift));
        }
        let (number, anchor) = (self.current() + 1, reading.anchor());
        let clock = HostClock { number, boot: reading.boot.clone(), anchor, last: reading.now, offset, next: None };
        self.list.push(clock);
    }
}

impl HostClock {
    /// The next clock is forgotten: its way on becomes part of this one's.
    fn skip(&mut self, forgotten: &HostClock) {
        let Some(step) = self.next else { return };
        let derived = forgotten.offset.filter(|_| step.binds).map(|offset| offset.saturating_add(step.shift));
        self.offset = self.offset.or(derived);
        self.next = forgotten
            .next
            .map(|next| Step { shift: step.shift.saturating_add(next.shift), binds: step.binds && next.binds });
    }
}

/// Over a start of the host, nobody knows how long it was off. A clock that runs on is taken for the same one. One that went back,
/// or that was at 1970, ends where the next begins; that says nothing of a right clock whose battery died.
fn guess(last: Timestamp, first: Timestamp) -> Step {
    let (was_possible, is_possible) = (last >= FIRST_AGENT, first >= FIRST_AGENT);
    if was_possible && is_possible && last <= first {
        return Step { shift: 0, binds: true };
    }
    Step { shift: first.0.saturating_sub(last.0), binds: !was_possible || is_possible }
}

fn is_near(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= TOLERANCE_MS
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops where it fails")]

    use super::*;
    use proptest::prelude::*;

    const HOUR: i64 = 3_600_000;
    const NOON: i64 = 1_790_000_000_000;

    fn reading(now: i64, uptime: i64, boot: &str) -> Reading {
        let uptime = Some(Duration::from_millis(uptime.try_into().unwrap()));
        Reading { now: Timestamp(now), uptime, boot: Some(boot.to_owned()) }
    }

    fn none(_: u64) -> Option<i64> {
        None
    }

    fn begun(now: i64) -> Clocks {
        let mut clocks = Clocks::default();
        clocks.begin(&reading(now, 1_000, "one"));
        clocks
    }

    #[test]
    fn a_process_that_starts_again_has_the_same_clock() {
        let mut clocks = begun(NOON);
        clocks.begin(&reading(NOON + HOUR, 1_000 + HOUR, "one"));
        assert_eq!(clocks.current(), 1);
        clocks.begin(&reading(NOON + 2 * HOUR, 1_000, "two"));
        assert_eq!(clocks.current(), 2);
    }

    #[test]
    fn a_clock_at_1970_is_corrected_at_contact_also_over_starts() {
        let mut clocks = begun(60_000);
        clocks.notice(&reading(600_000, 541_000, "one"));
        clocks.begin(&reading(30_000, 1_000, "two"));
        assert!(clocks.contact(Timestamp(NOON), Timestamp(90_000)));
        let used = BTreeSet::from([1, 2]);
        let news = clocks.news(&used, none);
        assert_eq!(news[1], (2, NOON - 90_000));
        // The last word of the first clock was when the second began: a minute before the contact.
        assert_eq!(600_000 + news[0].1, NOON - 60_000);
        assert_eq!(clocks.here(1, Timestamp(600_000)), Timestamp(30_000));
    }

    #[test]
    fn a_right_clock_is_not_corrected_because_the_battery_died_later() {
        let mut clocks = begun(NOON);
        clocks.begin(&reading(5_000, 1_000, "two"));
        clocks.contact(Timestamp(NOON + 72 * HOUR), Timestamp(6_000));
        assert_eq!(clocks.news(&BTreeSet::from([1, 2]), none), [(2, NOON + 72 * HOUR - 6_000)]);
    }

    #[test]
    fn a_weekend_off_does_not_move_what_a_right_clock_told() {
        let mut clocks = begun(NOON);
        clocks.begin(&reading(NOON + 60 * HOUR, 1_000, "two"));
        clocks.contact(Timestamp(NOON + 61 * HOUR), Timestamp(NOON + 61 * HOUR));
        assert_eq!(clocks.news(&BTreeSet::from([1, 2]), none), [(1, 0), (2, 0)]);
    }

    #[test]
    fn six_hours_off_each_way_are_told_once() {
        for wrong in [-6 * HOUR, 6 * HOUR] {
            let mut clocks = begun(NOON + wrong);
            assert!(clocks.contact(Timestamp(NOON + 1_500), Timestamp(NOON + wrong)));
            assert!(!clocks.contact(Timestamp(NOON + HOUR), Timestamp(NOON + HOUR + wrong)));
            assert_eq!(clocks.news(&BTreeSet::new(), none), [(1, 1_500 - wrong)]);
            assert!(clocks.news(&BTreeSet::new(), |_| Some(-wrong)).is_empty());
        }
    }

    #[test]
    fn a_clock_that_is_set_becomes_another_and_both_are_corrected_exactly() {
        let mut clocks = begun(NOON - 6 * HOUR);
        assert_eq!(clocks.notice(&reading(NOON - 5 * HOUR, 1_000 + HOUR, "one")), None);
        assert_eq!(clocks.notice(&reading(NOON + 2 * HOUR, 1_000 + 2 * HOUR, "one")), Some(6 * HOUR));
        assert_eq!(clocks.current(), 2);
        assert_eq!(clocks.here(1, Timestamp(NOON - 5 * HOUR)), Timestamp(NOON + HOUR));
        clocks.contact(Timestamp(NOON + 2 * HOUR), Timestamp(NOON + 2 * HOUR));
        assert_eq!(clocks.news(&BTreeSet::from([1]), none), [(1, 6 * HOUR), (2, 0)]);
        // Set back: what is known goes with it.
        assert_eq!(clocks.notice(&reading(NOON + 2 * HOUR, 1_000 + 3 * HOUR, "one")), Some(-HOUR));
        assert_eq!(clocks.offset(), Some(HOUR));
    }

    #[test]
    fn a_host_that_starts_every_day_forgets_clocks_that_told_nothing() {
        let mut clocks = begun(NOON);
        for day in 1..400 {
            clocks.begin(&reading(NOON + day * 24 * HOUR, 1_000, &day.to_string()));
            clocks.tidy(&BTreeSet::from([3]));
        }
        assert!(clocks.list.len() <= MANY + 1);
        assert_eq!((clocks.list[0].number, clocks.current()), (3, 400));
        clocks.contact(Timestamp(NOON), Timestamp(NOON + HOUR));
        assert_eq!(clocks.news(&BTreeSet::from([3]), none), [(3, -HOUR), (400, -HOUR)]);
    }

    proptest! {
        #[test]
        fn any_readings_keep_the_list_short_and_the_numbers_growing(
            readings in prop::collection::vec((any::<i64>(), any::<u32>(), 0..3_u8, any::<i64>()), 1..300),
        ) {
            let mut clocks = Clocks::default();
            let mut before = 0;
            for (now, uptime, boot, hub) in readings {
                let reading = reading(now, i64::from(uptime), &boot.to_string());
                clocks.begin(&reading);
                clocks.notice(&Reading { now: Timestamp(hub), ..reading });
                clocks.contact(Timestamp(hub), Timestamp(now));
                clocks.tidy(&BTreeSet::new());
                prop_assert!(clocks.current() >= before && clocks.list.len() <= MANY + 2);
                before = clocks.current();
                _ = clocks.here(before, Timestamp(now));
                let text = serde_json::to_string(&clocks).unwrap();
                prop_assert_eq!(serde_json::from_str::<Clocks>(&text).unwrap(), clocks.clone());
            }
        }
    }
}
