//! Which PromotionPolicy counts: the one on main's head, unless it is looser than the one in force; then people are asked
//! first. One that can't be read leaves the last good one in force, and its deletion is a loosening too. Pure; called by the
//! promotion controller.

use std::sync::Arc;

use kedge_model::kinds::PromotionPolicy;
use kedge_model::wire::{Digest, Timestamp};
use kedge_rollout::approval::{counts_as_person, overridden};
use kedge_rollout::{Say, Word};

use crate::store::promotion::words::{TakenWord, WaitingWord};
use crate::store::promotion::{Policies, PolicyRow};

/// What main's head says.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Absent,
    Policy(Arc<PromotionPolicy>),
    /// Why it can't be used.
    Broken(Vec<String>),
}

/// Main's head, and who wrote what it says about promotion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub commit: String,
    pub subject: String,
    pub author: String,
}

/// How the policies stand now.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    pub policies: Policies,
    /// What became of people's words.
    pub taken: Vec<TakenWord>,
}

/// The role whose word counts.
const PLATFORM: &str = "platform";

/// How many must agree, and whether the author counts: as careful as the most careful approval of the policy in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    pub people: usize,
    pub not_author: bool,
    /// So many override.
    pub overriders: u32,
}

pub fn settle(before: &Policies, found: &Found, source: &Source, words: &[WaitingWord], now: Timestamp) -> Settled {
    let mut policies = before.clone();
    let row = |policy: Option<Arc<PromotionPolicy>>, reasons: Vec<String>| PolicyRow {
        digest: digest(policy.as_deref()),
        policy,
        commit: source.commit.clone(),
        subject: source.subject.clone(),
        author: source.author.clone(),
        reasons,
        words: Vec::new(),
        since: now,
    };
    let wanted = match found {
        Found::Broken(reasons) => {
            let same = policies.broken.as_ref().is_some_and(|broken| broken.reasons == *reasons);
            if !same {
                policies.broken = Some(row(None, reasons.clone()));
            }
            let taken = hear(&mut policies, words);
            return Settled { policies: accept(policies), taken };
        }
        Found::Absent => None,
        Found::Policy(policy) => Some(Arc::clone(policy)),
    };
    policies.broken = None;
    let new = digest(wanted.as_deref());
    match &policies.force {
        // Nobody ever wrote one.
        None if wanted.is_none() => {}
        Some(force) if force.digest == new => policies.waiting = None,
        force => {
            let old = force.as_ref().and_then(|force| force.policy.as_deref());
            let reasons = kedge_rollout::policy::loosens(old, wanted.as_deref());
            match (reasons.is_empty(), &mut policies.waiting) {
                (true, _) => {
                    policies.force = Some(row(wanted, Vec::new()));
                    policies.waiting = None;
                }
                (false, Some(waiting)) if waiting.digest == new => waiting.reasons = reasons,
                (false, waiting) => *waiting = Some(row(wanted, reasons)),
            }
        }
    }
    let taken = hear(&mut policies, words);
    Settled { policies: accept(policies), taken }
}

pub fn quorum(policy: Option<&PromotionPolicy>) -> Quorum {
    let rings = policy.into_iter().flat_map(|policy| &policy.environments).flat_map(|environment| &environment.rings);
    let approvals: Vec<_> = rings.filter_map(|ring| ring.approval.as_ref()).collect();
    let people = approvals.iter().map(|approval| usize::try_from(approval.people).unwrap_or(usize::MAX)).max();
    let environments = policy.into_iter().flat_map(|policy| &policy.environments);
    Quorum {
        people: people.unwrap_or(1).max(1),
        not_author: approvals.iter().any(|approval| approval.not_author),
        overriders: environments.map(|environment| environment.override_people).max().unwrap_or(1),
    }
}

/// Names a policy's content; empty: none.
fn digest(policy: Option<&PromotionPolicy>) -> String {
    let body = policy.and_then(|policy| serde_json::to_vec(policy).ok());
    body.map(|body| Digest::of(&body).to_string()).unwrap_or_default()
}

