//! The timeline of one commit: from Git through every environment to converged clusters, with the time that each step took. Put
//! together from the log when somebody asks.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::history::{Timeline, TimelineStep};
use kedge_hub_types::history::what::{Change, What};
use kedge_hub_types::history::{Kind, Recorded};
use kedge_hub_types::status::tally::Word;
use kedge_model::wire::{PackagesKey, Timestamp};
use serde_json::{Value, json};

use crate::store::history::page::{HistoryFilter, Reader};
use crate::store::status::counts::CountFilter;
use crate::store::{Store, StoreError};

/// A step before it is put in order.
struct Found {
    step: &'static str,
    at: i64,
    took_ms: Option<u64>,
    detail: Value,
}

/// What is known of one environment.
#[derive(Default)]
struct Passage {
    found: Vec<Found>,
    /// The commits on its branch that this one became.
    published: BTreeSet<String>,
    issued: Vec<Recorded>,
    /// What people said to let it in, and who.
    said: BTreeSet<(String, String)>,
}

/// More entries of one commit than this are told by their first ones.
const MOST: usize = 2000;
/// So many contents of a commit are followed to clusters.
const CONTENTS: usize = 20;
/// One request's page.
const PAGE: usize = 500;

/// None: the log knows nothing of it, or nothing that the reader may see.
pub async fn of(store: &Store, reader: &Reader, commit: &str) -> Result<Option<Timeline>, StoreError> {
    let Some(commit) = store.history_commit(commit).await? else { return Ok(None) };
    let entries = all(store, reader, &commit, &[]).await?;
    let mut passages: BTreeMap<String, Passage> = BTreeMap::new();
    let mut subject = None;
    for entry in entries {
        let passage = passages.entry(entry.place.environment.clone()).or_default();
        subject = subject.or_else(|| subject_of(&entry));
        passage.take(entry);
    }
    passages.remove("");
    if *reader == Reader::All {
        for (environment, row) in store.promotions().await? {
            let waits = |promotion: &&kedge_rollout::Promotion| {
                promotion.commit == commit && promotion.phase == kedge_rollout::PromotionPhase::Waiting
            };
            if let Some(promotion) = row.standing.promotions.iter().find(waits) {
                subject = subject.or_else(|| Some(promotion.subject.clone()).filter(|subject| !subject.is_empty()));
                let detail = json!({"waitsFor": promotion.waits_for});
                let waiting = Found { step: "waiting", at: promotion.created_at.0, took_ms: None, detail };
                passages.entry(environment).or_default().found.push(waiting);
            }
        }
    }
    if passages.is_empty() {
        return Ok(None);
    }
    let mut timelines: Vec<(i64, Vec<TimelineStep>)> = Vec::new();
    for (environment, mut passage) in passages {
        for published in std::mem::take(&mut passage.published).into_iter().take(CONTENTS) {
            let entries = all(store, reader, &published, &[Kind::Generation, Kind::Publish]).await?;
            entries.into_iter().filter(|one| one.place.environment == environment).for_each(|one| passage.take(one));
        }
        passage.follow(store, reader, &environment).await?;
        let steps = passage.steps(&environment);
        timelines
            .push((steps.first().map_or(i64::MAX, |(at, _)| *at), steps.into_iter().map(|(_, step)| step).collect()));
    }
    timelines.sort_by_key(|(begun, _)| *begun);
    Ok(Some(Timeline { commit, subject, items: timelines.into_iter().flat_map(|(_, steps)| steps).collect() }))
}

/// Every entry of a commit, the oldest last; up to `MOST`.
async fn all(store: &Store, reader: &Reader, commit: &str, kinds: &[Kind]) -> Result<Vec<Recorded>, StoreError> {
    let mut filter = HistoryFilter {
        commit: Some(commit.to_owned()),
        kinds: kinds.to_vec(),
        limit: PAGE,
        ..HistoryFilter::default()
    };
    let mut found = Vec::new();
    loop {
        let (page, next) = store.history_page(reader, &filter).await?;
        found.extend(page);
        filter.from = next;
        if next.is_none() || found.len() >= MOST {
            return Ok(found);
        }
    }
}

