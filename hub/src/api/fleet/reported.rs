//! Gathers what `running` tells the commits from: counts of what clusters reported, and rollouts as far back as something that runs
//! isn't explained. Where all clusters run what their ring was given, that is one rollout. Called by `standing`.

use std::collections::{BTreeMap, BTreeSet};

use kedge_api::fleet::RunningCommit;
use kedge_hub_types::rollout::running::is_unfinished;
use kedge_hub_types::status::tally::Word;
use kedge_rollout::{Promotion, PromotionPhase, RolloutId, Standing};

use super::running::{Broken, Passage, Picture, Row, Runs, Stood, is_open, running};
use crate::api::ApiState;
use crate::api::answer::ApiError;
use crate::api::drift::contents;
use crate::store::api::conditions::MemberFilter;
use crate::store::catalog::Visible;
use crate::store::rollout::StoredRollout;

/// The commits that an environment's clusters run. Rollouts of platform files come the newest first; `base` is the commit whose
/// files were last compared with all rings.
pub(super) async fn commits(
    state: &ApiState,
    environment: &str,
    rollouts: Vec<StoredRollout>,
    blocked: &BTreeSet<RolloutId>,
    rings: &[String],
    base: Option<&str>,
    standing: Option<&Standing>,
) -> Result<Vec<RunningCommit>, ApiError> {
    let mut rows = rows(state, environment).await?;
    if rows.is_empty() {
        let unreported = |ring: &String| Row {
            ring: ring.clone(),
            place: Default::default(),
            runs: Runs::Unreported,
            deviates: true,
            count: 0,
            offline: 0,
        };
        rows = rings.iter().map(unreported).collect();
    }
    let mut passages: Vec<Passage> = Vec::new();
    for (index, stored) in rollouts.into_iter().enumerate() {
        let mut passage = Passage::from(stored);
        let asked = index == 0 || is_unfinished(&passage.phase) || blocked.contains(&passage.id);
        if asked || is_open(&passages, &rows) {
            let items = state.store.rollout_items(passage.id).await?;
            let named = |item: kedge_rollout::Item| (item.cluster_type, item.assignment);
            passage.items = items.into_iter().map(|stored| (named(stored.item), stored.change)).collect();
        }
        passages.push(passage);
    }
    let quarantines = state.store.quarantines(environment).await?;
    // Without a commit of main it is an application's, or the environment's own.
    let broken: Vec<Broken> = quarantines
        .into_iter()
        .filter(|(_, quarantine)| !quarantine.main.is_empty())
        .map(|(name, quarantine)| {
            let place = name.split_once('/').map(|(one, other)| (one.to_owned(), other.to_owned()));
            // A file of main has a path, too.
            let place = place.filter(|place| rows.iter().any(|row| row.place == *place));
            (place, quarantine, is_file(&name))
        })
        // Of what never ran, nothing older runs.
        .filter(|(place, _, file)| place.is_some() || *file)
        .map(|(place, quarantine, _)| Broken { place, main: quarantine.main, since: quarantine.since })
        .collect();
    let stood: Option<Vec<Stood>> = standing.map(|standing| standing.promotions.iter().filter_map(Stood::of).collect());
    let stood = stood.as_deref();
    Ok(running(&Picture { passages: &passages, blocked, rows: &rows, broken: &broken, rings, base, stood }))
}

/// What the clusters of an environment said that they run.
async fn rows(state: &ApiState, environment: &str) -> Result<Vec<Row>, ApiError> {
    let filter = MemberFilter { environment: Some(environment.to_owned()), ..MemberFilter::default() };
    let sums = state.store.running_sums(&Visible::All, &filter).await?;
    let desired = state.desired.streams(&state.store).await?;
    let wanted = |sum: &crate::store::api::drift::RunningSum| {
        desired.get(&sum.stream).and_then(|stream| stream.entries.get(&sum.assignment))
    };
    let other: BTreeSet<String> = sums
        .iter()
        .filter(|sum| !sum.running.is_empty() && wanted(sum).is_none_or(|entry| entry.packages != sum.running))
        .map(|sum| sum.running.clone())
        .collect();
    let other: Vec<String> = other.into_iter().collect();
    let known = contents(state, &other, &desired).await?;
    let mut rows: BTreeMap<(String, String, String, String), Row> = BTreeMap::new();
    for sum in &sums {
        // A cluster that has nothing yet runs no commit; one where it failed runs what is without it.
        if sum.running.is_empty() && sum.condition != Word::Failed {
            continue;
        }
        let entry = wanted(sum);
        let (platform, workload) = match entry.filter(|entry| entry.packages == sum.running) {
            Some(entry) => (entry.platform, entry.workload),
            None => known.get(&sum.running).map(|content| (content.platform, content.workload)).unwrap_or_default(),
        };
        let same = match (platform, entry.and_then(|entry| entry.platform)) {
            (Some(one), Some(other)) => one == other,
            _ => entry.is_some_and(|entry| entry.packages == sum.running),
        };
        let (ring, cluster_type) = (sum.stream.ring.clone(), sum.stream.cluster_type.clone());
        let key = (ring.clone(), cluster_type.clone(), sum.assignment.clone(), sum.running.clone());
        let row = rows.entry(key).or_insert_with(|| Row {
            ring,
            place: (cluster_type, sum.assignment.clone()),
            runs: Runs::Packages { name: sum.running.clone(), platform, workload },
            deviates: !same,
            count: 0,
            offline: 0,
        });
        row.count += sum.count;
        row.offline += if sum.condition == Word::Unknown { sum.count } else { 0 };
    }
    Ok(rows.into_values().collect())
}

/// Whether a quarantine is of a file of main: assignments are named `type/name`, without a suffix.
fn is_file(name: &str) -> bool {
    let path = std::path::Path::new(name);
    path.extension().is_some_and(|kind| kind == "yaml" || kind == "yml" || kind == "json")
}

impl Stood {
    /// None: it hasn't passed. What ran before there was a policy needn't.
    fn of(promotion: &Promotion) -> Option<Stood> {
        let entered = promotion.entered_at?;
        let adopted = (promotion.phase == PromotionPhase::Adopted).then_some(entered);
        let passed = promotion.passed_at.or(adopted)?;
        Some(Stood { commit: promotion.commit.clone(), subject: promotion.subject.clone(), entered, passed })
    }
}

impl From<StoredRollout> for Passage {
    fn from(stored: StoredRollout) -> Passage {
        let rollout = stored.rollout;
        // Another commit's subject says nothing about the commit of main.
        let of_main = rollout.cause.subject_of.is_none();
        Passage {
            id: rollout.id,
            main: rollout.cause.main,
            subject: if of_main { rollout.cause.subject } else { String::new() },
            phase: rollout.phase,
            at: rollout.created_at,
            rings: rollout.rings.into_iter().map(|progress| (progress.ring, progress.state)).collect(),
            items: BTreeMap::new(),
        }
    }
}
