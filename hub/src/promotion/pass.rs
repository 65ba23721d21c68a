//! One look at everything: the policy, people's words, what Git says, what became of commits; then decisions, which are
//! saved with their evidence before Git is made to follow. Called by the desk's task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kedge_model::kinds::PromotionPolicy;
use kedge_platform::{Environments, PolicyState, Revision};
use kedge_rollout::chain::{EnvironmentFacts, MainCommit};
use kedge_rollout::{Chain, ChainFacts, Promotion, PromotionPhase, Say, hear_promotion, promote};

use super::evidence::{self, Event};
use super::facts::{self, Base, Branch};
use super::policy::{self, Found, Source};
use super::statuses::Wanted;
use super::{After, Desk, PassError};
use crate::git::{Head, Trust};
use crate::platform::Environment;
use crate::store::promotion::evidence::NewEvidence;
use crate::store::promotion::words::{About, TakenWord, WaitingWord};
use crate::store::promotion::{Policies, PolicySlot, PromotionRow, PromotionSave};
use crate::store::{Term, now};

/// Promotions of an environment whose commits show a status; older ones don't change.
const SHOWN: usize = 10;

/// A chain comes to rest in one step; more would be a fault of ours.
const STEPS: usize = 16;

impl Desk {
    pub(super) async fn pass(&self, term: Term) -> Result<After, PassError> {
        let head = self.mirrors.head(&self.control_plane, &self.main, Trust::Platform).await;
        let head = head.map_err(|error| PassError::Main(Box::new(error)))?;
        let (on_policy, on_promotions): (Vec<WaitingWord>, Vec<WaitingWord>) =
            self.store.waiting_promotion_words().await?.into_iter().partition(|word| word.about == About::Policy);
        let policies = self.settle_policy(term, &head, &on_policy).await?;
        self.rollouts.policies.set(policies.in_force().map(|policy| &**policy));
        let rows = self.store.promotions().await?;
        let Some(policy) = policies.in_force() else {
            self.release(term, rows, &on_promotions).await?;
            self.witness_rollouts(term, None).await?;
            self.wish(None, &BTreeMap::new()).await?;
            return Ok(After::Idle);
        };
        let environments = self.store.good_environments().await?;
        let branches = self.read_branches(&environments, policy).await?;
        let main = self.read_main(&head).await?;
        let standings = rows.iter().map(|(name, row)| (name.clone(), row.standing.clone()));
        let mut chain = Chain {
            policy: Arc::clone(policy),
            environments: standings.filter(|(name, _)| policy.environment(name).is_some()).collect(),
        };
        let before = chain.clone();
        let facts = self.gather(&chain, &rows, &branches, main).await?;
        // What runs is adopted before anybody's word on what comes next.
        chain = settled(chain, &facts);
        let taken = hear_all(&mut chain, on_promotions);
        chain = settled(chain, &facts);
        let rows = self.save(term, &before, &chain, rows, taken).await?;
        let rows = self.follow(term, &chain, rows, &environments, branches).await?;
        self.witness_rollouts(term, Some(policy)).await?;
        self.wish(Some(&chain), &rows).await?;
        let unknown = policy.environments.iter().any(|rules| !chain.environments.contains_key(&rules.name));
        Ok(match unknown || chain.environments.values().flat_map(|standing| &standing.promotions).any(is_open) {
            true => After::Waiting,
            false if rows.values().any(|row| row.trouble.is_some()) => After::Waiting,
            false => After::Idle,
        })
    }

