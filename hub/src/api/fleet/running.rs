//! Which commits of `main` the clusters of an environment run: what they reported, told apart by what rollouts brought. Of a cluster
//! that is offline that is what it reported last. Pure; asked by `standing`.
//!
//! A rollout that an assignment's clusters have is where their content begins, and the oldest one above it that they lack is where it
//! ends: they run every commit between. The fewest commits that lie within the span of each assignment are those that a ring runs.
//! Of the commits with the same content, the newest that has passed is named: it stays so until clusters report something else.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::fleet::RunningCommit;
use kedge_hub_types::rollout::change::Change;
use kedge_hub_types::rollout::running::Place;
use kedge_model::wire::{Digest, Timestamp};
use kedge_rollout::{Phase, RingState, RolloutId};

/// A rollout of platform files, as far as it says what clusters run.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub id: RolloutId,
    pub main: Option<String>,
    pub subject: String,
    pub phase: Phase,
    pub at: Timestamp,
    pub rings: Vec<(String, RingState)>,
    /// Empty until they are needed.
    pub items: BTreeMap<Place, Change>,
}

/// So many clusters of a ring run the same of an assignment.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub ring: String,
    pub place: Place,
    pub runs: Runs,
    /// It isn't the platform's content that the ring was given.
    pub deviates: bool,
    pub count: u64,
    pub offline: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Runs {
    /// As it was reported, with what the hub knows of it.
    Packages { name: String, platform: Option<Digest>, workload: Option<Digest> },
    /// Nobody reported anything yet: what the ring was given counts.
    Unreported,
}

/// What a commit broke: it isn't that commit's content that runs.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    /// None: a file of main.
    pub place: Option<Place>,
    pub main: String,
    pub since: Timestamp,
}

/// A commit that has passed here. When it made no rollout, it changed nothing: whoever runs what was there before runs it too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stood {
    pub commit: String,
    pub subject: String,
    pub entered: Timestamp,
    pub passed: Timestamp,
}

/// All that is known.
#[derive(Debug)]
pub(super) struct Picture<'a> {
    /// The newest first.
    pub passages: &'a [Passage],
    /// Went back or were aborted, and Git still asks for them.
    pub blocked: &'a BTreeSet<RolloutId>,
    pub rows: &'a [Row],
    pub broken: &'a [Broken],
    pub rings: &'a [String],
    /// The commit whose files were last compared with all rings.
    pub base: Option<&'a str>,
    /// None: nobody promotes to this environment, and what it reads counts at once.
    pub stood: Option<&'a [Stood]>,
}

/// Commits on a line: rollouts stand on even places from 2 on, the newest last; what was broken stands between.
type Moment = usize;

/// From the first moment on, and before the second.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Moment,
    until: Moment,
    count: u64,
    offline: u64,
    /// All clusters of the ring have the newest: it says nothing about how many run an older one.
    whole: bool,
}

impl Passage {
    fn state(&self, ring: &str) -> Option<RingState> {
        self.rings.iter().find(|(name, _)| name == ring).map(|(_, state)| *state)
    }

    fn ended_elsewhere(&self) -> bool {
        matches!(self.phase, Phase::Superseded { .. } | Phase::RolledBack { .. } | Phase::Aborted { .. })
    }

    fn has(&self, row: &Row) -> Option<bool> {
        let state = self.state(&row.ring)?;
        let Runs::Packages { name, platform, workload } = &row.runs else {
            return Some(matches!(state, RingState::Rolling | RingState::Passed | RingState::Stopped));
        };
        let change = self.items.get(&row.place)?;
        if let Some(observed) = change.observed {
            return Some(observed.to_string() == *name);
        }
        Some(match (&change.platform, &change.workload) {
            (Some(part), _) => *platform == Some(part.package.digest),
            // The application's own rollouts may have moved it on since.
            (None, Some(part)) => *workload == Some(part.package.digest) || state.is_new(),
            (None, None) => name.is_empty(),
        })
    }
}

