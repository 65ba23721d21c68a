//! What a pass changed, to be written in one transaction before anything is issued. Filled by `pass`.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::history::Entry;
use kedge_hub_types::permits::RingLimit;
use kedge_hub_types::rollout::change::Change;
use kedge_hub_types::rollout::running::{Place, Running, place};
use kedge_hub_types::rollout::{Difference, Known};
use kedge_hub_types::rollout::{NewKey, Pinned};
use kedge_model::wire::Timestamp;
use kedge_rollout::{Cause, Item, Lane, Phase, RingState, Rollout, RolloutId};

use super::compose::Composed;
use super::controller::{Parts, Rows};
use super::head::Head;
use super::told;
use crate::store::rollout::controller::{ComparedHead, Quarantine};
use crate::store::rollout::{BlockedRow, Waiting};
use crate::store::{StoreError, Term};

/// `None` in a map takes the row away.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// Values that changed.
    pub saved: BTreeSet<RolloutId>,
    /// New ones, whose items have no rows yet.
    new: BTreeSet<RolloutId>,
    dropped: Vec<(RolloutId, BTreeSet<Place>)>,
    pub before: Vec<(RolloutId, String, Place)>,
    /// Went back or were aborted.
    blocked: BTreeSet<RolloutId>,
    /// Lane, place, and which content; none: whatever it is.
    unblocked: BTreeSet<(String, Place, Option<String>)>,
    pub waiting: BTreeMap<String, Option<Waiting>>,
    pub words: Vec<(i64, Option<String>)>,
    pub sources: BTreeMap<Place, Option<Known>>,
    pub quarantines: BTreeMap<String, Option<Quarantine>>,
    pub compared: Option<ComparedHead>,
    keys: Vec<NewKey>,
    pinned: Pinned,
    pub limits: BTreeMap<String, Option<RingLimit>>,
    /// Rings in which a rollout goes back now.
    returned: BTreeSet<String>,
    pub news: Vec<Entry>,
}

impl Edits {
    /// Takes the next value of a rollout.
    pub fn put(&mut self, running: &mut Running, next: Rollout, now: Timestamp) {
        let states = |rollout: &Rollout| -> Vec<RingState> { rollout.rings.iter().map(|ring| ring.state).collect() };
        if states(&running.rollout) != states(&next) {
            running.issued = false;
        }
        if std::mem::discriminant(&running.rollout.phase) != std::mem::discriminant(&next.phase) {
            tracing::info!(rollout = %next.id, environment = next.environment, lane = %next.lane,
                phase = ?next.phase, "a rollout is elsewhere");
            if matches!(next.phase, Phase::RolledBack { .. } | Phase::Aborted { .. }) {
                self.blocked.insert(next.id);
            }
            if matches!(running.rollout.phase, Phase::Aborted { .. }) {
                // It goes on, or back: what it brought is blocked no more, or anew.
                let lane = next.lane.to_string();
                let freed = running.items().map(|(item, change)| (place(item), change.fingerprint()));
                self.unblocked.extend(freed.map(|(place, content)| (lane.clone(), place, Some(content))));
            }
        }
        for (before, after) in running.rollout.rings.iter().zip(&next.rings) {
            if before.state != after.state {
                tracing::info!(rollout = %next.id, environment = next.environment, ring = after.ring,
                    state = ?after.state, at = now.0, "a ring moves");
                if after.state == RingState::Returned {
                    self.returned.insert(after.ring.clone());
                }
            }
        }
        self.news.extend(told::moved(&running.rollout, &next, now));
        // One that went back is watched until its clusters have.
        running.watched = !matches!(next.phase, Phase::Superseded { .. });
        running.rollout = next;
        self.saved.insert(running.id());
    }

    /// Ends it from outside: newer content takes over.
    pub fn end(&mut self, running: &mut Running, phase: Phase, now: Timestamp) {
        tracing::info!(rollout = %running.id(), environment = running.rollout.environment, ?phase, "a rollout ends");
        running.rollout.phase = phase;
        self.news.push(told::phase(&running.rollout, now));
        running.watched = false;
        self.saved.insert(running.id());
    }