    /// Reads the policy on main's head and says which one counts.
    async fn settle_policy(&self, term: Term, head: &Head, words: &[WaitingWord]) -> Result<Policies, PassError> {
        let (found, source) = self.read_policy(head).await?;
        let before = self.store.policies().await?;
        let settled = policy::settle(&before, &found, &source, words, now());
        let after = settled.policies;
        let slots = [
            (PolicySlot::Force, &before.force, &after.force),
            (PolicySlot::Waiting, &before.waiting, &after.waiting),
            (PolicySlot::Broken, &before.broken, &after.broken),
        ];
        let changes: Vec<_> =
            slots.iter().filter(|(_, old, new)| old != new).map(|(slot, _, new)| (*slot, new.as_ref())).collect();
        if !changes.is_empty() || !settled.taken.is_empty() {
            let mut agreed = Vec::new();
            for (_, row) in changes.iter().filter(|(slot, row)| *slot == PolicySlot::Force && row.is_some()) {
                let loosened = row.filter(|row| !row.words.is_empty());
                let event =
                    self.event("loosened", "", &self.control_plane, loosened.and_then(|row| row.policy.as_deref()));
                agreed.extend(loosened.map(|row| evidence::of_policy(&*self.witness, &event, row)).transpose()?);
            }
            self.store.save_policies(term, &changes, &settled.taken, &agreed).await?;
            for (slot, row) in &changes {
                match (slot, row) {
                    (PolicySlot::Force, Some(row)) => {
                        let agreed: Vec<&str> = row.words.iter().map(|word| word.who.as_str()).collect();
                        tracing::info!(commit = row.commit, ?agreed, "a promotion policy is in force");
                    }
                    (PolicySlot::Waiting, Some(row)) => {
                        tracing::warn!(commit = row.commit, author = row.author, reasons = ?row.reasons, "a looser promotion policy waits for an approval");
                    }
                    (PolicySlot::Broken, Some(row)) => {
                        tracing::warn!(commit = row.commit, problems = ?row.reasons, "the promotion policy can't be read; the last good one stays");
                    }
                    (_, None) => {}
                }
            }
            // What is shown with each environment is another.
            self.moved.send_modify(|count| *count += 1);
        }
        Ok(after)
    }

    async fn read_policy(&self, head: &Head) -> Result<(Found, Source), PassError> {
        if let Some((commit, found, source)) = &self.remembered().policy
            && *commit == head.commit
        {
            return Ok((found.clone(), source.clone()));
        }
        let (mirrors, cache, repo, at) =
            (self.mirrors.clone(), Arc::clone(&self.cache), self.control_plane.clone(), head.clone());
        let work = move || read_policy(&mirrors, &cache, &repo, &at);
        let (found, source) = tokio::task::spawn_blocking(work).await.map_err(|_| PassError::Interrupted)?;
        self.remembered().policy = Some((head.commit.clone(), found.clone(), source.clone()));
        Ok((found, source))
    }

