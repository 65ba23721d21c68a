//! The figures of the database as gauges: the same on every hub of a fleet, so that `max` over hubs is right. Pure; called at a
//! scrape.

use std::collections::{BTreeMap, BTreeSet};

use kedge_hub_types::status::tally::{Presence, Word};
use kedge_model::wire::Timestamp;

use super::series::{Measure, Series, Sum, age, environments, places};
use crate::store::figures::{Aged, Figures, Kept, Passage, Place, RolloutWord};

const PRESENCES: [(Presence, &str); 3] =
    [(Presence::Joined, "joined"), (Presence::Reporting, "reporting"), (Presence::Unknown, "unknown")];
const CONDITIONS: [(Word, &str); 4] = [
    (Word::Converged, "converged"),
    (Word::Converging, "converging"),
    (Word::Failed, "failed"),
    (Word::Unknown, "unknown"),
];

impl Sum for Passage {
    fn sum(self, other: Passage) -> Passage {
        let oldest = |one: Option<Timestamp>, other: Option<Timestamp>| one.into_iter().chain(other).min();
        Passage {
            waiting: oldest(self.waiting, other.waiting),
            open: oldest(self.open, other.open),
            stuck: self.stuck || other.stuck,
            passed: oldest(self.passed, other.passed),
        }
    }
}

impl<const N: usize> Sum for Row<N> {
    fn sum(mut self, other: Row<N>) -> Row<N> {
        self.0.iter_mut().zip(other.0).for_each(|(one, other)| *one = one.sum(other));
        self
    }
}

/// One value for each word, so that every word has a series in every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row<const N: usize>([Aged; N]);

impl<const N: usize> Default for Row<N> {
    fn default() -> Row<N> {
        Row([Aged::default(); N])
    }
}

/// Every gauge of the fleet.
pub fn series(figures: &Figures, now: Timestamp) -> Vec<Series> {
    let every = every_environment(figures);
    let mut all = vec![
        by_place(
            "clusters",
            "Clusters of a ring: joined (nothing reported yet), reporting, unknown (missed check-in)",
            "presence",
            &PRESENCES,
            &figures.clusters,
        ),
        by_place(
            "assignments",
            "Assignments on clusters by condition; those of an offline cluster are unknown",
            "condition",
            &CONDITIONS,
            &figures.assignments,
        ),
    ];
    let unknown = environments(filled(&figures.unknown, &every));
    all.push(by_environment(
        "unknown_oldest",
        Measure::Seconds,
        "For how long the cluster that has been offline longest has been Unknown",
        &unknown,
        |aged| age(aged.oldest, now),
    ));
    let drifted = environments(filled(&figures.drifted, &every));
    all.push(by_environment(
        "drifted_assignments",
        Measure::Count,
        "Assignments on clusters that differ from what was applied there",
        &drifted,
        |count| count,
    ));
    all.extend(rollouts(figures, &every, now));
    all.extend(promotions(figures, now));
    let quarantined = environments(filled(&figures.quarantined, &every));
    all.push(by_environment(
        "quarantined_assignments",
        Measure::Count,
        "Assignments that can't be rendered or packed",
        &quarantined,
        |aged| aged.count,
    ));
    let removals = environments(filled(&figures.removals_waiting, &every));
    all.push(by_environment(
        "removals_waiting_oldest",
        Measure::Seconds,
        "For how long a removal of most of a cluster type has waited for a person",
        &removals,
        |aged| age(aged.oldest, now),
    ));
    all.push(problems(figures, &every));
    let Kept { days, entries, bytes } = figures.history;
    all.push(Series::new("history_days", Measure::Count, "Days of which the history is kept").with(&[], days));
    all.push(Series::new("history_entries", Measure::Count, "Entries of the history").with(&[], entries));
    all.push(Series::new("history_size", Measure::Bytes, "About how much room the history takes").with(&[], bytes));
    all.push(
        Series::new("leader_term", Measure::Count, "How many times a hub became the leader").with(&[], figures.term),
    );
    all
}