    pub fn take_out(&mut self, running: &mut Running, places: BTreeSet<Place>) {
        running.take_out(&places);
        self.saved.insert(running.id());
        self.dropped.push((running.id(), places));
    }

    pub fn begun(&mut self, new: &Running) {
        self.saved.insert(new.id());
        self.new.insert(new.id());
        self.news.push(told::begun(&new.rollout));
        let lane = new.rollout.lane.to_string();
        for item in new.rollout.items.iter() {
            self.unblocked.insert((lane.clone(), place(item), None));
        }
        for (ring, places) in &new.before {
            self.before.extend(places.keys().map(|place| (new.id(), ring.clone(), place.clone())));
        }
    }

    /// What the head doesn't ask for any more can't be blocked. `aborted`: what rings keep of these, so that it is no difference.
    pub fn forget_blocked(
        &mut self,
        blocked: &[BlockedRow],
        differences: &BTreeMap<Lane, Vec<Difference>>,
        head: &Head,
        aborted: &BTreeSet<RolloutId>,
    ) {
        for row in blocked {
            let lane = differences.iter().find(|(lane, _)| lane.to_string() == row.lane);
            let asked =
                lane.is_some_and(|(_, differences)| differences.iter().any(|difference| row.blocks(difference)));
            let kept = || aborted.contains(&row.rollout) && head.asks_for(row);
            if !asked && !kept() {
                self.unblocked.insert((row.lane.clone(), row.place(), Some(row.fingerprint.clone())));
            }
        }
    }

    /// What a word of this pass took back.
    pub fn newly_blocked(&self, rows: &Rows) -> Vec<BlockedRow> {
        let of = |running: &Running| -> Vec<BlockedRow> {
            let lane = running.rollout.lane.to_string();
            let row = |(item, change): (&Item, &Change)| BlockedRow {
                lane: lane.clone(),
                cluster_type: item.cluster_type.clone(),
                assignment: item.assignment.clone(),
                workload: item.workload.clone(),
                fingerprint: change.fingerprint(),
                rollout: running.id(),
            };
            running.items().map(row).collect()
        };
        self.blocked.iter().filter_map(|id| rows.running.get(id)).flat_map(of).collect()
    }

    pub fn no_longer_waiting(&mut self, rows: &mut Rows, lane: &Lane) {
        let lane = lane.to_string();
        if rows.waiting.remove(&lane).is_some() {
            self.waiting.insert(lane, None);
        }
    }

    /// The newest waits; the one that waited before it is skipped.
    pub fn wait(&mut self, rows: &mut Rows, lane: &Lane, mut waiting: Waiting) {
        let lane = lane.to_string();
        if let Some(before) = rows.waiting.get(&lane) {
            if before.fingerprint == waiting.fingerprint && before.behind == waiting.behind {
                return;
            }
            waiting.skipped.clone_from(&before.skipped);
            waiting.since = before.since;
            match before.fingerprint == waiting.fingerprint {
                true => waiting.cause = before.cause.clone(),
                false => waiting.skipped.insert(0, before.cause.clone()),
            }
        }
        self.waiting.insert(lane.clone(), Some(waiting.clone()));
        rows.waiting.insert(lane, waiting);
    }

    /// What waited for the place that a new rollout has now.
    pub fn takes_over(&mut self, rows: &mut Rows, lane: &Lane, cause: &Cause) -> Vec<Cause> {
        let Some(waiting) = rows.waiting.remove(&lane.to_string()) else { return Vec::new() };
        self.waiting.insert(lane.to_string(), None);
        let mut skipped = waiting.skipped;
        if waiting.cause.commit != cause.commit {
            skipped.insert(0, waiting.cause);
        }
        skipped
    }

