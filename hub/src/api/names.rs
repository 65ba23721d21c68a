//! Names that filters mention: one that doesn't exist is an error with the nearest that does, never an empty list. Names of
//! objects are looked up only where a list came out empty, so a list that has something costs nothing more.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use kedge_model::Selector;

use super::ApiState;
use super::answer::ApiError;
use super::caller::Caller;
use super::fleet::Order;
use crate::store::api::names::NameKind;
use crate::store::catalog::Visible;

/// The names that a filter mentions. What is None wasn't asked for.
#[derive(Clone, Debug, Default)]
pub struct Mentioned<'a> {
    pub environment: Option<&'a str>,
    pub cluster_type: Option<&'a str>,
    pub ring: Option<&'a str>,
    pub workload: Option<&'a str>,
    pub workspace: Option<&'a str>,
    pub site: Option<&'a str>,
    /// `<workload>-<target>`, or `<cluster type>/<workload>-<target>`
    pub assignment: Option<&'a str>,
    /// The same, where a name that isn't described any more is a mistake too.
    pub exact_assignment: Option<&'a str>,
}

/// More than these aren't listed in a hint.
const LISTED: usize = 8;

/// Refuses the first name that doesn't exist, as far as the caller may see.
pub async fn check(state: &ApiState, caller: &Caller, mentioned: &Mentioned<'_>) -> Result<(), ApiError> {
    let visible = caller.visible();
    let of = mentioned.environment;
    let asked = [
        (NameKind::Environment, mentioned.environment, None),
        (NameKind::ClusterType, mentioned.cluster_type, of),
        (NameKind::Workload, mentioned.workload, of),
        (NameKind::Workspace, mentioned.workspace, None),
        (NameKind::Site, mentioned.site, None),
    ];
    for (kind, name, of) in asked {
        let Some(name) = name else { continue };
        let mut known = state.store.names(kind, &visible, of).await?;
        if kind == NameKind::Environment {
            // One that the policy names is there, also before the first commit has reached it.
            if visible == Visible::All {
                known.extend(Order::of(state).await?.names().iter().cloned());
            }
            // A hub that has read nothing yet can't tell a wrong name from one that is still to come.
            if known.is_empty() {
                return Ok(());
            }
        }
        if !known.contains(name) {
            return Err(missing(kind.as_str(), name, of, &known, state).await?);
        }
    }
    if let Some(ring) = mentioned.ring {
        let known = rings(state, &visible, of).await?;
        if !known.contains(ring) {
            return Err(missing("ring", ring, of, &known, state).await?);
        }
    }
    if let Some(name) = mentioned.assignment.or(mentioned.exact_assignment) {
        let full = state.store.names(NameKind::Assignment, &visible, of).await?;
        let known: BTreeSet<String> = full.iter().filter_map(|name| Some(name.split_once('/')?.1.to_owned())).collect();
        let name = name.split_once('/').map_or(name, |(_, target)| target);
        // A cluster may still run what isn't described any more: only a name that is nearly another's is a mistake.
        let near = || nearest(name, known.iter().map(String::as_str)).is_some();
        if !known.contains(name) && (mentioned.exact_assignment.is_some() || near()) {
            return Err(missing("assignment", name, of, &known, state).await?);
        }
    }
    Ok(())
}

/// Refuses an environment that doesn't exist.
pub async fn environment(state: &ApiState, caller: &Caller, name: Option<&str>) -> Result<(), ApiError> {
    check(state, caller, &Mentioned { environment: name, ..Mentioned::default() }).await
}

/// A single thing that is named and isn't there; with the nearest name that is, as far as the caller may see.
pub async fn absent(state: &ApiState, visible: &Visible, kind: NameKind, name: &str, of: Option<&str>) -> ApiError {
    let known = match state.store.names(kind, visible, of).await {
        Ok(known) => known,
        Err(error) => return error.into(),
    };
    match missing(kind.as_str(), name, of, &known, state).await {
        Ok(error) | Err(error) => ApiError { reason: "NotFound", ..error },
    }
}

/// What to say of a selector that found nothing because it asks for labels that no cluster has.
pub async fn unknown_labels(
    state: &ApiState,
    caller: &Caller,
    selector: &Selector,
) -> Result<Option<String>, ApiError> {
    if selector.is_everything() {
        return Ok(None);
    }
    let known = state.store.names(NameKind::ClusterLabel, &caller.visible(), None).await?;
    let Some(key) = selector.keys().into_iter().find(|key| !known.contains(*key)) else { return Ok(None) };
    let near = nearest(key, known.iter().map(String::as_str)).map(|near| format!("; did you mean `{near}`?"));
    Ok(Some(format!("no cluster has the label `{}`{}", harmless(key), near.unwrap_or_default())))
}

/// A word that isn't one of these.
pub fn no_such<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> ApiError {
    let known: Vec<&str> = known.into_iter().collect();
    refused(StatusCode::BAD_REQUEST, format!("there is no {what} `{}`", harmless(name)), name, &known)
}

