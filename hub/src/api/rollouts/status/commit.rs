//! What became of a commit of `main` in an environment, as its promotion there says: also of one that no rollout brought, because it
//! changes nothing there, is broken, or was taken off `main`. Asked by `gather`.

use kedge_rollout::calendar::awaited;
use kedge_rollout::chain::{Promotion, PromotionPhase, Standing};

use crate::api::ApiState;
use crate::api::answer::ApiError;

/// What is said of the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// None: what runs there says it.
    pub state: Option<&'static str>,
    pub passed: bool,
    /// It won't pass by itself any more.
    pub over: bool,
    pub note: Option<String>,
}

/// None: nobody knows it there.
pub async fn judge(state: &ApiState, environment: &str, commit: &str) -> Result<Option<Judged>, ApiError> {
    let Some(row) = state.store.promotion(environment).await? else { return Ok(None) };
    let standing = row.standing;
    let Some((whole, first)) = named(&standing, commit) else {
        // Older than what is kept: it is a part of what is in force, or of what waits.
        for later in standing.promotions.iter().rev().filter(|later| !is_superseded(later)) {
            if state.services.is_behind(environment, commit, &later.commit).await? == Some(true) {
                return Ok(Some(of(environment, commit, later)));
            }
        }
        return Ok(None);
    };
    let last = followed(&standing, first);
    let current = standing.current.as_deref().filter(|_| !matches!(last.phase, PromotionPhase::Waiting));
    let newest = current.unwrap_or(&last.commit);
    if newest != whole {
        match state.services.is_behind(environment, &whole, newest).await? {
            Some(true) => {}
            Some(false) => return Ok(Some(gone(environment, &whole, newest))),
            None if last.commit == whole => {}
            None => return Ok(None),
        }
    }
    Ok(Some(of(environment, &whole, last)))
}

/// The whole commit, and the promotion that brings it.
fn named<'a>(standing: &'a Standing, commit: &str) -> Option<(String, &'a Promotion)> {
    let own = standing.promotions.iter().find(|known| known.commit.starts_with(commit));
    let part = || {
        standing.promotions.iter().find_map(|known| {
            let whole = known.skipped.iter().find(|skipped| skipped.starts_with(commit))?;
            Some((whole.clone(), known))
        })
    };
    own.map(|known| (known.commit.clone(), known)).or_else(part)
}

/// The one that took over in the end.
fn followed<'a>(standing: &'a Standing, from: &'a Promotion) -> &'a Promotion {
    let mut at = from;
    // Each step leads to one that came later.
    for _ in 0..standing.promotions.len() {
        let PromotionPhase::Superseded { by } = &at.phase else { break };
        let next = standing.promotions.iter().find(|known| known.commit == *by && !std::ptr::eq(*known, at));
        let Some(next) = next else { break };
        at = next;
    }
    at
}

fn is_superseded(promotion: &Promotion) -> bool {
    matches!(promotion.phase, PromotionPhase::Superseded { .. })
}

fn gone(environment: &str, commit: &str, newest: &str) -> Judged {
    let note = format!("{} is no longer on main: {environment} is at {}", short(commit), short(newest));
    Judged { state: Some("Gone"), passed: false, over: true, note: Some(note) }
}

fn of(environment: &str, commit: &str, promotion: &Promotion) -> Judged {
    let part = match promotion.commit.starts_with(commit) {
        true => short(commit).to_owned(),
        false => format!("{}, which contains {},", short(&promotion.commit), short(commit)),
    };
    let open = |state, over, note: String| Judged { state: Some(state), passed: false, over, note: Some(note) };
    match &promotion.phase {
        PromotionPhase::Passed | PromotionPhase::Adopted => {
            Judged { state: None, passed: true, over: false, note: None }
        }
        PromotionPhase::Failed { why } => open("Failed", true, format!("{part} failed in {environment}: {why}")),
        PromotionPhase::Reopened { why } => {
            open("Failed", true, format!("{part} passed in {environment} and failed later: {why}"))
        }
        PromotionPhase::Superseded { by } => {
            open("Superseded", true, format!("{part} was superseded by {} in {environment}", short(by)))
        }
        PromotionPhase::Waiting | PromotionPhase::Entered => {
            let why = match promotion.waits_for.is_empty() {
                true => "is on its way".to_owned(),
                false => waits(&promotion.waits_for),
            };
            open("Active", false, format!("{part} {why} in {environment}"))
        }
    }
}

/// Some reasons are sentences of their own.
fn waits(why: &[String]) -> String {
    match why.iter().map(|why| awaited(why)).collect::<Option<Vec<_>>>() {
        Some(awaited) => format!("waits for {}", awaited.join(", ")),
        None => format!("waits ({})", why.join("; ")),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn promotion(commit: &str, phase: PromotionPhase) -> Promotion {
        serde_json::from_value(json!({"commit": commit, "subject": "s", "author": "a", "phase": phase, "createdAt": 1}))
            .unwrap()
    }

    #[test]
    fn a_commit_is_judged_by_the_one_that_took_it_over() {
        let by = |by: &str| PromotionPhase::Superseded { by: by.to_owned() };
        let failed = PromotionPhase::Failed { why: "the schema".to_owned() };
        let mut third = promotion("c3", failed);
        third.skipped = vec!["c25".to_owned()];
        let promotions = vec![third, promotion("c2", by("c3")), promotion("c1", by("c2"))];
        let standing = Standing { promotions, ..Standing::default() };
        for commit in ["c1", "c2", "c25"] {
            let (whole, first) = named(&standing, commit).unwrap();
            let judged = of("dev", &whole, followed(&standing, first));
            assert_eq!((judged.passed, judged.over), (false, true));
            assert_eq!(judged.note, Some(format!("c3, which contains {commit}, failed in dev: the schema")));
        }
        assert!(named(&standing, "d").is_none());
    }

    #[test]
    fn what_a_commit_waits_for_reads_as_a_sentence() {
        let told = |why: &[&str]| {
            let waits_for = why.iter().map(|why| (*why).to_owned()).collect();
            of("dev", "c1", &Promotion { waits_for, ..promotion("c1", PromotionPhase::Waiting) }).note.unwrap()
        };
        let frozen = "frozen from 2026-11-19 to 2026-11-20; it opens 2026-11-21T00:00:00Z";
        assert_eq!(told(&[frozen]), format!("c1 waits for the freeze to end ({frozen}) in dev"));
        let people = "needs 2 approvals from the platform team";
        assert_eq!(told(&[people, frozen]), format!("c1 waits ({people}; {frozen}) in dev"));
        assert_eq!(told(&[]), "c1 is on its way in dev");
    }
}
