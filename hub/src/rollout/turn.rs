//! One pass over an environment: words, candidates, facts, `advance`, what each stream should hold; saved in one transaction
//! under the term, then issued. A hub that dies in between finds the saved value and issues it in the next pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::{Cause, Lane, Phase, Rollout, RolloutId, advance, hear};

use super::candidate::{self, Comparison, Decision, Difference, Known};
use super::change::Held;
use super::compose::{self, Composed};
use super::desk::{Desk, Passed, Rows};
use super::edits::Edits;
use super::facts::{self, Truth};
use super::head::Head;
use super::limits::limits;
use super::running::{Place, Running, place};
use super::words;
use crate::pack::{PackedEntry, PackedType};
use crate::state::{IssueError, Wanted};
use crate::store::rollout::desk::{ComparedHead, Quarantine};
use crate::store::rollout::{BlockedRow, Waiting};
use crate::store::{StoreError, Term};

pub(super) struct Turn<'a> {
    pub desk: &'a Desk,
    pub term: Term,
    pub environment: &'a str,
    pub policy: &'a Arc<EnvironmentPolicy>,
    pub head: Option<&'a Head>,
    /// The head hasn't been compared yet.
    pub fresh: bool,
}

/// More steps than any rollout takes at once.
const STEPS: usize = 256;
/// A failure that comes later than this is about something else.
const LATE: i64 = 30 * 24 * 3600 * 1000;

