//! One look at everything: the policy, people's words, what Git says, what became of commits; then decisions, which are
//! saved with their evidence before Git is made to follow. Called by the controller's task.

use std::collections::BTreeMap;
use std::sync::Arc;

use kedge_hub_types::history::Entry;
use kedge_rollout::{Chain, ChainFacts, Promotion, PromotionPhase, Say, hear_promotion, promote};

use super::{After, PassError, PromotionController, evidence, policy, told};
use crate::git::{Head, Trust};
use crate::store::promotion::words::{About, TakenWord, WaitingWord};
use crate::store::promotion::{Policies, PolicySlot, PromotionRow, PromotionSave};
use crate::store::{Term, now};

/// A chain comes to rest in one step; more would be a fault of ours.
const STEPS: usize = 16;

impl PromotionController {
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
        let heard = hear_all(&mut chain, on_promotions);
        chain = settled(chain, &facts);
        let rows = self.save(term, &before, &chain, rows, heard).await?;
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
            let news = told::policies(&changes, words, &settled.taken, now());
            self.store.save_policies(term, &changes, &settled.taken, &agreed, news).await?;
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

    /// Writes down what was decided, with evidence of what passed and of what people overrode.
    async fn save(
        &self,
        term: Term,
        before: &Chain,
        chain: &Chain,
        mut rows: BTreeMap<String, PromotionRow>,
        (taken, news): (Vec<TakenWord>, Vec<Entry>),
    ) -> Result<BTreeMap<String, PromotionRow>, PassError> {
        let mut save = PromotionSave { taken, news, ..PromotionSave::default() };
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
                    save.news.push(told::promotion(name, promotion, now()));
                }
            }
            if let Some(refused) =
                standing.refused.as_ref().filter(|new| old.and_then(|old| old.refused.as_ref()) != Some(*new))
            {
                let (commit, by, why) = (&refused.commit, &refused.by, &refused.why);
                save.news.push(told::refused(name, refused));
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
fn hear_all(chain: &mut Chain, words: Vec<WaitingWord>) -> (Vec<TakenWord>, Vec<Entry>) {
    let (mut taken, mut news) = (Vec::new(), Vec::new());
    for WaitingWord { id, about, word } in words {
        let About::Promotion { environment, commit } = about else { continue };
        let who = word.who.clone();
        let refused = match hear_promotion(chain, &environment, commit.as_deref(), word.clone()) {
            Ok(next) => {
                *chain = next;
                None
            }
            Err(refused) => Some(refused.to_string()),
        };
        tracing::info!(environment, commit, who, refused, "a word on a promotion");
        news.push(told::word(&environment, commit.as_deref(), "promotion", &word, refused.as_deref()));
        taken.push(TakenWord { id, refused });
    }
    (taken, news)
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
