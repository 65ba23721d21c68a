//! The part of a pass that looks at the head: compares it with the rings, begins what may begin, lets wait what may not, and
//! remembers what was compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_hub_types::pack::{PackedEntry, PackedType};
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::{Place, Running, place};
use kedge_hub_types::rollout::{Difference, Known};
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::chain::Standing;
use kedge_rollout::{Cause, Lane, Phase, PromotionPhase, RingState, Rollout, RolloutId, Word};

use super::candidate;
use super::candidate::{Comparison, Decision};
use super::compose::Composed;
use super::controller::Rows;
use super::edits::Edits;
use super::head::Head;
use super::pass::ReconcilePass;
use crate::store::StoreError;
use crate::store::rollout::controller::{ComparedHead, Quarantine};
use crate::store::rollout::{BlockedRow, Waiting};

/// A rollout that may begin.
struct Beginning<'a> {
    lane: &'a Lane,
    cause: Cause,
    differences: Vec<Difference>,
    supersedes: Vec<RolloutId>,
}

impl ReconcilePass<'_> {
    /// Compares the head with the rings and begins what may begin.
    pub(super) async fn propose(
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
            let row = self.controller.parts.store.promotion(self.environment).await?;
            quarantine(rows, edits, head, &row.map(|row| row.standing).unwrap_or_default(), now);
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
        let blocked = self.controller.parts.store.rollouts_blocked(self.environment).await?;
        let aborted = self.aborted(rows, &blocked).await?;
        edits.forget_blocked(&blocked, &differences, head, &aborted);
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
            let unfinished: Vec<&Running> = rows.running.values().filter(|running| running.is_unfinished()).collect();
            let is_blocked = |difference: &Difference| is_blocked(&blocked, lane, difference);
            waits.extend(differences.iter().filter(|one| is_blocked(one)).map(|one| place(&one.item)));
            match candidate::decide(lane, differences, &unfinished, head, rings, is_blocked) {
                Decision::Nothing => edits.no_longer_waiting(rows, lane),
                Decision::Drop(dropped) => {
                    edits.no_longer_waiting(rows, lane);
                    for (id, places) in dropped {
                        if let Some(running) = rows.running.get_mut(&id) {
                            edits.take_out(running, places);
                            if running.rollout.items.is_empty() {
                                let by = "the head, which no longer asks for it".to_owned();
                                edits.end(running, Phase::Aborted { by, at: now }, now);
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
                    let cause = self.cause(lane, &differences, head);
                    let beginning = Beginning { lane, cause, differences, supersedes };
                    self.begin(rows, edits, beginning, now).await?;
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

    /// The aborted ones of those that block: their clusters keep what they have.
    async fn aborted(&self, rows: &Rows, blocked: &[BlockedRow]) -> Result<BTreeSet<RolloutId>, StoreError> {
        let mut found = BTreeSet::new();
        for id in blocked.iter().map(|row| row.rollout).collect::<BTreeSet<RolloutId>>() {
            let phase = match rows.running.get(&id) {
                Some(running) => Some(running.rollout.phase.clone()),
                None => self.controller.parts.store.rollout(id).await?.map(|stored| stored.rollout.phase),
            };
            if matches!(phase, Some(Phase::Aborted { .. })) {
                found.insert(id);
            }
        }
        Ok(found)
    }

    async fn begin(
        &self,
        rows: &mut Rows,
        edits: &mut Edits,
        beginning: Beginning<'_>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Beginning { lane, cause, differences, supersedes } = beginning;
        let id = self.controller.next_number(self.term).await?;
        let (items, changes): (Vec<_>, Vec<_>) =
            differences.into_iter().map(|difference| (difference.item, difference.change)).unzip();
        let said = match self.has_own_change(rows, lane, &cause, &supersedes) {
            true => Vec::new(),
            false => self.said_before(&cause).await?,
        };
        let rollout =
            Rollout::new(id, self.environment, lane.clone(), cause, Arc::clone(self.policy), items.into(), now);
        let mut new = Running::new(rollout.with_words(&said), changes);
        for old in &supersedes {
            if let Some(old) = rows.running.get_mut(old) {
                inherit(&mut new, old);
                edits.end(old, Phase::Superseded { by: id, at: now }, now);
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
                    edits.end(old, Phase::Superseded { by: id, at: now }, now);
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

    /// What people said when they let its main commit in. Once that has passed here, whatever comes is another change.
    async fn said_before(&self, cause: &Cause) -> Result<Vec<Word>, StoreError> {
        let Some(main) = &cause.main else { return Ok(Vec::new()) };
        let row = self.controller.parts.store.promotion(self.environment).await?;
        let promotions = row.map(|row| row.standing.promotions).unwrap_or_default();
        let found = promotions.into_iter().find(|promotion| promotion.commit == *main);
        let comes_in =
            |phase: &PromotionPhase| matches!(phase, PromotionPhase::Entered | PromotionPhase::Failed { .. });
        Ok(found.filter(|found| comes_in(&found.phase)).map(|found| found.words).unwrap_or_default())
    }

    /// Whether it brings something that isn't of its main commit, and that nobody agreed to yet: a commit of the environment's own
    /// branch or an application's registration, now or in what it takes over.
    fn has_own_change(&self, rows: &Rows, lane: &Lane, cause: &Cause, supersedes: &[RolloutId]) -> bool {
        let is_own = |cause: &Cause| cause.subject_of.is_some();
        let never_began = |old: &Running| old.rollout.rings.iter().all(|ring| ring.state == RingState::Waiting);
        let taken_over = supersedes.iter().filter_map(|id| rows.running.get(id)).filter(|old| never_began(old));
        let waiting = rows.waiting.get(&lane.to_string());
        // What waited says itself whose it is; the head may have moved on in another lane since.
        let waited = waiting.is_some() && !self.fresh;
        (!waited && is_own(cause))
            || taken_over.flat_map(|old| std::iter::once(&old.rollout.cause).chain(&old.skipped)).any(is_own)
            || waiting.is_some_and(|waiting| std::iter::once(&waiting.cause).chain(&waiting.skipped).any(is_own))
    }

    fn cause(&self, lane: &Lane, differences: &[Difference], head: &Head) -> Cause {
        let Lane::Source { repo, .. } = lane else {
            return Cause {
                commit: head.source.commit.clone(),
                main: head.main.clone(),
                subject_of: head.subject_of.clone(),
                subject: head.subject.clone(),
                author: head.author.clone(),
            };
        };
        let commit = differences
            .iter()
            .find_map(|difference| Some(difference.change.workload.as_ref()?.package.commit.clone()))
            .unwrap_or_default();
        let (subject, author) = self.controller.parts.describe.describe(repo, &commit).unwrap_or_default();
        Cause { commit, subject, author, ..Cause::default() }
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

/// The way back of a rollout that takes over from one which hadn't passed yet leads past that one.
fn inherit(new: &mut Running, old: &Running) {
    for progress in old.rollout.rings.iter() {
        let unproven = progress.state.is_new() && progress.state != RingState::Passed;
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

/// Remembers what is in quarantine, with the commits that brought it there, and forgets what is mended. `standing` says which
/// commits of main have passed.
fn quarantine(rows: &mut Rows, edits: &mut Edits, head: &Head, standing: &Standing, now: Timestamp) {
    let before = rows.compared.clone();
    for (name, why) in &head.quarantined {
        if let Some(known) = rows.quarantines.get_mut(name) {
            if known.why != *why {
                known.why.clone_from(why);
                edits.quarantines.insert(name.clone(), Some(known.clone()));
            }
            continue;
        }
        let moved = before.as_ref().is_some_and(|before| before.commit != head.source.commit);
        // What the branch holds can't be packed, and the branch is as it was: an application's commit did it.
        let by_source = head.unpacked.contains(name) && !moved;
        let main = head.read.as_ref().filter(|main| !by_source && brings(standing, before.as_ref(), main));
        let commit = if moved { head.source.commit.clone() } else { String::new() };
        let main = main.cloned().unwrap_or_default();
        let quarantine = Quarantine { commit, main, why: why.clone(), since: now };
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

/// Whether what is new at the head came with this commit of main. The same commit as before: the environment's own change, or
/// an application's. The first look of all is at what ran before there was a policy, unless the commit was promoted here.
fn brings(standing: &Standing, before: Option<&ComparedHead>, main: &str) -> bool {
    let phase = standing.promotion(main).map(|promotion| &promotion.phase);
    let adopted = || standing.promotions.iter().any(|known| known.phase == PromotionPhase::Adopted);
    match phase {
        Some(PromotionPhase::Passed | PromotionPhase::Reopened { .. } | PromotionPhase::Adopted) => false,
        _ if before.is_some() => before.is_some_and(|before| before.main != main),
        phase => phase.is_some() && !adopted(),
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