impl Turn<'_> {
    pub async fn run(&self, rows: &mut Rows) -> Result<Passed, IssueError> {
        let parts = &self.desk.parts;
        let now = (parts.clock)();
        let rings: Vec<String> = self.policy.rings.iter().map(|ring| ring.name.clone()).collect();
        let mut edits = Edits::default();
        let held = parts.issuer.held(self.term, self.environment).await?;
        self.listen(rows, &mut edits, now).await?;
        let present = self.compose(rows, &held, &rings, now);
        if let Some(head) = self.head {
            self.propose(rows, &mut edits, head, &present, &rings, now).await?;
        }
        let truth = self.look(rows, &held).await?;
        self.advance(rows, &mut edits, &truth, &held, &present, now);
        let composed = self.compose(rows, &held, &rings, now);
        self.limit(rows, &mut edits, &truth, now);
        edits.learn(rows, &composed);
        edits.save(parts, self.term, self.environment, rows, now).await?;
        let wanted = Wanted {
            environment: self.environment.to_owned(),
            source: self.head.map(|head| head.source.clone()),
            streams: composed.streams,
        };
        let issued = parts.issuer.issue_streams(self.term, wanted).await?;
        edits.conclude(parts, self.term, rows, composed.pinned).await?;
        let unfinished = rows.running.values().any(Running::is_unfinished)
            || !rows.waiting.is_empty()
            || self.head.is_some_and(|head| head.has_deadline(now));
        Ok(Passed { issued, moved: edits.saved, unfinished })
    }

    fn compose(
        &self,
        rows: &Rows,
        held: &BTreeMap<Stream, Arc<PackedType>>,
        rings: &[String],
        now: Timestamp,
    ) -> Composed {
        let rollouts: Vec<&Running> = rows.running.values().collect();
        compose::compose(&compose::Inputs {
            environment: self.environment,
            rings,
            held,
            head: self.head,
            rollouts: &rollouts,
            pinned: &rows.pinned,
            now,
        })
    }

    /// Takes what people said.
    async fn listen(&self, rows: &mut Rows, edits: &mut Edits, now: Timestamp) -> Result<(), StoreError> {
        let store = &self.desk.parts.store;
        for said in store.words_of(self.environment).await? {
            if let std::collections::btree_map::Entry::Vacant(vacant) = rows.running.entry(said.rollout) {
                match store.running_rollout(said.rollout).await? {
                    Some(running) => {
                        vacant.insert(running);
                    }
                    None => {
                        edits.words.push((said.id, Some("there is no such rollout".to_owned())));
                        continue;
                    }
                }
            }
            let Some(running) = rows.running.get_mut(&said.rollout) else { continue };
            let refused = words::obstacle(store, &running.rollout, &said.word.say).await?;
            let heard = match refused {
                Some(refused) => Err(refused),
                None => hear(&running.rollout, said.word.clone()),
            };
            match heard {
                Ok(next) => {
                    tracing::info!(rollout = %said.rollout, who = said.word.who, say = ?said.word.say, "a person's word");
                    edits.words.push((said.id, None));
                    edits.put(running, next, now);
                }
                Err(refused) => edits.words.push((said.id, Some(refused.message))),
            }
        }
        Ok(())
    }

    /// Compares the head with the rings and begins what may begin.
    async fn propose(
        &self,
        rows: &mut Rows,
        edits: &mut Edits,
        head: &Head,
        present: &Composed,
        rings: &[String],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let adopts = rows.compared.is_none();
        if self.fresh {
            quarantine(rows, edits, head, adopts, now);
        }
        let whole: BTreeSet<Place> = rows
            .running
            .values()
            .filter(|running| running.is_unfinished() && running.rollout.lane == Lane::Platform)
            .flat_map(Running::items)
            .filter(|(_, change)| change.platform.is_some() && change.workload.is_some())
            .map(|(item, _)| place(item))
            .collect();
        let unpinned = unpinned(present);
        let asked = Comparison {
            environment: self.environment,
            rings,
            held: &unpinned,
            head,
            known: &rows.known,
            adopts,
            whole: &whole,
        };
        let mut differences = candidate::differences(&asked);
        let blocked = self.desk.parts.store.rollouts_blocked(self.environment).await?;
        edits.forget_blocked(&blocked, &differences);
        let blocked: Vec<BlockedRow> = blocked.into_iter().chain(edits.newly_blocked(rows)).collect();
        // Lanes with nothing to ask may still hold something that the head took back.
        for running in rows.running.values().filter(|running| running.is_unfinished()) {
            differences.entry(running.rollout.lane.clone()).or_default();
        }
        for lane in rows.waiting.keys().filter(|lane| !differences.keys().any(|known| known.to_string() == **lane)) {
            edits.waiting.insert(lane.clone(), None);
        }
        let (mut waits, mut begun) = (BTreeSet::new(), false);
        for (lane, differences) in &differences {
            let unfinished: Vec<&Running> =
                rows.running.values().filter(|running| running.is_unfinished()).collect();
            let is_blocked = |difference: &Difference| is_blocked(&blocked, lane, difference);
            waits.extend(differences.iter().filter(|one| is_blocked(one)).map(|one| place(&one.item)));
            match candidate::decide(lane, differences, &unfinished, head, is_blocked) {
                Decision::Nothing => edits.no_longer_waiting(rows, lane),
                Decision::Drop(dropped) => {
                    edits.no_longer_waiting(rows, lane);
                    for (id, places) in dropped {
                        if let Some(running) = rows.running.get_mut(&id) {
                            edits.take_out(running, places);
                            if running.rollout.items.is_empty() {
                                let by = "the head, which no longer asks for it".to_owned();
                                edits.end(running, Phase::Aborted { by, at: now });
                            }
                        }
                    }
                }
                Decision::Wait { behind, fingerprint } => {
                    waits.extend(differences.iter().map(|one| place(&one.item)));
                    let cause = self.cause(lane, differences, head);
                    edits.wait(rows, lane, Waiting { cause, fingerprint, skipped: Vec::new(), behind, since: now });
                }
                Decision::Begin { differences, supersedes } => {
                    begun = true;
                    self.begin(rows, edits, lane, differences, &supersedes, head, now).await?;
                }
            }
        }
        if self.fresh || begun {
            learn_sources(rows, edits, head, &waits);
        }
        let compared = ComparedHead { commit: head.source.commit.clone(), main: head.main.clone().unwrap_or_default() };
        if rows.compared.as_ref() != Some(&compared) {
            edits.compared = Some(compared.clone());
            rows.compared = Some(compared);
        }
        Ok(())
    }

    async fn begin(
        &self,
        rows: &mut Rows,
        edits: &mut Edits,
        lane: &Lane,
        differences: Vec<Difference>,
        supersedes: &[RolloutId],
        head: &Head,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let id = self.desk.next_number(self.term).await?;
        let cause = self.cause(lane, &differences, head);
        let (items, changes): (Vec<_>, Vec<_>) =
            differences.into_iter().map(|difference| (difference.item, difference.change)).unzip();
        let rollout =
            Rollout::new(id, self.environment, lane.clone(), cause, Arc::clone(self.policy), items.into(), now);
        let mut new = Running::new(rollout, changes);
        for old in supersedes {
            if let Some(old) = rows.running.get_mut(old) {
                inherit(&mut new, old);
                edits.end(old, Phase::Superseded { by: id, at: now });
            }
        }
        // No two hold the same part of an assignment: the newer one has it.
        for old in rows.running.values_mut() {
            let shared = shared(&new, old);
            if shared.is_empty() {
                continue;
            }
            if old.is_unfinished() {
                inherit(&mut new, old);
                edits.take_out(old, shared);
                if old.rollout.items.is_empty() {
                    edits.end(old, Phase::Superseded { by: id, at: now });
                }
            } else if old.watched && old.rollout.lane == new.rollout.lane {
                old.watched = false;
                edits.saved.insert(old.id());
            }
        }
        new.skipped = edits.takes_over(rows, lane, &new.rollout.cause);
        tracing::info!(rollout = %id, environment = self.environment, %lane, items = new.rollout.items.len(),
            commit = new.rollout.cause.commit, "a rollout begins");
        edits.begun(&new);
        rows.running.insert(id, new);
        Ok(())
    }

    fn cause(&self, lane: &Lane, differences: &[Difference], head: &Head) -> Cause {
        let Lane::Source { repo, .. } = lane else {
            return Cause {
                commit: head.source.commit.clone(),
                main: head.main.clone(),
                subject: head.subject.clone(),
                author: head.author.clone(),
            };
        };
        let commit = differences
            .iter()
            .find_map(|difference| Some(difference.change.workload.as_ref()?.package.commit.clone()))
            .unwrap_or_default();
        let (subject, author) = self.desk.parts.describe.describe(repo, &commit).unwrap_or_default();
        Cause { commit, main: None, subject, author }
    }

    async fn look(&self, rows: &Rows, held: &BTreeMap<Stream, Arc<PackedType>>) -> Result<Truth, StoreError> {
        let watched = rows.running.values().filter(|running| running.watched);
        let keys = facts::asked(watched, held, &rows.pinned);
        let store = &self.desk.parts.store;
        if rows.running.values().all(|running| !running.watched) {
            return Ok(Truth::default());
        }
        let members = store.population(self.environment).await?;
        Ok(Truth::new(store.reported(self.environment, &keys).await?, &members))
    }

    fn advance(
        &self,
        rows: &mut Rows,
        edits: &mut Edits,
        truth: &Truth,
        held: &BTreeMap<Stream, Arc<PackedType>>,
        present: &Composed,
        now: Timestamp,
    ) {
        let Rows { running, quarantines, pinned, .. } = rows;
        for running in running.values_mut().filter(|running| running.watched) {
            let quarantined = quarantined(quarantines, &running.rollout);
            let checks = self.desk.parts.shared.checks.of(running.id());
            let facts = facts::facts(running, truth, held, pinned, checks, quarantined);
            let mut next: Option<Rollout> = None;
            for _ in 0..STEPS {
                match advance(next.as_ref().unwrap_or(&running.rollout), &facts, now) {
                    Some(further) => next = Some(further),
                    None => break,
                }
            }
            if let Some(next) = next {
                edits.put(running, next, now);
            }
            remember(running, edits, present);
            let is_old = matches!(running.rollout.phase, Phase::Complete { at } if at.0 + LATE < now.0);
            if is_old {
                running.watched = false;
                edits.saved.insert(running.id());
            }
        }
        // A word may have taken an ended one up again.
        for running in running.values_mut().filter(|running| !running.watched) {
            remember(running, edits, present);
        }
    }

    fn limit(&self, rows: &mut Rows, edits: &mut Edits, truth: &Truth, now: Timestamp) {
        let watched: Vec<&Running> = rows.running.values().filter(|running| running.watched).collect();
        let next = limits(self.policy, &watched, |ring| truth.members_of(ring), now);
        for (ring, limit) in &next {
            if rows.limits.get(ring) != Some(limit) {
                edits.limits.insert(ring.clone(), Some(*limit));
            }
        }
        for ring in rows.limits.keys().filter(|ring| !next.contains_key(*ring)) {
            edits.limits.insert(ring.clone(), None);
        }
        rows.limits = next;
    }
}

