//! From rollouts, desired states and counts to the lines of the answer.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::operations::OperationSelector;
use kedge_api::rollout_status::{RolloutOverview, StatusLine};
use kedge_api::rollouts::MemberCounts;
use kedge_hub_types::rollout::change::Held;
use kedge_hub_types::rollout::running::state_word;
use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::kinds::{Offline, PromotionPolicy};
use kedge_model::wire::{Digest, Entry, Mode, PackagesKey, Stream};
use kedge_rollout::{Counts, Phase, RolloutId};

use super::{Found, Line, StatusQuery, commit, inputs};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::caller::Caller;
use crate::api::fleet::Order;
use crate::api::page::MAX_CHANGES;
use crate::api::rollouts::selection::{self, Chooser, Scheduled};
use crate::api::rollouts::view::{self, is_settled, narrow_rings, waits_for};
use crate::api::rollouts::{held_note, is_seen};
use crate::store::api::states::StateFilter;
use crate::store::catalog::{Filter, Kind, Visible};
use crate::store::rollout::{RolloutFilter, StoredItem, StoredRollout};

/// So many rollouts of an environment are looked at for the newest of each lane.
const LOOKED_AT: i64 = 100;
/// So many lines are asked for the reasons of their failures.
const EXPLAINED: usize = 20;

/// One environment while it is asked about.
struct Environment<'a> {
    state: &'a ApiState,
    name: &'a str,
    query: &'a StatusQuery,
    visible: Visible,
    scheduled: Option<Scheduled>,
    members: BTreeMap<Stream, Present>,
    /// What the newest states hold, read when it is needed.
    held: Option<BTreeMap<Stream, BTreeMap<String, Entry>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Present {
    members: u64,
    offline: u64,
}

/// What is counted of an assignment in one stream.
struct Target {
    stream: Stream,
    keys: BTreeSet<PackagesKey>,
}

/// A line before its counts are known.
struct Draft {
    view: StatusLine,
    targets: Vec<Target>,
}

pub async fn gather(state: &ApiState, caller: &Caller, query: &StatusQuery) -> Result<Found, ApiError> {
    let policies = state.store.policies().await?;
    let policy = policies.in_force().map(|policy| &**policy);
    let mut found = Found { passed: true, ..Found::default() };
    let mut phases = Vec::new();
    let names = environments(state, caller, query).await?;
    for name in &names {
        let mut environment = Environment::new(state, caller, name, query).await?;
        let governed = policy.is_some_and(|policy| policy.environment(name).is_some());
        environment.gather(policy, governed, &mut found, &mut phases).await?;
    }
    let asked = query.source_commit.as_ref().or(query.main_commit.as_ref());
    if let Some(commit) = asked
        && found.lines.is_empty()
        && phases.is_empty()
        && !found.judged
    {
        found.passed = false;
        if found.state.is_none() {
            found.state = Some("Unseen");
            let place = query.environment.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
            found.notes.insert(0, format!("commit {} hasn't reached the hub{place} yet", short(commit)));
        }
    }
    conclude(&mut found, &phases);
    if names.is_empty() {
        found.passed = false;
    }
    Ok(found)
}

impl Found {
    /// What became of the commit that was asked for comes before what else is said.
    fn judge(&mut self, judged: commit::Judged) {
        self.judged = true;
        self.passed &= judged.passed;
        self.over |= judged.over;
        if judged.state.is_some() && !matches!(self.state, Some("Failed" | "Gone")) {
            self.state = judged.state;
        }
        if let Some(note) = judged.note {
            self.notes.insert(0, note);
        }
    }
}