impl Passage {
    fn take(&mut self, entry: Recorded) {
        let at = entry.at.0;
        match entry.what() {
            Some(What::Walked { made_at, steps, repo, head, .. }) => {
                self.published.extend(head);
                if let Some(at) = made_at {
                    self.found.push(Found { step: "pushed", at, took_ms: None, detail: json!({"repo": repo}) });
                }
                for step in steps {
                    if let Some(name) = step_of(&step.name) {
                        let detail = json!({});
                        self.found.push(Found { step: name, at: step.ended_at, took_ms: Some(step.took_ms), detail });
                    }
                }
            }
            Some(What::Landed { head, branch, .. }) => {
                let detail = json!({"published": head, "branch": branch});
                self.published.insert(head);
                self.found.push(Found { step: "published", at, took_ms: None, detail });
            }
            Some(What::Published { published, branch, subject }) => {
                let detail = json!({"published": published, "branch": branch, "subject": subject});
                self.found.push(Found { step: "published", at, took_ms: None, detail });
            }
            Some(What::Promotion { phase, author, why, .. }) => match phase.as_str() {
                "entered" | "adopted" => {
                    let detail = json!({"author": author, "phase": phase});
                    self.found.push(Found { step: "promoted", at, took_ms: None, detail });
                }
                "passed" => self.found.push(Found { step: "gatePassed", at, took_ms: None, detail: json!({}) }),
                "failed" | "reopened" => {
                    self.found.push(Found { step: "failed", at, took_ms: None, detail: json!({"why": why}) });
                }
                _ => {}
            },
            // Who wrote a commit didn't let it in: those who did said so.
            Some(What::Word { about, say, refused: None, .. }) if about == "promotion" => {
                self.said.extend(entry.who.map(|who| (say, who)));
            }
            Some(What::Rollout { rollout, phase, why, .. }) if ended(&phase).is_some() => {
                let step = ended(&phase).unwrap_or_default();
                let detail = json!({"rollout": rollout, "why": why});
                self.found.push(Found { step, at, took_ms: None, detail });
            }
            Some(What::Rollout { rollout, phase, .. }) if phase == "complete" => {
                self.found.push(Found { step: "gatePassed", at, took_ms: None, detail: json!({"rollout": rollout}) });
            }
            Some(What::Issued { .. }) => self.issued.push(entry),
            _ => {}
        }
    }

    /// When clusters had it.
    async fn follow(&mut self, store: &Store, reader: &Reader, environment: &str) -> Result<(), StoreError> {
        let Some(begun) = self.issued.iter().map(|entry| entry.at).min() else { return Ok(()) };
        let mut contents: BTreeSet<(String, PackagesKey)> = BTreeSet::new();
        let mut assignments = BTreeSet::new();
        for entry in &self.issued {
            assignments.insert(entry.place.assignment.clone());
            if let Some(What::Issued { packages: Some(key), change: Change::Added | Change::Changed, .. }) =
                entry.what()
            {
                contents.insert((entry.place.workload.clone(), key));
            }
        }
        let detail = json!({"assignments": assignments.len()});
        self.found.push(Found { step: "issued", at: begun.0, took_ms: None, detail });
        let (mut first, mut last): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        let (mut converged, mut of) = (0, 0);
        for (workload, key) in contents.into_iter().take(CONTENTS) {
            let filter = HistoryFilter {
                environment: Some(environment.to_owned()),
                workload: Some(workload).filter(|workload| !workload.is_empty()),
                kinds: vec![Kind::Condition],
                event: Some(Word::Converged.as_str().to_owned()),
                content: Some(key.to_string()),
                since: Some(begun),
                limit: 1,
                ..HistoryFilter::default()
            };
            let earliest = store.first_of_history(reader, &filter).await?.map(|entry| entry.at);
            first = [first, earliest].into_iter().flatten().min();
            let (newest, _) = store.history_page(reader, &filter).await?;
            last = last.max(newest.first().map(|entry| entry.at));
            let key = key.to_string();
            let asked = CountFilter { environment, packages: Some(&key), ..CountFilter::default() };
            for count in store.counts(&asked).await? {
                of += count.count;
                converged += if count.condition == Word::Converged { count.count } else { 0 };
            }
        }
        // What nobody reports any more can't be counted: a later commit took its place everywhere.
        let detail = if of > 0 { json!({"converged": converged, "of": of}) } else { json!({}) };
        if let Some(at) = first {
            self.found.push(Found { step: "firstConverged", at: at.0, took_ms: None, detail: detail.clone() });
        }
        if let Some(at) = last.filter(|_| of > 0 && converged == of) {
            self.found.push(Found { step: "converged", at: at.0, took_ms: None, detail });
        }
        Ok(())
    }

