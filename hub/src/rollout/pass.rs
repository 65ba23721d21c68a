//! One pass over an environment: words, candidates, facts, `advance`, what each stream should hold; saved in one transaction
//! under the term, then issued. A hub that dies in between finds the saved value and issues it in the next pass.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_hub_types::pack::PackedType;
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::{Running, place};
use kedge_model::kinds::EnvironmentPolicy;
use kedge_model::wire::{Stream, Timestamp};
use kedge_rollout::{Lane, Phase, Rollout, advance, hear};

use super::compose::{self, Composed};
use super::controller::{Passed, RolloutController, Rows};
use super::edits::Edits;
use super::facts::{self, ReportedCounts};
use super::head::Head;
use super::told;
use super::words;
use crate::permits::limits::limits;
use crate::state::{IssueError, Wanted};
use crate::store::rollout::controller::Quarantine;
use crate::store::{StoreError, Term};

pub(super) struct ReconcilePass<'a> {
    pub controller: &'a RolloutController,
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

impl ReconcilePass<'_> {
    pub async fn run(&self, rows: &mut Rows) -> Result<Passed, IssueError> {
        let parts = &self.controller.parts;
        let now = (parts.clock)();
        let rings: Vec<String> = self.policy.rings.iter().map(|ring| ring.name.clone()).collect();
        let mut edits = Edits::default();
        let held = parts.issuer.held(self.term, self.environment).await?;
        self.listen(rows, &mut edits, now).await?;
        let present = self.compose(rows, &held, &rings, now);
        if let Some(head) = self.head {
            self.propose(rows, &mut edits, head, &present, &rings, now).await?;
        }
        let counts_now = self.look(rows, &held).await?;
        self.advance(rows, &mut edits, &counts_now, &held, &present, now);
        let composed = self.compose(rows, &held, &rings, now);
        self.limit(rows, &mut edits, &counts_now, now);
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
        let store = &self.controller.parts.store;
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
                    edits.news.push(told::word(&running.rollout, &said.word, None));
                    edits.put(running, next, now);
                }
                Err(refused) => {
                    edits.news.push(told::word(&running.rollout, &said.word, Some(&refused.message)));
                    edits.words.push((said.id, Some(refused.message)));
                }
            }
        }
        Ok(())
    }

    async fn look(&self, rows: &Rows, held: &BTreeMap<Stream, Arc<PackedType>>) -> Result<ReportedCounts, StoreError> {
        let watched = rows.running.values().filter(|running| running.watched);
        let keys = facts::asked(watched, held, &rows.pinned);
        let store = &self.controller.parts.store;
        if rows.running.values().all(|running| !running.watched) {
            return Ok(ReportedCounts::default());
        }
        let members = store.population(self.environment).await?;
        Ok(ReportedCounts::new(store.reported(self.environment, &keys).await?, &members))
    }

    fn advance(
        &self,
        rows: &mut Rows,
        edits: &mut Edits,
        counts_now: &ReportedCounts,
        held: &BTreeMap<Stream, Arc<PackedType>>,
        present: &Composed,
        now: Timestamp,
    ) {
        let Rows { running, quarantines, pinned, .. } = rows;
        for running in running.values_mut().filter(|running| running.watched) {
            let quarantined = quarantined(quarantines, &running.rollout);
            let checks = self.controller.parts.shared.checks.of(running.id());
            let facts = match running.rollout.phase {
                Phase::RolledBack { .. } => facts::going_back(running, counts_now, &present.streams),
                _ => facts::facts(running, counts_now, held, pinned, checks, quarantined),
            };
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
            let is_old = matches!(running.rollout.phase,
                Phase::Complete { at } | Phase::Aborted { at, .. } if at.0 + LATE < now.0);
            let is_back = matches!(running.rollout.phase, Phase::RolledBack { at, .. }
                if !running.rollout.is_going_back() || at.0 + LATE < now.0);
            if is_old || is_back {
                running.watched = false;
                edits.saved.insert(running.id());
            }
        }
        // A word may have taken an ended one up again.
        for running in running.values_mut().filter(|running| !running.watched) {
            remember(running, edits, present);
        }
    }

    fn limit(&self, rows: &mut Rows, edits: &mut Edits, counts_now: &ReportedCounts, now: Timestamp) {
        let watched: Vec<&Running> = rows.running.values().filter(|running| running.watched).collect();
        let next = limits(self.policy, &watched, |ring| counts_now.members_of(ring), now);
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

/// What this rollout's commit quarantined.
fn quarantined(all: &BTreeMap<String, Quarantine>, rollout: &Rollout) -> Vec<String> {
    let ours = |quarantine: &Quarantine| {
        rollout.lane == Lane::Platform && !quarantine.commit.is_empty() && quarantine.commit == rollout.cause.commit
    };
    all.iter().filter(|(_, quarantine)| ours(quarantine)).map(|(name, _)| name.clone()).collect()
}