/// What the streams would hold without pins.
fn unpinned(present: &Composed) -> BTreeMap<Stream, Arc<PackedType>> {
    let mut streams = present.streams.clone();
    for (stream, below) in &present.pinned {
        let Some(entries) = streams.get_mut(stream) else { continue };
        let entries = Arc::make_mut(entries);
        for (assignment, held) in below {
            match held {
                Held::Absent => entries.remove(assignment),
                Held::Apply(packages) => entries.insert(assignment.clone(), PackedEntry::Apply(Arc::clone(packages))),
                Held::Observe(seen) => entries.insert(assignment.clone(), PackedEntry::Observe(Arc::clone(seen))),
            };
        }
    }
    streams
}

/// Writes down what rings that begin held until now, unless the way back is known already.
fn remember(running: &mut Running, edits: &mut Edits, present: &Composed) {
    let environment = running.rollout.environment.clone();
    let begun: Vec<String> = running
        .rollout
        .rings
        .iter()
        .filter(|progress| progress.state.is_new())
        .map(|progress| progress.ring.clone())
        .collect();
    for ring in begun {
        for item in running.rollout.items.iter() {
            let place = place(item);
            let known = running.before.entry(ring.clone()).or_default();
            if known.contains_key(&place) {
                continue;
            }
            let stream = Stream::new(&environment, &item.cluster_type, &ring);
            let below = present.pinned.get(&stream).and_then(|below| below.get(&item.assignment)).cloned();
            let entry = present.streams.get(&stream).and_then(|entries| entries.get(&item.assignment));
            let held = below.unwrap_or_else(|| Held::of(entry));
            known.insert(place.clone(), held);
            edits.before.push((running.rollout.id, ring.clone(), place));
        }
    }
}

