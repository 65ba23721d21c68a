//! What one cluster adds to the counts, and sums of such additions. Pure: the writer, `check_ins` and moves of clusters
//! all change counts through `Deltas`, in the transaction that changes the cluster.

use std::collections::BTreeMap;

use kedge_model::wire::{PackagesKey, Stream};
use kedge_status::{Report, Status};
use serde::{Deserialize, Serialize};

use super::warnings::{Warned, WarningSeverity};

/// A cluster's part of the counts, by assignment. Stored beside its document, so that the next one is a difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally(pub BTreeMap<String, Tallied>);

/// One assignment's part: desired, running, condition, the fingerprint of its exception's row, and what else a list says of
/// it. Written as an array, because there are many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tallied(
    pub Option<PackagesKey>,
    pub Option<PackagesKey>,
    pub Word,
    pub Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")] pub Option<Aside>,
);

/// What isn't counted, of a report that has no exception's row: since when, in the hub's time, and the version that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside(pub i64, pub Option<String>);

/// A condition without its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Word {
    Converged,
    Converging,
    Failed,
    Unknown,
}

/// What a stream's member is to its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Presence {
    /// It is a member and has sent no document yet.
    Joined,
    Reporting,
    /// It missed its check-in, or its applier is stuck.
    Unknown,
}

/// What is counted of an assignment: desired, running, condition.
pub type CountKey = (Option<PackagesKey>, Option<PackagesKey>, Word);

/// Changes of counts that are still to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deltas(pub BTreeMap<Stream, StreamDeltas>);

/// Those of one stream. Nested, because thousands of documents say nearly the same of the same names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamDeltas {
    pub counts: BTreeMap<String, BTreeMap<CountKey, i64>>,
    pub population: BTreeMap<Presence, i64>,
    /// By kind.
    pub warnings: BTreeMap<(String, WarningSeverity), i64>,
}

/// A cluster's standing in one stream, as far as counts go.
#[derive(Clone, Copy, Debug)]
pub struct Weight<'a> {
    pub stream: &'a Stream,
    /// None: no document yet.
    pub tally: Option<&'a Tally>,
    pub unknown: bool,
}

impl Tally {
    /// `row` gives the fingerprint of an exception's row, `since` a report's age in the hub's time.
    pub fn of(status: &Status, row: impl Fn(&str) -> Option<u64>, since: impl Fn(&Report) -> i64) -> Tally {
        let word = |name: &str, report: &Report| {
            let row = row(name);
            let aside = row.is_none().then(|| Aside(since(report), report.version.clone()));
            Tallied(report.desired, report.running, Word::of(report), row, aside)
        };
        let mut tally: BTreeMap<_, _> =
            status.reports.iter().map(|(name, report)| (name.clone(), word(name, report))).collect();
        for name in &status.unreadable {
            tally.insert(name.clone(), Tallied(None, None, Word::Unknown, row(name), None));
        }
        Tally(tally)
    }
}

impl Word {
    pub const ALL: [Word; 4] = [Word::Converged, Word::Converging, Word::Failed, Word::Unknown];

    pub fn of(report: &Report) -> Word {
        match report.condition {
            kedge_status::Condition::Converged => Word::Converged,
            kedge_status::Condition::Converging => Word::Converging,
            kedge_status::Condition::Failed { .. } => Word::Failed,
            kedge_status::Condition::Unknown => Word::Unknown,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Word::Converged => "Converged",
            Word::Converging => "Converging",
            Word::Failed => "Failed",
            Word::Unknown => "Unknown",
        }
    }

    pub fn from_text(text: &str) -> Option<Word> {
        Word::ALL.into_iter().find(|word| word.as_str() == text)
    }
}

impl Presence {
    pub const ALL: [Presence; 3] = [Presence::Joined, Presence::Reporting, Presence::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Presence::Joined => "Joined",
            Presence::Reporting => "Reporting",
            Presence::Unknown => "Unknown",
        }
    }

    pub fn from_text(text: &str) -> Option<Presence> {
        Presence::ALL.into_iter().find(|presence| presence.as_str() == text)
    }
}

impl Weight<'_> {
    fn presence(&self) -> Presence {
        match (self.unknown, self.tally) {
            (true, _) => Presence::Unknown,
            (false, None) => Presence::Joined,
            (false, Some(_)) => Presence::Reporting,
        }
    }
}

impl Deltas {
    pub fn add(&mut self, weight: Weight<'_>) {
        self.change(weight, 1);
    }

    pub fn subtract(&mut self, weight: Weight<'_>) {
        self.change(weight, -1);
    }