    /// Nothing is governed: environments are read as their branches say.
    async fn release(
        &self,
        term: Term,
        rows: BTreeMap<String, PromotionRow>,
        words: &[WaitingWord],
    ) -> Result<(), PassError> {
        let refused = "there is no PromotionPolicy in force".to_owned();
        let taken = words.iter().map(|word| TakenWord { id: word.id, refused: Some(refused.clone()) }).collect();
        let gone: Vec<String> = rows.into_keys().collect();
        let moved = !gone.is_empty();
        self.store.save_promotions(term, &PromotionSave { gone, taken, ..PromotionSave::default() }).await?;
        if moved {
            self.moved.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    async fn read_main(&self, head: &Head) -> Result<Arc<[MainCommit]>, PassError> {
        if let Some((commit, log)) = &self.remembered().main
            && *commit == head.commit
        {
            return Ok(Arc::clone(log));
        }
        let at = head.clone();
        let log =
            tokio::task::spawn_blocking(move || facts::main_log(&at)).await.map_err(|_| PassError::Interrupted)?;
        let log: Arc<[MainCommit]> = log.into();
        self.remembered().main = Some((head.commit.clone(), Arc::clone(&log)));
        Ok(log)
    }

    /// What the branches of the policy's environments say. One that can't be had isn't there.
    async fn read_branches(
        &self,
        environments: &BTreeMap<String, Environment>,
        policy: &PromotionPolicy,
    ) -> Result<BTreeMap<String, Branch>, PassError> {
        let mut found = BTreeMap::new();
        for rules in &policy.environments {
            let Some(environment) = environments.get(&rules.name) else { continue };
            let at = &environment.control_plane;
            // What is described on main itself is always at main's head.
            if at.branch.trim() == self.main {
                continue;
            }
            let Ok(head) = self.mirrors.head(&at.repo, at.branch.trim(), Trust::Platform).await else { continue };
            let known = self.remembered().branches.get(&rules.name).filter(|known| known.head == head.commit).cloned();
            let branch = match known {
                Some(known) => known,
                None => {
                    let (mirrors, cache, environment, key) =
                        (self.mirrors.clone(), Arc::clone(&self.cache), environment.clone(), self.key());
                    let work = move || facts::branch(&mirrors, &cache, &head, &environment, &key);
                    tokio::task::spawn_blocking(work).await.map_err(|_| PassError::Interrupted)?
                }
            };
            self.remembered().branches.insert(rules.name.clone(), branch.clone());
            found.insert(rules.name.clone(), branch);
        }
        Ok(found)
    }

    async fn gather(
        &self,
        chain: &Chain,
        rows: &BTreeMap<String, PromotionRow>,
        branches: &BTreeMap<String, Branch>,
        main: Arc<[MainCommit]>,
    ) -> Result<ChainFacts, PassError> {
        let mut environments = BTreeMap::new();
        for (name, branch) in branches {
            let standing = chain.environments.get(name);
            let named = match &branch.base {
                // Nobody knows what it names: it stays as it is.
                Base::Unclear { .. } | Base::Elsewhere { .. } => continue,
                Base::Missing => None,
                Base::Here(written) => match written.commit() {
                    Some(commit) => Some(written.named(&commit)),
                    // It follows main's head: that is what it runs when the policy comes, and may have later on.
                    None => main
                        .first()
                        .filter(|head| standing.is_none() || chain.permits(name, &head.commit))
                        .map(|head| written.named(&head.commit)),
                },
            };
            let row = rows.get(name);
            let current = standing.and_then(|standing| standing.current.as_deref());
            // What isn't read yet has no outcome.
            let read = current.filter(|current| row.is_some_and(|row| row.in_force.as_deref() == Some(*current)));
            let outcome = match read {
                Some(commit) => self.outcomes.outcome(name, commit).await?,
                None => None,
            };
            environments.insert(name.clone(), EnvironmentFacts { named, outcome });
        }
        Ok(ChainFacts { main: main.to_vec(), environments })
    }

    /// Writes down what was decided, with evidence of what passed and of what people overrode.
    async fn save(
        &self,
        term: Term,
        before: &Chain,
        chain: &Chain,
        mut rows: BTreeMap<String, PromotionRow>,
        taken: Vec<TakenWord>,
    ) -> Result<BTreeMap<String, PromotionRow>, PassError> {
        let mut save = PromotionSave { taken, ..PromotionSave::default() };
        let mut moved = false;
        save.gone = rows.keys().filter(|name| !chain.environments.contains_key(*name)).cloned().collect();
        rows.retain(|name, _| chain.environments.contains_key(name));
        for (name, standing) in &chain.environments {
            let old = before.environments.get(name);
            if old == Some(standing) {
                continue;
            }
            for promotion in &standing.promotions {
                // A commit may come twice; each time is a promotion of its own.
                let known = old.and_then(|old| old.promotions.iter().find(|known| is_same(known, promotion)));
                for event in events(known, promotion) {
                    save.evidence.push(self.witness_promotion(chain, name, promotion, event).await?);
                }
                if known.is_none_or(|known| known.phase != promotion.phase) {
                    tracing::info!(environment = name, commit = promotion.commit, phase = ?promotion.phase, "promotion");
                }
            }
            if let Some(refused) =
                standing.refused.as_ref().filter(|new| old.and_then(|old| old.refused.as_ref()) != Some(*new))
            {
                let (commit, by, why) = (&refused.commit, &refused.by, &refused.why);
                tracing::warn!(
                    environment = name,
                    commit,
                    by,
                    why,
                    "the branch names a commit that may not come in; the last one stays"
                );
            }
            let row = rows.entry(name.clone()).or_default();
            let shown = (row.in_force.clone(), row.standing.refused.clone());
            row.standing = standing.clone();
            // What it runs when the policy comes is in force; everything else once its branch has named it.
            if row.in_force.is_none() {
                let adopted = standing.promotions.iter().find(|known| known.phase == PromotionPhase::Adopted);
                row.in_force = adopted.map(|adopted| adopted.commit.clone());
            }
            moved |= shown != (row.in_force.clone(), row.standing.refused.clone());
            save.rows.insert(name.clone(), row.clone());
        }
        moved |= !save.gone.is_empty();
        self.store.save_promotions(term, &save).await?;
        if moved {
            self.moved.send_modify(|count| *count += 1);
        }
        Ok(rows)
    }

    async fn witness_promotion(
        &self,
        chain: &Chain,
        environment: &str,
        promotion: &Promotion,
        event: &'static str,
    ) -> Result<NewEvidence, PassError> {
        let rollout = match promotion.rollout {
            Some(id) => self.outcomes.rollout(id).await?,
            None => None,
        };
        let rules = chain.policy.environment(environment);
        let after = rules.iter().flat_map(|rules| &rules.after).map(|before| {
            let passed = chain.environments.get(before).and_then(|standing| standing.promotion(&promotion.commit));
            (before.clone(), passed.and_then(|passed| passed.passed_at))
        });
        let event = self.event(event, environment, &self.control_plane, Some(&chain.policy));
        let made =
            evidence::of_promotion(&self.store, &*self.witness, &event, promotion, after.collect(), rollout.as_ref());
        Ok(made.await?)
    }

    /// Evidence of rollouts that ended: of applications, and of environments' own changes.
    async fn witness_rollouts(&self, term: Term, policy: Option<&PromotionPolicy>) -> Result<(), PassError> {
        let ended = self.outcomes.unwitnessed().await?;
        let mut made = Vec::new();
        for rollout in &ended {
            let repo = match &rollout.lane {
                kedge_rollout::Lane::Platform => self.control_plane.as_str(),
                kedge_rollout::Lane::Source { repo, .. } => repo.as_str(),
            };
            let word = match rollout.phase {
                kedge_rollout::Phase::Complete { .. } => "completed",
                _ => "ended",
            };
            let event = self.event(word, &rollout.environment, repo, policy);
            made.push(evidence::of_rollout(&self.store, &*self.witness, &event, rollout).await?);
        }
        if !made.is_empty() {
            self.store.keep_evidence(term, &made).await?;
        }
        Ok(())
    }

    fn event<'a>(
        &self,
        event: &'static str,
        environment: &'a str,
        repo: &'a str,
        policy: Option<&'a PromotionPolicy>,
    ) -> Event<'a> {
        Event { event, environment, repo, at: now(), policy }
    }