/// The way back of a rollout that takes over from one which hadn't passed yet leads past that one.
fn inherit(new: &mut Running, old: &Running) {
    for progress in old.rollout.rings.iter() {
        let unproven = progress.state.is_new() && progress.state != kedge_rollout::RingState::Passed;
        let Some(before) = old.before.get(&progress.ring).filter(|_| unproven) else { continue };
        let mine: Vec<(Place, Held)> = new
            .items()
            .filter_map(|(item, change)| {
                let place = place(item);
                let theirs = old.change_at(&item.cluster_type, &item.assignment)?;
                // Other parts of the entry may have moved since: only the same ones can go back further.
                let same = theirs.platform.is_some() == change.platform.is_some()
                    && theirs.workload.is_some() == change.workload.is_some();
                let held = before.get(&place).filter(|_| same)?;
                Some((place, held.clone()))
            })
            .collect();
        new.before.entry(progress.ring.clone()).or_default().extend(mine);
    }
}

fn shared(new: &Running, old: &Running) -> BTreeSet<Place> {
    let meets = |item: &kedge_rollout::Item| {
        let mine = new.change_at(&item.cluster_type, &item.assignment);
        let theirs = old.change_at(&item.cluster_type, &item.assignment);
        matches!((mine, theirs), (Some(mine), Some(theirs)) if mine.meets(theirs))
    };
    old.rollout.items.iter().filter(|item| meets(item)).map(place).collect()
}

fn is_blocked(blocked: &[BlockedRow], lane: &Lane, difference: &Difference) -> bool {
    let lane = lane.to_string();
    blocked.iter().any(|row| row.lane == lane && row.blocks(difference))
}

/// What this rollout's commit quarantined.
fn quarantined(all: &BTreeMap<String, Quarantine>, rollout: &Rollout) -> Vec<String> {
    let ours = |quarantine: &Quarantine| {
        rollout.lane == Lane::Platform && !quarantine.commit.is_empty() && quarantine.commit == rollout.cause.commit
    };
    all.iter().filter(|(_, quarantine)| ours(quarantine)).map(|(name, _)| name.clone()).collect()
}

fn quarantine(rows: &mut Rows, edits: &mut Edits, head: &Head, adopts: bool, now: Timestamp) {
    let before = rows.compared.clone();
    for (name, why) in &head.quarantined {
        if rows.quarantines.contains_key(name) {
            continue;
        }
        // The branch is as it was: an application's commit did it. The same main commit: the environment's own change.
        let moved = !adopts && before.as_ref().is_none_or(|before| before.commit != head.source.commit);
        let main = head.main.clone().filter(|main| moved && before.as_ref().is_none_or(|before| before.main != *main));
        let commit = if moved { head.source.commit.clone() } else { String::new() };
        let quarantine = Quarantine { commit, main: main.unwrap_or_default(), why: why.clone(), since: now };
        edits.quarantines.insert(name.clone(), Some(quarantine.clone()));
        rows.quarantines.insert(name.clone(), quarantine);
    }
    let mended: Vec<String> =
        rows.quarantines.keys().filter(|name| !head.quarantined.contains_key(*name)).cloned().collect();
    for name in mended {
        rows.quarantines.remove(&name);
        edits.quarantines.insert(name, None);
    }
}

/// Where everything at the head comes from; of what waits, only the commit is new.
fn learn_sources(rows: &mut Rows, edits: &mut Edits, head: &Head, waits: &BTreeSet<Place>) {
    let mut seen = BTreeSet::new();
    for (cluster_type, entries) in &head.types {
        for (assignment, entry) in entries.iter() {
            let place = (cluster_type.clone(), assignment.clone());
            seen.insert(place.clone());
            let before = rows.known.get(&place);
            let (commit, observed) = match entry {
                PackedEntry::Quarantined => continue,
                PackedEntry::Apply(packages) => (packages.workload.commit.clone(), String::new()),
                PackedEntry::Observe(seen) => {
                    (seen.expected_commit.clone().unwrap_or_default(), seen.key().to_string())
                }
            };
            let mut next = Known { origin: head.origin(cluster_type, assignment), commit, observed };
            if let Some(before) = before.filter(|_| waits.contains(&place)) {
                next = Known { commit: next.commit, ..before.clone() };
            }
            if before != Some(&next) {
                edits.sources.insert(place.clone(), Some(next.clone()));
                rows.known.insert(place, next);
            }
        }
    }
    let gone: Vec<Place> =
        rows.known.keys().filter(|place| !seen.contains(*place) && !waits.contains(*place)).cloned().collect();
    for place in gone {
        rows.known.remove(&place);
        edits.sources.insert(place, None);
    }
}