/// Something named that isn't among these; `what` may say where they are: `workload in dev or prod`.
pub fn none_called<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> ApiError {
    let known: Vec<&str> = known.into_iter().collect();
    let (what, place) = what.split_once(' ').map_or((what, String::new()), |(what, place)| (what, format!(" {place}")));
    let message = format!("there is no {what} `{}`{place}", harmless(name));
    refused(StatusCode::NOT_FOUND, message, name, &known)
}

/// One of these words, or none is asked for.
pub fn word(what: &str, name: Option<&str>, known: &[&str]) -> Result<(), ApiError> {
    match name {
        Some(name) if !known.contains(&name) => Err(no_such(what, name, known.iter().copied())),
        _ => Ok(()),
    }
}

/// The known word that is nearest to a mistyped one.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let letters = word.chars().count();
    let far = letters / 3 + 1;
    let near = known.into_iter().map(|other| (distance(&word, &other.to_lowercase()), other));
    // Of a short word as many letters may differ as make another one: most of them stay.
    let near = near.filter(|(distance, other)| *distance <= far && 2 * distance < letters.max(other.chars().count()));
    near.min().map(|(_, other)| other)
}

async fn missing(
    what: &str,
    name: &str,
    of: Option<&str>,
    known: &BTreeSet<String>,
    state: &ApiState,
) -> Result<ApiError, ApiError> {
    let place = of.map(|environment| format!(" in {environment}")).unwrap_or_default();
    let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
    if what == NameKind::Environment.as_str() {
        let order = Order::of(state).await?;
        known.sort_by_cached_key(|name| order.place(name));
    }
    let message = format!("there is no {what} `{}`{place}", harmless(name));
    Ok(refused(StatusCode::NOT_FOUND, message, name, &known))
}

fn refused(status: StatusCode, message: String, name: &str, known: &[&str]) -> ApiError {
    let near = nearest(name, known.iter().copied()).map(str::to_owned);
    let hint = match &near {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none yet".to_owned(),
        None if known.len() > LISTED => format!("there are {}: {}, …", known.len(), known[..LISTED].join(", ")),
        None => format!("there {}: {}", if known.len() == 1 { "is" } else { "are" }, known.join(", ")),
    };
    ApiError { nearest: near, ..ApiError::new(status, "UnknownName", message).hint(hint) }
}

/// Those of the policy, and those that clusters are in.
async fn rings(state: &ApiState, visible: &Visible, of: Option<&str>) -> Result<BTreeSet<String>, ApiError> {
    let mut known = state.store.names(NameKind::Ring, visible, of).await?;
    let policies = state.store.policies().await?;
    let rules = policies.in_force().into_iter().flat_map(|policy| &policy.environments);
    let rings = rules.filter(|rules| of.is_none_or(|of| rules.name == of)).flat_map(|rules| &rules.rings);
    known.extend(rings.map(|ring| ring.name.clone()));
    Ok(known)
}

/// As it is said back: short, on one line.
pub(super) fn harmless(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(80).collect()
}

/// Letters to change, to add, to leave out, or to swap with their neighbour.
fn distance(one: &str, other: &str) -> usize {
    const LONGEST: usize = 64;
    let (one, other): (Vec<char>, Vec<char>) =
        (one.chars().take(LONGEST).collect(), other.chars().take(LONGEST).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, opposite) in other.iter().enumerate() {
            let changed = last[column] + usize::from(letter != opposite);
            let mut least = changed.min(last[column + 1] + 1).min(next[column] + 1);
            if row > 0 && column > 0 && *letter == other[column - 1] && one[row - 1] == *opposite {
                least = least.min(before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mistyped_name_finds_the_one_that_was_meant() {
        let rings = ["canary", "early", "rest"];
        assert_eq!(nearest("canarry", rings), Some("canary"));
        assert_eq!(nearest("caanry", rings), Some("canary"));
        assert_eq!(nearest("Canary", rings), Some("canary"));
        assert_eq!(nearest("production", rings), None);
        assert_eq!(nearest("", rings), None);
        assert_eq!(nearest("failed", ["Failed", "Converged"]), Some("Failed"));
        assert_eq!(nearest("foo", ["good", "failing"]), None, "half of it differs");
        assert_eq!(nearest("failed", ["good", "failing"]), Some("failing"));
    }

    #[test]
    fn where_nothing_is_near_the_hint_lists_what_there_is() {
        let error = no_such("ring", "x\u{7}yzzy", ["canary", "rest"]);
        assert_eq!((error.nearest.as_deref(), error.hint.as_deref()), (None, Some("there are: canary, rest")));
        assert_eq!(error.message, "there is no ring `xyzzy`");
        let near = no_such("ring", "canarry", ["canary", "rest"]);
        assert_eq!((near.nearest.as_deref(), near.hint.as_deref()), (Some("canary"), Some("did you mean `canary`?")));
    }

    proptest! {
        #[test]
        fn any_two_words_have_a_distance(one in ".{0,90}", other in ".{0,90}") {
            prop_assert_eq!(distance(&one, &other), distance(&other, &one));
            prop_assert_eq!(distance(&one, &one), 0);
        }
    }
}