    /// What Git servers shall show of commits.
    async fn wish(&self, chain: Option<&Chain>, rows: &BTreeMap<String, PromotionRow>) -> Result<(), PassError> {
        let mut wanted = Vec::new();
        for (name, standing) in chain.iter().flat_map(|chain| &chain.environments) {
            for promotion in standing.promotions.iter().take(SHOWN) {
                let headline = self.headline(promotion).await?;
                let trouble = rows.get(name).and_then(|row| row.trouble.clone());
                let current = standing.current.as_deref() == Some(promotion.commit.as_str());
                let headline = headline.or(trouble.filter(|_| current));
                wanted.extend(Wanted::of_promotion(&self.control_plane, name, promotion, headline.as_deref()));
            }
        }
        for rollout in self.outcomes.of_sources().await? {
            if let kedge_rollout::Lane::Source { repo, .. } = &rollout.lane {
                let headline = self.outcomes.headline(&rollout).await?;
                wanted.push(Wanted::of_rollout(repo, &rollout, &headline));
            }
        }
        // Of a commit that came twice the newest word counts.
        let mut known = BTreeSet::new();
        wanted.retain(|one| known.insert((one.repo.clone(), one.commit.clone(), one.context.clone())));
        self.statuses.wish(wanted);
        Ok(())
    }

