//! What people may say about a promotion: approve it, override the gates before it or its own, or let it in outside its windows.
//! Called by the hub's API; `promote` reads the words later.

use kedge_model::kinds::Approval;

use super::{Chain, Promotion, PromotionPhase, Standing, is_override, short};
use crate::approval::{ONE_OF_PLATFORM, PLATFORM, counts, of_platform, overrides_once, people};
use crate::rollout::WORDS;
use crate::word::{Refused, Say, Word};

/// Takes a person's word on a commit (none: the one that waits, else the one in force), or says why not. A commit that nobody has
/// promoted here yet may be named: it waits from then on.
pub fn hear_promotion(chain: &Chain, environment: &str, commit: Option<&str>, word: Word) -> Result<Chain, Refused> {
    let Some(rules) = chain.policy.environment(environment) else {
        let message = format!("the policy doesn't name the environment {environment}");
        return Err(Refused::new("NoSuchEnvironment", message));
    };
    let Some(standing) = chain.environments.get(environment).cloned() else {
        let message = format!("the branch of {environment} has not been read yet");
        return Err(Refused::new("NotReadYet", message));
    };
    let commit = match commit.or_else(|| standing.subject()) {
        Some(commit) => commit.to_owned(),
        None => return Err(Refused::new("NothingWaits", format!("nothing waits to enter {environment}"))),
    };
    let mut promotion = match standing.promotion(&commit) {
        Some(promotion) if !matches!(promotion.phase, PromotionPhase::Superseded { .. }) => promotion.clone(),
        _ => Promotion::waiting(&commit, word.at),
    };
    let first = rules.rings.first();
    let ring = first.map(|ring| ring.name.clone());
    if promotion.words.len() >= WORDS {
        return Err(Refused::new("TooManyWords", format!("{WORDS} words were said about this promotion")));
    }
    let say = match &word.say {
        Say::Approve { .. } => {
            approve(
                &promotion,
                first.and_then(|ring| ring.approval.as_ref()).map(of_platform).as_ref(),
                ring.as_deref(),
                &word,
            )?;
            Say::Approve { ring }
        }
        Say::Override { .. } => {
            platform_only(&word)?;
            if word.reason.trim().is_empty() {
                return Err(Refused::new(
                    "ReasonNeeded",
                    "an override needs a written reason: it stays in the evidence",
                ));
            }
            if matches!(promotion.phase, PromotionPhase::Passed) {
                return Err(Refused::new("AlreadyPassed", format!("{} has passed {environment}", short(&commit))));
            }
            let said = promotion.heard.map_or(promotion.words.as_slice(), |_| promotion.said_here());
            overrides_once(said, rules.override_people, &word, is_override)?;
            Say::Override { ring: None }
        }
        Say::Now => {
            platform_only(&word)?;
            if promotion.phase != PromotionPhase::Waiting {
                let message = format!("{} is in {environment} already", short(&commit));
                return Err(Refused::new("NothingWaits", message));
            }
            Say::Now
        }
        other => {
            let message = format!("a promotion can't {}: use the command on its rollout", other.verb());
            return Err(Refused::new("NotOfPromotions", message));
        }
    };
    promotion.words.push(Word { say, ..word }.about(promotion.created_at));
    Ok(with(chain, environment, standing, promotion))
}

impl Standing {
    /// What a word is about that names no commit: the newest that waits, else what is in force.
    pub fn subject(&self) -> Option<&str> {
        let waiting = self.promotions.iter().find(|promotion| promotion.phase == PromotionPhase::Waiting);
        waiting.map(|promotion| promotion.commit.as_str()).or(self.current.as_deref())
    }
}

fn approve(promotion: &Promotion, rule: Option<&Approval>, ring: Option<&str>, word: &Word) -> Result<(), Refused> {
    let (rule, said) = match (&promotion.phase, rule) {
        (PromotionPhase::Waiting, Some(rule)) => (rule, promotion.words.as_slice()),
        (PromotionPhase::Entered, rule) if promotion.empty => (rule.unwrap_or(&ONE_OF_PLATFORM), promotion.said_here()),
        (PromotionPhase::Waiting, None) => {
            return Err(Refused::new("NothingToApprove", "the policy asks for no approval here"));
        }
        _ => {
            let message = format!("{} doesn't wait for an approval", short(&promotion.commit));
            return Err(Refused::new("NothingToApprove", message));
        }
    };
    let authors = promotion.all_authors();
    counts(rule, word, &authors)?;
    if people(rule, said, ring.unwrap_or_default(), &authors).contains_key(&word.person.id) {
        let message = format!("{} has approved {} already", word.who, short(&promotion.commit));
        return Err(Refused::new("AlreadyApproved", message));
    }
    Ok(())
}

fn platform_only(word: &Word) -> Result<(), Refused> {
    if word.role == PLATFORM {
        return Ok(());
    }
    let message = format!("only the role {PLATFORM} may {}; {} has the role {}", word.say.verb(), word.who, word.role);
    Err(Refused::new("RoleNeeded", message))
}

fn with(chain: &Chain, environment: &str, mut standing: Standing, promotion: Promotion) -> Chain {
    let known = standing
        .promotions
        .iter_mut()
        .find(|known| known.commit == promotion.commit && !matches!(known.phase, PromotionPhase::Superseded { .. }));
    match known {
        Some(known) => *known = promotion,
        None => standing.promotions.insert(0, promotion),
    }
    standing.trim();
    let mut next = chain.clone();
    next.environments.insert(environment.to_owned(), standing);
    next
}