/// Takes people's words on the policy that waits.
fn hear(policies: &mut Policies, words: &[WaitingWord]) -> Vec<TakenWord> {
    let quorum = quorum(policies.in_force().map(|policy| &**policy));
    let mut taken = Vec::new();
    for said in words {
        let refused = match &mut policies.waiting {
            None => Some("no policy waits for an approval".to_owned()),
            Some(waiting) => match judge(waiting, &said.word, quorum) {
                Ok(()) => {
                    waiting.words.push(said.word.clone());
                    None
                }
                Err(why) => Some(why),
            },
        };
        taken.push(TakenWord { id: said.id, refused });
    }
    taken
}

/// Whether a word may count. The API asks the same before it writes one.
pub fn judge(waiting: &PolicyRow, word: &Word, quorum: Quorum) -> Result<(), String> {
    if word.role != PLATFORM {
        return Err(format!(
            "only the role {PLATFORM} may agree to a looser policy; {} has the role {}",
            word.who, word.role
        ));
    }
    match &word.say {
        Say::Override { .. } if word.reason.trim().is_empty() => {
            Err("an override needs a written reason: it stays with the policy".to_owned())
        }
        Say::Override { .. } => Ok(()),
        Say::Approve { .. } if people(waiting).contains(&word.person.id) => {
            Err(format!("{} has agreed already", word.who))
        }
        Say::Approve { .. } => {
            let counted = counts_as_person(quorum.not_author, word, &[&waiting.author], "the policy");
            counted.map_err(|refused| refused.message)
        }
        _ => Err("a policy that waits can be approved, and nothing else".to_owned()),
    }
}

fn people(waiting: &PolicyRow) -> std::collections::BTreeSet<String> {
    let approved = waiting.words.iter().filter(|word| matches!(word.say, Say::Approve { .. }));
    approved.map(|word| word.person.id.clone()).filter(|id| !id.is_empty()).collect()
}