    /// New names of packages, and what is below pins.
    pub fn learn(&mut self, rows: &mut Rows, composed: &Composed) {
        for new in &composed.keys {
            if let Some(running) = rows.running.get_mut(&new.rollout) {
                let places = running.keys.entry(new.ring.clone()).or_default();
                places.entry(new.place.clone()).or_default().insert(new.key);
            }
        }
        self.keys.clone_from(&composed.keys);
        for (stream, below) in &composed.pinned {
            for (assignment, held) in below {
                let before = rows.pinned.get(stream).and_then(|before| before.get(assignment));
                if before != Some(held) {
                    self.pinned.entry(stream.clone()).or_default().insert(assignment.clone(), held.clone());
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.saved.is_empty()
            && self.dropped.is_empty()
            && self.before.is_empty()
            && self.unblocked.is_empty()
            && self.waiting.is_empty()
            && self.words.is_empty()
            && self.sources.is_empty()
            && self.quarantines.is_empty()
            && self.compared.is_none()
            && self.keys.is_empty()
            && self.pinned.is_empty()
            && self.limits.is_empty()
            && self.returned.is_empty()
            && self.news.is_empty()
    }

    pub async fn save(
        &self,
        parts: &Parts,
        term: Term,
        environment: &str,
        rows: &Rows,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if self.is_empty() {
            return Ok(());
        }
        let mut tx = parts.store.write_as(term).await?;
        let tick = tx.tick().await?;
        for (lane, place, fingerprint) in &self.unblocked {
            tx.unblock_place(environment, lane, place, fingerprint.as_deref()).await?;
        }
        for (id, places) in &self.dropped {
            tx.drop_rollout_items(*id, places).await?;
        }
        for running in self.saved.iter().filter_map(|id| rows.running.get(id)) {
            tx.put_rollout(running, now, tick).await?;
            if self.new.contains(&running.id()) {
                tx.put_rollout_items(running).await?;
            }
            if self.blocked.contains(&running.id()) {
                tx.block(running).await?;
            }
        }
        for (id, ring, place) in &self.before {
            let held = rows.running.get(id).and_then(|running| running.held_before(ring, place));
            if let Some(held) = held {
                tx.put_before(*id, ring, place, held).await?;
            }
        }
        for (lane, waiting) in &self.waiting {
            tx.put_waiting(environment, lane, waiting.as_ref()).await?;
        }
        for (word, refused) in &self.words {
            tx.take_word(*word, now, refused.as_deref()).await?;
        }
        for (place, known) in &self.sources {
            match known {
                Some(known) => tx.put_source(environment, place, known).await?,
                None => tx.drop_source(environment, place).await?,
            }
        }
        for (assignment, quarantine) in &self.quarantines {
            tx.put_quarantine(environment, assignment, quarantine.as_ref()).await?;
        }
        if let Some(compared) = &self.compared {
            tx.put_compared(environment, compared, now).await?;
        }
        for key in &self.keys {
            tx.put_key(key).await?;
        }
        for (stream, below) in &self.pinned {
            for (assignment, held) in below {
                tx.put_pinned(stream, assignment, Some(held)).await?;
            }
        }
        for (ring, limit) in &self.limits {
            tx.put_limit(environment, ring, limit.as_ref(), tick).await?;
        }
        for ring in &self.returned {
            tx.mark_returned(environment, ring, tick).await?;
        }
        tx.record(self.news.clone()).await?;
        tx.commit().await
    }

    /// After issuing: nothing lags any more, and what pins that ended had covered is in force again.
    pub async fn conclude(&self, parts: &Parts, term: Term, rows: &mut Rows, pinned: Pinned) -> Result<(), StoreError> {
        let lagging: Vec<RolloutId> =
            rows.running.values().filter(|running| !running.issued).map(Running::id).collect();
        let mut unpinned = Vec::new();
        for (stream, below) in &rows.pinned {
            let still = pinned.get(stream);
            let ended = below.keys().filter(|name| !still.is_some_and(|still| still.contains_key(*name)));
            unpinned.extend(ended.map(|name| (stream.clone(), name.clone())));
        }
        if !lagging.is_empty() || !unpinned.is_empty() {
            let mut tx = parts.store.write_as(term).await?;
            tx.mark_issued(&lagging).await?;
            for (stream, assignment) in &unpinned {
                tx.put_pinned(stream, assignment, None).await?;
            }
            tx.commit().await?;
        }
        rows.pinned = pinned;
        for running in rows.running.values_mut() {
            running.issued = true;
        }
        rows.running.retain(|_, running| running.watched || running.is_unfinished());
        Ok(())
    }
}