/// The state of all together is that of the one that needs somebody most. What is broken beside rollouts that haven't ended is told
/// after them; once they have, it is what the answer hangs on.
fn conclude(found: &mut Found, phases: &[Phase]) {
    let rank = |phase: &Phase| match phase {
        Phase::Stopped { .. } => 0,
        Phase::RolledBack { .. } => 1,
        Phase::Aborted { .. } => 2,
        Phase::Paused { .. } => 3,
        Phase::Superseded { .. } => 4,
        Phase::Active => 5,
        Phase::Complete { .. } => 6,
    };
    let worst = phases.iter().min_by_key(|phase| rank(phase));
    if let Some(worst) = worst {
        if !matches!(found.state, Some("Failed" | "Gone")) {
            found.state = Some(state_word(worst));
        }
        found.passed &= matches!(worst, Phase::Complete { .. });
        found.over |= rank(worst) < 3 || rank(worst) == 4;
    }
    if found.broken.is_empty() {
        return;
    }
    found.passed = false;
    let broken = std::mem::take(&mut found.broken);
    match worst {
        None | Some(Phase::Complete { .. }) => {
            found.state = Some("Failed");
            found.over |= found.is_quarantined;
            found.notes.splice(0..0, broken);
        }
        Some(_) => found.notes.extend(broken),
    }
}

async fn environments(state: &ApiState, caller: &Caller, query: &StatusQuery) -> Result<Vec<String>, ApiError> {
    let visible = caller.visible();
    if let Some(id) = query.rollout {
        let whole = super::super::find(state, caller, RolloutId(id)).await?.detail;
        return Ok(vec![whole.rollout.environment]);
    }
    if let Some(name) = &query.environment {
        let known = state.store.catalog_row(Kind::Environment, &visible, name, name).await?;
        if known.is_none() {
            crate::api::names::environment(state, caller, Some(name)).await?;
        }
        return match known {
            Some(_) => Ok(vec![name.clone()]),
            None => Err(ApiError::not_found(format!("environment {name}")).hint("`kedge get environments` lists them")),
        };
    }
    let filter = Filter { limit: MAX_CHANGES, ..Filter::default() };
    let (shown, _) = state.store.catalog_page(Kind::Environment, &visible, &filter).await?;
    let order = Order::of(state).await?;
    let mut names: Vec<String> = shown.into_iter().map(|shown| shown.name).collect();
    names.sort_by_cached_key(|name| order.place(name));
    Ok(names)
}

