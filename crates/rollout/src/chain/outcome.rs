//! What became of the commit in force, from its rollout here. Called by `promote`.

use kedge_model::kinds::{Empty, EnvironmentPolicy};
use kedge_model::wire::Timestamp;

use super::{Outcome, OutcomeState, Promotion, PromotionPhase, Standing};
use crate::approval::{ONE_OF_PLATFORM, missing, of_platform};

pub(super) fn settle(standing: &mut Standing, rules: &EnvironmentPolicy, outcome: Option<&Outcome>, now: Timestamp) {
    let Some(current) = standing.current.clone() else { return };
    let in_force = |promotion: &&mut Promotion| {
        promotion.commit == current
            && !matches!(promotion.phase, PromotionPhase::Waiting | PromotionPhase::Superseded { .. })
    };
    let Some(promotion) = standing.promotions.iter_mut().find(in_force) else { return };
    let outcome = outcome.filter(|outcome| outcome.commit == promotion.commit);
    if promotion.phase == PromotionPhase::Passed {
        look_back(promotion, outcome, rules.override_people);
        return;
    }
    if promotion.overridden_here(rules.override_people) {
        pass(promotion, now);
        return;
    }
    if promotion.phase == PromotionPhase::Adopted {
        return;
    }
    let Some(outcome) = outcome else {
        if promotion.phase == PromotionPhase::Entered {
            promotion.waits_for = vec!["to be read, published and packed".to_owned()];
        }
        return;
    };
    promotion.rollout = outcome.rollout.or(promotion.rollout);
    promotion.empty = false;
    promotion.remark.clone_from(&outcome.remark);
    match &outcome.state {
        OutcomeState::Complete { late_failed } => {
            promotion.late_failed = *late_failed;
            pass(promotion, now);
        }
        OutcomeState::Moving | OutcomeState::Held => {
            if matches!(promotion.phase, PromotionPhase::Failed { .. }) {
                promotion.phase = PromotionPhase::Entered;
            }
            promotion.waits_for = vec![match promotion.rollout {
                Some(rollout) => format!("rollout {rollout} to be complete"),
                None => "its rollout to be complete".to_owned(),
            }];
        }
        OutcomeState::Unchanged => unchanged(promotion, rules, now),
        OutcomeState::Failed { why } => {
            promotion.waits_for.clear();
            promotion.phase = match promotion.phase {
                PromotionPhase::Reopened { .. } => PromotionPhase::Reopened { why: why.clone() },
                _ => PromotionPhase::Failed { why: why.clone() },
            };
        }
    }
}

/// It changed nothing here: only a person, or the policy in so many words, lets it go on.
fn unchanged(promotion: &mut Promotion, rules: &EnvironmentPolicy, now: Timestamp) {
    let first = rules.rings.first();
    let rule = first.and_then(|ring| ring.approval.as_ref()).map_or(ONE_OF_PLATFORM, of_platform);
    let ring = first.map(|ring| ring.name.as_str()).unwrap_or_default();
    let lacks = missing(&rule, promotion.said_here(), ring, &promotion.all_authors());
    let by_policy = !rules.rings.is_empty() && rules.rings.iter().all(|ring| ring.gate.empty == Empty::Pass);
    match lacks {
        Some(lacks) if !by_policy => {
            promotion.phase = PromotionPhase::Entered;
            promotion.empty = true;
            promotion.waits_for = vec![format!(
                "nothing to observe: it changes nothing in {}: approve or override it ({lacks})",
                rules.name
            )];
        }
        _ => pass(promotion, now),
    }
}

fn pass(promotion: &mut Promotion, now: Timestamp) {
    promotion.phase = PromotionPhase::Passed;
    promotion.passed_at = Some(now);
    promotion.waits_for.clear();
    promotion.empty = false;
}

/// After it had passed, only its own rollout opens it again: later ones are about the environment's own changes. A person's override
/// stands.
fn look_back(promotion: &mut Promotion, outcome: Option<&Outcome>, needed: u32) {
    let Some(outcome) = outcome.filter(|outcome| outcome.rollout == promotion.rollout) else { return };
    match &outcome.state {
        OutcomeState::Complete { late_failed } => promotion.late_failed = *late_failed,
        OutcomeState::Failed { why } if !promotion.overridden_here(needed) => {
            promotion.phase = PromotionPhase::Reopened { why: why.clone() };
        }
        _ => {}
    }
}