/// The policy that waits is in force once enough people agree.
fn accept(mut policies: Policies) -> Policies {
    let quorum = quorum(policies.in_force().map(|policy| &**policy));
    let agreed = policies.waiting.as_ref().is_some_and(|waiting| {
        let over = |say: &Say| matches!(say, Say::Override { .. });
        overridden(&waiting.words, quorum.overriders, over) || people(waiting).len() >= quorum.people
    });
    if agreed {
        policies.force = policies.waiting.take();
    }
    policies
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kedge_model::kinds::{Approval, ApproverRole, EnvironmentPolicy, Promoter};
    use kedge_rollout::Person;

    use super::*;
    use crate::store::promotion::words::About;

    const NOW: Timestamp = Timestamp(1_000);

    fn policy(soak: u64, approval: Option<Approval>) -> Found {
        let mut environment = EnvironmentPolicy::new("dev", Vec::new());
        environment.rings[0].soak = Duration::from_secs(soak);
        environment.rings[0].approval = approval;
        Found::Policy(Arc::new(PromotionPolicy { promoter: Promoter::Kedge, environments: vec![environment] }))
    }

    fn source(commit: &str) -> Source {
        Source { commit: commit.to_owned(), subject: "change".to_owned(), author: "Ann <ann@example.org>".to_owned() }
    }

    fn word(who: &str, role: &str, say: Say, reason: &str) -> WaitingWord {
        let (who, role, reason) = (who.to_owned(), role.to_owned(), reason.to_owned());
        let id = who.to_lowercase();
        let person = Person::new(&id, &[&format!("{id}@example.org")]);
        let word = Word { who, person, role, at: NOW, reason, say, new_token: false };
        WaitingWord { id: 1, about: About::Policy, word }
    }

    fn approve(who: &str) -> WaitingWord {
        word(who, "platform", Say::Approve { ring: None }, "")
    }

    fn soak(policies: &Policies) -> Option<u64> {
        Some(policies.in_force()?.environments[0].rings[0].soak.as_secs())
    }

    #[test]
    fn the_first_policy_and_a_stricter_one_count_at_once() {
        let first = settle(&Policies::default(), &policy(60, None), &source("a"), &[], NOW).policies;
        assert_eq!(soak(&first), Some(60));
        let stricter = settle(&first, &policy(120, None), &source("b"), &[], NOW).policies;
        assert_eq!((soak(&stricter), stricter.waiting), (Some(120), None));
    }

    #[test]
    fn a_looser_policy_waits_for_a_person_of_the_platform() {
        let first = settle(&Policies::default(), &policy(60, None), &source("a"), &[], NOW).policies;
        let looser = settle(&first, &policy(10, None), &source("b"), &[], NOW).policies;
        assert_eq!(soak(&looser), Some(60));
        let waiting = looser.waiting.clone().unwrap();
        assert!(!waiting.reasons.is_empty());
        let team = word("bob", "application", Say::Approve { ring: None }, "");
        let refused = settle(&looser, &policy(10, None), &source("b"), &[team], NOW);
        assert!(refused.taken[0].refused.as_ref().unwrap().contains("role platform"));
        assert_eq!(soak(&refused.policies), Some(60));
        let agreed = settle(&looser, &policy(10, None), &source("b"), &[approve("bob")], NOW);
        assert_eq!((soak(&agreed.policies), agreed.taken[0].refused.clone()), (Some(10), None));
        assert_eq!(agreed.policies.force.unwrap().words[0].who, "bob");
        // Back to the old one: nothing waits.
        let back = settle(&looser, &policy(60, None), &source("c"), &[], NOW).policies;
        assert_eq!(back.waiting, None);
        // Another looser one needs agreement of its own.
        let other = settle(&looser, &policy(5, None), &source("d"), &[], NOW).policies;
        assert_ne!(other.waiting.unwrap().digest, waiting.digest);
    }

    #[test]
    fn a_deleted_policy_stays_in_force_until_people_agree() {
        let first = settle(&Policies::default(), &policy(60, None), &source("a"), &[], NOW).policies;
        let deleted = settle(&first, &Found::Absent, &source("b"), &[], NOW).policies;
        assert_eq!(soak(&deleted), Some(60));
        assert!(deleted.waiting.is_some());
        let agreed = settle(&deleted, &Found::Absent, &source("b"), &[approve("bob")], NOW).policies;
        assert_eq!((agreed.in_force(), agreed.waiting.clone()), (None, None));
        assert_eq!(settle(&agreed, &Found::Absent, &source("c"), &[], NOW).policies, agreed);
    }

    #[test]
    fn an_unreadable_policy_leaves_the_last_good_one() {
        let first = settle(&Policies::default(), &policy(60, None), &source("a"), &[], NOW).policies;
        let broken = settle(&first, &Found::Broken(vec!["no".to_owned()]), &source("b"), &[], NOW).policies;
        assert_eq!(soak(&broken), Some(60));
        assert_eq!(broken.broken.as_ref().unwrap().reasons, ["no"]);
        assert_eq!(settle(&broken, &policy(60, None), &source("c"), &[], NOW).policies.broken, None);
    }

    #[test]
    fn as_many_people_as_the_policy_in_force_asks_for_and_not_its_author() {
        let careful = Approval { people: 2, role: ApproverRole::Platform, not_author: true };
        let first = settle(&Policies::default(), &policy(60, Some(careful)), &source("a"), &[], NOW).policies;
        let words = [approve("ann"), approve("bob"), approve("Bob")];
        let half = settle(&first, &policy(60, None), &source("b"), &words, NOW);
        let refused: Vec<bool> = half.taken.iter().map(|taken| taken.refused.is_some()).collect();
        assert_eq!(refused, [true, false, true]);
        assert!(half.policies.waiting.is_some());
        let whole = settle(&half.policies, &policy(60, None), &source("b"), &[approve("eve")], NOW).policies;
        assert_eq!(whole.waiting, None);
        let silent = word("bob", "platform", Say::Override { ring: None }, " ");
        assert!(settle(&half.policies, &policy(60, None), &source("b"), &[silent], NOW).policies.waiting.is_some());
        let urgent = word("bob", "platform", Say::Override { ring: None }, "the site is down");
        assert!(settle(&half.policies, &policy(60, None), &source("b"), &[urgent], NOW).policies.waiting.is_none());
    }
}