fn rollouts(figures: &Figures, every: &BTreeSet<String>, now: Timestamp) -> Vec<Series> {
    let mut rows: BTreeMap<String, Row<4>> = every.iter().map(|name| (name.clone(), Row::default())).collect();
    for ((environment, word), aged) in &figures.rollouts {
        let row = rows.entry(environment.clone()).or_default();
        for (slot, known) in row.0.iter_mut().zip(RolloutWord::ALL) {
            if known == *word {
                slot.join(*aged);
            }
        }
    }
    let rows = environments(rows);
    let mut count = Series::new(
        "rollouts",
        Measure::Count,
        "Rollouts that haven't ended, and content that waits for the one before it",
    );
    let mut oldest = Series::new(
        "rollout_oldest",
        Measure::Seconds,
        "For how long the oldest rollout in this state has been in it; an active one since it began",
    );
    for (environment, row) in &rows {
        for (aged, word) in row.0.iter().zip(RolloutWord::ALL) {
            let labels = [("environment", environment.as_str()), ("state", word.as_str())];
            count = count.with(&labels, aged.count);
            oldest = oldest.with(&labels, age(aged.oldest, now));
        }
    }
    let mut stopped: BTreeMap<Place, Aged> =
        figures.clusters.keys().map(|(place, _)| (place.clone(), Aged::default())).collect();
    stopped.extend(figures.rings_stopped.clone());
    let mut failing = Series::new(
        "ring_rollouts_stopped",
        Measure::Count,
        "Rollouts that failures or a quarantine stopped in this ring",
    );
    for (place, aged) in places(stopped) {
        failing = failing.with(&[("environment", &place.environment), ("ring", &place.ring)], aged.count);
    }
    vec![count, oldest, failing]
}

fn promotions(figures: &Figures, now: Timestamp) -> Vec<Series> {
    let rows = environments(figures.promotions.clone());
    let gauge = |name, unit, help, value: &dyn Fn(Passage) -> i64| by_environment(name, unit, help, &rows, value);
    vec![
        gauge(
            "promotion_waiting",
            Measure::Seconds,
            "For how long the next commit of main has waited to enter the environment; 0: none waits",
            &|passage| age(passage.waiting, now),
        ),
        gauge(
            "promotion_open",
            Measure::Seconds,
            "For how long the commit in force has not passed its gate; 0: it has",
            &|passage| age(passage.open, now),
        ),
        gauge(
            "promotion_stuck",
            Measure::Count,
            "1 when the commit in force failed, was refused or can't be written to the branch: a person is needed",
            &|passage| i64::from(passage.stuck),
        ),
        gauge(
            "promotion_passed_age",
            Measure::Seconds,
            "How long ago a commit of main last passed; 0: none has",
            &|passage| age(passage.passed, now),
        ),
    ]
}

fn problems(figures: &Figures, every: &BTreeSet<String>) -> Series {
    let both = |(errors, warnings): &(i64, i64)| {
        Row([Aged { count: *errors, oldest: None }, Aged { count: *warnings, oldest: None }])
    };
    let mut rows: BTreeMap<String, Row<2>> = every.iter().map(|name| (name.clone(), Row::default())).collect();
    rows.extend(figures.problems.iter().map(|(name, counts)| (name.clone(), both(counts))));
    let mut series = Series::new("problems", Measure::Count, "Findings about objects in Git");
    for (environment, Row([errors, warnings])) in environments(rows) {
        series = series
            .with(&[("environment", &environment), ("severity", "error")], errors.count)
            .with(&[("environment", &environment), ("severity", "warning")], warnings.count);
    }
    series
}

/// Environments that are known from anywhere: those without anything wrong have a series that says 0.
fn every_environment(figures: &Figures) -> BTreeSet<String> {
    let members = figures.clusters.keys().map(|(place, _)| &place.environment);
    members.chain(figures.promotions.keys()).cloned().collect()
}

fn filled<T: Sum>(known: &BTreeMap<String, T>, every: &BTreeSet<String>) -> BTreeMap<String, T> {
    let mut all: BTreeMap<String, T> = every.iter().map(|name| (name.clone(), T::default())).collect();
    all.extend(known.iter().map(|(name, value)| (name.clone(), *value)));
    all
}

fn by_environment<T: Sum>(
    name: &'static str,
    unit: Measure,
    help: &'static str,
    rows: &BTreeMap<String, T>,
    value: impl Fn(T) -> i64,
) -> Series {
    let mut series = Series::new(name, unit, help);
    for (environment, row) in rows {
        series = series.with(&[("environment", environment)], value(*row));
    }
    series
}

fn by_place<W: Copy + Ord, const N: usize>(
    name: &'static str,
    help: &'static str,
    label: &'static str,
    words: &[(W, &'static str); N],
    counts: &BTreeMap<(Place, W), i64>,
) -> Series {
    let mut rows: BTreeMap<Place, Row<N>> = BTreeMap::new();
    for ((place, word), count) in counts {
        let row = rows.entry(place.clone()).or_default();
        for (slot, (known, _)) in row.0.iter_mut().zip(words) {
            if known == word {
                slot.count += count;
            }
        }
    }
    let mut series = Series::new(name, Measure::Count, help);
    for (place, row) in places(rows) {
        for (aged, (_, word)) in row.0.iter().zip(words) {
            let labels = [("environment", place.environment.as_str()), ("ring", place.ring.as_str()), (label, *word)];
            series = series.with(&labels, aged.count);
        }
    }
    series
}