/// Whether clusters run something of which the passages that are known don't say where it comes from.
pub(super) fn is_open(passages: &[Passage], rows: &[Row]) -> bool {
    let found = |row: &Row| passages.iter().any(|passage| passage.has(row) == Some(true));
    rows.iter().any(|row| row.deviates && !found(row))
}

/// What runs most comes first.
pub(super) fn running(picture: &Picture<'_>) -> Vec<RunningCommit> {
    let mut found: Vec<RunningCommit> = Vec::new();
    for ring in picture.rings {
        for (commit, subject, count, offline) in picture.of_ring(ring) {
            let at = found.iter().position(|known| known.commit == commit).unwrap_or_else(|| {
                found.push(RunningCommit { commit, subject, ..RunningCommit::default() });
                found.len() - 1
            });
            let known = &mut found[at];
            known.clusters += count;
            known.offline += offline;
            if !known.rings.contains(ring) {
                known.rings.push(ring.clone());
            }
        }
    }
    if let [only] = found.as_mut_slice() {
        only.rings.clear();
        only.clusters = 0;
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.clusters));
    found
}

impl Picture<'_> {
    fn newest(&self) -> Moment {
        2 * self.passages.len() + 2
    }

    fn moment(&self, index: usize) -> Moment {
        2 * (self.passages.len() - index)
    }

    /// Commit, subject, clusters, and how many of them are offline.
    fn of_ring(&self, ring: &str) -> Vec<(String, String, u64, u64)> {
        let reported = self.rows.iter().any(|row| matches!(row.runs, Runs::Packages { .. }));
        let mut spans: Vec<Span> =
            self.rows.iter().filter(|row| row.ring == ring).map(|row| self.span(row, ring)).collect();
        if spans.is_empty() && reported {
            // Nobody there runs anything.
            return Vec::new();
        }
        for broken in self.broken.iter().filter(|broken| broken.place.is_none() || !reported) {
            let until = self.broken_at(broken);
            spans.push(Span { from: 0, until, count: 0, offline: 0, whole: false });
        }
        let behind = spans.iter().any(|span| !span.whole);
        spans.sort_by_key(|span| (span.until, std::cmp::Reverse(span.from)));
        let mut points: Vec<(Moment, Vec<Span>)> = Vec::new();
        for span in spans {
            match points.iter_mut().find(|(point, _)| (span.from..span.until).contains(point)) {
                Some((_, covered)) => covered.push(span),
                None => points.push((span.until.saturating_sub(1), vec![span])),
            }
        }
        if points.is_empty() {
            points.push((self.newest(), Vec::new()));
        }
        let named = points.into_iter().map(|(point, spans)| {
            let from = spans.iter().map(|span| span.from).max().unwrap_or_default();
            let (commit, subject) = self.named(point, from).unwrap_or_default();
            let says = |span: &&Span| !(behind && span.whole);
            let most = |of: fn(&Span) -> u64| spans.iter().filter(says).map(of).max().unwrap_or_default();
            (commit, subject, most(|span| span.count), most(|span| span.offline))
        });
        named.collect()
    }

    fn span(&self, row: &Row, ring: &str) -> Span {
        let mut span = Span { from: 0, until: self.newest() + 1, count: row.count, offline: row.offline, whole: true };
        for (index, passage) in self.passages.iter().enumerate() {
            match passage.has(row) {
                None => continue,
                Some(true) => {
                    span.from = self.moment(index);
                    break;
                }
                // The ring doesn't have it. What Git doesn't ask for any more, nobody lacks.
                Some(false) => {
                    let lacks = match &passage.phase {
                        Phase::RolledBack { .. } | Phase::Aborted { .. } => self.blocked.contains(&passage.id),
                        Phase::Superseded { .. } => false,
                        Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. } | Phase::Complete { .. } => true,
                    };
                    if lacks {
                        span.until = self.moment(index);
                    }
                }
            }
        }
        let broken = self.broken.iter().filter(|broken| broken.place.as_ref() == Some(&row.place));
        for at in broken.map(|broken| self.broken_at(broken)).filter(|at| *at > span.from) {
            span.until = span.until.min(at);
        }
        let unexplained = row.deviates && self.passages.is_empty() && span.until > self.newest();
        if unexplained {
            span.until = 1;
        }
        let other = |other: &&Row| other.ring == ring && other.place == row.place && other.deviates;
        span.whole = span.until > self.newest() && !self.rows.iter().any(|row| other(&row));
        span
    }

    /// Right behind the newest rollout that came before it.
    fn broken_at(&self, broken: &Broken) -> Moment {
        let before = |passage: &Passage| passage.at < broken.since && passage.main.as_ref() != Some(&broken.main);
        self.passages.iter().position(before).map_or(1, |index| self.moment(index) + 1)
    }

    /// The commit that stood there; `from`: where what is there began. None: nobody knows it.
    fn named(&self, point: Moment, from: Moment) -> Option<(String, String)> {
        let subject = |commit: &str| {
            let mut of = self.passages.iter().filter(|passage| passage.main.as_deref() == Some(commit));
            of.find(|passage| !passage.subject.is_empty()).map(|passage| passage.subject.clone()).unwrap_or_default()
        };
        let read = self.base.filter(|_| point >= self.newest());
        if let (Some(base), None) = (read, self.stood) {
            // What came after the newest rollout changed nothing.
            return Some((base.to_owned(), subject(base)));
        }
        let stood = self.passages.iter().enumerate().filter(|(index, passage)| {
            let at = self.moment(*index);
            at <= point && (!passage.ended_elsewhere() || at == from)
        });
        // A change of the environment's own branch: main stood where it was.
        let Some((_, passage)) = stood.into_iter().find(|(_, passage)| passage.main.is_some()) else {
            // No rollout is known that brought it.
            return read.map(|base| (base.to_owned(), subject(base)));
        };
        if let Some(same) = self.same_since(passage, point) {
            return Some((same.commit.clone(), same.subject.clone()));
        }
        let main = passage.main.clone()?;
        let subject = subject(&main);
        Some((main, subject))
    }

    /// The newest commit that has passed with what a rollout brought, before anything changed it.
    fn same_since(&self, brought: &Passage, point: Moment) -> Option<&Stood> {
        let later = self.passages.iter().enumerate().filter(|(index, _)| self.moment(*index) > point);
        let broken = self.broken.iter().filter(|broken| point < self.newest() && self.broken_at(broken) > point);
        let next = later.map(|(_, passage)| passage.at).chain(broken.map(|broken| broken.since)).min();
        // What rolls after it has passed is a change of the environment's own branch, on top of it.
        let changes = |stood: &Stood| {
            let its = |passage: &Passage| passage.main.as_ref() == Some(&stood.commit) && passage.at < stood.passed;
            self.passages.iter().any(its) || self.broken.iter().any(|broken| broken.main == stood.commit)
        };
        let same = self.stood?.iter().filter(|stood| {
            stood.passed >= brought.at
                && next.is_none_or(|next| stood.entered < next)
                && (Some(&stood.commit) == brought.main.as_ref()
                    || (!changes(stood) && self.found_by(stood) == Some(brought.id)))
        });
        same.max_by_key(|stood| stood.passed)
    }

    /// Which rollout's content a commit found when it passed: it may have gone back since.
    fn found_by(&self, stood: &Stood) -> Option<RolloutId> {
        let was_there = |passage: &&Passage| {
            let left = match &passage.phase {
                // All rings kept it.
                Phase::Aborted { .. } if passage.rings.iter().all(|(_, state)| state.is_new()) => None,
                Phase::RolledBack { at, .. } | Phase::Aborted { at, .. } | Phase::Superseded { at, .. } => Some(*at),
                Phase::Active | Phase::Paused { .. } | Phase::Stopped { .. } | Phase::Complete { .. } => None,
            };
            passage.main.is_some() && passage.at < stood.passed && left.is_none_or(|left| left > stood.passed)
        };
        self.passages.iter().find(was_there).map(|passage| passage.id)
    }
}

#[cfg(test)]
mod tests;
