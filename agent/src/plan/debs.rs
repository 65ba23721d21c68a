//! What an assignment wants of dpkg, and what each of its debs was before Kedge. Which archives and dependencies that means is the
//! host's to find out.

use std::collections::{BTreeMap, BTreeSet};

use super::{Others, Question};
use crate::goal::{DebGoal, Goal};
use crate::record::{DebOriginal, Running};
use crate::step::DebsStep;

/// What an assignment wants of dpkg.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebWish {
    pub want: Vec<DebGoal>,
    /// No longer needed by anybody: each returns to what it was before Kedge.
    pub give_back: BTreeMap<String, DebOriginal>,
    /// Versions that other assignments run, with whose they are: not ours to change.
    pub others: BTreeMap<String, (String, String)>,
    /// `rollback: never`: a change without a way back is allowed.
    pub no_rollback: bool,
}

/// One dpkg transaction and its way back; both are empty when nothing differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebPlan {
    pub forward: DebsStep,
    pub back: DebsStep,
    /// What each deb that changes was, also those that apt adds.
    pub originals: BTreeMap<String, DebOriginal>,
}

pub fn wish(goal: Option<&Goal>, running: Option<&Running>, others: &Others) -> DebWish {
    DebWish {
        want: goal.map(|goal| goal.debs.clone()).unwrap_or_default(),
        give_back: given_back(goal, running, others),
        others: others.debs.clone(),
        no_rollback: goal.is_some_and(|goal| goal.bounds.no_rollback),
    }
}

/// The same without what came only as a dependency: somebody else may need it by now. None: nothing came so.
pub fn without_dependencies(wish: &DebWish, running: Option<&Running>) -> Option<DebWish> {
    let asked = |name: &String| running.is_some_and(|running| running.goal.debs.iter().any(|deb| deb.name == *name));
    let mut less = wish.clone();
    less.give_back.retain(|name, _| asked(name));
    (less != *wish).then_some(less)
}

/// A deb goes when the last assignment that needs it goes. Dependencies that came with our debs stay as long as we want any deb,
/// since nobody remembers which of ours needed them.
fn given_back(goal: Option<&Goal>, running: Option<&Running>, others: &Others) -> BTreeMap<String, DebOriginal> {
    let Some(running) = running else { return BTreeMap::new() };
    let wanted: BTreeSet<&str> = goal.iter().flat_map(|goal| &goal.debs).map(|deb| deb.name.as_str()).collect();
    let asked: BTreeSet<&str> = running.goal.debs.iter().map(|deb| deb.name.as_str()).collect();
    let leaves = |name: &str| {
        let needed =
            wanted.contains(name) || others.debs.contains_key(name) || others.originals.debs.contains_key(name);
        !needed && (wanted.is_empty() || asked.contains(name))
    };
    let all = running.original.debs.iter();
    all.filter(|(name, _)| leaves(name)).map(|(name, deb)| (name.clone(), deb.clone())).collect()
}

/// Whoever changed a deb first knows what it was.
pub(super) fn original(question: &Question<'_>) -> BTreeMap<String, DebOriginal> {
    let Question { observed, others, debs, .. } = question;
    let Some(goal) = question.goal else { return BTreeMap::new() };
    let given_back = given_back(Some(goal), question.running, others);
    let before = question.running.map(|running| &running.original.debs);
    let wanted: BTreeSet<&str> = goal.debs.iter().map(|deb| deb.name.as_str()).collect();
    let asked: BTreeSet<&str> =
        question.running.iter().flat_map(|running| &running.goal.debs).map(|deb| deb.name.as_str()).collect();
    let dependency = |name: &str| !wanted.is_empty() && !asked.contains(name);
    let kept = before.into_iter().flatten().map(|(name, _)| name.as_str()).filter(|name| dependency(name));
    // What came with others' debs may be needed by ours as well: the last one that has debs gives it back.
    let shared = others.originals.debs.keys().filter(|name| !wanted.is_empty() && !others.debs.contains_key(*name));
    let kept = kept.chain(shared.map(String::as_str));
    let names: BTreeSet<&str> =
        wanted.iter().copied().chain(kept).chain(debs.originals.keys().map(String::as_str)).collect();
    let mut all = BTreeMap::new();
    for name in names.into_iter().filter(|name| !given_back.contains_key(*name)) {
        let now = debs.originals.get(name);
        let first = before.and_then(|before| before.get(name)).or_else(|| others.originals.debs.get(name));
        let observed =
            || DebOriginal { state: observed.debs.get(name).cloned().unwrap_or_default(), ..DebOriginal::default() };
        let original = match (first, now) {
            // It was right when it became ours, so its archive is known only now that it changes.
            (Some(first), Some(now)) if first.archive.is_none() && first.state.version == now.state.version => {
                DebOriginal { state: first.state.clone(), ..now.clone() }
            }
            (Some(first), _) => first.clone(),
            (None, Some(now)) => now.clone(),
            (None, None) => observed(),
        };
        all.insert(name.to_owned(), original);
    }
    all
}