    async fn headline(&self, promotion: &Promotion) -> Result<Option<String>, PassError> {
        let (Some(id), PromotionPhase::Entered) = (promotion.rollout, &promotion.phase) else { return Ok(None) };
        match self.outcomes.rollout(id).await? {
            Some(rollout) => Ok(Some(self.outcomes.headline(&rollout).await?)),
            None => Ok(None),
        }
    }
}

/// Main's head says this about promotion, and this is who wrote it.
fn read_policy(
    mirrors: &crate::git::Mirrors,
    cache: &kedge_platform::Cache,
    repo: &str,
    head: &Head,
) -> (Found, Source) {
    let mut source = facts::source(head, None);
    let opened = mirrors.open(repo, Trust::Platform).ok_or("the mirror can't be opened".to_owned());
    let tree = opened.and_then(|opened| {
        let revision = opened.commit(&head.commit).map_err(|error| error.to_string())?;
        opened.tree(&Revision { name: Some(head.branch.clone()), ..revision }, repo).map_err(|error| error.to_string())
    });
    let found = tree.and_then(|tree| Environments::in_tree(&tree, Some(cache)).map_err(|error| error.to_string()));
    let declared = match found {
        Ok(found) => found.policy,
        Err(error) => return (Found::Broken(vec![error]), source),
    };
    let found = match (&declared.state, declared.get()) {
        (PolicyState::Absent, _) => Found::Absent,
        (_, Some((object, policy))) => {
            source = facts::source(head, Some(&object.origin.file));
            Found::Policy(Arc::new(policy.clone()))
        }
        _ => {
            let errors = declared.problems.iter().filter(|problem| problem.is_error());
            let mut said: Vec<String> = errors.map(|problem| problem.message.clone()).collect();
            if said.is_empty() {
                said.push("main has files that can't be read, and one of them may be the policy".to_owned());
            }
            Found::Broken(said)
        }
    };
    (found, source)
}

/// The chain at rest.
fn settled(mut chain: Chain, facts: &ChainFacts) -> Chain {
    for _ in 0..STEPS {
        match promote(&chain, facts, now()) {
            Some(next) => chain = next,
            None => break,
        }
    }
    chain
}

/// Takes people's words, the oldest first.
fn hear_all(chain: &mut Chain, words: Vec<WaitingWord>) -> Vec<TakenWord> {
    let mut taken = Vec::new();
    for WaitingWord { id, about, word } in words {
        let About::Promotion { environment, commit } = about else { continue };
        let who = word.who.clone();
        let refused = match hear_promotion(chain, &environment, commit.as_deref(), word) {
            Ok(next) => {
                *chain = next;
                None
            }
            Err(refused) => Some(refused.to_string()),
        };
        tracing::info!(environment, commit, who, refused, "a word on a promotion");
        taken.push(TakenWord { id, refused });
    }
    taken
}

/// What of a promotion's change has to be witnessed.
fn events(before: Option<&Promotion>, after: &Promotion) -> Vec<&'static str> {
    let overrides =
        |promotion: &Promotion| promotion.words.iter().filter(|word| matches!(word.say, Say::Override { .. })).count();
    let mut events = Vec::new();
    if overrides(after) > before.map_or(0, overrides) {
        events.push("overridden");
    }
    if before.map(|before| &before.phase) != Some(&after.phase) {
        match after.phase {
            PromotionPhase::Passed => events.push("passed"),
            PromotionPhase::Reopened { .. } => events.push("reopened"),
            _ => {}
        }
    }
    events
}

fn is_same(one: &Promotion, other: &Promotion) -> bool {
    one.commit == other.commit && one.created_at == other.created_at
}

/// Something may still come of it.
fn is_open(promotion: &Promotion) -> bool {
    matches!(promotion.phase, PromotionPhase::Waiting | PromotionPhase::Entered)
}
