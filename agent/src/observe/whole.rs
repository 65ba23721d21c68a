//! What an assignment's objects come to together: the worst of them, and whether they are at the expected commit. Pure; called by the
//! observer with what the watches have seen.

use kedge_model::wire::{Observation, Timestamp};
use kedge_status::Condition;

use super::judged::{Judged, Standing};
use super::name::Name;
use super::observations::{Facts, Fare};
use crate::external::{REPORTED, Sighting, fits};

/// An object that is named or read from, and what is known of it.
struct Part<'a> {
    name: &'a Name,
    judged: &'a Judged,
    standing: Standing,
    /// `reconciler.yaml` names it.
    own: bool,
}

/// What is known of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// The watches have only begun.
    NotYet,
    /// Some objects can't be seen, and why.
    Hidden(Vec<String>),
    Seen(Sighting),
}

/// A controller that is at it again for longer than this may have died over it.
pub const AGAIN_PATIENCE_MS: i64 = 15 * 60 * 1000;

pub fn whole(observation: &Observation, facts: &Facts, behind: Option<&str>, now: Timestamp) -> Whole {
    let (mut parts, mut missing, mut hidden) = (Vec::new(), Vec::new(), Vec::new());
    let names: Vec<Name> = observation.objects.iter().map(Name::of).filter(|name| !name.kind.is_silent()).collect();
    for name in &names {
        let (found, watched) = (facts.find(name), facts.watched(name));
        match (found.as_slice(), watched.fare) {
            (_, Fare::NotServed) => hidden.push(format!("{name}: the cluster doesn't serve the kind {}", name.kind)),
            (_, Fare::Forbidden(why)) => hidden.push(format!("{name}: {why}")),
            _ if !watched.listed => return Whole::NotYet,
            ([], _) => missing.push(name),
            ([(name, judged)], _) => parts.push(part(name, judged, true, now)),
            (several, _) => {
                let places: Vec<&str> = several.iter().filter_map(|(name, _)| name.namespace.as_deref()).collect();
                hidden.push(format!("{name} names no namespace and is in {}", places.join(", ")));
            }
        }
    }
    let sources: Vec<&Name> = parts.iter().flat_map(|part: &Part<'_>| &part.judged.sources).collect();
    let further: Vec<&Name> =
        sources.iter().flat_map(|name| facts.find(name)).flat_map(|(_, judged)| &judged.sources).collect();
    for source in sources.into_iter().chain(further) {
        for (name, judged) in facts.find(source) {
            if !parts.iter().any(|part| part.name == name) {
                parts.push(part(name, judged, false, now));
            }
        }
    }
    if !hidden.is_empty() && !parts.iter().any(|part| part.standing == Standing::Failed) {
        return Whole::Hidden(hidden);
    }
    Whole::Seen(sum(observation.expected_commit.as_deref(), &parts, &missing, behind))
}

fn part<'a>(name: &'a Name, judged: &'a Judged, own: bool, now: Timestamp) -> Part<'a> {
    let stuck = judged.again.is_some_and(|again| now.0.saturating_sub(again.0) > AGAIN_PATIENCE_MS);
    Part { name, judged, standing: if stuck { Standing::Progressing } else { judged.standing }, own }
}

fn sum(expected: Option<&str>, parts: &[Part<'_>], missing: &[&Name], behind: Option<&str>) -> Sighting {
    let away: Vec<String> = parts.iter().filter_map(|part| part.elsewhere(expected)).collect();
    let suspended: Vec<String> =
        parts.iter().filter(|part| part.judged.suspended).map(|part| format!("{} is suspended", part.name)).collect();
    let at_commit = parts.iter().any(|part| !part.judged.commits.is_empty()) && away.is_empty();
    let version = version(parts);
    let failed = failure(expected, parts);
    let sentence = |first: String| {
        let all: Vec<String> = std::iter::once(first).chain(suspended.iter().cloned()).collect();
        Some(all.join("; "))
    };
    let converging = |why: String, reached: bool| Sighting {
        condition: Condition::Converging,
        drift: sentence(why),
        version: version.clone(),
        reached,
        since: None,
    };
    if let Some(failed) = failed {
        let reason = if failed.judged.reason.is_empty() { REPORTED } else { &failed.judged.reason };
        let message = format!("{}: {}", failed.name, failed.judged.message);
        return Sighting {
            condition: Condition::Failed { reason: reason.to_owned(), message },
            drift: (!suspended.is_empty()).then(|| suspended.join("; ")),
            version,
            // The last that went well is what is desired, and something failed since.
            reached: expected.is_some() && at_commit,
            since: failed.judged.since,
        };
    }
    if let Some(name) = missing.first() {
        return converging(format!("{name} isn't in the cluster"), false);
    }
    let mut busy = parts.iter().filter(|part| part.standing == Standing::Progressing).peekable();
    if let Some(first) = busy.peek() {
        let told = format!("{}: {}", first.name, first.judged.message);
        let sighting = converging(told, false);
        // Plain work is no difference to be told of; who waits, or works for too long, says for what.
        return match busy.all(|part| part.judged.is_at_work()) {
            true => Sighting { drift: (!suspended.is_empty()).then(|| suspended.join("; ")), ..sighting },
            false => sighting,
        };
    }
    if let Some(behind) = parts.iter().find(|part| part.standing == Standing::Failed) {
        let commit = expected.unwrap_or_default();
        let at = behind.judged.attempted.as_deref().or(behind.judged.revision.as_deref()).unwrap_or("another revision");
        return converging(format!("{} failed at {at}, and {commit} is expected", behind.name), false);
    }
    if let Some(away) = away.first() {
        return converging(away.clone(), false);
    }
    if let (Some(expected), false) = (expected, at_commit) {
        return converging(format!("nothing tells which commit runs, and {expected} is expected"), false);
    }
    if let Some(behind) = behind {
        return converging(behind.to_owned(), false);
    }
    Sighting {
        condition: Condition::Converged,
        drift: (!suspended.is_empty()).then(|| suspended.join("; ")),
        version,
        reached: true,
        since: parts.iter().filter_map(|part| part.judged.since).max(),
    }
}

/// The cause first: what can't be fetched fails all that read it.
fn failure<'a, 'b>(expected: Option<&str>, parts: &'a [Part<'b>]) -> Option<&'a Part<'b>> {
    let failed = || parts.iter().filter(|part| part.standing == Standing::Failed);
    let cause = failed().find(|part| part.name.kind.is_source() && !part.judged.waits);
    cause.or_else(|| failed().find(|part| part.is_about(expected, parts)))
}

/// What runs, as the reconciler calls it: a chart's or a source's revision only where nothing is nearer.
fn version(parts: &[Part<'_>]) -> Option<String> {
    let of = |is: fn(&Part<'_>) -> bool| parts.iter().filter(move |part| is(part));
    let applied = of(|part| part.own && !part.name.kind.is_source()).find_map(|part| part.judged.revision.clone());
    applied.or_else(|| of(|part| part.name.kind.is_source()).find_map(|part| part.judged.revision.clone()))
}

impl Part<'_> {
    /// A sentence, where it is at another commit than is expected.
    fn elsewhere(&self, expected: Option<&str>) -> Option<String> {
        let commits = &self.judged.commits;
        if commits.is_empty() || commits.iter().any(|commit| fits(commit, expected)) {
            return None;
        }
        let how = if self.judged.suspended { "is suspended at" } else { "is at" };
        Some(format!("{} {how} {}, and {} is expected", self.name, commits.join(", "), expected.unwrap_or_default()))
    }

    /// Whether it failed over what is expected, and not over something older that it is about to leave.
    fn is_about(&self, expected: Option<&str>, parts: &[Part<'_>]) -> bool {
        let sources: Vec<&Part<'_>> = parts
            .iter()
            .filter(|part| self.judged.sources.contains(part.name) && !part.judged.commits.is_empty())
            .collect();
        if !sources.is_empty() {
            return sources.iter().all(|source| source.elsewhere(expected).is_none());
        }
        // Where the source has nothing yet, what is said of it is the source's to say.
        let source_busy =
            parts.iter().any(|part| self.judged.sources.contains(part.name) && part.standing == Standing::Progressing);
        if self.judged.waits && source_busy {
            return false;
        }
        let attempted = self.judged.attempted.as_deref().into_iter().flat_map(|tried| tried.split(", "));
        let mut attempted = attempted.filter(|tried| super::judged::is_commit(tried)).peekable();
        attempted.peek().is_none() || attempted.any(|tried| fits(tried, expected))
    }
}
