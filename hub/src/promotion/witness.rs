//! What is said to the outside about decisions: evidence, and what Git servers show of commits. Called by a pass.

use std::collections::{BTreeMap, BTreeSet};

use kedge_model::kinds::PromotionPolicy;
use kedge_rollout::{Chain, Lane, Phase, Promotion, PromotionPhase};

use super::evidence::{self, Event};
use super::statuses::Wanted;
use super::{PassError, PromotionController};
use crate::store::promotion::PromotionRow;
use crate::store::promotion::evidence::NewEvidence;
use crate::store::{Term, now};

/// Promotions of an environment whose commits show a status; older ones don't change.
const SHOWN: usize = 10;

impl PromotionController {
    pub(super) async fn witness_promotion(
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
    pub(super) async fn witness_rollouts(&self, term: Term, policy: Option<&PromotionPolicy>) -> Result<(), PassError> {
        let ended = self.outcomes.unwitnessed().await?;
        let mut made = Vec::new();
        for rollout in &ended {
            let repo = match &rollout.lane {
                Lane::Platform => self.control_plane.as_str(),
                Lane::Source { repo, .. } => repo.as_str(),
            };
            let word = match rollout.phase {
                Phase::Complete { .. } => "completed",
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

    pub(super) fn event<'a>(
        &self,
        event: &'static str,
        environment: &'a str,
        repo: &'a str,
        policy: Option<&'a PromotionPolicy>,
    ) -> Event<'a> {
        Event { event, environment, repo, at: now(), policy }
    }

    /// What Git servers shall show of commits.
    pub(super) async fn wish(
        &self,
        chain: Option<&Chain>,
        rows: &BTreeMap<String, PromotionRow>,
    ) -> Result<(), PassError> {
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
            if let Lane::Source { repo, .. } = &rollout.lane {
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

    pub(super) async fn headline(&self, promotion: &Promotion) -> Result<Option<String>, PassError> {
        let (Some(id), PromotionPhase::Entered) = (promotion.rollout, &promotion.phase) else { return Ok(None) };
        match self.outcomes.rollout(id).await? {
            Some(rollout) => Ok(Some(self.outcomes.headline(&rollout).await?)),
            None => Ok(None),
        }
    }
}