    /// A cluster's document changed where it is: what both have alike isn't touched.
    pub fn replace(&mut self, before: Weight<'_>, after: Weight<'_>) {
        if before.stream != after.stream || before.unknown != after.unknown {
            self.subtract(before);
            self.add(after);
            return;
        }
        let stream = self.of(before.stream);
        stream.present(before, -1);
        stream.present(after, 1);
        let empty = Tally::default();
        let (old, new) = (before.tally.unwrap_or(&empty), after.tally.unwrap_or(&empty));
        let same = |one: &Tallied, other: &Tallied| (one.0, one.1, one.2) == (other.0, other.1, other.2);
        for (name, tallied) in &old.0 {
            if !new.0.get(name).is_some_and(|other| same(tallied, other)) {
                stream.count(before.unknown, name, tallied, -1);
            }
        }
        for (name, tallied) in &new.0 {
            if !old.0.get(name).is_some_and(|other| same(tallied, other)) {
                stream.count(after.unknown, name, tallied, 1);
            }
        }
    }

    /// What a cluster warns of changed: also while it is offline, it is what was last heard.
    pub fn warned(&mut self, stream: &Stream, before: &Warned, after: &Warned) {
        let (old, new) = (before.kinds(), after.kinds());
        if old == new {
            return;
        }
        let warnings = &mut self.of(stream).warnings;
        for (kinds, sign) in [(old, -1), (new, 1)] {
            for (kind, severity) in kinds {
                *warnings.entry((kind.to_owned(), severity)).or_default() += sign;
            }
        }
    }

    fn change(&mut self, weight: Weight<'_>, sign: i64) {
        let stream = self.of(weight.stream);
        stream.present(weight, sign);
        for (name, tallied) in weight.tally.iter().flat_map(|tally| &tally.0) {
            stream.count(weight.unknown, name, tallied, sign);
        }
    }

    fn of(&mut self, stream: &Stream) -> &mut StreamDeltas {
        self.0.entry(stream.clone()).or_default()
    }

    /// Without what came to nothing.
    pub fn settled(mut self) -> Deltas {
        for stream in self.0.values_mut() {
            stream.population.retain(|_, delta| *delta != 0);
            stream.counts.values_mut().for_each(|keys| keys.retain(|_, delta| *delta != 0));
            stream.counts.retain(|_, keys| !keys.is_empty());
            stream.warnings.retain(|_, delta| *delta != 0);
        }
        self.0.retain(|_, stream| *stream != StreamDeltas::default());
        self
    }
}

impl StreamDeltas {
    fn present(&mut self, weight: Weight<'_>, sign: i64) {
        *self.population.entry(weight.presence()).or_default() += sign;
    }

    fn count(&mut self, unknown: bool, assignment: &str, tallied: &Tallied, sign: i64) {
        let key = (tallied.0, tallied.1, if unknown { Word::Unknown } else { tallied.2 });
        match self.counts.get_mut(assignment) {
            Some(keys) => *keys.entry(key).or_default() += sign,
            None => {
                self.counts.insert(assignment.to_owned(), BTreeMap::from([(key, sign)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(entries: &[(&str, Word)]) -> Tally {
        Tally(entries.iter().map(|(name, word)| ((*name).to_owned(), Tallied(None, None, *word, None, None))).collect())
    }

    #[test]
    fn replacing_is_subtracting_and_adding() {
        let stream = Stream::new("dev", "drone", Stream::ALL);
        let old = tally(&[("a", Word::Converged), ("b", Word::Converging), ("c", Word::Failed)]);
        let new = tally(&[("a", Word::Converged), ("b", Word::Converged), ("d", Word::Unknown)]);
        let weight = |tally, unknown| Weight { stream: &stream, tally, unknown };
        for unknown in [false, true] {
            for before in [None, Some(&old)] {
                let (mut short, mut long) = (Deltas::default(), Deltas::default());
                short.replace(weight(before, unknown), weight(Some(&new), unknown));
                long.subtract(weight(before, unknown));
                long.add(weight(Some(&new), unknown));
                assert_eq!(short.settled(), long.settled());
            }
        }
    }

    #[test]
    fn a_silent_cluster_counts_as_unknown_with_what_it_ran() {
        let stream = Stream::new("dev", "drone", Stream::ALL);
        let tally = tally(&[("a", Word::Converged)]);
        let mut deltas = Deltas::default();
        deltas.add(Weight { stream: &stream, tally: Some(&tally), unknown: true });
        let stream = &deltas.0[&stream];
        assert_eq!(stream.counts["a"], BTreeMap::from([((None, None, Word::Unknown), 1)]));
        assert_eq!(stream.population, BTreeMap::from([(Presence::Unknown, 1)]));
    }
}
