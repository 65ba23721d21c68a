//! What the controller decides, as entries of history: they are saved with it. Pure.

use kedge_hub_types::history::{Entry, Place, What};
use kedge_model::wire::Timestamp;
use kedge_rollout::{Named, Promotion, PromotionPhase, Say, Word};

use crate::store::promotion::words::{TakenWord, WaitingWord};
use crate::store::promotion::{PolicyRow, PolicySlot};

/// A commit of main is in another phase.
pub(super) fn promotion(environment: &str, promotion: &Promotion, now: Timestamp) -> Entry {
    let (phase, why, at) = match &promotion.phase {
        PromotionPhase::Waiting => ("waiting", promotion.waits_for.first().cloned(), promotion.created_at),
        // Told once more when it was let in once more: then it isn't the time of the first.
        PromotionPhase::Entered => ("entered", None, now),
        PromotionPhase::Passed => ("passed", promotion.remark.clone(), promotion.passed_at.unwrap_or(now)),
        PromotionPhase::Failed { why } => ("failed", Some(why.clone()), now),
        PromotionPhase::Reopened { why } => ("reopened", Some(why.clone()), now),
        PromotionPhase::Superseded { by } => ("superseded", Some(format!("by {by}")), now),
        PromotionPhase::Adopted => ("adopted", None, now),
    };
    let what = What::Promotion {
        phase: phase.to_owned(),
        subject: promotion.subject.clone(),
        author: promotion.author.clone(),
        why,
        rollout: promotion.rollout.map(|rollout| rollout.0),
    };
    let entry = Entry::new(at, Place::environment(environment), what).commit(&promotion.commit);
    // Who wrote it didn't let it in.
    match promotion.phase {
        PromotionPhase::Entered => {
            let names: std::collections::BTreeSet<&str> =
                promotion.words.iter().map(|word| word.who.as_str()).collect();
            entry.by(&names.into_iter().collect::<Vec<_>>().join(", "))
        }
        _ => entry,
    }
}

/// A branch names what may not come in.
pub(super) fn refused(environment: &str, named: &Named) -> Entry {
    let what = What::Refused { why: named.why.clone() };
    Entry::new(named.at, Place::environment(environment), what).commit(&named.commit).by(&named.by)
}

/// A person's word, taken or refused.
pub(super) fn word(environment: &str, commit: Option<&str>, about: &str, word: &Word, refused: Option<&str>) -> Entry {
    let ring = match &word.say {
        Say::Approve { ring } | Say::Override { ring } => ring.clone(),
        _ => None,
    };
    let what = What::Word {
        about: about.to_owned(),
        say: word.say.verb().to_owned(),
        reason: word.reason.clone(),
        ring,
        refused: refused.map(str::to_owned),
    };
    Entry::new(word.at, Place::environment(environment), what).commit(commit.unwrap_or_default()).by(&word.who)
}

/// Versions of the policy that came, and what people said about one.
pub(super) fn policies(
    changes: &[(PolicySlot, Option<&PolicyRow>)],
    words: &[WaitingWord],
    taken: &[TakenWord],
    now: Timestamp,
) -> Vec<Entry> {
    let mut told = Vec::new();
    for said in words {
        if let Some(taken) = taken.iter().find(|taken| taken.id == said.id) {
            told.push(word("", None, "policy", &said.word, taken.refused.as_deref()));
        }
    }
    for (slot, row) in changes {
        let Some(row) = row else { continue };
        let slot = match slot {
            PolicySlot::Force => "force",
            PolicySlot::Waiting => "waiting",
            PolicySlot::Broken => "broken",
        };
        let what = What::Policy { slot: slot.to_owned(), subject: row.subject.clone(), reasons: row.reasons.clone() };
        told.push(Entry::new(now, Place::default(), what).commit(&row.commit).by(&row.author));
    }
    told
}