    /// In the order of time; of a step that came several times, the first.
    fn steps(mut self, environment: &str) -> Vec<(i64, TimelineStep)> {
        let (approved, overridden): (Vec<_>, Vec<_>) = self.said.into_iter().partition(|(say, _)| say != "override");
        let names = |said: Vec<(String, String)>| said.into_iter().map(|(_, who)| who).collect::<BTreeSet<String>>();
        let (approved, overridden) = (names(approved), names(overridden));
        for found in self.found.iter_mut().filter(|found| found.step == "promoted") {
            found.detail["approvedBy"] = json!(approved);
            found.detail["overriddenBy"] = json!(overridden);
        }
        // What the reconciler measured and what the log saw of the same step are one.
        self.found.sort_by_key(|found| (found.at, rank(found.step)));
        let mut known: BTreeMap<&str, Found> = BTreeMap::new();
        for found in self.found {
            match known.get_mut(found.step) {
                None => {
                    known.insert(found.step, found);
                }
                Some(before) => {
                    before.took_ms = before.took_ms.or(found.took_ms);
                    if before.detail == json!({}) {
                        before.detail = found.detail;
                    }
                }
            }
        }
        let mut steps: Vec<Found> = known.into_values().collect();
        steps.sort_by_key(|found| (found.at, rank(found.step)));
        let mut before: Option<i64> = None;
        let step = |found: Found| {
            let waited = before.map(|before| u64::try_from(found.at.saturating_sub(before)).unwrap_or(0));
            before = Some(found.at);
            let step = TimelineStep {
                environment: environment.to_owned(),
                step: found.step.to_owned(),
                at: jiff::Timestamp::from_millisecond(found.at).map(|at| at.to_string()).unwrap_or_default(),
                took_ms: found.took_ms.or(waited),
                detail: found.detail,
            };
            (found.at, step)
        };
        steps.into_iter().map(step).collect()
    }
}

const ORDER: [&str; 15] = [
    "pushed",
    "waiting",
    "promoted",
    "read",
    "scheduled",
    "published",
    "packed",
    "issued",
    "firstConverged",
    "converged",
    "gatePassed",
    "stopped",
    "rolledBack",
    "aborted",
    "failed",
];

/// How a rollout ends that didn't complete.
fn ended(phase: &str) -> Option<&'static str> {
    ["stopped", "rolledBack", "aborted"].into_iter().find(|known| *known == phase)
}

fn rank(step: &str) -> usize {
    ORDER.iter().position(|known| *known == step).unwrap_or(ORDER.len())
}

fn step_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "read" => "read",
        "schedule" => "scheduled",
        "publish" => "published",
        "pack" => "packed",
        "issue" => "issued",
        _ => return None,
    })
}

fn subject_of(entry: &Recorded) -> Option<String> {
    match entry.what()? {
        What::Walked { subject, .. } | What::Promotion { subject, .. } | What::Rollout { subject, .. } => {
            Some(subject).filter(|subject| !subject.is_empty())
        }
        _ => None,
    }
}