impl<'a> Environment<'a> {
    async fn new(
        state: &'a ApiState,
        caller: &Caller,
        name: &'a str,
        query: &'a StatusQuery,
    ) -> Result<Environment<'a>, ApiError> {
        let mut members: BTreeMap<Stream, Present> = BTreeMap::new();
        for of in state.store.population(name).await? {
            let count = u64::try_from(of.count).unwrap_or_default();
            let present = members.entry(of.stream).or_default();
            present.members += count;
            present.offline += if of.presence == Presence::Unknown { count } else { 0 };
        }
        let visible = caller.visible();
        // An application team is told of its own; the names are needed for that, and for a workload where nothing rolls.
        let scheduled = match &visible {
            Visible::All => None,
            own => Some(selection::scheduled(state, own, name).await?),
        };
        Ok(Environment { state, name, query, visible, scheduled, members, held: None })
    }

    /// Adds what this environment has.
    async fn gather(
        &mut self,
        policy: Option<&PromotionPolicy>,
        governed: bool,
        found: &mut Found,
        phases: &mut Vec<Phase>,
    ) -> Result<(), ApiError> {
        let rules = policy.and_then(|policy| policy.environment(self.name));
        let chosen = if governed { self.rollouts().await? } else { Vec::new() };
        let mut drafts = Vec::new();
        let mut used = Vec::new();
        for (stored, items) in &chosen {
            let before = drafts.len();
            self.draft_rollout(stored, items, &mut drafts).await?;
            if drafts.len() > before || items.iter().any(|stored| self.wants(&stored.item.cluster_type)) {
                used.push(stored);
            }
        }
        let judged = match &self.query.main_commit {
            Some(commit) if governed && self.visible == Visible::All => {
                commit::judge(self.state, self.name, commit).await?
            }
            _ => None,
        };
        let asked = self.query.source_commit.as_deref().or(self.query.main_commit.as_deref());
        if used.is_empty() && self.query.rollout.is_none() {
            match asked {
                None => self.draft_desired(None, &mut drafts).await?,
                // No rollout of its own: what runs there says whether it is all there.
                Some(_) if judged.is_some() => self.draft_desired(None, &mut drafts).await?,
                Some(_) if self.query.main_commit.is_some() && !governed => {}
                Some(commit) => {
                    if !self.draft_unmoved(commit, governed, &mut drafts, found).await? {
                        return Ok(());
                    }
                }
            }
        }
        for stored in used {
            phases.push(self.phase_in_ring(stored));
            let foreign = |stored: &StoredItem| !self.is_own(&stored.item.cluster_type, &stored.item.assignment);
            let partial =
                chosen.iter().any(|(other, items)| other.rollout.id == stored.rollout.id && items.iter().any(foreign));
            let mut brief = brief(stored);
            if partial {
                narrow_rings(&mut brief.rings);
                brief.late_failed = 0;
            }
            found.rollouts.push(brief);
            found.strict |= stored.rollout.policy.offline == Offline::Incomplete;
            if partial {
                continue;
            }
            if !matches!(stored.rollout.phase, Phase::Complete { .. }) {
                let why =
                    waits_for(&stored.rollout).into_iter().map(|why| format!("rollout {}: {why}", stored.rollout.id));
                found.notes.extend(why);
            }
            if stored.rollout.late_failed > 0 {
                let (id, late) = (stored.rollout.id, stored.rollout.late_failed);
                found.notes.push(format!("rollout {id}: {late} failed after it was complete"));
            }
        }
        found.strict |= rules.is_some_and(|rules| rules.offline == Offline::Incomplete);
        let types: BTreeSet<String> = drafts.iter().map(|draft| draft.view.cluster_type.clone()).collect();
        let (held, before) = (self.holds(&drafts).await?, found.lines.len());
        self.count(drafts, found).await?;
        if found.lines[before..].iter().any(|line| line.counts.converged < line.counts.members()) {
            found.notes.extend(held);
        }
        self.count_members(&types, found);
        match judged {
            Some(judged) => found.judge(judged),
            None if asked.is_none() && self.query.rollout.is_none() => {
                inputs::look(self.state, &self.visible, self.name, self.query, found).await?;
            }
            None => {}
        }
        Ok(())
    }

    /// With a ring in the question, that ring's gate is what must have passed.
    fn phase_in_ring(&self, stored: &StoredRollout) -> Phase {
        let ring = self.query.ring.as_ref().and_then(|name| stored.rollout.ring(name));
        match ring {
            Some(ring) if ring.state == kedge_rollout::RingState::Passed => {
                Phase::Complete { at: ring.passed_at.unwrap_or(stored.updated_at) }
            }
            _ => stored.rollout.phase.clone(),
        }
    }

    /// The newest rollout of each lane that the question is about, with its items; of a commit, those that brought it.
    async fn rollouts(&self) -> Result<Vec<(StoredRollout, Vec<StoredItem>)>, ApiError> {
        let query = self.query;
        let found = match query.rollout {
            Some(id) => self.state.store.rollout(RolloutId(id)).await?.into_iter().collect(),
            None => {
                let filter = RolloutFilter {
                    environment: Some(self.name),
                    workload: query.workload.as_deref(),
                    cluster_type: query.cluster_type.as_deref(),
                    source_commit: query.source_commit.as_deref(),
                    main_commit: query.main_commit.as_deref(),
                    limit: LOOKED_AT,
                    ..RolloutFilter::default()
                };
                self.state.store.rollouts(&filter).await?
            }
        };
        let (mut lanes, mut chosen) = (BTreeSet::new(), Vec::new());
        let named = self.names_content();
        let blocked = self.state.store.blocked_rollouts().await?;
        for stored in found {
            // Went back, and Git doesn't ask for it any more: who asks how things are isn't told of it.
            let settled = is_settled(state_word(&stored.rollout.phase), stored.rollout.id, &blocked);
            if settled && !named {
                continue;
            }
            // What newer content took over is told of only if nothing else is known of a commit.
            let superseded = matches!(stored.rollout.phase, Phase::Superseded { .. });
            if lanes.contains(&stored.rollout.lane.to_string()) || (superseded && query.rollout.is_none()) {
                continue;
            }
            let items = self.state.store.rollout_items(stored.rollout.id).await?;
            if !is_seen(self.state, &self.visible, &stored, &items).await? {
                continue;
            }
            lanes.insert(stored.rollout.lane.to_string());
            chosen.push((stored, items));
        }
        Ok(chosen)
    }

    /// One that was complete and is asked for by its name: rings may follow other content by now.
    fn is_past(&self, stored: &StoredRollout) -> bool {
        self.names_content() && matches!(stored.rollout.phase, Phase::Complete { .. })
    }

    /// Whether the question is about a certain content, rather than about what should be there now.
    fn names_content(&self) -> bool {
        let StatusQuery { rollout, source_commit, main_commit, .. } = self.query;
        rollout.is_some() || source_commit.is_some() || main_commit.is_some()
    }

    fn present(&self, stream: &Stream) -> Present {
        self.members.get(stream).copied().unwrap_or_default()
    }

    /// What `/rollouts` shows this caller, and nothing else.
    async fn sees(&self, id: RolloutId) -> Result<bool, ApiError> {
        if self.visible == Visible::All {
            return Ok(true);
        }
        let Some(stored) = self.state.store.rollout(id).await? else { return Ok(false) };
        let items = self.state.store.rollout_items(id).await?;
        is_seen(self.state, &self.visible, &stored, &items).await
    }

    fn wants(&self, cluster_type: &str) -> bool {
        self.query.cluster_type.as_deref().is_none_or(|wanted| wanted == cluster_type)
    }

    fn is_own(&self, cluster_type: &str, assignment: &str) -> bool {
        self.visible == Visible::All
            || self
                .scheduled
                .as_ref()
                .is_some_and(|all| all.get(cluster_type).is_some_and(|names| names.contains_key(assignment)))
    }

    /// Lines of a rollout's items; one that a newer rollout moves has its line already.
    async fn draft_rollout(
        &mut self,
        stored: &StoredRollout,
        items: &[StoredItem],
        drafts: &mut Vec<Draft>,
    ) -> Result<(), ApiError> {
        let mut keys: BTreeMap<(String, String, String), BTreeSet<PackagesKey>> = BTreeMap::new();
        for key in self.state.store.rollout_keys(stored.rollout.id).await? {
            keys.entry((key.cluster_type, key.assignment, key.ring)).or_default().insert(key.packages);
        }
        let pinned = self.state.store.pinned_of(self.name).await?;
        for StoredItem { item, change } in items {
            let named = self.query.workload.as_deref().is_none_or(|wanted| wanted == item.workload);
            let known = drafts.iter().any(|draft: &Draft| {
                draft.view.cluster_type == item.cluster_type && draft.view.assignment == item.assignment
            });
            if item.removes || !named || known || !self.wants(&item.cluster_type) {
                continue;
            }
            if !self.is_own(&item.cluster_type, &item.assignment) {
                continue;
            }
            let mut draft = self.draft(&item.cluster_type, &item.assignment, &item.workload);
            draft.view.rollout = Some(stored.rollout.id.0);
            draft.view.version = change.workload.as_ref().and_then(|part| part.version.clone());
            for progress in &stored.rollout.rings {
                if self.query.ring.as_ref().is_some_and(|wanted| *wanted != progress.ring) {
                    continue;
                }
                let stream = Stream::new(self.name, &item.cluster_type, &progress.ring);
                let place = (item.cluster_type.clone(), item.assignment.clone(), progress.ring.clone());
                let mut names = keys.get(&place).cloned().unwrap_or_default();
                if pinned.get(&stream).is_some_and(|below| below.contains_key(&item.assignment)) {
                    let held = self.held().await?.get(&stream).and_then(|held| held.get(&item.assignment));
                    let key = held.map(Entry::packages_key);
                    // The Pin may name the very content, and says nothing about the platform's part.
                    let wanted = change.workload.as_ref().map(|part| part.package.digest);
                    let is_other = wanted.is_some() && held.and_then(content).is_some_and(|held| Some(held) != wanted);
                    if is_other {
                        draft.view.pinned.push(progress.ring.clone());
                        if self.names_content() {
                            draft.view.pinned_apart += self.present(&stream).members;
                            continue;
                        }
                    }
                    names.extend(key);
                }
                let other = |held: &BTreeMap<String, Entry>| {
                    !held.get(&item.assignment).is_some_and(|entry| names.contains(&entry.packages_key()))
                };
                if self.is_past(stored) && self.held().await?.get(&stream).is_some_and(other) {
                    draft.view.replaced.push(progress.ring.clone());
                    continue;
                }
                if progress.state.is_new() || change.observed.is_some() {
                    draft.targets.push(Target { stream, keys: names });
                } else if !matches!(stored.rollout.phase, Phase::RolledBack { .. } | Phase::Aborted { .. }) {
                    draft.view.not_yet += self.present(&stream).members;
                }
            }
            drafts.push(draft);
        }
        Ok(())
    }

    /// Lines of what the newest states hold: where nothing rolls, that is what should be there.
    async fn draft_desired(
        &mut self,
        only: Option<&BTreeSet<(String, String)>>,
        drafts: &mut Vec<Draft>,
    ) -> Result<(), ApiError> {
        if self.scheduled.is_none() {
            self.scheduled = Some(selection::scheduled(self.state, &self.visible, self.name).await?);
        }
        self.held().await?;
        let scheduled = self.scheduled.clone().unwrap_or_default();
        let selector = OperationSelector { workload: self.query.workload.clone(), ..OperationSelector::default() };
        // What is asked for by its name is below a Pin, and not what the Pin put there.
        let pinned = if only.is_some() { self.state.store.pinned_of(self.name).await? } else { Default::default() };
        let mut lines: BTreeMap<(String, String), Draft> = BTreeMap::new();
        for (stream, entries) in self.held.iter().flatten() {
            if !self.wants(&stream.cluster_type) || self.query.ring.as_ref().is_some_and(|ring| *ring != stream.ring) {
                continue;
            }
            for (assignment, entry) in entries {
                let place = (stream.cluster_type.clone(), assignment.clone());
                let workload = scheduled.get(&stream.cluster_type).and_then(|names| names.get(assignment));
                let Some(workload) = workload else { continue };
                let named = Chooser(&selector).names(&scheduled, &stream.cluster_type, assignment);
                if !named || only.is_some_and(|only| !only.contains(&place)) {
                    continue;
                }
                let draft =
                    lines.entry(place).or_insert_with(|| self.draft(&stream.cluster_type, assignment, workload));
                if let Some(Held::Apply(below)) = pinned.get(stream).and_then(|below| below.get(assignment))
                    && content(entry).is_some_and(|held| held != below.workload.digest)
                {
                    draft.view.pinned.push(stream.ring.clone());
                    draft.view.pinned_apart += self.present(stream).members;
                    continue;
                }
                if let Mode::Apply(packages) = &entry.mode {
                    draft.view.version = packages.version.clone();
                }
                draft.targets.push(Target { stream: stream.clone(), keys: BTreeSet::from([entry.packages_key()]) });
            }
        }
        drafts.extend(lines.into_values());
        Ok(())
    }

    /// A commit that no rollout brought: it changed nothing, waits, or was taken over. False: nobody knows it.
    async fn draft_unmoved(
        &mut self,
        commit: &str,
        governed: bool,
        drafts: &mut Vec<Draft>,
        found: &mut Found,
    ) -> Result<bool, ApiError> {
        if governed {
            for (lane, waiting) in self.state.store.rollouts_waiting(self.name).await? {
                if !self.sees(waiting.behind).await? {
                    continue;
                }
                if is_same(&waiting.cause, commit) {
                    found.state = Some("Active");
                    found.notes.push(format!(
                        "{} waits in lane {lane} of {} behind rollout {}",
                        short(commit),
                        self.name,
                        waiting.behind
                    ));
                    found.passed = false;
                    return Ok(true);
                }
                if waiting.skipped.iter().any(|cause| is_same(cause, commit)) {
                    self.taken_over(commit, &waiting.cause.commit, found);
                    return Ok(true);
                }
            }
            let filter = RolloutFilter { environment: Some(self.name), limit: LOOKED_AT, ..RolloutFilter::default() };
            for stored in self.state.store.rollouts(&filter).await? {
                let superseded = matches!(stored.rollout.phase, Phase::Superseded { .. });
                if !self.sees(stored.rollout.id).await? {
                    continue;
                }
                if stored.skipped.iter().any(|cause| is_same(cause, commit))
                    || (superseded && is_same(&stored.rollout.cause, commit))
                {
                    let by = match stored.rollout.phase {
                        Phase::Superseded { by, .. } => format!("rollout {by}"),
                        _ => stored.rollout.cause.commit.clone(),
                    };
                    self.taken_over(commit, &by, found);
                    return Ok(true);
                }
            }
        }
        let mut only: BTreeSet<(String, String)> = self
            .state
            .store
            .sources_at(Some(self.name), commit)
            .await?
            .into_iter()
            .map(|source| (source.cluster_type, source.assignment))
            .filter(|(cluster_type, assignment)| self.is_own(cluster_type, assignment))
            .collect();
        if only.is_empty() {
            let held = self.held().await?;
            for (stream, entries) in held {
                for (assignment, entry) in entries {
                    let Mode::Apply(packages) = &entry.mode else { continue };
                    if packages.workload.commit.starts_with(commit) {
                        only.insert((stream.cluster_type.clone(), assignment.clone()));
                    }
                }
            }
        } else {
            found.notes.push(format!("{} changed nothing in {}: what runs is its content", short(commit), self.name));
        }
        if only.is_empty() {
            return Ok(false);
        }
        self.draft_desired(Some(&only), drafts).await?;
        Ok(!drafts.is_empty())
    }

    fn taken_over(&self, commit: &str, by: &str, found: &mut Found) {
        found.state = Some("Superseded");
        found.over = true;
        found.passed = false;
        let by = by.strip_prefix("rollout ").map_or_else(|| short(by).to_owned(), |_| by.to_owned());
        found.notes.push(format!("{} was superseded by {by} in {} before it was reached", short(commit), self.name));
    }

    fn draft(&self, cluster_type: &str, assignment: &str, workload: &str) -> Draft {
        let view = StatusLine {
            environment: self.name.to_owned(),
            cluster_type: cluster_type.to_owned(),
            assignment: assignment.to_owned(),
            workload: workload.to_owned(),
            version: None,
            rollout: None,
            targeted: 0,
            counts: MemberCounts::default(),
            not_yet: 0,
            pinned: Vec::new(),
            pinned_apart: 0,
            replaced: Vec::new(),
        };
        Draft { view, targets: Vec::new() }
    }

    async fn held(&mut self) -> Result<&BTreeMap<Stream, BTreeMap<String, Entry>>, ApiError> {
        if self.held.is_none() {
            let filter = StateFilter {
                environment: Some(self.name.to_owned()),
                cluster_type: self.query.cluster_type.clone(),
                limit: MAX_CHANGES,
                ..StateFilter::default()
            };
            let mut held = BTreeMap::new();
            for seen in self.state.store.newest_states(&Visible::All, &filter).await? {
                let entries = selection::desired(&seen.envelope)?.entries;
                let named = entries.into_iter().map(|entry| (entry.assignment.clone(), entry)).collect();
                held.insert(seen.stream, named);
            }
            self.held = Some(held);
        }
        Ok(self.held.get_or_insert_default())
    }

    /// One lookup for all lines; then the reasons of failures, and since when somebody is away.
    async fn count(&self, drafts: Vec<Draft>, found: &mut Found) -> Result<(), ApiError> {
        let keys: BTreeSet<PackagesKey> =
            drafts.iter().flat_map(|draft| draft.targets.iter().flat_map(|target| &target.keys)).copied().collect();
        let mut reported: BTreeMap<(Stream, String, String), Counts> = BTreeMap::new();
        for row in self.state.store.reported(self.name, &keys).await? {
            let stream = Stream::new(self.name, &row.cluster_type, &row.ring);
            let counts = reported.entry((stream, row.assignment, row.packages)).or_default();
            match row.condition {
                Word::Converged => counts.converged += row.count,
                Word::Converging => counts.converging += row.count,
                Word::Failed => counts.failed += row.count,
                Word::Unknown => {}
            }
        }
        let (mut away, mut explained) = (BTreeSet::new(), 0);
        for mut draft in drafts {
            let mut sum = Counts::default();
            for target in &draft.targets {
                let present = self.present(&target.stream);
                let mut counts = Counts { offline: present.offline, ..Counts::default() };
                for key in &target.keys {
                    let place = (target.stream.clone(), draft.view.assignment.clone(), key.to_string());
                    counts = super::plus(counts, reported.get(&place).copied().unwrap_or_default());
                }
                counts.waiting = present.members.saturating_sub(counts.reached() + counts.offline);
                if counts.offline > 0 {
                    away.insert(target.stream.clone());
                }
                if counts.failed > 0 && explained < EXPLAINED {
                    explained += 1;
                    let keys: Vec<String> = target.keys.iter().map(ToString::to_string).collect();
                    let told = self.state.store.failure_reasons(&target.stream, &draft.view.assignment, &keys).await?;
                    for (reason, count) in told {
                        *found.reasons.entry(reason).or_default() += count;
                    }
                }
                sum = super::plus(sum, counts);
            }
            draft.view.targeted = sum.members();
            draft.view.counts = view::plus(MemberCounts::default(), &sum);
            found.lines.push(Line { view: draft.view, counts: sum });
        }
        for stream in &away {
            let since = self.state.store.offline_since(stream).await?;
            found.offline_since = [found.offline_since, since].into_iter().flatten().min();
        }
        Ok(())
    }

    /// Members on which a person holds what they should get.
    async fn holds(&self, drafts: &[Draft]) -> Result<Option<String>, ApiError> {
        let asked: BTreeSet<(&Stream, &str)> = drafts
            .iter()
            .flat_map(|draft| draft.targets.iter().map(move |target| (&target.stream, draft.view.assignment.as_str())))
            .collect();
        let holds = self.state.store.held_clusters(self.name).await?;
        Ok(held_note(self.name, holds.iter().filter(|hold| asked.contains(&(&hold.stream, hold.assignment.as_str())))))
    }

    /// Everybody whom the question is about: all of the environment, unless it names a part of it.
    fn count_members(&self, types: &BTreeSet<String>, found: &mut Found) {
        // An application team has no business with the size of the rest of the fleet.
        let theirs = |cluster_type: &str| self.visible == Visible::All || types.contains(cluster_type);
        for (stream, present) in &self.members {
            let ring = self.query.ring.as_ref().is_none_or(|wanted| *wanted == stream.ring);
            if ring && self.wants(&stream.cluster_type) && theirs(&stream.cluster_type) {
                let key = (self.name.to_owned(), stream.cluster_type.clone());
                *found.members.entry(key).or_default() += present.members;
            }
        }
    }
}

fn brief(stored: &StoredRollout) -> RolloutOverview {
    let rollout = &stored.rollout;
    RolloutOverview {
        id: rollout.id.0,
        environment: rollout.environment.clone(),
        lane: rollout.lane.to_string(),
        state: state_word(&rollout.phase).to_owned(),
        cause: view::cause(&rollout.cause),
        rings: rollout.rings.iter().map(view::ring_progress).collect(),
        late_failed: rollout.late_failed,
    }
}

/// The application's part.
fn content(entry: &Entry) -> Option<Digest> {
    match &entry.mode {
        Mode::Apply(packages) => Some(packages.workload.digest),
        Mode::Observe(_) => None,
    }
}

fn is_same(cause: &kedge_rollout::Cause, commit: &str) -> bool {
    cause.commit.starts_with(commit) || cause.main.as_ref().is_some_and(|main| main.starts_with(commit))
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
